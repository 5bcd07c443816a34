"""When messages are left to the next commit, with a source and an engine that do what the test says."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from stream_dedup import Article
from stream_dedup.decode import Reason
from stream_dedup.index.records.ledger import Progress
from stream_dedup.stream.input import reader as reader_
from stream_dedup.stream.input.decoded import Decoded
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.reader import PendingCommit, PreparedBatch, Reader
from tests.stream.waiting import wait_until
from tests.unit.clock import Clock

_PAST, _NOT_STOPPING = 0.0, threading.Event()


class _Source:
    """Messages that have arrived: each batch is due at once, and takes all of them."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.rewinds = True

    def rewind(self) -> bool:
        return self.rewinds

    def batch(self) -> MessageBatch:
        return MessageBatch(due=_PAST)

    def take(self, batch: MessageBatch, _stopping: threading.Event) -> bool:
        self.take_at_once(batch)
        return False

    def take_at_once(self, batch: MessageBatch) -> None:
        batch.messages += self.arrived  # type: ignore[arg-type]  # any object will do
        self.arrived.clear()


class _Engine:
    """Prepares messages once it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.progress = Progress()

    def prepare(self, _items: object, _unless: object) -> None:
        assert self.may.wait(60)


@pytest.fixture
def source() -> _Source:
    """Nothing has arrived yet."""
    return _Source()


@pytest.fixture
def engine() -> _Engine:
    """One that is busy until it may go on."""
    return _Engine()


@pytest.fixture
def reader(source: _Source, engine: _Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """One on both; what messages hold does not matter."""
    monkeypatch.setattr(reader_, "decode_all", lambda *_: Decoded([], []))
    unused: Any = SimpleNamespace()
    with Reader(source, unused, engine) as reader:  # type: ignore[arg-type]  # they do what the reader asks for
        yield reader
        engine.may.set()


def _read(reader: Reader) -> list[object]:
    pending = reader.read(_NOT_STOPPING)
    return [] if pending is None else list(pending.batch.messages)


def _awaiting(reader: Reader) -> list[object]:
    """Return what was read for the next commit."""
    return list(reader._next.batch.messages)  # noqa: SLF001  # nothing tells it from outside


def test_what_arrives_while_a_due_commit_is_processed_is_for_the_next(
    reader: Reader, source: _Source, engine: _Engine
) -> None:
    """It would only delay it; the next commit begins with it."""
    source.arrived = ["first"]
    reader.read_ahead()
    source.arrived = ["later"]
    assert _read(reader) == ["first"]
    reader.read_ahead()
    engine.may.set()
    assert _read(reader) == ["later"]


def test_what_arrives_after_a_due_commit_was_processed_is_part_of_it(
    reader: Reader, source: _Source, engine: _Engine
) -> None:
    """It would have to wait for the whole commit otherwise."""
    engine.may.set()
    source.arrived = ["first"]
    reader.read_ahead()
    wait_until(reader._next.is_processed, "the first is prepared")  # noqa: SLF001  # nothing tells it from outside
    source.arrived = ["later"]
    assert _read(reader) == ["first", "later"]


def test_article_that_cannot_be_prepared_is_a_dead_letter(
    reader: Reader, source: _Source, engine: _Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in its text keeps no other from being judged, and does not meet the next process again."""
    message: Any = SimpleNamespace(topic=lambda: "t", partition=lambda: 0, offset=lambda: 7)
    articles = [Article(name, "正文") for name in ("before", "faulty", "behind")]
    decoded = Decoded([(message, article) for article in articles], [])
    monkeypatch.setattr(reader_, "decode_all", lambda *_: decoded)

    def prepare(items: Sequence[Article], _awaited: object = None) -> None:
        if any(article.id == "faulty" for article in items):
            raise ValueError("a fault of ours")

    monkeypatch.setattr(engine, "prepare", prepare)
    source.arrived = ["one", "two", "three"]
    pending = reader.read(_NOT_STOPPING)
    assert pending is not None
    taken = pending.taken(lambda: None).decoded
    assert [item.id for _, item in taken.items] == ["before", "behind"]
    assert [(error.reason, str(error)) for _, error in taken.dead] == [(Reason.INTERNAL, "ValueError: a fault of ours")]


