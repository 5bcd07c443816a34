"""Damaged and cut files, torn logs, kills and a full disk: an error in words, and never fewer data.

Knows RocksDB's files only to damage them.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stream_dedup.index.stores import rocks
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, Put, StoreDamagedError, StoreError
from tests.unit.stores import KEYS, all_in, killed_copy, largest, rocks_in, value_of


def _flip(path: Path, place: int | None = None) -> None:
    """Corrupt four bytes of a file, in the middle by default."""
    damaged = bytearray(path.read_bytes())
    place = len(damaged) // 2 if place is None else place
    damaged[place : place + 4] = bytes(byte ^ 0xFF for byte in damaged[place : place + 4])
    path.write_bytes(damaged)


@pytest.mark.slow
def test_damage_anywhere_in_an_sst_file_is_an_error_or_harmless(flushed: Path) -> None:
    """Corruption at any of 40 positions gives a StoreDamagedError or the correct data, but never fewer data."""
    sound = all_in(flushed)
    path = largest(flushed, "*.sst")
    whole = path.read_bytes()
    heard = 0
    for place in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole)
        _flip(path, place)
        try:
            assert all_in(flushed) == sound
        except StoreDamagedError as error:
            assert str(flushed) in str(error)  # noqa: PT017  # one of two outcomes
            heard += 1
    assert heard >= 30


def test_damage_is_heard_by_look_ups_and_by_walks(flushed: Path) -> None:
    """Corrupt bytes in the middle of the data make both ways of reading fail."""
    _flip(largest(flushed, "*.sst"))
    store = rocks_in(flushed)
    with pytest.raises(StoreDamagedError, match="cannot read"):
        store.get_many(Family.ENTRIES, KEYS)
    with pytest.raises(StoreDamagedError, match="cannot read"):
        list(store.items(Family.ENTRIES))
    store.close()


_cut_or_gone = pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), Path.unlink],
    ids=["truncated", "missing"],
)


@_cut_or_gone
def test_sst_file_that_is_cut_or_gone_is_an_error(damage: Callable[[Path], object], flushed: Path) -> None:
    """A state with a truncated or missing file does not open."""
    damage(largest(flushed, "*.sst"))
    with pytest.raises(StoreDamagedError, match=str(flushed)):
        all_in(flushed)


@_cut_or_gone
def test_followers_take_damage_for_nothing_else(
    damage: Callable[[Path], object], flushed: Path, tmp_path: Path
) -> None:
    """RocksDB would follow the state as if the file's family were empty."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for path in flushed.glob("*.sst"):
        whole = path.read_bytes()
        RocksStore(flushed, follow=notes).close()
        damage(path)
        with pytest.raises(StoreDamagedError, match=path.name):
            RocksStore(flushed, follow=notes)
        path.write_bytes(whole)


def test_state_that_is_not_there_yet_is_not_called_damaged(tmp_path: Path) -> None:
    """A reader may start before the writer has created the state: there is nothing to repair."""
    with pytest.raises(StoreError, match="No such file") as refused:
        RocksStore(tmp_path / "none", read_only=True)
    assert not isinstance(refused.value, StoreDamagedError)


def test_killed_process_loses_nothing(tmp_path: Path) -> None:
    """Writes survive even if the store was never closed."""
    store = rocks_in(tmp_path / "state")
    store.write([Put(Family.ENTRIES, key, value_of(key)) for key in KEYS])
    log = killed_copy(store, tmp_path / "state")
    assert all_in(log.parent)[1] == [(key, value_of(key)) for key in KEYS]


def test_damage_in_the_middle_of_the_log_is_an_error(tmp_path: Path) -> None:
    """A log with a bad record before good ones does not open, since acknowledged writes would be missing."""
    store = rocks_in(tmp_path / "state")
    for key in KEYS:
        store.write([Put(Family.ENTRIES, key, value_of(key))])
    log = killed_copy(store, tmp_path / "state")
    _flip(log)
    with pytest.raises(StoreDamagedError, match=str(log.parent)):
        all_in(log.parent)


