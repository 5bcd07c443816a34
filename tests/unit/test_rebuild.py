"""`state rebuild` without a broker: what it judges, what it needs to know, and what ends it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition

from stream_dedup import Article, Deduplicator
from stream_dedup.index.stores.store import StoreFullError
from stream_dedup.settings import Settings
from stream_dedup.stream import rebuild as rebuild_
from stream_dedup.stream.kafka.clients import BrokerError, ownership_properties
from stream_dedup.stream.output.errors import AbortedError, FencedError
from stream_dedup.stream.rebuild import Rebuild
from stream_dedup.stream.state.states import digest_of


@pytest.mark.parametrize("known", [False, True], ids=["topics", "writer"])
def test_stop_is_obeyed_while_the_broker_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """Whether the topics are asked for, or the writer is opened: nobody has to wait until either gives up."""
    if known:
        monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    with pytest.raises(BrokerError, match="no broker has answered before the stop: run the same command again"):
        _stopped(tmp_path).run()


def test_stop_is_obeyed_while_the_changelog_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that is resumed on another machine replays all that the first has judged."""

    def catch_up(*_: Any, heartbeat: Callable[[], None]) -> None:  # noqa: ANN401  # whatever else it is given
        for _group in range(1_000):
            heartbeat()
        pytest.fail("all of it was replayed")

    monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    monkeypatch.setattr(rebuild_, "make_writer", lambda *_: Mock())
    monkeypatch.setattr(rebuild_, "catch_up", catch_up)
    with pytest.raises(BrokerError, match="the changelog was being replayed: run the same command again"):
        _stopped(tmp_path).run()