def test_what_arrives_time_and_again_is_processed_once(
    reader: Reader, source: _Source, engine: _Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is made of many pieces, each of which begins where the last one ended."""
    processed: list[object] = []

    def decode(messages: Sequence[object], *_: object) -> Decoded:
        processed.extend(messages)
        return Decoded([], [])

    monkeypatch.setattr(reader_, "decode_all", decode)
    for name in ("first", "second", "third"):
        source.arrived = [name]
        reader.read_ahead()
    engine.may.set()
    pending = reader.read(_NOT_STOPPING)
    assert pending is not None
    pending.taken(lambda: None)
    assert processed == ["first", "second", "third"]


def test_nothing_is_committed_when_nothing_arrives(reader: Reader, source: _Source) -> None:
    """And what arrives then is not late for a commit that was none."""
    assert reader.read(_NOT_STOPPING) is None
    source.arrived = ["first"]
    assert _read(reader) == ["first"]


@pytest.mark.parametrize("possible", [True, False])
def test_what_was_read_ahead_is_dropped_where_the_input_goes_back(
    reader: Reader, source: _Source, *, possible: bool
) -> None:
    """It comes again behind the first message that is not committed; if the source cannot go back, nothing changes."""
    source.arrived = ["second"]
    reader.read_ahead()
    source.rewinds = possible
    assert reader.rewind() == possible
    source.arrived = ["first", "second"]
    reader.read_ahead()
    assert _awaiting(reader) == ["second"] * (not possible) + ["first", "second"]


def test_steady_stream_lets_signals_and_heartbeats_have_their_turn(
    reader: Reader, source: _Source, engine: _Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While there may be more for a commit that is not due: what was read for it stays."""
    clock = Clock()
    monkeypatch.setattr(reader_, "time", clock)
    engine.may.set()
    pieces = iter(range(100))

    def take(batch: MessageBatch, _stopping: threading.Event) -> bool:
        batch.due = clock.now + 60
        batch.messages.append(next(pieces))  # type: ignore[arg-type]  # any object will do
        clock.now += 0.3
        return True

    monkeypatch.setattr(source, "take", take)
    assert reader.read(_NOT_STOPPING) is None
    assert next(pieces) == 4, "after a second"
    assert _awaiting(reader) == [0, 1, 2, 3]


def test_commit_without_messages_takes_what_arrives(reader: Reader, source: _Source) -> None:
    """It has none to wait for."""
    source.arrived = ["first"]
    assert _read(reader) == ["first"]


def test_clock_is_told_the_time_of_the_stream(
    reader: Reader, source: _Source, engine: _Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lag, and what the stream has reached has come."""
    told: list[int] = []

    def decode(_messages: object, _decoder: object, stream_ms: int) -> Decoded:
        told.append(stream_ms)
        return Decoded([], [])

    monkeypatch.setattr(reader_, "decode_all", decode)
    engine.may.set()
    for engine.progress in (Progress(stream_ms=5), Progress(stream_ms=8)):
        source.arrived = ["one"]
        pending = reader.read(_NOT_STOPPING)
        assert pending is not None
        pending.taken(lambda: None)
    assert told == [5, 8]


def test_times_of_the_parts_of_a_commit_add_up() -> None:
    """Its messages may have arrived at several times, and were then decoded part by part."""
    pending = PendingCommit(MessageBatch())
    for seconds in ({"decode": 1.0, "features": 2.0}, {"decode": 0.5, "features": 0.25}):
        part: Future[PreparedBatch] = Future()
        part.set_result(PreparedBatch(Decoded([], []), None, seconds))
        pending.parts.append(part)
    assert pending.taken(lambda: None).seconds == {"decode": 1.5, "features": 2.25}
