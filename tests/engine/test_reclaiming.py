"""The disk space of what has expired is freed by every engine, whoever uses it and wherever it resumed.

Knows which ranges are dropped and which are reclaimed; what RocksDB makes of that is tested in tests/unit/test_rocks.
"""

import threading
from collections.abc import Iterator, Sequence
from queue import SimpleQueue

import pytest

from stream_dedup import Deduplicator
from stream_dedup.index.records.generations import EXPIRING
from stream_dedup.index.stores.store import Drop, Family, MemoryStore, StoreError, Write
from tests.engine.model import BEGIN, DAY, article, engine_settings

_SETTINGS = engine_settings(2)
_SECONDS = 30.0
_Told = tuple[int, StoreError | None]


class _Store(MemoryStore):
    """A store that notes what is dropped and what is reclaimed, and refuses to reclaim on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped: list[Drop] = []
        self.reclaimed: list[Drop] = []
        self.refusal: StoreError | None = None

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`."""
        expired = (*EXPIRING, Family.ENTRIES)
        self.dropped += [write for write in writes if isinstance(write, Drop) and write.family in expired]
        super().write(writes)

    def reclaim(self, family: Family, begin: bytes, end: bytes) -> None:
        """See `FileStore`."""
        if self.refusal is not None:
            raise self.refusal
        self.reclaimed.append(Drop(family, begin, end))

    def close(self) -> None:
        """Stay usable: the next engine opens it as it is."""


@pytest.fixture
def store() -> Iterator[_Store]:
    """A store that is closed after the test, and not with an engine."""
    made = _Store()
    yield made
    MemoryStore.close(made)


def _judged(store: _Store, days: Sequence[int]) -> Iterator[tuple[Deduplicator, "SimpleQueue[_Told]"]]:
    """Judge an article on each of some days, and yield the engine and what it tells of its reclaiming after each."""
    told: SimpleQueue[_Told] = SimpleQueue()
    with Deduplicator(settings=_SETTINGS, store=store) as engine:
        engine.state.reclaimer.tell = lambda number, _seconds, error: told.put((number, error))
        for day in days:
            engine.add(article(f"{day}", day % 3, at=BEGIN + day * DAY))
            engine.process([])  # what expires with one change is reclaimed with the next
            yield engine, told


def _next(told: "SimpleQueue[_Told]") -> _Told:
    """Return what is told next, once its thread has ended."""
    one = told.get(timeout=_SECONDS)
    _wait_for_threads()
    return one


def _wait_for_threads() -> None:
    """Wait for the end of all that is being reclaimed."""
    for thread in threading.enumerate():
        if thread.name == "reclaim":
            thread.join(_SECONDS)
            assert not thread.is_alive()


def _is_reclaimed(store: _Store, dropped: Drop) -> bool:
    return any(
        one.family is dropped.family and one.begin <= dropped.begin and dropped.end <= one.end
        for one in store.reclaimed
    )


def test_what_is_dropped_is_reclaimed(store: _Store) -> None:
    """Each generation soon after it has expired, in every family."""
    oldest = 0
    for engine, told in _judged(store, range(0, 20, 2)):
        if engine.progress.live[0] != oldest:
            oldest = engine.progress.live[0]
            assert _next(told) == (oldest, None)
            assert all(_is_reclaimed(store, dropped) for dropped in store.dropped)
    assert oldest > 1
    assert {dropped.family for dropped in store.dropped} == {*EXPIRING, Family.ENTRIES}


def test_what_an_earlier_process_left_is_reclaimed(store: _Store) -> None:
    """It may have ended between the drop and the end of the reclaiming."""
    for _ in _judged(store, [0, 5, 10]):
        pass
    dropped = store.dropped.copy()
    assert dropped
    store.reclaimed.clear()
    for engine, told in _judged(store, [10]):
        assert _next(told) == (engine.progress.live[0], None)
    assert all(_is_reclaimed(store, one) for one in dropped)


def test_what_could_not_be_reclaimed_is_tried_again_with_the_next_generation(store: _Store) -> None:
    """A disk that fails for a moment is told, ends nothing, and leaves nothing behind for good."""
    oldest = 0
    for engine, told in _judged(store, range(0, 20, 2)):
        if engine.progress.live[0] != oldest:
            first, oldest = not oldest, engine.progress.live[0]
            assert _next(told) == (oldest, store.refusal)
            assert bool(store.reclaimed) != first
            store.refusal = None
        elif not oldest:
            store.refusal = StoreError("the disk does not answer")
    assert all(_is_reclaimed(store, dropped) for dropped in store.dropped)


@pytest.mark.parametrize("days", [[0], [0, 5, 10]])
def test_closed_engine_leaves_no_thread_behind(store: _Store, days: Sequence[int]) -> None:
    """Thousands of engines may be opened one after another in one process."""
    for _ in _judged(store, days):
        pass
    _wait_for_threads()
