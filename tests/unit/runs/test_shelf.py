"""What is found depends only on what was added, whatever is frozen, merged or lost, even with a full disk."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Self

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.runs import schedule
from stream_dedup.index.runs import shelf as shelf_module
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.merging import merge_runs
from stream_dedup.index.runs.postings import PostingKind, PostingLists
from stream_dedup.index.runs.shelf import Shelf, Young, load_removed, removed_put
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import (
    Family,
    FileStore,
    MemoryStore,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    Write,
)
from tests.stream.waiting import PATIENCE_SECONDS
from tests.unit.runs.files import open_files
from tests.unit.runs.plain import Posting, flat_of, newest, rows_of, u64

_KINDS = (PostingKind("contents", 1), PostingKind("landmarks", 3, "size"), PostingKind("tables", 8, "fingerprint"))
_YOUNG = 4
_KEYS = u64(range(12)) * np.uint64(2**60 + 3)

Lists = list[dict[int, list[Posting]]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs start at 4 entries and grow to 64 at most."""
    monkeypatch.setattr(shelf_module, "YOUNG_ENTRIES", _YOUNG)
    monkeypatch.setattr(schedule, "LARGEST_ENTRIES", 64)


class FaultyStore(MemoryStore):
    """A store that fails on demand.

    Attributes:
        error: raised by the next writes, if set.
        at: which writes fail, those of files or of pairs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self.at = "files"

    @contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """See `FileStore`."""
        with super().new_file(name) as file:
            yield file
            if self.error is not None and self.at == "files":
                raise self.error

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`."""
        if self.error is not None and self.at == "pairs":
            raise self.error
        super().write(writes)


def _entry_keys(number: int) -> list[list[int]]:
    """Return an entry's keys of each kind; there are few different ones, so that lists fill up."""
    rng = np.random.default_rng(number)
    return [rng.choice(_KEYS, size, replace=False).tolist() for size in (1, 3, 2)]


def _detail(kind: PostingKind, number: int) -> int:
    return number * 0x9E3779B97F4A7C15 % (1 << 8 * kind.detail_bytes)


class Walk:
    """A shelf beside dictionaries with the same lists.

    Args:
        store: where runs are kept.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self.lists: Lists = [{} for _ in _KINDS]
        self.progress = Progress()
        self.shelf = Shelf(store, _KINDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shelf.close()
        self._store.close()

    def keyed_postings(self, numbers: Sequence[int]) -> list[KeyedPostings]:
        """Return the postings of entries."""
        return [
            flat_of((key, number, _detail(kind, number)) for number in numbers for key in _entry_keys(number)[place])
            for place, kind in enumerate(_KINDS)
        ]

    def add(self, entries: int) -> None:
        """Add entries, after doing what is due, as a state does."""
        self.shelf.maintain(self.progress)
        first = self.progress.entries
        numbers = range(first, first + entries)
        for lists, keyed in zip(self.lists, self.keyed_postings(numbers), strict=True):
            for key, number, detail in rows_of(keyed):
                lists.setdefault(key, []).append((number, detail))
        self.shelf.add(self.keyed_postings(numbers), first + entries)
        self.progress = Progress(entries=first + entries, generations=self.progress.generations)

    def begin_generation(self) -> None:
        """Begin another generation, of which at most three live."""
        last = self.progress.generations[-1]
        generations = (*self.progress.generations, Generation(last.number + 1, 0, self.progress.entries))
        self.progress = Progress(entries=self.progress.entries, generations=generations[-3:])

    def finish(self) -> None:
        """Finish all merges that are due."""
        self.shelf.finish_merges(self.progress)

    def reopen(self) -> None:
        """Close the shelf and reopen it, adding again the entries that are in no run."""
        self.shelf.close()
        self.shelf = Shelf(self._store, _KINDS)
        first = max(self.shelf.young_first, self.floor)
        for number in range(first, self.progress.entries):
            self.shelf.add(self.keyed_postings([number]), number + 1)

    @property
    def floor(self) -> int:
        """The first entry that has not expired."""
        return self.progress.floor

    def check(self, pending: int = 0) -> None:
        """Compare all lists with the dictionaries, with entries about to be added if there are any pending."""
        first = self.progress.entries
        young = Young(_KINDS) if pending else None
        lists: Lists = [{key: [*found] for key, found in one.items()} for one in self.lists]
        if young is not None:
            keyed_postings = self.keyed_postings(range(first, first + pending))
            young.add(keyed_postings)
            for kind_lists, keyed in zip(lists, keyed_postings, strict=True):
                for key, number, detail in rows_of(keyed):
                    kind_lists.setdefault(key, []).append((number, detail))
        for place, kind in enumerate(_KINDS):
            expected = [newest(lists[place], key, kind.cap, self.floor) for key in _KEYS.tolist()]
            assert _found(self.shelf.find(place, _KEYS, self.floor, young)) == expected
            may_be = self.shelf.may_hold(place, _KEYS, young)
            assert all(may_be[at] for at, found in enumerate(expected) if found)

    def check_files(self) -> None:
        """Check that the files are exactly those of the runs, and that the runs' entries are consecutive."""
        assert sorted(self._store.file_names()) == sorted(run.name for run in self.shelf.runs)
        assert all(one.stop == other.first for one, other in pairwise(self.shelf.runs))
        assert all(run.entries <= max(64, _YOUNG) for run in self.shelf.runs)