def test_stop_is_obeyed_while_the_changelog_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker may fall silent after the writer was opened."""
    monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    monkeypatch.setattr(rebuild_, "make_writer", lambda *_: Mock())
    with pytest.raises(BrokerError, match="the changelog was being replayed: run the same command again"):
        _stopped(tmp_path).run()


@pytest.mark.parametrize(("size", "reserve_mb"), [(8 << 30, 820), (1 << 40, 1024)])
def test_disk_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, reserve_mb: int) -> None:
    """A service with the old settings may run on it, and would end: it stops before, and says how to go on.

    A tenth of a small disk is left alone, and a gigabyte of a large one.
    """

    def catch_up(*_: Any, heartbeat: Callable[[], None]) -> None:  # noqa: ANN401  # whatever else it is given
        monkeypatch.setattr(rebuild_, "disk_usage", lambda _: (size, 0, reserve_mb << 20))
        heartbeat()
        monkeypatch.setattr(rebuild_, "disk_usage", lambda _: (size, 0, (reserve_mb - 1) << 20))
        heartbeat()

    monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    monkeypatch.setattr(rebuild_, "make_writer", lambda *_: Mock())
    monkeypatch.setattr(rebuild_, "catch_up", catch_up)
    with pytest.raises(
        StoreFullError, match=f"the disk of {tmp_path} has {reserve_mb - 1:,} MB left.*run the same command again"
    ):
        _rebuild(tmp_path).run()


class _History:
    """What the group has decided: batches of messages, and the progress that they make.

    Attributes:
        asked: what it was made with.
    """

    identities: Mapping[str, int] = {"in": 7}  # nobody changes it
    total = 30

    def __init__(self, *asked: Any) -> None:  # noqa: ANN401  # whatever it is given
        self.asked = asked
        self.done = 0

    def batches(self) -> Iterator[list[str]]:
        """Yield the batches; an empty one shows that the caller may do something else."""
        for batch in (["a"], [], ["b", "c"]):
            self.done += 10
            yield batch

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], object]]:
    """The batches that are judged, with what identifies their topics; one article of an earlier run is replayed."""
    engines: list[Deduplicator] = []
    batches: list[tuple[list[str], object]] = []

    def make_engine(**given: Any) -> Deduplicator:  # noqa: ANN401  # whatever it is given
        engines.append(Deduplicator(**given))
        return engines[0]

    def catch_up(*_: object, heartbeat: object) -> None:  # noqa: ARG001  # named by the caller
        engines[0].apply(engines[0].decide([Article("old", "前一次")]).change, {("in", 0): 3})

    def commit(
        messages: list[str], identities: object, engine: Deduplicator, _decoder: object, _committer: object
    ) -> None:
        batches.append((messages, identities))
        engine.process([Article(name, f"{name}的正文") for name in messages])

    for name, stand_in in (
        ("Topics", lambda *_: _topics()),
        ("make_writer", lambda *_: Mock()),
        ("Deduplicator", make_engine),
        ("catch_up", catch_up),
        ("History", _History),
        ("commit_without_publishing", commit),
    ):
        monkeypatch.setattr(rebuild_, name, stand_in)
    return batches


def test_what_was_decided_is_judged_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: list[tuple[list[str], object]]
) -> None:
    """From the positions of an earlier run on, whose articles do not count again."""
    histories: list[_History] = []
    reports: list[tuple[str, int, int]] = []

    def history(*asked: Any) -> _History:  # noqa: ANN401  # whatever it is given
        histories.append(_History(*asked))
        return histories[0]

    monkeypatch.setattr(rebuild_, "History", history)
    settings = _rebuild(tmp_path)._settings  # noqa: SLF001  # as those of the others
    rebuild = Rebuild(settings, lambda *told: reports.append(told), threading.Event())
    assert rebuild.run() == 3
    assert judged == [(["a"], {"in": 7}), (["b", "c"], {"in": 7})]
    _, positions, identify, _ = histories[0].asked
    assert (positions, identify({"in"})) == ({("in", 0): 3}, {"in": 7})
    assert reports == [("messages of the input", done, 30) for done in (10, 30)]


@pytest.mark.parametrize("by", ["a stop", "a full disk", "an aborted transaction"])
def test_rebuild_that_ends_early_is_resumed_after_its_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: list[tuple[list[str], object]], by: str
) -> None:
    """A stop between two batches is no error; whatever else ends it says what to do."""
    stopping, commit = threading.Event(), vars(rebuild_)["commit_without_publishing"]

    def commit_and_end(*given: Any) -> None:  # noqa: ANN401  # whatever it is given
        if by == "an aborted transaction":
            raise AbortedError("the transaction was aborted")
        commit(*given)
        if by == "a stop":
            stopping.set()
        else:
            monkeypatch.setattr(rebuild_, "disk_usage", lambda _: (1 << 40, 0, 0))

    monkeypatch.setattr(rebuild_, "commit_without_publishing", commit_and_end)
    rebuild = _rebuild(tmp_path, stopping)
    if by == "a stop":
        assert rebuild.run() == 1
    else:
        fault = StoreFullError if by == "a full disk" else BrokerError
        with pytest.raises(fault, match="run the same command again"):
            rebuild.run()
    assert len(judged) == (by != "an aborted transaction")


@pytest.mark.parametrize("opened", [False, True], ids=["at first", "while it writes"])
def test_rebuild_does_not_write_beside_a_service_with_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, opened: bool
) -> None:
    """A service with other settings, whose state is rebuilt beside it, is no hindrance."""
    rebuild, topics = _rebuild(tmp_path), _topics()
    digest = digest_of(rebuild._settings)  # noqa: SLF001  # what names a member
    own, other = (ownership_properties(Settings(), "group", one)["client.id"] for one in (digest, digest[::-1]))
    topics.members.return_value = [other] if opened else [other, own]

    made: list[str] = []

    def make_writer(*given: Any) -> Mock:  # noqa: ANN401  # whatever it is given
        unused = given[-1]
        made.append("a writer")
        assert unused(1.0)
        topics.members.return_value = [own]
        unused(1.0)
        pytest.fail("it writes")

    monkeypatch.setattr(rebuild_, "Topics", lambda *_: topics)
    monkeypatch.setattr(rebuild_, "make_writer", make_writer)
    with pytest.raises(FencedError, match="a service with these settings is running"):
        rebuild.run()
    assert len(made) == opened


@pytest.mark.parametrize(
    ("offsets", "noted", "end", "told"),
    [
        ([OFFSET_INVALID], "", 5, "has no offsets, so it is unknown what was decided"),
        ([OFFSET_INVALID], "", 0, None),
        ([0, OFFSET_INVALID], "", 5, None),
        ([3], "8", 5, "has offsets only in a deleted topic in, so it is unknown"),
        ([3], "7", 5, None),
    ],
    ids=["none", "none are needed", "at the first message", "of a deleted topic", "of this topic"],
)
def test_rebuild_needs_to_know_what_was_decided(  # parametrised
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offsets: list[int], noted: str, end: int, told: str | None
) -> None:
    """By the group's offsets, unless no changelog of other settings has anything in it."""
    topics = _topics()
    topics.other_changelogs.return_value = ["other"]
    topics.members.side_effect = FencedError("what comes next")
    stored = [TopicPartition("in", at, offset, metadata=noted) for at, offset in enumerate(offsets)]
    monkeypatch.setattr(rebuild_, "make_consumer", lambda *_: Mock())
    monkeypatch.setattr(rebuild_, "committed_offsets", lambda *_: stored)
    monkeypatch.setattr(rebuild_, "watermarks", lambda *_: (0, end))
    monkeypatch.setattr(rebuild_, "Topics", lambda *_: topics)
    with pytest.raises(BrokerError, match=told or "what comes next"):
        _rebuild(tmp_path).run()


def _topics() -> Mock:
    known = {"other_changelogs": [], "members": [], "identity": "changelog/1", "known_identities": {"in": 7}}
    return Mock(**{f"{question}.return_value": answer for question, answer in known.items()})


def _stopped(directory: Path) -> Rebuild:
    """Return a rebuild whose broker does not answer, and of which a stop was requested."""
    stopping = threading.Event()
    stopping.set()
    return _rebuild(directory, stopping)


def _rebuild(directory: Path, stopping: threading.Event | None = None) -> Rebuild:
    kafka = {"bootstrap.servers": "127.0.0.1:1"}
    settings = Settings.model_validate({"state": {"directory": str(directory)}, "kafka": kafka})
    return Rebuild(settings, lambda *_: None, stopping or threading.Event())
