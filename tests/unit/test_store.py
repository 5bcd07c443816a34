"""Promises of the stores: both behave alike, one process at a time, and damage is heard."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.index.store import Family, MemoryStore, Put, RocksStore, Store, StoreError, StoreLockedError

_KEYS = [number.to_bytes(8, "big") for number in range(600)]
_PUTS = st.lists(
    st.builds(
        Put, st.sampled_from([Family.META, Family.TABLES]), st.binary(max_size=3), st.none() | st.binary(max_size=4)
    ),
    max_size=20,
)


def _value(key: bytes) -> bytes:
    """A value that does not compress, so that files are not tiny."""
    return b"".join((int.from_bytes(key) * 2654435761 + i * 40503).to_bytes(8, "big") for i in range(12))


def _rocks(directory: Path) -> RocksStore:
    return RocksStore(directory, cache_bytes=1 << 20, write_buffer_bytes=1 << 20)


@pytest.fixture(params=["memory", "rocks"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store."""
    made: Store = MemoryStore() if request.param == "memory" else _rocks(tmp_path / "state")
    yield made
    made.close()


@pytest.fixture
def flushed(tmp_path: Path) -> Path:
    """A directory whose pairs are in one SST file: a store that closes writes its log out."""
    store = _rocks(tmp_path)
    store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS])
    store.close()
    assert _largest(tmp_path, "*.sst").stat().st_size > 50_000
    return tmp_path


def _killed(store: RocksStore, directory: Path) -> Path:
    """Copy the directory of an open store, as a killed process leaves it, and return its log."""
    store.write([Put(Family.META, b"last", b"1")])
    shutil.copytree(directory, directory.with_name("killed"))
    store.close()
    return _largest(directory.with_name("killed"), "*.log")


def _largest(directory: Path, pattern: str) -> Path:
    return max(directory.glob(pattern), key=lambda path: path.stat().st_size)


def _read_all(directory: Path) -> tuple[list[bytes | None], list[tuple[bytes, bytes]]]:
    store = _rocks(directory)
    try:
        return store.get_many(Family.ENTRIES, _KEYS), list(store.items(Family.ENTRIES))
    finally:
        store.close()


def test_values_are_found_by_their_keys(store: Store) -> None:
    """Values come in the order of the keys asked for, None where there is none, also for a key asked twice."""
    store.write([Put(Family.TABLES, b"b", b"2"), Put(Family.TABLES, b"a", b"1"), Put(Family.TABLES, b"e", b"")])
    assert store.get_many(Family.TABLES, [b"b", b"x", b"a", b"b", b"e"]) == [b"2", None, b"1", b"2", b""]
    assert store.get_many(Family.TABLES, []) == []


def test_items_are_those_of_a_prefix_in_ascending_order(store: Store) -> None:
    """Pairs come in the order of their keys as bytes, and only those that begin with the prefix."""
    keys = [b"b\xff\xff", b"a", b"b", b"c", b"b\x00", b"ba", b"\xff\xff"]
    store.write([Put(Family.COUNTS, key, key[::-1]) for key in keys])
    assert list(store.items(Family.COUNTS)) == [(key, key[::-1]) for key in sorted(keys)]
    assert [key for key, _ in store.items(Family.COUNTS, b"b")] == [b"b", b"b\x00", b"ba", b"b\xff\xff"]
    assert list(store.items(Family.COUNTS, b"d")) == []
    assert [key for key, _ in store.items(Family.COUNTS, b"\xff")] == [b"\xff\xff"]


def test_families_are_apart(store: Store) -> None:
    """The same key has a value of its own in each family."""
    store.write([Put(family, b"key", family.encode()) for family in Family])
    assert [store.get_many(family, [b"key"]) for family in Family] == [[family.encode()] for family in Family]


def test_deleted_keys_are_gone(store: Store) -> None:
    """A value of None deletes the key; deleting what is not there is no error."""
    store.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"b", b"2")])
    store.write([Put(Family.META, b"a", None), Put(Family.META, b"x", None)])
    assert store.get_many(Family.META, [b"a", b"b"]) == [None, b"2"]
    assert list(store.items(Family.META)) == [(b"b", b"2")]


def test_last_write_of_a_key_counts(store: Store) -> None:
    """Within one write too, later puts replace earlier ones."""
    store.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"a", None), Put(Family.META, b"a", b"3")])
    store.write([])
    assert store.get_many(Family.META, [b"a"]) == [b"3"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=st.lists(_PUTS, max_size=5))