def _found(lists: PostingLists) -> list[list[Posting]]:
    entries, details = (column.tolist() for column in lists.postings)
    postings = list(zip(entries, details, strict=True))
    return [postings[start:stop] for start, stop in pairwise(lists.offsets.tolist())]


def _stored(shelf: Shelf) -> set[tuple[int, int, int, int]]:
    return {(place, *row) for place, keyed in shelf.keyed_postings() for row in rows_of(keyed)}


_MOVES = st.one_of(
    st.integers(1, 6).map(lambda entries: ("add", entries)),
    st.integers(1, 6).map(lambda entries: ("add", entries)),
    st.sampled_from([("generation", 0), ("reopen", 0), ("finish", 0)]),
    st.integers(1, 9).map(lambda entries: ("pending", entries)),
)


def _move(walk: Walk, name: str, entries: int) -> None:
    if name == "add":
        walk.add(entries)
    elif name == "generation":
        walk.begin_generation()
    elif name == "reopen":
        walk.reopen()
    elif name == "finish":
        walk.finish()
    walk.check(entries if name == "pending" else 0)


@given(moves=st.lists(_MOVES, max_size=60))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_found_is_what_dictionaries_hold_after_any_walk(moves: list[tuple[str, int]]) -> None:
    """After every step, each look-up is that of plain capped lists, despite freezing, merging, expiry and reopening."""
    with Walk(MemoryStore()) as walk:
        for name, entries in moves:
            _move(walk, name, entries)
        walk.finish()
        walk.check()
        walk.check_files()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_long_walk_in_a_directory(tmp_path: Path, seed: int) -> None:
    """The same holds over hundreds of steps with files in a directory, and no file is left over."""
    rng = np.random.default_rng(seed)
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        names = rng.choice(["add", "generation", "reopen", "finish", "pending"], 300, p=[0.8, 0.03, 0.03, 0.04, 0.1])
        for name in names.tolist():
            _move(walk, name, int(rng.integers(1, 9)))
        walk.reopen()
        walk.check_files()


def test_runs_are_merged_to_few_that_are_not_too_large() -> None:
    """A thousand entries in runs of 4 end up in runs of at most 64, no two of which fit in one, but for four others."""
    with Walk(MemoryStore()) as walk:
        for _ in range(250):
            walk.add(4)
        walk.finish()
        sizes = [run.entries for run in walk.shelf.runs]
        assert max(sizes) <= 64
        assert sum(sum(pair) <= 64 for pair in pairwise(sizes)) < 4
        walk.check()
        walk.check_files()


