"""Runs are in the system's page cache, as mincore(2) tells, once they have been read ahead."""

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.runs.ahead import ReadAhead, cacheable_bytes
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.postings import PostingKind
from stream_dedup.index.runs.run import Run
from stream_dedup.index.runs.shelf import Shelf
from stream_dedup.index.stores.rocks import RocksStore
from tests.stream.waiting import wait_until
from tests.unit.runs.files import open_files, opened, write_run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lets go of the cached pages of a file")

_POSTINGS = 100_000  # some 2 MB
_KINDS = [PostingKind("contents", cap=1)]
_SECONDS = 20.0


def _cached(path: Path) -> float:
    """Return the share of a file's pages that are in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(mapped)
        failed = libc.mincore(ctypes.byref(start), ctypes.c_size_t(len(mapped)), pages)
        del start
        assert not failed, os.strerror(ctypes.get_errno())
        return sum(page & 1 for page in pages) / len(pages)


def _let_go(path: Path) -> None:
    """Have the system drop the cached pages of a file, as a restart of the machine would."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if _cached(path) > 0.5:
        pytest.skip(f"the file system of {path} does not let go of cached pages")


def _keyed(first: int) -> KeyedPostings:
    keys = np.random.default_rng(first).integers(0, 2**64, _POSTINGS, np.uint64, endpoint=False)
    numbers = np.arange(first, first + _POSTINGS, dtype=np.uint64)
    order = np.argsort(keys)
    return KeyedPostings(keys[order], numbers[order], numbers[order])


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Sequence[tuple[Path, Run]]]:
    """Three runs that are not in the page cache."""
    with ExitStack() as stack:
        made = []
        for first in (0, _POSTINGS, 2 * _POSTINGS):
            path = tmp_path / f"{first}.run"
            write_run(path, first, first + _POSTINGS, [[], [], [_keyed(first)]])
            made.append((path, stack.enter_context(opened(path))))
        for path, _ in made:
            _let_go(path)
        yield made


def _freeze(store: RocksStore) -> None:
    """Leave one run in a store."""
    shelf = Shelf(store, _KINDS)
    shelf.young_entries = 1
    shelf.add([_keyed(0)], _POSTINGS)
    shelf.finish(Progress(entries=_POSTINGS))
    shelf.close()


def test_runs_are_cached_once_read(runs: Sequence[tuple[Path, Run]]) -> None:
    """All of them, and no descriptor is left open."""
    before = open_files()
    ahead = ReadAhead([run for _, run in runs], 1 << 40)
    ahead.start()
    ahead.join()
    assert [_cached(path) for path, _ in runs] == [1.0, 1.0, 1.0]
    assert open_files() == before


def test_the_newest_are_read_as_far_as_there_is_room(runs: Sequence[tuple[Path, Run]]) -> None:
    """With room for two and a half of three, the oldest is not read."""
    ahead = ReadAhead([run for _, run in runs], int(2.5 * runs[0][1].size))
    ahead.start()
    ahead.join()
    oldest, *newest = [_cached(path) for path, _ in runs]
    assert oldest < 0.5
    assert newest == [1.0, 1.0]


def test_a_run_closed_meanwhile_is_read_on(runs: Sequence[tuple[Path, Run]]) -> None:
    """A merge may replace it; the descriptors are its own."""
    ahead = ReadAhead([run for _, run in runs], 1 << 40)
    path, run = runs[1]
    os.close(run.descriptor)
    try:
        ahead.start()
        ahead.join()
    finally:
        run.descriptor = os.open(path, os.O_RDONLY)
    assert _cached(path) == 1.0


def test_stopping_ends_the_reading(runs: Sequence[tuple[Path, Run]]) -> None:
    """Nothing is read once it has been stopped, and no descriptor is left open."""
    before = open_files()
    ahead = ReadAhead([run for _, run in runs], 1 << 40)
    ahead._stopped.set()  # noqa: SLF001  # before its first read, which cannot be timed
    ahead.start()
    ahead.stop()
    assert max(_cached(path) for path, _ in runs) < 0.5
    assert open_files() == before


def test_opening_a_shelf_reads_its_runs_ahead(tmp_path: Path) -> None:
    """As when the service starts."""
    with RocksStore(tmp_path) as store:
        _freeze(store)
        (path,) = (tmp_path / "files").iterdir()
        _let_go(path)
        shelf = Shelf(store, _KINDS)
        wait_until(lambda: _cached(path) == 1.0, "the run in the page cache", _SECONDS)
        shelf.close()


def test_a_shelf_that_shares_memory_reads_nothing_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API's, whose writer has read the runs."""
    read: list[list[Run]] = []

    class Recorded(ReadAhead):
        def __init__(self, runs: Sequence[Run], most: int) -> None:
            read.append([*runs])
            super().__init__(runs, most)

    monkeypatch.setattr("stream_dedup.index.runs.shelf.ReadAhead", Recorded)
    with RocksStore(tmp_path) as store:
        _freeze(store)
        for shared in (False, True):
            Shelf(store, _KINDS, shared=shared).close()
    assert [len(runs) for runs in read] == [0, 1, 0]


def test_no_more_is_read_than_half_of_the_memory() -> None:
    """The room is at most half of what the machine has, by Linux's own account."""
    (total,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert 0 < cacheable_bytes() <= int(total.split()[1]) * 1024 / 2
