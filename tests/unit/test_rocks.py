"""A store in a directory: reopened, held by one process, filled in bulk, freed of what is dropped, and measured.

Knows RocksStore alone; what all stores have in common is tested in test_store.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stream_dedup.index.stores import rocks
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Family, Put, StoreError, StoreFullError, StoreLockedError
from tests.unit.stores import KEYS, all_in, killed_copy, rocks_in, sst_bytes, value_of


def test_writes_wait_for_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes faster than the disk wait without blocking other threads, which is heard; none is lost or repeated."""
    store = RocksStore(tmp_path, cache_bytes=1 << 20, write_buffer_bytes=64 << 10)
    pairs = [(number.to_bytes(8, "big"), os.urandom(20_000)) for number in range(1000)]
    waits: list[float] = []
    sleep = time.sleep

    def wait(seconds: float) -> None:
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", wait)
    heard: list[int] = []
    store.while_waiting = lambda: heard.append(len(waits))
    for first in range(0, 1000, 20):
        store.write([Put(Family.META, key, value) for key, value in pairs[first : first + 20]])
    assert list(store.items(Family.META)) == pairs
    assert waits
    assert heard == list(range(1, len(waits) + 1))
    store.close()


def _leave(store: RocksStore, error: Exception) -> None:
    """Leave the store's context with an error."""
    with store:
        raise error


def test_error_of_the_closing_does_not_hide_the_one_that_led_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk both fail, and RocksDB's second error says only that there was an earlier one."""

    def refuse(_: object) -> None:
        raise OSError("Writer has previous error.")

    stores = [rocks_in(tmp_path / "one"), rocks_in(tmp_path / "other")]
    monkeypatch.setattr(rocks, "_close", refuse)
    with pytest.raises(StoreFullError, match="the write"):
        _leave(stores[0], StoreFullError("the write"))
    with pytest.raises(StoreError, match="previous error"), stores[1]:
        pass


def test_dropped_keys_stay_gone(tmp_path: Path) -> None:
    """Keys in files are gone after a drop, after reopening, and after their space is reclaimed."""
    for step in range(4):
        store = rocks_in(tmp_path)
        if step == 0:
            store.write([Put(Family.ENTRIES, key, value_of(key)) for key in KEYS])
        if step == 1:
            store.write([Drop(Family.ENTRIES, KEYS[100], KEYS[400])])
        if step == 2:
            store.reclaim(Family.ENTRIES, KEYS[100], KEYS[400])
        left = [*KEYS[:100], *KEYS[400:]] if step else KEYS
        assert [key for key, value in zip(KEYS, store.get_many(Family.ENTRIES, KEYS), strict=True) if value] == left
        assert list(store.items(Family.ENTRIES)) == [(key, value_of(key)) for key in left]
        store.close()


def test_data_is_there_after_reopening(tmp_path: Path) -> None:
    """The next process reads what was written."""
    store = rocks_in(tmp_path / "deep" / "state")
    store.write([Put(family, b"key", family.encode()) for family in Family])
    store.close()
    again = rocks_in(tmp_path / "deep" / "state")
    assert [again.get_many(family, [b"key"]) for family in Family] == [[family.encode()] for family in Family]
    again.close()


def test_directory_is_held_by_one_process(tmp_path: Path) -> None:
    """A second store on the same directory is refused with the directory's name, until the first is closed."""
    store = rocks_in(tmp_path / "state")
    with pytest.raises(StoreLockedError, match=str(tmp_path / "state")):
        rocks_in(tmp_path / "state")
    store.close()
    rocks_in(tmp_path / "state").close()