def test_runs_that_need_not_wait_are_merged_to_full_ones_and_four() -> None:
    """If each merge ends before the next run is frozen, full ones come first, then at most four others by size."""
    with Walk(MemoryStore()) as walk:
        for _ in range(250):
            walk.add(4)
            walk.finish()
        sizes = [run.entries for run in walk.shelf.runs]
        others = [size for size in sizes if size < 60]
        assert max(sizes) <= 64
        assert len(others) <= 4
        assert sizes[-len(others) :] == sorted(others, reverse=True)
        walk.check()


def test_runs_that_are_gone_are_not_held_open(tmp_path: Path) -> None:
    """Neither merged nor expired ones, by the writer or by a process that reads beside it: they would fill the disk."""
    store, notes = RocksStore(tmp_path / "state"), tmp_path / "notes"
    notes.mkdir()
    with Walk(store) as walk:
        following = RocksStore(tmp_path / "state", follow=notes)
        reader = Shelf(following, _KINDS, shared=True)
        for place in range(60):
            walk.add(_YOUNG)
            if place % 15 == 14:
                walk.begin_generation()
            walk.finish()
            following.catch_up()
            reader.reload_runs()
        assert [run.name for run in reader.runs] == [run.name for run in walk.shelf.runs]
        held = _held(tmp_path / "state" / "files")
        assert held == {run.name for run in walk.shelf.runs}
        assert len(held) > 1
        reader.close()
        following.close()
    assert not _held(tmp_path / "state" / "files")


def _held(directory: Path) -> set[str]:
    """Return the names of the files of a directory that this process has open, those of removed ones as they were."""
    opened = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that the list itself was read from
            opened.append(descriptor.readlink())
    return {file.name for file in opened if file.parent == directory}


def test_generations_are_merged_for_themselves() -> None:
    """A completed generation's runs become one, and the run of an expired generation is deleted."""
    with Walk(MemoryStore()) as walk:
        for _ in range(5):
            for _ in range(5):
                walk.add(3)
            walk.begin_generation()
        walk.add(1)
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(45, 60), (60, 75)]
        assert walk.floor == 45
        walk.check()
        walk.check_files()


def test_a_run_of_two_generations_lives_as_long_as_the_younger() -> None:
    """If a batch spans two generations, only the entries of the older one disappear when that expires."""
    with Walk(MemoryStore()) as walk:
        older, younger = Generation(0, 0, 0), Generation(1, 0, 2)
        walk.add(3)
        walk.progress = Progress(entries=3, generations=(older, younger))
        walk.add(1)
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 3)]
        walk.check()
        walk.progress = Progress(entries=4, generations=(younger,))
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 3)]
        walk.check()
        walk.progress = Progress(entries=4, generations=(Generation(2, 0, 3),))
        walk.finish()
        assert not walk.shelf.runs
        walk.check()
        walk.check_files()


def test_nothing_is_frozen_before_it_is_due() -> None:
    """Entries too few for a run stay in memory: no file is created, and nothing is written."""
    with Walk(MemoryStore()) as walk:
        walk.add(_YOUNG - 1)
        walk.shelf.maintain(walk.progress)
        assert not walk.shelf.runs
        walk.add(1)
        walk.shelf.maintain(walk.progress)
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, _YOUNG)]
        assert walk.shelf.young_first == _YOUNG


def test_all_postings_are_walked_over() -> None:
    """A walk over all postings yields everything that can be found, in runs and memory, and nothing else."""
    with Walk(MemoryStore()) as walk:
        for _ in range(30):
            walk.add(3)
        met = _stored(walk.shelf)
        added = {
            (place, key, *posting)
            for place, one in enumerate(walk.lists)
            for key, found in one.items()
            for posting in found
        }
        shown = {
            (place, key, *posting)
            for place, kind in enumerate(_KINDS)
            for key in _KEYS.tolist()
            for posting in newest(walk.lists[place], key, kind.cap, 0)
        }
        assert shown <= met <= added


