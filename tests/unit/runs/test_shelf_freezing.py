"""Freezing leaves the thread that decides alone: whatever it takes, look-ups find the same and nothing is lost."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.runs import shelf as shelf_module
from stream_dedup.index.runs.merging import merge_runs
from stream_dedup.index.runs.run import RunWriter
from stream_dedup.index.stores.store import MemoryStore, StoreFullError
from tests.stream.waiting import PATIENCE_SECONDS
from tests.unit.runs.files import open_files
from tests.unit.runs.plain import rows_of
from tests.unit.runs.walking import KEYS, KINDS, YOUNG, FaultyStore, Now, Walk

pytestmark = pytest.mark.usefixtures("small_runs")


@contextmanager
def _held(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no run be completed while the context is open."""
    released = threading.Event()

    class Held(RunWriter):
        def finish(self) -> None:
            released.wait(PATIENCE_SECONDS)
            super().finish()

    with monkeypatch.context() as patch:
        patch.setattr(shelf_module, "RunWriter", Held)
        try:
            yield
        finally:
            released.set()


def _bounds(walk: Walk) -> list[tuple[int, int]]:
    return [(run.first, run.stop) for run in walk.shelf.runs]


def test_freezing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run is being made, entries are added and found; those that it will hold still count as held by none."""
    with Walk(MemoryStore()) as walk:
        walk.add(YOUNG)
        with _held(monkeypatch):
            for _ in range(YOUNG - 1):
                walk.add(1)
                walk.check(pending=2)
                assert (walk.shelf.young_first, walk.shelf.young_stop) == (0, walk.progress.entries)
            assert not walk.shelf.runs
        walk.finish()
        assert _bounds(walk) == [(0, YOUNG)]
        assert walk.shelf.young_first == YOUNG
        walk.check(pending=2)


def test_lists_that_are_due_wait_for_those_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are never three lists in memory: the second ones wait, which is heard; given up, all can go on later."""
    waits = 0

    def waiting() -> None:
        nonlocal waits
        waits += 1
        if waits >= 3:
            raise _StoppedError

    monkeypatch.setattr(shelf_module, "_SLICE_SECONDS", 0.01)
    store = MemoryStore()
    with Walk(store) as walk:
        walk.add(YOUNG)
        with _held(monkeypatch):
            walk.add(YOUNG)
            store.while_waiting = waiting
            for total in (3, 4):
                with pytest.raises(_StoppedError):
                    walk.add(1)
                assert waits == total
                walk.check()
        store.while_waiting = lambda: None
        walk.finish()
        assert _bounds(walk) == [(0, YOUNG), (YOUNG, 2 * YOUNG)]
        walk.check()


class _StoppedError(Exception):
    pass


def test_a_frozen_run_that_is_not_in_use_yet_is_closed_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the shelf is closed before, no file stays open; the next shelf removes it, and freezes the same entries."""
    store, before = MemoryStore(), open_files()
    with Walk(store) as walk:
        walk.add(YOUNG)
        monkeypatch.setattr(walk.shelf, "_aside", Now())
        walk.add(1)
        [name] = store.file_names()
        walk.shelf.close()
        assert open_files() - before == 1  # the store's
        walk.reopen()
        assert not store.file_names()
        walk.check()
        walk.finish()
        [again] = store.file_names()
        assert again.split("-")[0] == name.split("-")[0]
        walk.check()
        walk.check_files()


def test_what_expires_before_it_is_frozen_needs_no_run() -> None:
    """Entries that could not be frozen, as the disk was full, are forgotten once they have expired."""
    store = FaultyStore()
    with Walk(store) as walk:
        walk.add(YOUNG)
        store.fail("files", StoreFullError("full"))
        with pytest.raises(StoreFullError):
            walk.finish()
        for _ in range(3):
            walk.begin_generation()
        assert walk.floor == walk.progress.entries
        walk.shelf.maintain(walk.progress)
        store.error = None
        walk.add(1)
        walk.finish()
        assert not store.file_names()
        assert walk.shelf.young_first == YOUNG
        walk.check()


def test_what_runs_hold_is_not_kept_in_memory() -> None:
    """Once the run of frozen lists has expired, nothing is left under their keys."""
    with Walk(MemoryStore()) as walk:
        walk.add(YOUNG)
        walk.finish()
        for _ in range(3):
            walk.begin_generation()
        walk.finish()
        assert not walk.shelf.runs
        for place in range(len(KINDS)):
            assert not walk.shelf.may_hold(place, KEYS, None).any()


def test_of_lists_that_have_partly_expired_only_the_rest_is_frozen() -> None:
    """A run holds nothing of entries before its first: it could not say their numbers."""
    with Walk(MemoryStore()) as walk:
        walk.add(YOUNG)
        walk.progress = Progress(entries=YOUNG, generations=(Generation(1, 0, 2),))
        walk.finish()
        assert _bounds(walk) == [(2, YOUNG)]
        assert {number for _, keyed in walk.shelf.keyed_postings() for number in keyed.entries.tolist()} == {2, 3}
        walk.check()


def test_a_batch_of_two_generations_becomes_a_run_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the run of the older one can go when that expires; until the second run is made, everything is found too."""
    with Walk(MemoryStore()) as walk:
        walk.add(YOUNG)
        walk.progress = Progress(entries=YOUNG, generations=(Generation(0, 0, 0), Generation(1, 0, 3)))
        with monkeypatch.context() as failing:
            failing.setattr(walk.shelf, "_aside", Now())
            walk.shelf.maintain(walk.progress)
            failing.setattr(shelf_module, "RunWriter", _unwritable)
            with pytest.raises(StoreFullError):
                walk.shelf.maintain(walk.progress)
        assert _bounds(walk) == [(0, 3)]
        assert walk.shelf.young_first == 3
        listed = [(place, *row) for place, keyed in walk.shelf.keyed_postings() for row in rows_of(keyed)]
        assert len(listed) == len(set(listed))
        walk.check(pending=2)
        walk.add(1)
        walk.finish()
        assert _bounds(walk) == [(0, 3), (3, YOUNG)]
        walk.check(pending=2)
        walk.progress = Progress(entries=YOUNG + 1, generations=walk.progress.generations[1:])
        walk.finish()
        assert _bounds(walk) == [(3, YOUNG)]
        walk.check()


