"""One commit, step by step: what is sent in which order, and what is dropped when it fails; nothing is connected."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from stream_dedup.article import (
    Article,
    Decision,
    Link,
    Relation,
    Source,
    Succession,
    SuccessionReason,
    Unjudged,
    UnjudgedReason,
    Withdrawal,
    Withdrawn,
)
from stream_dedup.decode import Reason, UndecodableError
from stream_dedup.index.records.ledger import ChangelogPosition
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream.commit.committer import Committer
from stream_dedup.stream.commit.pipeline import Pipeline, commit_without_publishing
from stream_dedup.stream.input.decoded import Decoded
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.reader import PreparedBatch
from stream_dedup.stream.kafka.places import IDENTITY, epoch_at
from stream_dedup.stream.output.errors import AbortedError
from stream_dedup.stream.output.writer import GroupOffsets
from tests.unit.arrived import ArrivedMessage

_POSITIONS = {("in", 0): 8}


@dataclass
class _Stage:
    """A pipeline whose parts write down what is asked of them.

    Attributes:
        judged: what the engine decides.
        holds: whether the partitions are held until the commit.
        parts: all but the engine and the source, each an attribute.
    """

    judged: Any = field(default_factory=lambda: SimpleNamespace(outcomes=[], successions={}, clusters={}, change="it"))
    holds: bool = True
    parts: Mock = field(default_factory=Mock)

    def pipeline(self) -> Pipeline:
        """Return the pipeline."""
        parts = self.parts
        parts.engine.decide.return_value = self.judged
        parts.source.holds.return_value = self.holds
        parts.source.positions_after.return_value = _POSITIONS
        parts.source.unrecorded.return_value = _POSITIONS
        shadow = parts.shadow
        return Pipeline(
            parts.engine, parts.source, parts.reader, parts.sink, parts.writer, parts.committer, lambda: None, shadow
        )

    def commit(self, items: Sequence[tuple[Any, Any]] = (), dead: Sequence[tuple[Any, UndecodableError]] = ()) -> None:
        """Commit messages."""
        prepared = PreparedBatch(Decoded(items, dead), None, {})
        pending: Any = SimpleNamespace(batch=MessageBatch(), taken=lambda _while_waiting: prepared)
        self.pipeline().commit(pending)

    def sent(self) -> list[Any]:
        """Return what the sink was told to send, in order: the calls' names and their first arguments."""
        return [(name.removeprefix("sink."), args[0]) for name, args, _ in self.parts.mock_calls if "sink." in name]


def _message(offset: int, partition: int = 0) -> ArrivedMessage:
    return ArrivedMessage(b"", offset=offset, partition=partition)


def _decision(name: str) -> Decision:
    return Decision(Article(name, "文"), unique=True, fingerprint=1, epoch=0, link=None, indexed=True)


def test_dead_letters_come_in_the_order_of_the_input() -> None:
    """Whether they cannot be read or cannot be judged: what is known only once others are decided waits for nobody."""
    items = [
        (_message(offset, partition), Withdrawal(f"{partition}/{offset}")) for partition, offset in [(1, 2), (0, 5)]
    ]
    stage = _Stage()
    stage.judged.outcomes = [Unjudged(item, UnjudgedReason.UNKNOWN_ARTICLE, "unknown") for _, item in items]
    broken = UndecodableError(Reason.INVALID_JSON, "it is none")
    stage.commit(items, [(_message(offset, partition), broken) for partition, offset in [(1, 1), (0, 9), (1, 3)]])
    letters = [sent for name, sent in stage.sent() if name == "dead_letter"]
    assert [(one.partition(), one.offset()) for one in letters] == [(0, 5), (0, 9), (1, 1), (1, 2), (1, 3)]


def test_succession_comes_between_the_decision_that_led_to_it_and_the_next() -> None:
    """The next may be on the same id: of two records with one key, the last one counts."""
    link = Link("a", "a", Relation.NEAR, 0.9, 0.9, 3, Source.LANDMARK)
    copy = Decision(Article("b", "文"), unique=False, fingerprint=1, epoch=0, link=link, indexed=False)
    gone = Withdrawn(Withdrawal("c"), "c", None)
    outcomes = [_decision("a"), copy, gone, _decision("a")]
    successions = [Succession("a", "b", SuccessionReason.POLICY)]
    stage = _Stage()
    stage.judged.outcomes, stage.judged.successions = outcomes, {1: successions}
    stage.commit([(_message(offset), one) for offset, one in enumerate("abca")])
    told = [(name, sent) for name, sent in stage.sent() if isinstance(sent, ArrivedMessage) or sent]
    decided = [args[1] for name, args, _ in stage.parts.mock_calls if name == "sink.decision"]
    assert decided == [outcomes[0], copy, outcomes[3]]
    assert [sent for _, sent in told if not isinstance(sent, ArrivedMessage)] == [successions, gone]
    assert [name for name, _ in told] == ["decision", "decision", "successions", "withdrawn", "decision"]


def test_partition_that_is_somebody_elses_by_now_ends_the_commit() -> None:
    """Its messages are decided there: what was sent is taken back, and nothing reaches the changelog or the state."""
    stage = _Stage(holds=False)
    with pytest.raises(AbortedError, match="another process"):
        stage.commit()
    assert [name for name, *_ in stage.parts.writer.mock_calls] == ["begin", "abort"]
    stage.parts.committer.commit.assert_not_called()
    stage.parts.source.advance.assert_not_called()
    stage.parts.shadow.judge.assert_not_called()