def test_directory_that_another_process_holds_is_refused(tmp_path: Path) -> None:
    """RocksDB reports that in other words than a second store of this process; a lock ends with its process."""
    rocks_in(tmp_path).close()
    hold = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); print(); sys.stdin.read()"
    )
    command = [sys.executable, "-u", "-c", hold, str(tmp_path / "LOCK")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        with pytest.raises(StoreLockedError, match=str(tmp_path)):
            rocks_in(tmp_path)
        other.communicate()
    rocks_in(tmp_path).close()


def test_directory_has_one_holder_under_all_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second store on the directory is refused, whatever name it uses."""
    (tmp_path / "link").symlink_to(tmp_path / "state", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    store = rocks_in(Path("state"))
    for name in (tmp_path / "state", Path("link"), Path("link/../state")):
        with pytest.raises(StoreLockedError):
            rocks_in(name)
    store.close()


def test_relative_directory_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store goes on in its directory after the process has changed to another one."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = rocks_in(Path("state"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.ingest(Family.ENTRIES, [b"key"], [b"value"])
    with store.new_file("run"):
        pass
    store.close()
    assert [*(tmp_path / "elsewhere").iterdir()] == []
    again = rocks_in(tmp_path / "state")
    assert (again.get_many(Family.ENTRIES, [b"key"]), again.file_names()) == ([b"value"], ["run"])
    again.close()


def test_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    """If the state directory is a file, the error names it."""
    path = tmp_path / "state"
    path.write_text("no directory")
    with pytest.raises(StoreError, match=str(path)):
        rocks_in(path)


def _write_generations(store: RocksStore) -> None:
    """Write 3,000 pairs of 800 bytes for each of three first bytes of their keys."""
    for generation in range(3):
        for number in range(3000):
            key = bytes([generation]) + number.to_bytes(8, "big")
            store.write([Put(Family.URLS, key, os.urandom(800))])


@pytest.mark.slow
def test_space_of_a_dropped_range_comes_back(tmp_path: Path) -> None:
    """A reclaim shrinks the files by the dropped generation, even during reads, and leaves the others intact."""
    store = rocks_in(tmp_path)
    _write_generations(store)
    store.close()
    store = rocks_in(tmp_path)
    before = sst_bytes(tmp_path)
    kept = list(store.items(Family.URLS, b"\x01"))
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            store.get_many(Family.URLS, [key for key, _ in kept])

    reader = threading.Thread(target=read)
    reader.start()
    store.write([Drop(Family.URLS, b"\x00", b"\x01")])
    store.reclaim(Family.URLS, b"\x00", b"\x01")
    stop.set()
    reader.join()
    assert sst_bytes(tmp_path) < before * 0.7
    assert store.sizes()[Family.URLS] < before * 0.7
    assert list(store.items(Family.URLS, b"\x00")) == []
    assert list(store.items(Family.URLS, b"\x01")) == kept
    assert len(list(store.items(Family.URLS))) == 6000
    store.close()


def test_closing_cuts_a_reclaim_short_and_loses_nothing(tmp_path: Path) -> None:
    """A store may be closed while a thread reclaims: neither that nor a later reclaim fails, and nothing is lost."""
    store = rocks_in(tmp_path)
    _write_generations(store)
    store.write([Drop(Family.URLS, b"\x00", b"\x01"), Put(Family.META, b"last", b"1")])
    thread = threading.Thread(target=store.reclaim, args=(Family.URLS, b"\x00", b"\x01"))
    thread.start()
    store.close()
    thread.join()
    store.reclaim(Family.URLS, b"\x00", b"\x01")
    again = rocks_in(tmp_path)
    assert len(list(again.items(Family.URLS))) == 6000
    assert again.get_many(Family.META, [b"last"]) == [b"1"]
    again.close()


def test_ingested_pairs_replace_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingested pairs persist, and hide older ones in files or write buffers, and earlier drops."""
    monkeypatch.setattr(rocks, "_SST_BYTES", 4000)
    monkeypatch.setattr(rocks, "_SST_SLICE", 50)
    store = rocks_in(tmp_path)
    store.write([Put(Family.ENTRIES, key, b"old") for key in KEYS[::2]])
    store.checkpoint(tmp_path / "copy")  # flushes all buffers
    store.write([Put(Family.ENTRIES, key, b"old") for key in KEYS[::3]])
    store.write([Drop(Family.ENTRIES, KEYS[100], KEYS[200])])
    store.ingest(Family.ENTRIES, KEYS[50:], [value_of(key) for key in KEYS[50:]])
    old = [key for number, key in enumerate(KEYS[:50]) if number % 2 == 0 or number % 3 == 0]
    expected = [(key, b"old") for key in old] + [(key, value_of(key)) for key in KEYS[50:]]
    assert list(store.items(Family.ENTRIES)) == expected
    store.reclaim(Family.ENTRIES, KEYS[100], KEYS[200])
    store.write([Put(Family.ENTRIES, KEYS[-1], b"newer")])
    store.close()
    assert all_in(tmp_path)[1] == [*expected[:-1], (KEYS[-1], b"newer")]


def test_ingested_pairs_survive_a_kill(tmp_path: Path) -> None:
    """They are in the directory as soon as the call returns, even without the log."""
    store = rocks_in(tmp_path / "state")
    store.ingest(Family.ENTRIES, KEYS, KEYS)
    log = killed_copy(store, tmp_path / "state")
    log.unlink()
    assert all_in(log.parent)[0] == KEYS


@pytest.mark.parametrize(
    ("keys", "values"),
    [([b"b", b"a"], [b"1", b"2"]), ([b"a", b"a"], [b"1", b"2"]), ([b"a", b"b"], [b"1"])],
    ids=["descending", "twice", "too few values"],
)
def test_ingest_wants_ascending_pairs(keys: list[bytes], values: list[bytes], tmp_path: Path) -> None:
    """Unordered pairs are refused without a trace; ingesting nothing is no error."""
    store = rocks_in(tmp_path)
    with pytest.raises(ValueError, match="ascending"):
        store.ingest(Family.META, keys, values)
    store.ingest(Family.META, [], [])
    assert list(store.items(Family.META)) == []
    store.close()


def test_opening_removes_what_a_crash_left_half_made(tmp_path: Path) -> None:
    """Files of an unfinished ingest are removed at the next opening; a finished one leaves none."""
    store = rocks_in(tmp_path)
    store.ingest(Family.META, KEYS, KEYS)
    assert list((tmp_path / "scratch").iterdir()) == []
    store.close()
    (tmp_path / "scratch" / "half").mkdir()
    (tmp_path / "scratch" / "half" / "0.sst").write_bytes(b"half")
    store = rocks_in(tmp_path)
    assert not (tmp_path / "scratch").exists()
    assert len(list(store.items(Family.META))) == 600
    store.close()


def test_sizes_are_those_of_the_files(flushed: Path) -> None:
    """Each family's size is the bytes of its files, and 0 if it has none."""
    store = rocks_in(flushed)
    sizes = store.sizes()
    assert sizes[Family.ENTRIES] == sst_bytes(flushed)
    assert sum(sizes.values()) == sizes[Family.ENTRIES]
    assert set(sizes) == set(Family)
    store.close()


def test_figures_follow_what_is_done(flushed: Path) -> None:
    """The first look-up misses the cache, the second hits it, and a write is in the write buffer."""
    store = rocks_in(flushed)
    at_first = store.figures()
    store.get_many(Family.ENTRIES, KEYS[:1])
    missed = store.figures()
    store.get_many(Family.ENTRIES, KEYS[:1])
    hit = store.figures()
    store.write([Put(Family.META, b"key", bytes(100_000))])
    assert missed.cache_misses > at_first.cache_misses
    assert missed.cache_bytes > at_first.cache_bytes
    assert hit.cache_misses == missed.cache_misses
    assert hit.cache_hits > missed.cache_hits
    assert store.figures().memtable_bytes >= hit.memtable_bytes + 100_000
    assert (hit.pending_compaction_bytes, hit.running_compactions, hit.running_flushes) == (0, 0, 0)
    assert not hit.writes_delayed
    store.close()
