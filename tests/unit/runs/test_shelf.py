"""What is found depends only on what was added, whatever is frozen, merged, lost or damaged."""

import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.runs.shelf import Shelf, load_removed, removed_put
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import (
    Family,
    FileStore,
    MemoryStore,
    StoreDamagedError,
    StoreError,
    StoreFullError,
)
from tests.unit.runs.files import open_files
from tests.unit.runs.plain import newest, rows_of
from tests.unit.runs.walking import KEYS, KINDS, YOUNG, FaultyStore, Now, Walk

pytestmark = pytest.mark.usefixtures("small_runs")


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
        reader = Shelf(following, KINDS, shared=True)
        for place in range(60):
            walk.add(YOUNG)
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
    """If it was made before the younger one was known, only the entries of the older disappear when that expires."""
    with Walk(MemoryStore()) as walk:
        walk.add(YOUNG)
        walk.finish()
        walk.add(1)
        younger = Generation(1, 0, 2)
        for generations in ((Generation(0, 0, 0), younger), (younger,)):
            walk.progress = Progress(entries=YOUNG + 1, generations=generations)
            walk.finish()
            assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, YOUNG)]
            walk.check()
        walk.progress = Progress(entries=YOUNG + 1, generations=(Generation(2, 0, YOUNG),))
        walk.finish()
        assert not walk.shelf.runs
        walk.check()
        walk.check_files()


def test_nothing_is_frozen_before_it_is_due() -> None:
    """Entries too few for a run stay in memory, also after reopening: no file is created, and nothing is written."""
    with Walk(MemoryStore()) as walk:
        walk.add(YOUNG - 1)
        walk.shelf.maintain(walk.progress)
        assert not walk.shelf.runs
        walk.add(1)
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, YOUNG)]
        assert walk.shelf.young_first == YOUNG
        walk.add(YOUNG - 1)
        walk.reopen()
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, YOUNG)]


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
            for place, kind in enumerate(KINDS)
            for key in KEYS.tolist()
            for posting in newest(walk.lists[place], key, kind.cap, 0)
        }
        assert shown <= met <= added


def test_look_ups_are_counted() -> None:
    """Each requested key counts once, and a block each time it is read."""
    with Walk(MemoryStore()) as walk:
        walk.add(3)
        walk.check()
        assert (walk.shelf.reads.keys, walk.shelf.reads.blocks) == (3 * len(KEYS), 0)
        walk.add(1)
        walk.finish()
        walk.check()
        assert walk.shelf.reads.keys == 6 * len(KEYS)
        assert walk.shelf.reads.blocks == 3


@pytest.mark.parametrize("at", ["files", "pairs"])
@pytest.mark.parametrize("error", [StoreFullError("full"), StoreError("broken")], ids=["full", "broken"])
def test_freezing_that_fails_changes_nothing(at: str, error: StoreError) -> None:
    """An error of the file or the registry is raised from then on and nothing is lost; the next attempt freezes."""
    store = FaultyStore()
    with Walk(store) as walk:
        walk.add(YOUNG)
        descriptors = open_files()
        store.fail(at, error)
        with pytest.raises(type(error), match=str(error)):
            walk.finish()
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
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, YOUNG)]
        walk.check()
        walk.check_files()


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "flipped block"])
def test_damage_of_a_run_is_heard(tmp_path: Path, damage: str) -> None:
    """A missing, truncated or changed run is detected when the shelf is opened, or when the block is read."""
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        for _ in range(3):
            walk.add(YOUNG)
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
                Shelf(store, KINDS)
        assert open_files() == descriptors
        store.close()


def test_a_store_that_is_read_keeps_the_files_of_its_writer(tmp_path: Path) -> None:
    """A read-only store does not remove a run that the writer has written and not yet registered."""
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        for _ in range(3):
            walk.add(YOUNG)
        with store.new_file("000000000900-000000000904.run") as file:
            file.write(b"not yet registered")
        reading = RocksStore(tmp_path, read_only=True)
        shelf = Shelf(reading, KINDS)
        assert [run.name for run in shelf.runs] == [run.name for run in walk.shelf.runs]
        assert "000000000900-000000000904.run" in store.file_names()
        shelf.close()
        reading.close()


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
        walk.finish()
        assert load_removed(store) == {4: b"four"}


def test_the_same_postings_make_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are determined by their entries: two shelves that froze and merged at the same times have equal files."""
    contents = []
    for _ in range(2):
        store = MemoryStore()
        with Walk(store) as walk:
            monkeypatch.setattr(walk.shelf, "_aside", Now())
            for size in (1, 2, 3, 4, 5) * 8:
                walk.add(size)
            contents.append({name: _content(store, name) for name in store.file_names()})
    assert contents[0] == contents[1]
    assert len(contents[0]) > 3


def _content(store: FileStore, name: str) -> bytes:
    descriptor = store.open_file(name)
    with os.fdopen(descriptor, "rb") as file:
        return os.pread(file.fileno(), 1 << 20, 0)