@pytest.mark.parametrize("fault", [AbortedError("the coordinator has moved"), OSError("no such device")])
def test_shadow_and_input_go_on_only_behind_what_is_committed(fault: Exception) -> None:
    """After an error the same messages are read again, and the shadow must not have judged them before."""
    stage = _Stage()
    stage.parts.committer.commit.side_effect = fault
    with pytest.raises(type(fault)):
        stage.commit()
    stage.parts.source.advance.assert_not_called()
    stage.parts.shadow.judge.assert_not_called()
    stage.parts.committer.commit.side_effect = None
    stage.commit()
    stage.parts.source.advance.assert_called_once()
    stage.parts.shadow.judge.assert_called_once_with([], None, [], _POSITIONS)
    committed = [name for name, *_ in stage.parts.mock_calls]
    assert committed.index("source.advance") < committed.index("shadow.judge")


def test_group_and_clusters_are_told_with_the_commit() -> None:
    """The group gets its own offsets, not all that the state records; clusters come last."""
    stage = _Stage()
    stage.parts.source.offsets_after.return_value = {("in", 0): 8, ("in", IDENTITY): 5}
    stage.parts.source.group.return_value = "member"
    stage.judged.clusters = {"a": None}
    stage.commit()
    change, positions, _watch, group = stage.parts.committer.commit.call_args.args
    assert (change, positions) == ("it", _POSITIONS)
    assert group == GroupOffsets({("in", 0): 8, ("in", IDENTITY): 5}, "member")
    assert stage.sent()[-1] == ("clusters", {"a": None})


def test_times_are_those_of_reading_and_of_the_commit() -> None:
    """They show where a commit spends its time: what was done ahead of it counts too."""
    stage = _Stage()
    pipeline = stage.pipeline()
    prepared = PreparedBatch(Decoded([], []), None, {"decode": 1.5, "features": 0.5})
    pending: Any = SimpleNamespace(batch=MessageBatch(), taken=lambda _while_waiting: prepared)
    seconds = pipeline.commit(pending).seconds
    assert (seconds["decode"], seconds["features"]) == (1.5, 0.5)
    assert seconds.keys() == {"decode", "features", "await", "decide", "produce", "shadow"}


def test_positions_alone_move_the_shadow_too() -> None:
    """Else it would be behind the live state at the next start, and begin anew."""
    stage = _Stage()
    assert stage.pipeline().note()
    stage.parts.committer.commit_alone.assert_called_once_with("it", _POSITIONS)
    stage.parts.source.mark_recorded.assert_called_once_with(_POSITIONS)
    stage.parts.shadow.judge.assert_called_once_with([], None, [], _POSITIONS)


def test_nothing_is_committed_where_there_is_nothing_to_record() -> None:
    """An idle service writes nothing."""
    stage = _Stage()
    pipeline = stage.pipeline()
    stage.parts.source.unrecorded.return_value = {}
    assert not pipeline.note()
    assert stage.parts.mock_calls == [call.source.unrecorded()]


def test_messages_that_were_decided_before_move_the_state_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the last of each partition; of a topic that was recreated, all others begin anew, with its identity."""
    told: list[int] = []
    withdrawal: Any = (_message(3), Withdrawal("a"))

    def decode(_messages: object, _decoder: object, stream_ms: int) -> Decoded:
        told.append(stream_ms)
        return Decoded([withdrawal], [])

    monkeypatch.setattr("stream_dedup.stream.commit.pipeline.decode_all", decode)
    parts, identity = Mock(), ("in", IDENTITY)
    parts.engine.progress.stream_ms = 5
    parts.engine.prepare.return_value = None
    parts.engine.decide.return_value = SimpleNamespace(change="it", drifts=["moved"])
    parts.engine.positions.return_value = {identity: 1, ("in", 0): 90, ("in", 1): 70}
    messages: Any = [ArrivedMessage(b"", offset=offset, partition=0, epoch=4) for offset in (3, 5)]
    drifts: Any = commit_without_publishing(messages, {"in": 2}, parts.engine, parts.decoder, parts.committer)
    assert (drifts, told) == (["moved"], [5])
    parts.engine.decide.assert_called_once_with([Withdrawal("a")], None)
    parts.committer.commit_alone.assert_called_once_with(
        "it", {identity: 2, ("in", 0): 6, epoch_at(("in", 0)): 4, ("in", 1): 0}
    )


# --------------------------------------------------------------------------------------------------- committer


@pytest.mark.parametrize(("behind", "place"), [(7, ChangelogPosition("log/id", 7)), (None, None)])
def test_state_is_written_behind_the_changelog(
    monkeypatch: pytest.MonkeyPatch, behind: int | None, place: ChangelogPosition | None
) -> None:
    """With its position after the records: a kill before that leaves a state that the changelog completes."""
    parts = _committing(monkeypatch)
    parts.writer.commit.return_value = behind
    change: Any = "a change"
    Committer(parts.engine, parts.writer, "log/id").commit(change, _POSITIONS, Stopwatch())
    assert [name for name, *_ in parts.mock_calls] == ["engine.commit_of", "writer.commit", "engine.apply"]
    parts.engine.apply.assert_called_once_with(change, _POSITIONS, place)


def test_change_that_is_not_committed_is_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same messages are decided again, on the state as it was."""
    parts = _committing(monkeypatch)
    parts.writer.commit.side_effect = AbortedError("the coordinator has moved")
    change: Any = "a change"
    with pytest.raises(AbortedError):
        Committer(parts.engine, parts.writer, "log/id").commit_alone(change, _POSITIONS)
    assert [name for name, *_ in parts.writer.mock_calls] == ["begin", "commit"]
    parts.engine.apply.assert_not_called()


def _committing(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return an engine and a writer, between which the records of a commit are none."""
    monkeypatch.setattr("stream_dedup.stream.commit.committer.commit_records", lambda _commit: ())
    return Mock()
