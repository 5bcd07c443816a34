"""A change is made whole or not at all: deciding leaves no trace, applying is one write, and in order.

Knows the Deduplicator and its store; the changelog's commits are tested in test_replay.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from stream_dedup import Deduplicator
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.store import Drop, MemoryStore, Put, StoreError, Write
from tests.engine.durable import contents
from tests.engine.one_by_one import EPOCH, SETTINGS, one_by_one
from tests.engine.samples import articles


class WatchedStore(MemoryStore):
    """A store that counts its writes and fails on demand.

    Attributes:
        writes: so far, except those that only record which posting lists are in runs.
        broken: whether the next one fails.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[Write]] = []
        self.broken = False

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`."""
        if self.broken:
            raise StoreError("the disk is full")
        if not all(map(_is_of_runs, writes)):
            self.writes.append(list(writes))
        super().write(writes)


def _is_of_runs(write: Write) -> bool:
    return (isinstance(write, Put) and write.key.startswith(RUN_KEYS)) or (
        isinstance(write, Drop) and write.begin.startswith(RUN_KEYS)
    )


EngineWith = Callable[[int], tuple[Deduplicator, WatchedStore]]


@pytest.fixture
def engine_with() -> Iterator[EngineWith]:
    """A factory of engines that have judged the first articles of the stream, each with its store."""
    with ExitStack() as made:

        def make(count: int) -> tuple[Deduplicator, WatchedStore]:
            store = WatchedStore()
            engine = made.enter_context(Deduplicator(settings=SETTINGS, store=store))
            engine.add_batch(articles()[:count])
            return engine, store

        yield make


@pytest.mark.parametrize(("before", "count"), [(0, 30), (130, 70), (150, 50), (310, 60)])
def test_deciding_changes_nothing(before: int, count: int, engine_with: EngineWith) -> None:
    """A batch that is decided but not applied leaves no trace: deciding again gives the same decisions and change."""
    engine, store = engine_with(before)
    held, progress, words = contents(engine), engine.progress, engine.vocabulary()
    writes, files = len(store.writes), store.file_names()
    batch = articles()[before : before + count]
    engine.decide(articles()[before + 5 : before + 25])  # another one, discarded
    first, second = engine.decide(batch), engine.decide(batch)
    assert first.decisions == second.decisions == list(one_by_one()[before : before + count])
    assert first.change.writes == second.change.writes
    assert first.change.progress == second.change.progress
    assert (contents(engine), engine.progress, engine.vocabulary()) == (held, progress, words)
    assert (len(store.writes), store.file_names()) == (writes, files)
    assert engine.epoch.number == before // EPOCH


@pytest.mark.parametrize("count", [1, 40, 50])
def test_applying_is_one_write(count: int, engine_with: EngineWith) -> None:
    """A change is one write that includes the positions, even if it ends an epoch."""
    engine, store = engine_with(150)
    judged = engine.decide(articles()[150 : 150 + count])
    store.writes.clear()
    engine.apply(judged.change, {("articles.in", 0): 7, ("articles.in", 1): 9})
    assert len(store.writes) == 1
    assert engine.positions() == {("articles.in", 0): 7, ("articles.in", 1): 9}


def test_failed_write_changes_nothing(engine_with: EngineWith) -> None:
    """A write that fails leaves the engine unchanged: the batch can be retried with the same decisions."""
    engine, store = engine_with(150)
    judged = engine.decide(articles()[150:200])
    progress, words, epoch = engine.progress, engine.vocabulary(), engine.epoch.number
    store.broken = True
    with pytest.raises(StoreError, match="disk is full"):
        engine.apply(judged.change, {("articles.in", 0): 7})
    assert (engine.progress, engine.vocabulary(), engine.epoch.number) == (progress, words, epoch)
    store.broken = False
    assert engine.positions() == {}
    assert engine.add_batch(articles()[150:]) == list(one_by_one()[150:])


def test_positions_stay_with_the_change(tmp_path: Path) -> None:
    """After reopening, the last position of each partition is there, even from a batch without articles."""
    with Deduplicator(tmp_path, SETTINGS) as engine:
        assert engine.positions() == {}
        engine.apply(engine.decide(articles()[:3]).change, {("a/b.c", 0): 3, ("d", 11): 0})
        engine.apply(engine.decide([]).change, {("a/b.c", 0): 5})
    with Deduplicator(tmp_path, SETTINGS) as engine:
        assert engine.positions() == {("a/b.c", 0): 5, ("d", 11): 0}
        assert engine.progress.judged == 3


def test_batch_may_cross_epochs(engine_with: EngineWith) -> None:
    """A batch that spans the ends of epochs is one change, with the same decisions and epochs as single articles."""
    engine, store = engine_with(130)
    judged = engine.decide(articles()[130:330])
    assert judged.decisions == list(one_by_one()[130:330])
    store.writes.clear()
    engine.apply(judged.change)
    assert len(store.writes) == 1
    assert (engine.epoch.number, engine.progress.judged) == (3, 330)


def test_change_is_made_once_and_in_order(engine_with: EngineWith) -> None:
    """A change that was already made, or was decided before another was made, is refused and changes nothing."""
    engine, _ = engine_with(150)
    first, other = engine.decide(articles()[150:160]), engine.decide(articles()[150:170])
    engine.apply(first.change)
    held = contents(engine)
    for change in (first.change, other.change):
        with pytest.raises(ValueError, match="decided on another state"):
            engine.apply(change)
    assert contents(engine) == held
    assert engine.add_batch(articles()[160:]) == list(one_by_one()[160:])
