"""The term of an owner from the opened writer to the closed one: the order of its steps, and who is kept alive.

Knows what stands in place of clients and topics; knows nothing of what is decided.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple
from unittest.mock import MagicMock, Mock, call

import pytest

from stream_dedup.registry import RegistryUnreachableError
from stream_dedup.settings import Settings
from stream_dedup.stream import owner as owner_
from stream_dedup.stream import transient_faults
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.life import Life, StoppedError
from stream_dedup.stream.output.errors import AbortedError, StuckError
from stream_dedup.stream.owner import Owner

_SETTINGS = Settings.model_validate({"kafka": {}, "shadow": {"enabled": True, "verify": {"near_jaccard": 0.9}}})
_TERM = 3
_PLACED = ("abort_open_transaction", "commit_without_publishing", "make_writer")
_PLACED_CLASSES = ("Committer", "Formats", "History", "Pipeline", "Reader", "Shadow", "Sink", "Source")


class _Scene(NamedTuple):
    journal: Any
    life: Life

    @property
    def parts(self) -> Any:  # noqa: ANN401  # in place of parts that need a broker
        return self.journal.parts

    @property
    def reader(self) -> Any:  # noqa: ANN401  # in place of a reader
        return self.journal.Reader().__enter__()

    @property
    def history(self) -> Any:  # noqa: ANN401  # in place of a history
        return self.journal.History()

    def serve(self) -> list[str]:
        """Serve for one term; return the calls that were made, as `client.call`."""
        self.journal.reset_mock()
        Owner(self.parts, None).serve()
        return self.calls()

    def calls(self) -> list[str]:
        """Return the calls that were made so far."""
        return [name.replace("()", "") for name, *_ in self.journal.mock_calls]

    def turns(self, *reads: Callable[[], object]) -> None:
        """Let each turn of the loop read so; the last one requests a stop as well."""
        left = list(reads)

        def read(_stopping: threading.Event) -> object:
            pending = left.pop(0)()
            if not left:
                self.life.stop()
            return pending

        self.reader.read.side_effect = read


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> _Scene:
    """Return an owner whose group has decided nothing that its state lacks, and that has one turn."""
    journal, life, output = MagicMock(), Life(60.0), _SETTINGS.output
    made = _Scene(journal, life)
    for name in (*_PLACED, *_PLACED_CLASSES):
        monkeypatch.setattr(owner_, name, getattr(journal, name))
    monkeypatch.setattr(owner_, "client_statistics", lambda *_: nullcontext())
    monkeypatch.setattr(transient_faults, "_PAUSE_SECONDS", 0.0)
    made.parts.settings, made.parts.life = _SETTINGS, life
    made.parts.ownership.owner, made.parts.ownership.term = True, _TERM
    made.parts.engine.progress.live = (0, 1)
    made.parts.engine.state.changelog_start.return_value = 7
    made.parts.topics.max_message_bytes.side_effect = {output.unique: 1, output.dead: 2}.get
    made.parts.topics.other_changelogs.return_value = ["one", "two"]
    made.history.total = made.history.done = 0
    made.turns(lambda: None)
    return made


def _among(calls: list[str], *names: str) -> list[str]:
    return [name for name in calls if name in names]


# ------------------------------------------------------------------------------------------------- beginning


def test_writers_of_before_are_fenced_before_the_changelog_is_read_to_its_end(scene: _Scene) -> None:
    """What they commit later would be missing; and all that is decided is known before the input is read."""
    steps = [
        "make_writer.open",
        "parts.catch_up",
        "History",
        "History.close",
        "Source",
        "parts.topics.delete_records_before",
        "Reader.__enter__.read",
    ]
    assert _among(scene.serve(), *steps) == steps
    assert scene.parts.topics.delete_records_before.call_args == call(scene.parts.names.changelog, 7)
    assert scene.parts.metrics.show_role.call_args_list == [call("active")]


def test_signs_of_life_are_shown_while_the_broker_is_waited_for(scene: _Scene) -> None:
    """By the writer, which also tells the probes of an answer that is overdue, and by the pipeline."""
    scene.serve()
    given = (_SETTINGS, scene.parts.names.changelog, scene.life.wait_for_answer)
    assert scene.journal.make_writer.call_args.args[:3] == given
    assert scene.journal.Pipeline.call_args.args[6] == scene.life.heartbeat


def test_messages_may_be_as_large_as_the_topics_that_they_go_to(scene: _Scene) -> None:
    """Those that are judged may be published, others become dead letters."""
    scene.serve()
    assert [args for args, _ in scene.journal.Formats().__enter__().decoder.call_args_list] == [(1,)]
    assert [args for args, _ in scene.journal.Formats().decoder.call_args_list] == [(1,)]
    assert scene.journal.Sink.call_args.args[3] == 2


# --------------------------------------------------------------------------------------- judging in silence


def test_decided_messages_are_judged_in_silence(scene: _Scene) -> None:
    """Batches that hold none are passed over; signs of life and a role that is no standby's are shown meanwhile."""
    scene.history.total, scene.history.batches.return_value = 3, [["a", "b"], [], ["c"]]
    commit, parts = scene.journal.commit_without_publishing, scene.parts
    parts.engine.positions.side_effect = lambda: commit.call_count
    beats = Mock()
    with scene.life.called_at_heartbeat(beats):
        calls = scene.serve()
    assert [args[0] for args, _ in scene.journal.commit_without_publishing.call_args_list] == [["a", "b"], ["c"]]
    assert [args[0] for args, _ in scene.parts.meter.judged_without_publishing.call_args_list] == [2, 1]
    assert beats.call_count == 3
    # The input is read from behind them, or they would be published after all.
    assert scene.journal.History.call_args.args == (_SETTINGS, 0, parts.topics.known_identities, scene.life.heartbeat)
    assert scene.journal.Source.call_args.args[:3] == (_SETTINGS, 2, parts.topics.identities)
    assert scene.parts.metrics.show_role.call_args_list == [call("restoring"), call("active")]
    assert _among(calls, "commit_without_publishing", "History.close", "Source") == [
        "commit_without_publishing",
        "commit_without_publishing",
        "History.close",
        "Source",
    ]


