"""Where posting lists are kept makes no difference: in memory, in runs, in merged runs, before or after reopening.

Knows outcomes and what lists show; the runs themselves are tested in tests/unit/runs.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stream_dedup import Deduplicator, EngineSettings
from stream_dedup.article import Withdrawal
from stream_dedup.index.runs import schedule, shelf
from stream_dedup.index.stores.store import Family, FileStore, MemoryStore, StoreError, Write
from tests.engine.durable import Log, restored, shown_lists, written
from tests.engine.model import BASES, BEGIN, CUTS, HOUR, VARIANTS, Item, article, engine_settings, parts, streams
from tests.engine.samples import articles, settings
from tests.engine.scoped import scoped_streams
from tests.engine.sound import faults
from tests.unit.runs.files import open_files

_WIDE = engine_settings(2)
# So few are shown under a key that it matters which ones: removed entries take up a slot too.
_NARROW = _WIDE.model_validate(
    {**_WIDE.model_dump(), "landmarks": {"cap": 2}, "simhash": {**_WIDE.simhash.model_dump(), "bucket_cap": 2}}
)
_LONG = _NARROW.model_validate({**_NARROW.model_dump(), "window": {"days": 40}})
_SETTINGS = st.sampled_from([_WIDE, _NARROW])
_YOUNG = st.integers(1, 6)
_GIVEN = hypothesis_settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@contextmanager
def _small_runs(young: int) -> Iterator[None]:
    """Make the smallest runs this small, and the largest sixteen times as large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf, "YOUNG_ENTRIES", young)
        patch.setattr(schedule, "LARGEST_ENTRIES", 16 * young)
        yield


class Restarted:
    """An engine that is closed and reopened on the same store.

    Args:
        settings: of the engine.
        store: of the state.
    """

    def __init__(self, settings: EngineSettings, store: FileStore) -> None:
        self._settings = settings
        self._store = store
        self.engine = Deduplicator(settings=settings, store=store)

    def restart(self) -> None:
        """Drop the index, and start from what the store holds."""
        self.engine.state.index.close()
        self.engine = Deduplicator(settings=self._settings, store=self._store)


@given(stream=scoped_streams() | streams(), cuts=CUTS, restarts=CUTS, young=_YOUNG, engine_settings=_SETTINGS)
@_GIVEN
def test_layout_changes_no_outcome(
    stream: list[Item], cuts: set[int], restarts: set[int], young: int, engine_settings: EngineSettings
) -> None:
    """With runs of a few entries, and reopened anywhere, each outcome is that of an engine without runs.

    After every batch all lists show the same.
    """
    with Deduplicator(settings=engine_settings) as plain, _small_runs(young):
        other = Restarted(engine_settings, MemoryStore())
        done = 0
        for part in parts(stream, cuts | restarts):
            if done in restarts:
                other.restart()
            assert other.engine.process(part).outcomes == plain.process(part).outcomes
            assert shown_lists(other.engine) == shown_lists(plain)
            done += len(part)
        other.engine.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_long_stream_in_a_directory(tmp_path: Path, seed: int) -> None:
    """The same on the sample stream in a directory, through many merges and restarts; the state is valid at the end."""
    random = Random(seed)
    small = settings(idf={"epoch_articles": 100}, window={"days": 7})
    places = sorted(random.sample(range(1, len(articles())), 12))
    expected, found = [], []
    merged = 0
    with Deduplicator(settings=small) as plain:
        for start, stop in pairwise([0, *places, len(articles())]):
            with _small_runs(5), Deduplicator(tmp_path, small) as engine:
                for at in range(start, stop, 8):
                    batch = articles()[at : min(stop, at + 8)]
                    expected += plain.add_batch(batch)
                    found += engine.add_batch(batch)
                merged = max(merged, *(run.entries for run in engine.state.index.shelf.runs), 0)
                assert shown_lists(engine) == shown_lists(plain)
                assert faults(engine, small) == []
    assert found == expected
    assert merged >= 4 * 5


@pytest.mark.parametrize("place", ["directory", "memory"])
def test_closed_engine_holds_nothing(tmp_path: Path, place: str) -> None:
    """Neither files of runs nor the threads that make and read them: a process may open many engines in its life."""
    before = open_files(), threading.active_count()
    for _ in range(3):
        with _small_runs(5), Deduplicator(tmp_path if place == "directory" else None, _WIDE) as engine:
            engine.add_batch(articles()[:80])
            engine.state.index.shelf.finish(engine.progress)
            engine.add_batch(articles()[80:100])
            assert len(engine.state.index.shelf.runs) > 0
    assert (open_files(), threading.active_count()) == before


def _corrections() -> list[Item]:
    """Return a stream in which most articles are soon revised or withdrawn, so that entries are removed while young."""
    items: list[Item] = []
    for n in range(120):
        items.append(article(str(n % 9), n % BASES, n % VARIANTS, at=BEGIN + n * HOUR))
        if n % 4 == 3:
            items.append(Withdrawal(str((n - 1) % 9)))
    return items


@pytest.mark.parametrize("many", [1, 4096], ids=["in bulk", "in one write"])
@pytest.mark.parametrize("groups", [[], [3, 5, 2]], ids=["at once", "group by group"])
def test_replayed_state_that_is_opened_again_shows_the_same(
    monkeypatch: pytest.MonkeyPatch, many: int, groups: list[int]
) -> None:
    """A replayed state, in whatever groups, still knows after reopening where removed entries were listed."""
    monkeypatch.setattr("stream_dedup.engine.state._MANY_ARTICLES", many)
    live, log = Deduplicator(settings=_LONG), Log()
    written(live, log, parts(_corrections(), set(range(2, 150, 6))))
    store = MemoryStore()
    restored(log, _LONG, groups, store).state.index.close()
    with live, Deduplicator(settings=_LONG, store=store) as reopened:
        assert shown_lists(reopened) == shown_lists(live)
        shown = {number for postings in shown_lists(live).values() for number, _ in postings}
        kept = {int.from_bytes(key) for key, _ in store.items(Family.ENTRIES)}
        assert shown - kept, "some lists show entries that were removed"
        more = [article(f"more-{n}", n % BASES, n % VARIANTS, at=BEGIN + 200 * HOUR + n) for n in range(30)]
        assert reopened.process(more).outcomes == live.process(more).outcomes


class _DyingLate(MemoryStore):
    """A store that dies after its second load."""

    def __init__(self) -> None:
        super().__init__()
        self._loads = 0

    def load(self, writes: Sequence[Write]) -> None:
        """See `FileStore`."""
        super().load(writes)
        self._loads += 1
        if self._loads == 2:
            raise StoreError("killed")


def test_replay_that_dies_forgets_no_removed_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry removed by bulk-loaded commits is missing when they are replayed; where it was listed is still known."""
    monkeypatch.setattr("stream_dedup.engine.state._MANY_ARTICLES", 1)
    live, log = Deduplicator(settings=_LONG), Log()
    written(live, log, parts(_corrections(), set(range(2, 150, 6))))
    store = _DyingLate()
    with pytest.raises(StoreError, match="killed"):
        restored(log, _LONG, [9], store)
    restored(log, _LONG, [], store).state.index.close()
    with live, Deduplicator(settings=_LONG, store=store) as reopened:
        assert shown_lists(reopened) == shown_lists(live)