def test_torn_end_of_the_log_loses_whole_writes_only(tmp_path: Path) -> None:
    """A log cut anywhere gives the writes before the cut, each with all of its pairs."""
    store = rocks_in(tmp_path / "state")
    for first in range(0, 600, 20):
        store.write([Put(Family.ENTRIES, key, value_of(key)) for key in KEYS[first : first + 20]])
    log = killed_copy(store, tmp_path / "state")
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3 + 11])
    _, pairs = all_in(log.parent)
    assert 0 < len(pairs) < 600
    assert len(pairs) % 20 == 0
    assert pairs == [(key, value_of(key)) for key in KEYS[: len(pairs)]]


def test_no_look_up_takes_damage_for_absence(flushed: Path) -> None:
    """In a damaged file, each look-up of a single key gives its value or an error."""
    _flip(largest(flushed, "*.sst"))
    store = rocks_in(flushed)
    heard = 0
    for key in KEYS:
        try:
            assert store.get_many(Family.ENTRIES, [key]) == [value_of(key)]
        except StoreDamagedError:
            heard += 1
    store.close()
    assert 0 < heard < len(KEYS)


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "CURRENT"])
@pytest.mark.parametrize(
    "damage",
    [lambda path: _flip(path, 0), lambda path: path.write_bytes(b""), Path.unlink],
    ids=["flipped", "empty", "missing"],
)
def test_damaged_index_of_the_files_is_an_error(damage: Callable[[Path], object], pattern: str, flushed: Path) -> None:
    """If the list of files is damaged or missing, the state does not open, not even as an empty one."""
    damage(largest(flushed, pattern))
    for log in flushed.glob("*.log"):
        log.unlink()
    with pytest.raises(StoreDamagedError, match=str(flushed)):
        rocks_in(flushed)


def test_error_that_is_kept_does_not_keep_the_directory(flushed: Path) -> None:
    """A damaged state can be deleted and recreated in the same process while its errors are still referenced."""
    _flip(largest(flushed, "*.sst"))
    store = rocks_in(flushed)
    with pytest.raises(StoreDamagedError) as of_look_up:
        store.get_many(Family.ENTRIES, KEYS)
    with pytest.raises(StoreDamagedError) as of_walk:
        list(store.items(Family.ENTRIES))
    store.close()
    shutil.rmtree(flushed)
    anew = rocks_in(flushed)
    assert list(anew.items(Family.ENTRIES)) == []
    anew.close()
    assert of_look_up.tb
    assert of_walk.tb


_FULL_DISK = """
import sys
from pathlib import Path
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, Put, StoreError, StoreFullError

disk, size = Path(sys.argv[1]), 4000
(disk / "ballast").write_bytes(bytes(4 << 20))
store = RocksStore(disk / "state", cache_bytes=1 << 20, write_buffer_bytes=1 << 20)
random = open("/dev/urandom", "rb")
written = []
error = None
while error is None:
    pairs = [(b"%08d" % (len(written) + i), random.read(size)) for i in range(10)]
    try:
        store.write([Put(Family.META, key, value) for key, value in pairs])
        written += pairs
    except StoreFullError as full:
        error = full
assert str(disk / "state") in str(error) and "disk is full" in str(error), error
try:
    with store.new_file("large") as file:
        file.write(bytes(32 << 20))
except StoreFullError as full:
    assert "disk is full" in str(full), full
else:
    raise AssertionError("a file larger than the disk was written")
assert store.file_names() == []
try:
    store.write([])
except StoreFullError:
    pass
else:
    raise AssertionError("a write was taken while the disk was full")
keys, values = zip(*written)
assert store.get_many(Family.META, keys) == list(values)
(disk / "ballast").unlink()
try:
    store.close()
except StoreError:
    pass
again = RocksStore(disk / "state", cache_bytes=1 << 20, write_buffer_bytes=1 << 20)
assert again.get_many(Family.META, keys) == list(values)
again.write([Put(Family.META, b"x", b"y")])
again.close()
print("written", len(written))
"""


@pytest.mark.slow
def test_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    """Without space, writes of pairs and files fail as such; earlier ones survive, and can be read again later."""
    mount = f'mount -t tmpfs -o size=16m tmpfs "{tmp_path}"'
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], check=False, capture_output=True).returncode:  # noqa: S607
        pytest.skip("no right to mount a small disk")
    run = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$0" -c "$1" "$2"', sys.executable, _FULL_DISK, tmp_path],  # noqa: S607
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(rocks.__file__).parents[2])},
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[-1]) > 500