def test_term_ends_where_they_could_not_be_committed(scene: _Scene) -> None:
    """A new writer must resume after the last batch that was; until then nothing may be published."""
    scene.history.total, scene.history.batches.return_value = 2, [["a"], ["b"]]
    scene.journal.commit_without_publishing.side_effect = AbortedError("the coordinator has moved")
    calls = scene.serve()
    assert _among(calls, "commit_without_publishing", "History.close", "Source", "make_writer.close") == [
        "commit_without_publishing",
        "History.close",
        "make_writer.close",
    ]
    scene.parts.meter.judged_without_publishing.assert_not_called()


def test_stop_ends_the_judging_after_a_batch(scene: _Scene) -> None:
    """The next start resumes it: there may be hours of it left."""
    scene.history.total, scene.history.batches.return_value = 2, [["a"], ["b"]]
    scene.journal.commit_without_publishing.side_effect = lambda *_: scene.life.stop()
    with pytest.raises(StoppedError, match="decided messages were being judged again"):
        scene.serve()
    scene.journal.commit_without_publishing.assert_called_once()
    scene.history.close.assert_called_once()


def test_transactions_that_hide_what_was_decided_are_aborted(scene: _Scene) -> None:
    """Those of all other settings; the process stays alive while the broker is asked."""
    scene.serve()
    scene.journal.History.call_args.kwargs["while_hidden"]()
    assert scene.parts.topics.other_changelogs.call_args == call(scene.parts.directory.name)
    assert scene.journal.abort_open_transaction.call_args_list == [
        call(_SETTINGS, name, scene.life.heartbeat) for name in ("one", "two")
    ]


# -------------------------------------------------------------------------------------------- while it lasts


def test_all_clients_are_kept_alive_for_the_term(scene: _Scene) -> None:
    """Brokers take a silent one for dead; after the term nothing that was closed is called."""
    clients = ["Source.keep_alive", "make_writer.poll", "parts.meter.tick", "parts.reader.rest"]

    def beat() -> None:
        scene.journal.reset_mock()
        scene.life.heartbeat()
        assert sorted(_among(scene.calls(), *clients)) == clients
        scene.journal.reset_mock()

    scene.turns(beat)
    scene.serve()
    assert scene.parts.meter.tick.call_args_list == [call(scene.journal.Source())]  # of the turn
    scene.journal.reset_mock()
    scene.life.poll()
    for call_ in scene.life._at_heartbeat:  # noqa: SLF001  # a heartbeat would end with the stop
        call_()
    assert scene.calls() == []