def test_both_stores_end_alike(tmp_path_factory: pytest.TempPathFactory, writes: list[list[Put]]) -> None:
    """After any writes RocksDB and the dictionaries hold the same pairs."""
    memory, rocks = MemoryStore(), _rocks(tmp_path_factory.mktemp("state"))
    for puts in writes:
        memory.write(puts)
        rocks.write(puts)
    for family in Family:
        assert list(rocks.items(family)) == list(memory.items(family))
    rocks.close()


def test_data_is_there_after_reopening(tmp_path: Path) -> None:
    """What was written is read by the next process."""
    store = _rocks(tmp_path / "deep" / "state")
    store.write([Put(family, b"key", family.encode()) for family in Family])
    store.close()
    again = _rocks(tmp_path / "deep" / "state")
    assert [again.get_many(family, [b"key"]) for family in Family] == [[family.encode()] for family in Family]
    again.close()


def test_directory_is_held_by_one_process(tmp_path: Path) -> None:
    """A second store on the same directory is refused with the directory's name; after closing it opens."""
    store = _rocks(tmp_path / "state")
    with pytest.raises(StoreLockedError, match=str(tmp_path / "state")):
        _rocks(tmp_path / "state")
    store.close()
    _rocks(tmp_path / "state").close()


def test_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    """Where the state directory is a file the error names it."""
    path = tmp_path / "state"
    path.write_text("no directory")
    with pytest.raises(StoreError, match=str(path)):
        _rocks(path)


def test_damage_anywhere_in_an_sst_file_is_an_error_or_harmless(flushed: Path) -> None:
    """Bytes flipped at any of 40 places of the file give a StoreError, or the very data: never less of it."""
    sound = _read_all(flushed)
    path = _largest(flushed, "*.sst")
    whole = path.read_bytes()
    heard = 0
    for place in range(0, len(whole), len(whole) // 40):
        damaged = bytearray(whole)
        damaged[place : place + 4] = bytes(byte ^ 0xFF for byte in damaged[place : place + 4])
        path.write_bytes(damaged)
        try:
            assert _read_all(flushed) == sound
        except StoreError as error:
            assert str(flushed) in str(error)  # noqa: PT017  # one of two outcomes
            heard += 1
    assert heard >= 30


def test_damage_is_heard_by_look_ups_and_by_walks(flushed: Path) -> None:
    """Flipped bytes in the middle of the data fail both ways of reading."""
    path = _largest(flushed, "*.sst")
    damaged = bytearray(path.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 4] = bytes(byte ^ 0xFF for byte in damaged[middle : middle + 4])
    path.write_bytes(damaged)
    store = _rocks(flushed)
    with pytest.raises(StoreError, match="cannot read"):
        store.get_many(Family.ENTRIES, _KEYS)
    with pytest.raises(StoreError, match="cannot read"):
        list(store.items(Family.ENTRIES))
    store.close()


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), Path.unlink],
    ids=["truncated", "missing"],
)
def test_sst_file_that_is_cut_or_gone_is_an_error(damage: Callable[[Path], object], flushed: Path) -> None:
    """A state whose files are not whole does not open."""
    damage(_largest(flushed, "*.sst"))
    with pytest.raises(StoreError, match=str(flushed)):
        _read_all(flushed)


def test_killed_process_loses_nothing(tmp_path: Path) -> None:
    """What was written is there though the store was never closed."""
    store = _rocks(tmp_path / "state")
    store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS])
    log = _killed(store, tmp_path / "state")
    assert _read_all(log.parent)[1] == [(key, _value(key)) for key in _KEYS]


def test_damage_in_the_middle_of_the_log_is_an_error(tmp_path: Path) -> None:
    """A log with a bad record before good ones does not open: acknowledged writes would be missing."""
    store = _rocks(tmp_path / "state")
    for key in _KEYS:
        store.write([Put(Family.ENTRIES, key, _value(key))])
    log = _killed(store, tmp_path / "state")
    damaged = bytearray(log.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 4] = bytes(byte ^ 0xFF for byte in damaged[middle : middle + 4])
    log.write_bytes(damaged)
    with pytest.raises(StoreError, match=str(log.parent)):
        _read_all(log.parent)


def test_torn_end_of_the_log_loses_whole_writes_only(tmp_path: Path) -> None:
    """A log cut anywhere gives the writes before the cut, each with all of its pairs."""
    store = _rocks(tmp_path / "state")
    for first in range(0, 600, 20):
        store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS[first : first + 20]])
    log = _killed(store, tmp_path / "state")
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3 + 11])
    _, pairs = _read_all(log.parent)
    assert 0 < len(pairs) < 600
    assert len(pairs) % 20 == 0
    assert pairs == [(key, _value(key)) for key in _KEYS[: len(pairs)]]