def test_a_batch_of_many_generations_becomes_a_run_of_each() -> None:
    """However many begin in it, as when a state is restored from its changelog."""
    with Walk(MemoryStore()) as walk:
        walk.add(2 * YOUNG)
        begins = (0, 2, 3, 2 * YOUNG - 1)
        generations = tuple(Generation(number, 0, begin) for number, begin in enumerate(begins))
        walk.progress = Progress(entries=2 * YOUNG, generations=generations)
        walk.finish()
        assert _bounds(walk) == [*pairwise((*begins, 2 * YOUNG))]
        walk.check()


def _unwritable(*_: object) -> RunWriter:
    raise StoreFullError("full")


def test_reopened_while_a_generation_was_frozen_it_expires_with_all_of_its_runs() -> None:
    """The entries of the next one, which are in memory with the last of its own, do not keep its merged run."""
    with Walk(MemoryStore()) as walk:
        for _ in range(3):
            walk.add(YOUNG)
        walk.add(2)
        walk.begin_generation()
        walk.add(1)
        walk.reopen()
        walk.finish()
        assert _bounds(walk) == [(0, 3 * YOUNG + 2), (3 * YOUNG + 2, 3 * YOUNG + 3)]
        walk.begin_generation()
        walk.begin_generation()
        walk.finish()
        assert _bounds(walk) == [(3 * YOUNG + 2, 3 * YOUNG + 3)]
        walk.check()


def test_freezing_waits_neither_for_a_merge_nor_for_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both may take long, and may be under way at the same time, as when a generation begins."""
    released, waits = threading.Event(), 0
    under_way = {"merge": threading.Event(), "removal": threading.Event()}

    class Slow(MemoryStore):
        def remove_files(self, names: Sequence[str]) -> None:
            if not set(names).isdisjoint(self.file_names()):
                under_way["removal"].set()
                released.wait(PATIENCE_SECONDS)
            super().remove_files(names)

    def slowly(*told: Any) -> None:  # noqa: ANN401  # passed on
        under_way["merge"].set()
        released.wait(PATIENCE_SECONDS)
        merge_runs(*told)

    def waiting() -> None:
        nonlocal waits
        waits += 1
        if waits > PATIENCE_SECONDS / 2:
            raise _StoppedError

    store = Slow()
    with Walk(store) as walk:
        walk.add(YOUNG)
        walk.begin_generation()
        walk.begin_generation()
        for _ in range(3):
            walk.add(YOUNG)
        walk.finish()
        assert len(walk.shelf.runs) == 4
        monkeypatch.setattr(shelf_module, "merge_runs", slowly)
        store.while_waiting = waiting
        walk.begin_generation()
        try:
            for _ in range(4):
                walk.add(YOUNG)
            assert all(event.wait(PATIENCE_SECONDS) for event in under_way.values())
            for _ in range(3):
                walk.add(YOUNG)
            assert len(walk.shelf.runs) >= 8
            walk.check()
        finally:
            released.set()
        walk.finish()
        walk.check()
        walk.check_files()


def test_a_completed_generation_is_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its merge waits for the last of its runs, which is being frozen, instead of merging the others before."""
    merges: list[int] = []

    def noting(file: Any, runs: Any, *told: Any) -> None:  # noqa: ANN401  # passed on
        merges.append(len(runs))
        merge_runs(file, runs, *told)

    monkeypatch.setattr(shelf_module, "merge_runs", noting)
    with Walk(MemoryStore()) as walk:
        for _ in range(4):
            walk.add(YOUNG)
        walk.add(1)
        walk.finish()
        assert (len(walk.shelf.runs), merges) == (4, [])
        walk.begin_generation()
        walk.add(1)
        walk.finish()
        assert merges == [5]
        assert _bounds(walk) == [(0, 4 * YOUNG + 1)]
        walk.check()