def test_turn_commits_what_was_read_or_notes_what_was_found_out(scene: _Scene) -> None:
    """With signs of life each time; snapshots are taken in between."""
    pending = Mock()
    scene.turns(lambda: None, lambda: pending, lambda: None)
    beats = scene.life.health.beat = Mock()  # type: ignore[method-assign]
    calls = scene.serve()
    steps = ("Pipeline.commit", "Pipeline.note", "parts.meter.committed", "parts.snapshots.turn")
    assert [name.split(".")[-1] for name in _among(calls, *steps)] == [
        *("turn", "note"),
        *("turn", "commit", "committed"),
        *("turn", "note"),
    ]
    assert scene.journal.Pipeline().commit.call_args_list == [call(pending)]
    assert beats.call_count > 3


@pytest.mark.parametrize(("assigned", "told"), [(True, (True, "ok")), (False, (False, "waiting for partitions"))])
def test_owner_is_ready_while_it_has_partitions(scene: _Scene, *, assigned: bool, told: tuple[bool, str]) -> None:
    """The group may have given them to processes that share it."""
    scene.journal.Source().assigned = assigned
    scene.serve()
    assert scene.life.health.ready() == told


def test_commit_is_traced(scene: _Scene) -> None:
    """With the decisions that it made."""
    spans = Mock()
    scene.turns(Mock())
    Owner(scene.parts, spans).serve()
    assert spans.committed.call_args_list == [call(scene.journal.Pipeline().commit())]


def test_owners_group_is_asked_about_this_term(scene: _Scene) -> None:
    """Where the broker fences nobody: the writer asks before it writes."""
    scene.serve()
    ask, ownership = scene.journal.make_writer.call_args.args[4], scene.parts.ownership
    ownership.ask.return_value = True
    assert ask(0.5)
    ownership.ask.assert_called_once_with(0.5)
    ownership.term += 1
    with pytest.raises(AbortedError, match="another process may have owned the index"):
        ask(0.5)


def test_registry_out_of_reach_ends_no_signs_of_life(scene: _Scene) -> None:
    """Before the stream this thread waits for it itself; then the reader's does, which must not send any."""
    scene.serve()
    scene.life.stopping.clear()
    for formats, beats in zip(scene.journal.Formats.call_args_list, (1, 0), strict=True):
        beat = Mock()
        with scene.life.called_at_heartbeat(beat):
            formats.args[1](RegistryUnreachableError("no answer"))
        assert beat.call_count == beats


@pytest.mark.parametrize("loses", ["the partition", "the term", "the source", "the writer"])
def test_term_ends_with_what_it_needs(scene: _Scene, loses: str) -> None:
    """One that regains the partition begins a new term: others may have written in between."""
    pipeline, ownership = scene.journal.Pipeline(), scene.parts.ownership

    def lose() -> None:
        if loses == "the partition":
            ownership.poll.side_effect = lambda: setattr(ownership, "owner", False)
        elif loses == "the term":
            ownership.poll.side_effect = lambda: setattr(ownership, "term", _TERM + 1)
        else:
            scene.reader.rewind.return_value = loses != "the source"
            error = StuckError if loses == "the writer" else AbortedError
            pipeline.note.side_effect = error("a reason")

    scene.turns(lambda: None, lose, lambda: pytest.fail("the term goes on"))
    calls = scene.serve()
    assert _among(calls, "Reader.__enter__.read", "make_writer.close") == [
        "Reader.__enter__.read",
        "Reader.__enter__.read",
        "make_writer.close",
    ]


# -------------------------------------------------------------------------------------------------- its end


@pytest.mark.parametrize("stops", [True, False])
def test_all_that_was_opened_is_closed(scene: _Scene, *, stops: bool) -> None:
    """The group is left with a stop only: whoever has lost the index stands by for it."""

    def fail() -> None:
        if stops:
            scene.life.stop()
        raise BrokerError("no answer")

    scene.turns(fail)
    with pytest.raises(BrokerError, match="no answer"):
        scene.serve()
    calls = scene.calls()
    assert sorted(_among(calls, "Source.close", "make_writer.close", "parts.ownership.leave")) == [
        "Source.close",
        "make_writer.close",
        *(["parts.ownership.leave"] if stops else []),
    ]
    # The registry is closed first, since the reader's thread may wait for it; rebalances are counted until the end.
    ends = ["Formats.__exit__", "Shadow.close", "Reader.__exit__", "Source.close", "parts.meter.count_events"]
    assert _among(calls[calls.index("Reader.__enter__") :], *ends) == ends