def test_look_ups_are_counted() -> None:
    """Each requested key counts once, and a block each time it is read."""
    with Walk(MemoryStore()) as walk:
        walk.add(3)
        walk.check()
        assert (walk.shelf.reads.keys, walk.shelf.reads.blocks) == (3 * len(_KEYS), 0)
        walk.add(1)
        walk.finish()
        walk.check()
        assert walk.shelf.reads.keys == 6 * len(_KEYS)
        assert walk.shelf.reads.blocks == 3


# ------------------------------------------------------------------------------------------------ failures


def _fail(store: FaultyStore, at: str, error: StoreError) -> None:
    store.at, store.error = at, error


@pytest.mark.parametrize("at", ["files", "pairs"])
@pytest.mark.parametrize("error", [StoreFullError("full"), StoreError("broken")], ids=["full", "broken"])
def test_freezing_that_fails_changes_nothing(at: str, error: StoreError) -> None:
    """An error of the file or the registry is raised and nothing is lost; the next attempt freezes."""
    store = FaultyStore()
    with Walk(store) as walk:
        walk.add(_YOUNG)
        descriptors = open_files()
        _fail(store, at, error)
        for _ in range(3):
            with pytest.raises(type(error), match=str(error)):
                walk.shelf.maintain(walk.progress)
            assert not walk.shelf.runs
            assert not list(store.items(Family.META))
            walk.check()
        store.error = None
        assert open_files() - descriptors <= len(store.file_names())
        walk.add(2)
        walk.reopen()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, _YOUNG)]
        walk.check()
        walk.check_files()


@pytest.mark.parametrize("at", ["files", "pairs"])
def test_a_full_disk_lets_merging_wait(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """If there is no space for a merged run, its parts stay in use without an error; it is written later."""
    store = FaultyStore()
    with Walk(store) as walk:
        _add_unmerged(walk, monkeypatch)
        registry, parts = list(store.items(Family.META)), [run.name for run in walk.shelf.runs]
        merger = _Now()
        monkeypatch.setattr(walk.shelf, "_merger", merger)
        descriptors = open_files()
        _fail(store, at, StoreFullError("full"))
        for _ in range(4):
            walk.shelf.maintain(walk.progress)
            assert [run.name for run in walk.shelf.runs] == parts
            assert list(store.items(Family.META)) == registry
            walk.check()
        assert merger.submitted >= 3
        store.error = None
        assert open_files() - descriptors <= 1
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 5 * _YOUNG)]
        walk.check()


def test_a_merge_begins_only_if_it_leaves_the_store_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the disk holds the merged file and two write buffers besides, no byte is written; then it is merged."""
    buffer, disk = 1 << 20, SimpleNamespace(free=0)
    store = RocksStore(tmp_path, write_buffer_bytes=buffer)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk)
    with Walk(store) as walk:
        _add_unmerged(walk, monkeypatch)
        merger = _Now()
        monkeypatch.setattr(walk.shelf, "_merger", merger)
        needed = sum(path.stat().st_size for path in (tmp_path / "files").iterdir()) + 2 * buffer
        for disk.free, merges in ((0, 0), (needed - 1, 0), (needed, 1)):
            walk.shelf.maintain(walk.progress)
            assert merger.submitted == merges
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 5 * _YOUNG)]
        walk.check()


class _Now(Executor):
    """An executor that runs what it is given at once, and keeps errors for the caller of `result`."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, function: Callable[..., Any], /, *arguments: object, **named: object) -> Future[Any]:
        """See `Executor`."""
        self.submitted += 1
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except StoreError as error:
            future.set_exception(error)
        return future


def _add_unmerged(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a shelf so that exactly its five runs are due to be merged."""
    with monkeypatch.context() as waiting:
        waiting.setattr(Shelf, "_due_merge", lambda *_: [])
        for _ in range(6):
            walk.add(_YOUNG)
    assert len(walk.shelf.runs) == 5
    monkeypatch.setattr(walk.shelf, "_is_due", lambda _: False)


def test_other_errors_of_a_merge_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge that fails because of damage, or for any reason but space, raises an error."""
    store = FaultyStore()
    with Walk(store) as walk:
        _add_unmerged(walk, monkeypatch)
        monkeypatch.setattr(walk.shelf, "_merger", _Now())
        _fail(store, "files", StoreError("broken"))
        walk.shelf.maintain(walk.progress)
        with pytest.raises(StoreError, match="broken"):
            walk.shelf.maintain(walk.progress)
        walk.check()


@pytest.mark.parametrize("merging", [False, True], ids=["freezing", "merging"])
def test_a_crash_between_file_and_registry_leaves_nothing(monkeypatch: pytest.MonkeyPatch, *, merging: bool) -> None:
    """A run that was written but not registered is removed at the next opening, and nothing is lost."""
    store = MemoryStore()
    with Walk(store) as walk:
        if merging:
            _add_unmerged(walk, monkeypatch)
            monkeypatch.setattr(walk.shelf, "_merger", _Now())
        else:
            walk.add(_YOUNG)
        before = store.file_names()
        with monkeypatch.context() as dying:
            dying.setattr(Shelf, "_register", _die)
            with pytest.raises(KeyboardInterrupt):
                _settle_twice(walk)
        assert len(store.file_names()) == len(before) + 1
        walk.reopen()
        assert store.file_names() == before
        walk.check()
        walk.check_files()


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def _settle_twice(walk: Walk) -> None:
    """Let a merge start and finish."""
    walk.shelf.maintain(walk.progress)
    walk.shelf.maintain(walk.progress)


def test_a_merge_that_ends_with_the_process_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing ends a merge in progress between two stretches and leaves nothing of it; the next shelf merges again."""
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        _add_unmerged(walk, monkeypatch)
        parts = sorted(store.file_names())
        with monkeypatch.context() as slow:
            closes = walk.shelf._closing  # noqa: SLF001  # a merge takes too little time here to be caught in the middle

            def slowly(*told: Any) -> None:  # noqa: ANN401  # passed on
                closes.wait(60)
                merge_runs(*told)

            slow.setattr(shelf_module, "merge_runs", slowly)
            walk.shelf.maintain(walk.progress)
            walk.shelf.close()
        assert sorted(store.file_names()) == parts
        assert not any((tmp_path / "scratch").iterdir())
        walk.reopen()
        assert sorted(store.file_names()) == parts
        walk.check()
        walk.finish()
        # Reopened, it has frozen the last four entries as well.
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 6 * _YOUNG)]
        walk.check()
        walk.check_files()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_a_merge_lets_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread has a lower priority than the one that adds entries, whose priority stays."""
    before, seen = os.getpriority(os.PRIO_PROCESS, 0), []

    def noting(*told: Any) -> None:  # noqa: ANN401  # passed on
        seen.append(os.getpriority(os.PRIO_PROCESS, 0))
        merge_runs(*told)

    monkeypatch.setattr(shelf_module, "merge_runs", noting)
    with Walk(MemoryStore()) as walk:
        _add_unmerged(walk, monkeypatch)
        walk.finish()
        walk.check()
    assert min(seen) > before == os.getpriority(os.PRIO_PROCESS, 0)


def test_who_waits_for_a_merge_is_heard_and_may_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With twelve runs unmerged everything waits, and shows it again and again; given up, it can go on later."""
    released, waits, most = threading.Event(), 0, 3

    def waiting() -> None:
        nonlocal waits
        waits += 1
        if waits >= most:
            raise _StoppedError

    def slowly(*told: Any) -> None:  # noqa: ANN401  # passed on
        released.wait(PATIENCE_SECONDS)
        merge_runs(*told)

    monkeypatch.setattr(shelf_module, "merge_runs", slowly)
    monkeypatch.setattr(shelf_module, "_SLICE_SECONDS", 0.01)
    store = MemoryStore()
    store.while_waiting = waiting
    with Walk(store) as walk:
        try:
            while len(walk.shelf.runs) < 12:
                walk.add(_YOUNG)
            assert waits == 0
            with pytest.raises(_StoppedError):
                walk.shelf.maintain(walk.progress)
        finally:
            released.set()
        assert waits == most
        most = 1 << 30
        walk.finish()
        walk.check()
        walk.check_files()


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "flipped block"])
def test_damage_of_a_run_is_heard(tmp_path: Path, damage: str) -> None:
    """A missing, truncated or changed run is detected when the shelf is opened, or when the block is read."""
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        for _ in range(3):
            walk.add(_YOUNG)
        (path, *_) = sorted((tmp_path / "files").iterdir())
        walk.shelf.close()
        content = bytearray(path.read_bytes())
        path.unlink()
        if damage != "missing":
            content[10 if damage == "flipped block" else -30] ^= 1
            path.write_bytes(content[:-7] if damage == "cut" else content)
        descriptors = open_files()
        if damage == "flipped block":
            walk.reopen()
            with pytest.raises(StoreDamagedError, match=path.name):
                walk.check()
            walk.shelf.close()
        else:
            with pytest.raises(StoreDamagedError, match=path.name):
                Shelf(store, _KINDS)
        assert open_files() == descriptors
        store.close()


def test_a_store_that_is_read_keeps_the_files_of_its_writer(tmp_path: Path) -> None:
    """A read-only store does not remove a run that the writer has written and not yet registered."""
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        for _ in range(3):
            walk.add(_YOUNG)
        with store.new_file("000000000900-000000000904.run") as file:
            file.write(b"not yet registered")
        reading = RocksStore(tmp_path, read_only=True)
        shelf = Shelf(reading, _KINDS)
        assert [run.name for run in shelf.runs] == [run.name for run in walk.shelf.runs]
        assert "000000000900-000000000904.run" in store.file_names()
        shelf.close()
        reading.close()


# ------------------------------------------------------------------------------------------------ removed entries


def test_what_removed_entries_stood_under_is_kept_until_a_run_holds_it() -> None:
    """Their keys survive reopening; they are dropped once a run holds the entries, while those of others stay."""
    store = MemoryStore()
    with Walk(store) as walk:
        walk.add(3)
        store.write([removed_put(1, b"one"), removed_put(2, b"two"), removed_put(4, b"four")])
        assert load_removed(store) == {1: b"one", 2: b"two", 4: b"four"}
        walk.reopen()
        walk.add(1)
        assert load_removed(store) == {1: b"one", 2: b"two", 4: b"four"}
        walk.shelf.maintain(walk.progress)
        assert load_removed(store) == {4: b"four"}


def test_the_same_postings_make_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are determined by their entries: two shelves that froze and merged at the same times have equal files."""
    contents = []
    for _ in range(2):
        store = MemoryStore()
        with Walk(store) as walk:
            monkeypatch.setattr(walk.shelf, "_merger", _Now())
            for size in (1, 2, 3, 4, 5) * 8:
                walk.add(size)
            contents.append({name: _content(store, name) for name in store.file_names()})
    assert contents[0] == contents[1]
    assert len(contents[0]) > 3


def _content(store: FileStore, name: str) -> bytes:
    descriptor = store.open_file(name)
    with os.fdopen(descriptor, "rb") as file:
        return os.pread(file.fileno(), 1 << 20, 0)
