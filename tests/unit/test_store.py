"""All stores behave alike, admit one process at a time, detect damage, and free space."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.index.stores import rocks
from stream_dedup.index.stores.errors import store_error
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import (
    Drop,
    Family,
    FileStore,
    MemoryStore,
    Overlay,
    Put,
    Puts,
    Store,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    Write,
)

_KEYS = [number.to_bytes(8, "big") for number in range(600)]
_SOME = [Family.META, Family.URLS]
_BYTES = st.binary(max_size=3)
_WRITES = st.lists(
    st.builds(Put, st.sampled_from(_SOME), _BYTES, st.none() | st.binary(max_size=4))
    | st.builds(
        lambda family, pairs: Puts(family, [key for key, _ in pairs], [value for _, value in pairs]),
        st.sampled_from(_SOME),
        st.lists(st.tuples(_BYTES, st.none() | st.binary(max_size=4)), max_size=4),
    )
    | st.builds(Drop, st.sampled_from(_SOME), _BYTES, _BYTES),
    max_size=20,
)
_KINDS = ["memory", "rocks", "overlay of memory", "overlay of rocks"]


def _value(key: bytes) -> bytes:
    """Return a value that does not compress, so that files are not tiny."""
    return b"".join((int.from_bytes(key) * 2654435761 + i * 40503).to_bytes(8, "big") for i in range(12))


def _rocks(directory: Path) -> RocksStore:
    return RocksStore(directory, cache_bytes=1 << 20, write_buffer_bytes=1 << 20)


def _base(kind: str, directory: Path) -> Store:
    return MemoryStore() if kind.endswith("memory") else _rocks(directory)


def _on(kind: str, base: Store) -> Store:
    return Overlay(base) if kind.startswith("overlay") else base


@pytest.fixture(params=_KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return each kind of store."""
    base = _base(request.param, tmp_path / "state")
    yield _on(request.param, base)
    base.close()


@pytest.fixture
def flushed(tmp_path: Path) -> Path:
    """Return a directory whose pairs are in one SST file, since a store that closes flushes its log."""
    store = _rocks(tmp_path)
    store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS])
    store.close()
    assert _largest(tmp_path, "*.sst").stat().st_size > 50_000
    return tmp_path


def _killed(store: RocksStore, directory: Path) -> Path:
    """Copy the directory of an open store, as a killed process would leave it, and return its log."""
    store.write([Put(Family.META, b"last", b"1")])
    shutil.copytree(directory, directory.with_name("killed"))
    store.close()
    return _largest(directory.with_name("killed"), "*.log")


def _largest(directory: Path, pattern: str) -> Path:
    return max(directory.glob(pattern), key=lambda path: path.stat().st_size)


def _flip(path: Path, place: int | None = None) -> None:
    """Corrupt four bytes of a file, in the middle by default."""
    damaged = bytearray(path.read_bytes())
    place = len(damaged) // 2 if place is None else place
    damaged[place : place + 4] = bytes(byte ^ 0xFF for byte in damaged[place : place + 4])
    path.write_bytes(damaged)


def _read_all(directory: Path) -> tuple[list[bytes | None], list[tuple[bytes, bytes]]]:
    store = _rocks(directory)
    try:
        return store.get_many(Family.ENTRIES, _KEYS), list(store.items(Family.ENTRIES))
    finally:
        store.close()


def test_values_are_found_by_their_keys(store: Store) -> None:
    """Values are in the order of the keys, None for missing ones, even if a key is repeated."""
    store.write([Put(Family.URLS, b"b", b"2"), Put(Family.URLS, b"a", b"1"), Put(Family.URLS, b"e", b"")])
    assert store.get_many(Family.URLS, [b"b", b"x", b"a", b"b", b"e"]) == [b"2", None, b"1", b"2", b""]
    assert store.get_many(Family.URLS, []) == []


def test_items_are_those_of_a_prefix_in_ascending_order(store: Store) -> None:
    """Pairs are in the byte order of their keys, and only those that start with the prefix."""
    keys = [b"b\xff\xff", b"a", b"b", b"c", b"b\x00", b"ba", b"\xff\xff"]
    store.write([Put(Family.COUNTS, key, key[::-1]) for key in keys])
    assert list(store.items(Family.COUNTS)) == [(key, key[::-1]) for key in sorted(keys)]
    assert [key for key, _ in store.items(Family.COUNTS, b"b")] == [b"b", b"b\x00", b"ba", b"b\xff\xff"]
    assert list(store.items(Family.COUNTS, b"d")) == []
    assert [key for key, _ in store.items(Family.COUNTS, b"\xff")] == [b"\xff\xff"]


@pytest.mark.parametrize("prefix", [b"", b"a", b"b", b"b\xff", b"c", b"d", b"\xff", b"\xff\xff\xff"])
def test_items_can_be_had_from_the_last_one_on(store: Store, prefix: bytes) -> None:
    """The same pairs come in reverse, even if a key directly follows the prefix."""
    keys = [b"b\xff\xff", b"a", b"b", b"c", b"b\x00", b"ba", b"\xff\xff"]
    store.write([Put(Family.MEMBERS, key, key[::-1]) for key in keys])
    there = sorted(key for key in keys if key.startswith(prefix))
    found = list(store.items(Family.MEMBERS, prefix, descending=True))
    assert found == [(key, key[::-1]) for key in reversed(there)]


def test_families_are_apart(store: Store) -> None:
    """The same key has a value of its own in each family."""
    store.write([Put(family, b"key", family.encode()) for family in Family])
    assert [store.get_many(family, [b"key"]) for family in Family] == [[family.encode()] for family in Family]


def test_deleted_keys_are_gone(store: Store) -> None:
    """A value of None deletes the key; deleting a missing key is no error."""
    store.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"b", b"2")])
    store.write([Put(Family.META, b"a", None), Put(Family.META, b"x", None)])
    assert store.get_many(Family.META, [b"a", b"b"]) == [None, b"2"]
    assert list(store.items(Family.META)) == [(b"b", b"2")]


def test_last_write_of_a_key_counts(store: Store) -> None:
    """Even within one write, later puts replace earlier ones."""
    store.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"a", None), Put(Family.META, b"a", b"3")])
    store.write([])
    assert store.get_many(Family.META, [b"a"]) == [b"3"]


def test_drop_takes_its_range_and_nothing_else(store: Store) -> None:
    """The keys from begin up to but excluding end are gone for all kinds of reads; other families keep theirs."""
    keys = [b"a", b"b", b"b\x00", b"bz", b"c", b"c\x00"]
    store.write([Put(family, key, key) for family in (Family.URLS, Family.META) for key in keys])
    store.write([Drop(Family.URLS, b"b", b"c")])
    assert store.get_many(Family.URLS, keys) == [b"a", None, None, None, b"c", b"c\x00"]
    assert list(store.items(Family.URLS)) == [(key, key) for key in (b"a", b"c", b"c\x00")]
    assert list(store.items(Family.URLS, b"b")) == []
    assert store.get_many(Family.META, keys) == keys


def test_writes_count_in_their_order(store: Store) -> None:
    """Within one write, a drop affects what came before it, and not what comes after."""
    store.write([Put(Family.META, b"a", b"1"), Drop(Family.META, b"a", b"c"), Put(Family.META, b"b", b"2")])
    assert list(store.items(Family.META)) == [(b"b", b"2")]


@pytest.mark.parametrize(("begin", "end"), [(b"a", b"a"), (b"c", b"a"), (b"a", b"")])
def test_drop_of_an_empty_range_does_nothing(begin: bytes, end: bytes, store: Store) -> None:
    """If the end is not after the beginning, nothing is deleted, and the store remains usable."""
    store.write([Put(Family.META, key, key) for key in (b"a", b"b", b"c")])
    store.write([Drop(Family.META, begin, end), Put(Family.META, b"d", b"d")])
    assert [key for key, _ in store.items(Family.META)] == [b"a", b"b", b"c", b"d"]


def test_items_do_not_see_later_writes(store: Store) -> None:
    """A walk sees what existed when it began, so it can be used to delete what it finds."""
    store.write([Put(Family.META, bytes([number]), b"old") for number in range(9)])
    walk = store.items(Family.META)
    first = next(walk)
    store.write([Drop(Family.META, b"\x00", b"\x05"), Put(Family.META, b"\x07", b"new")])
    assert [first, *walk] == [(bytes([number]), b"old") for number in range(9)]


@pytest.mark.parametrize("kind", _KINDS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=_WRITES, after=st.lists(st.tuples(st.booleans(), _WRITES), max_size=4), asked=st.lists(_BYTES))
def test_stores_hold_what_a_dictionary_would(
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[Write],
    after: list[tuple[bool, list[Write]]],
    asked: list[bytes],
) -> None:
    """After any writes and loads, all reads match a dictionary with the same writes."""
    base = _base(kind, tmp_path_factory.mktemp("state"))
    base.write(before)
    store = _on(kind, base)
    for bulk, writes in after:
        (store.load if bulk else store.write)(writes)
        store.get_many(Family.META, [b"x"])
    for family in _SOME:
        pairs = _dictionary(family, [*before, *(write for _, writes in after for write in writes)])
        keys = [*pairs, *asked]
        assert store.get_many(family, keys) == [pairs.get(key) for key in keys]
        for prefix in (b"", *asked[:2]):
            assert list(store.items(family, prefix)) == sorted(p for p in pairs.items() if p[0].startswith(prefix))
    base.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), _WRITES), min_size=1, max_size=4), asked=st.lists(_BYTES))
def test_a_follower_holds_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, list[Write]]], asked: list[bytes]
) -> None:
    """After any writes and loads, its reads match the writer's, however it keeps a family."""
    directory, notes = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("notes")
    base = _rocks(directory)
    follower = RocksStore(directory, cache_bytes=1 << 20, write_buffer_bytes=1 << 20, follow=notes)
    written: list[Write] = []
    for bulk, writes in steps:
        everywhere = [replace(write, family=family) for write in writes for family in Family]
        (base.load if bulk else base.write)(everywhere)
        written += everywhere
        follower.catch_up()
        for family in Family:
            pairs = _dictionary(family, written)
            keys = [*pairs, *asked]
            assert follower.get_many(family, keys) == [pairs.get(key) for key in keys]
            for prefix in (b"", *asked[:2]):
                assert list(follower.items(family, prefix)) == sorted(
                    pair for pair in pairs.items() if pair[0].startswith(prefix)
                )
    follower.close()
    base.close()


def test_a_follower_sees_what_is_loaded_over_what_it_read(tmp_path: Path) -> None:
    """Even a family that the writer only loads into is complete, since the follower gets its keys from the log."""
    base = _rocks(tmp_path / "state")
    follower = RocksStore(tmp_path / "state", cache_bytes=1 << 20, write_buffer_bytes=1 << 20, follow=tmp_path)
    base.write([Put(family, key, b"old") for family in Family for key in (b"a", b"b")])
    follower.catch_up()
    base.load([Put(family, key, b"new") for family in Family for key in (b"a", b"c")])
    follower.catch_up()
    for family in Family:
        assert follower.get_many(family, [b"a", b"b", b"c"]) == [b"new", b"old", b"new"]
    follower.close()
    base.close()


def _dictionary(family: Family, writes: Sequence[Write]) -> dict[bytes, bytes]:
    pairs: dict[bytes, bytes | None] = {}
    for write in writes:
        if write.family is not family:
            continue
        if isinstance(write, Put):
            pairs[write.key] = write.value
        elif isinstance(write, Puts):
            pairs |= dict(zip(write.keys, write.values, strict=True))
        else:
            pairs = {key: value for key, value in pairs.items() if key < write.begin or key >= write.end}
    return {key: value for key, value in pairs.items() if value is not None}


@pytest.mark.parametrize("bulk", [False, True], ids=["write", "load"])
def test_puts_are_as_many_single_ones(bulk: bool, store: Store) -> None:  # noqa: FBT001  # a case of the test
    """Later pairs of a `Puts` replace or delete earlier ones, and it takes its turn among the other writes."""
    store.write([Put(Family.META, b"c", b"old"), Put(Family.META, b"d", b"old")])
    keys, values = [b"c", b"a", b"b", b"a", b"d"], [b"1", b"2", b"3", b"4", None]
    writes: list[Write] = [Put(Family.META, b"b", b"0"), Puts(Family.META, keys, values), Put(Family.META, b"c", None)]
    (store.load if bulk else store.write)(writes)
    assert list(store.items(Family.META)) == [(b"a", b"4"), (b"b", b"3")]


def test_writes_wait_for_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes faster than the disk wait without blocking other threads, and none is lost or repeated."""
    store = RocksStore(tmp_path, cache_bytes=1 << 20, write_buffer_bytes=64 << 10)
    pairs = [(number.to_bytes(8, "big"), os.urandom(20_000)) for number in range(1000)]
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    for first in range(0, 1000, 20):
        store.write([Put(Family.META, key, value) for key, value in pairs[first : first + 20]])
    assert list(store.items(Family.META)) == pairs
    assert waits
    store.close()


def test_overlay_writes_nothing_itself() -> None:
    """The base does not change until the staged writes are applied in order; then it equals the overlay."""
    base = MemoryStore()
    base.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"b", b"1")])
    overlay = Overlay(base)
    writes: list[Put | Drop] = [
        Put(Family.META, b"a", b"2"),
        Drop(Family.META, b"a", b"c"),
        Put(Family.META, b"b", b"3"),
    ]
    overlay.write(writes[:1])
    overlay.write(writes[1:])
    shown = list(overlay.items(Family.META))
    assert list(base.items(Family.META)) == [(b"a", b"1"), (b"b", b"1")]
    assert overlay.staged == writes
    base.write(overlay.staged)
    assert list(base.items(Family.META)) == shown == [(b"b", b"3")]


def test_overlay_asks_its_base_only_for_what_is_not_staged() -> None:
    """Keys written or dropped are not looked up in the base, and families without writes go straight to it."""
    asked = []

    class Base(MemoryStore):
        def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
            asked.append(keys)
            return super().get_many(family, keys)

    overlay = Overlay(Base())
    overlay.write([Put(Family.META, b"a", b"1"), Drop(Family.META, b"c", b"e")])
    overlay.get_many(Family.META, [b"a", b"b", b"c", b"d", b"e"])
    assert asked == [[b"b", b"e"]]
    keys = [b"a", b"c"]
    overlay.get_many(Family.URLS, keys)
    assert asked[1] is keys


# ------------------------------------------------------------------------------------------------------ files


@pytest.fixture(params=["memory", "rocks"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FileStore]:
    """Return each kind of store that keeps files."""
    store: FileStore = MemoryStore() if request.param == "memory" else _rocks(tmp_path / "state")
    yield store
    store.close()


def _make_file(store: FileStore, name: str, content: bytes) -> None:
    with store.new_file(name) as file:
        file.write(content)


def _fail_to_make(store: FileStore, name: str, error: Exception) -> None:
    with store.new_file(name) as file:
        file.write(b"half of it")
        raise error


def _content(store: FileStore, name: str) -> bytes:
    with os.fdopen(store.open_file(name), "rb") as file:
        return _read(file.fileno())


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, 1 << 20, 0)


def test_files_are_there_as_they_were_written(files: FileStore) -> None:
    """Each file has its bytes under its name, even if there are none, and can be opened repeatedly."""
    assert files.file_names() == []
    contents = {"1.run": b"one", "2.run": os.urandom(200_000), "empty": b""}
    for name, content in contents.items():
        _make_file(files, name, content)
    assert sorted(files.file_names()) == sorted(contents)
    for _ in range(2):
        assert {name: _content(files, name) for name in contents} == contents


def test_file_is_there_once_it_is_whole(files: FileStore) -> None:
    """While it is being written its name does not exist; an error leaves nothing, or the earlier file."""
    with files.new_file("run") as file:
        file.write(b"first")
        assert files.file_names() == []
    for name in ("run", "other"):
        with pytest.raises((ValueError, StoreError), match="no"):
            _fail_to_make(files, name, ValueError("no"))
    assert files.file_names() == ["run"]
    assert _content(files, "run") == b"first"


def test_open_files_are_read_on(files: FileStore) -> None:
    """An open file keeps its bytes if it is removed or replaced."""
    _make_file(files, "run", b"old")
    descriptors = [files.open_file("run")]
    _make_file(files, "run", b"new")
    descriptors.append(files.open_file("run"))
    files.remove_files(["run"])
    assert files.file_names() == []
    assert [_read(descriptor) for descriptor in descriptors] == [b"old", b"new"]
    for descriptor in descriptors:
        os.close(descriptor)


def test_removing_files_takes_those_named(files: FileStore) -> None:
    """Other files stay, and a missing one is no error."""
    for name in ("a", "b", "c"):
        _make_file(files, name, name.encode())
    files.remove_files(["a", "x", "c"])
    files.remove_files([])
    assert files.file_names() == ["b"]
    assert _content(files, "b") == b"b"


def test_files_are_there_after_a_kill(tmp_path: Path) -> None:
    """A file exists as soon as its context ends, and no trace is left of unfinished ones."""
    store = _rocks(tmp_path / "state")
    _make_file(store, "run", b"whole")
    with pytest.raises(StoreError):
        _fail_to_make(store, "other", OSError("no"))
    assert list((tmp_path / "state" / "scratch").iterdir()) == []
    killed = _killed(store, tmp_path / "state").parent
    again = _rocks(killed)
    assert {name: _content(again, name) for name in again.file_names()} == {"run": b"whole"}
    again.close()


def test_files_are_safe_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's bytes reach the disk before its name does, and its name before the caller continues."""
    store = _rocks(tmp_path)
    synced: list[tuple[int, list[str]]] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, store.file_names())))
    _make_file(store, "run", b"x")
    directories = [(path.stat().st_ino, ["run"]) for path in (tmp_path / "files", tmp_path)]
    assert synced == [((tmp_path / "files" / "run").stat().st_ino, []), *directories]
    store.close()


def test_missing_file_is_damage(tmp_path: Path) -> None:
    """A missing file is reported as damage, with the directory and its name."""
    store = _rocks(tmp_path)
    _make_file(store, "1.run", b"x")
    (tmp_path / "files" / "1.run").unlink()
    with pytest.raises(StoreDamagedError, match=rf"{tmp_path}.*it is damaged.*1\.run"):
        store.open_file("1.run")
    store.close()


def test_file_without_space_is_told_as_such(tmp_path: Path) -> None:
    """A lack of space reported by the system is the error of a full disk, whoever writes the file."""
    store = _rocks(tmp_path)
    with pytest.raises(StoreFullError, match="disk is full"):
        _fail_to_make(store, "run", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert store.file_names() == []
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

    stores = [_rocks(tmp_path / "one"), _rocks(tmp_path / "other")]
    monkeypatch.setattr(rocks, "_close", refuse)
    with pytest.raises(StoreFullError, match="the write"):
        _leave(stores[0], StoreFullError("the write"))
    with pytest.raises(StoreError, match="previous error"), stores[1]:
        pass


@pytest.mark.parametrize(
    ("number", "way_out"), [(errno.EACCES, "grant it to the user that this process runs as"), (errno.EROFS, "writable")]
)
def test_directory_that_may_not_be_written_is_told_with_the_way_out(number: int, way_out: str, tmp_path: Path) -> None:
    """For a volume of another user or mounted read-only, the error names the setting and what to do."""
    store = _rocks(tmp_path)
    with pytest.raises(StoreError, match=rf"{tmp_path}.*{way_out}.*state\.directory"):
        _fail_to_make(store, "run", OSError(number, os.strerror(number)))
    store.close()


def test_reader_without_permission_is_not_told_to_write(tmp_path: Path) -> None:
    """A process that only reads, as the API does, needs no permission to write."""
    told = str(store_error("read", tmp_path, OSError(errno.EACCES, "Permission denied")))
    assert told.startswith(f"cannot read the state directory {tmp_path}: permission denied")
    assert "write" not in told


def test_store_that_is_read_removes_no_files(tmp_path: Path) -> None:
    """A store opened for reading sees the files and leaves them all there."""
    store = _rocks(tmp_path)
    _make_file(store, "run", b"x")
    reading = RocksStore(tmp_path, read_only=True)
    assert _content(reading, "run") == b"x"
    reading.remove_files(reading.file_names())
    assert store.file_names() == ["run"]
    reading.close()
    store.close()


# ----------------------------------------------------------------------------------------------------- RocksDB


def test_dropped_keys_stay_gone(tmp_path: Path) -> None:
    """Keys in files are gone after a drop, after reopening, and after their space is reclaimed."""
    for step in range(4):
        store = _rocks(tmp_path)
        if step == 0:
            store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS])
        if step == 1:
            store.write([Drop(Family.ENTRIES, _KEYS[100], _KEYS[400])])
        if step == 2:
            store.reclaim(Family.ENTRIES, _KEYS[100], _KEYS[400])
        left = [*_KEYS[:100], *_KEYS[400:]] if step else _KEYS
        assert [key for key, value in zip(_KEYS, store.get_many(Family.ENTRIES, _KEYS), strict=True) if value] == left
        assert list(store.items(Family.ENTRIES)) == [(key, _value(key)) for key in left]
        store.close()


def test_data_is_there_after_reopening(tmp_path: Path) -> None:
    """The next process reads what was written."""
    store = _rocks(tmp_path / "deep" / "state")
    store.write([Put(family, b"key", family.encode()) for family in Family])
    store.close()
    again = _rocks(tmp_path / "deep" / "state")
    assert [again.get_many(family, [b"key"]) for family in Family] == [[family.encode()] for family in Family]
    again.close()


def test_directory_is_held_by_one_process(tmp_path: Path) -> None:
    """A second store on the same directory is refused with the directory's name, until the first is closed."""
    store = _rocks(tmp_path / "state")
    with pytest.raises(StoreLockedError, match=str(tmp_path / "state")):
        _rocks(tmp_path / "state")
    store.close()
    _rocks(tmp_path / "state").close()


def test_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    """If the state directory is a file, the error names it."""
    path = tmp_path / "state"
    path.write_text("no directory")
    with pytest.raises(StoreError, match=str(path)):
        _rocks(path)


@pytest.mark.slow
def test_damage_anywhere_in_an_sst_file_is_an_error_or_harmless(flushed: Path) -> None:
    """Corruption at any of 40 positions gives a StoreDamagedError or the correct data, but never fewer data."""
    sound = _read_all(flushed)
    path = _largest(flushed, "*.sst")
    whole = path.read_bytes()
    heard = 0
    for place in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole)
        _flip(path, place)
        try:
            assert _read_all(flushed) == sound
        except StoreDamagedError as error:
            assert str(flushed) in str(error)  # noqa: PT017  # one of two outcomes
            heard += 1
    assert heard >= 30


def test_damage_is_heard_by_look_ups_and_by_walks(flushed: Path) -> None:
    """Corrupt bytes in the middle of the data make both ways of reading fail."""
    _flip(_largest(flushed, "*.sst"))
    store = _rocks(flushed)
    with pytest.raises(StoreDamagedError, match="cannot read"):
        store.get_many(Family.ENTRIES, _KEYS)
    with pytest.raises(StoreDamagedError, match="cannot read"):
        list(store.items(Family.ENTRIES))
    store.close()


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), Path.unlink],
    ids=["truncated", "missing"],
)
def test_sst_file_that_is_cut_or_gone_is_an_error(damage: Callable[[Path], object], flushed: Path) -> None:
    """A state with a truncated or missing file does not open."""
    damage(_largest(flushed, "*.sst"))
    with pytest.raises(StoreDamagedError, match=str(flushed)):
        _read_all(flushed)


def test_killed_process_loses_nothing(tmp_path: Path) -> None:
    """Writes survive even if the store was never closed."""
    store = _rocks(tmp_path / "state")
    store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS])
    log = _killed(store, tmp_path / "state")
    assert _read_all(log.parent)[1] == [(key, _value(key)) for key in _KEYS]


def test_damage_in_the_middle_of_the_log_is_an_error(tmp_path: Path) -> None:
    """A log with a bad record before good ones does not open, since acknowledged writes would be missing."""
    store = _rocks(tmp_path / "state")
    for key in _KEYS:
        store.write([Put(Family.ENTRIES, key, _value(key))])
    log = _killed(store, tmp_path / "state")
    _flip(log)
    with pytest.raises(StoreDamagedError, match=str(log.parent)):
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


def test_no_look_up_takes_damage_for_absence(flushed: Path) -> None:
    """In a damaged file, each look-up of a single key gives its value or an error."""
    _flip(_largest(flushed, "*.sst"))
    store = _rocks(flushed)
    heard = 0
    for key in _KEYS:
        try:
            assert store.get_many(Family.ENTRIES, [key]) == [_value(key)]
        except StoreDamagedError:
            heard += 1
    store.close()
    assert 0 < heard < len(_KEYS)


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "CURRENT"])
@pytest.mark.parametrize(
    "damage",
    [lambda path: _flip(path, 0), lambda path: path.write_bytes(b""), Path.unlink],
    ids=["flipped", "empty", "missing"],
)
def test_damaged_index_of_the_files_is_an_error(damage: Callable[[Path], object], pattern: str, flushed: Path) -> None:
    """If the list of files is damaged or missing, the state does not open, not even as an empty one."""
    damage(_largest(flushed, pattern))
    for log in flushed.glob("*.log"):
        log.unlink()
    with pytest.raises(StoreDamagedError, match=str(flushed)):
        _rocks(flushed)


def test_error_that_is_kept_does_not_keep_the_directory(flushed: Path) -> None:
    """A damaged state can be deleted and recreated in the same process while its errors are still referenced."""
    _flip(_largest(flushed, "*.sst"))
    store = _rocks(flushed)
    with pytest.raises(StoreDamagedError) as of_look_up:
        store.get_many(Family.ENTRIES, _KEYS)
    with pytest.raises(StoreDamagedError) as of_walk:
        list(store.items(Family.ENTRIES))
    store.close()
    shutil.rmtree(flushed)
    anew = _rocks(flushed)
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


def _write_generations(store: RocksStore) -> None:
    """Write 3,000 pairs of 800 bytes for each of three first bytes of their keys."""
    for generation in range(3):
        for number in range(3000):
            key = bytes([generation]) + number.to_bytes(8, "big")
            store.write([Put(Family.URLS, key, os.urandom(800))])


def _sst_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.sst"))


@pytest.mark.slow
def test_space_of_a_dropped_range_comes_back(tmp_path: Path) -> None:
    """A reclaim shrinks the files by the dropped generation, even during reads, and leaves the others intact."""
    store = _rocks(tmp_path)
    _write_generations(store)
    store.close()
    store = _rocks(tmp_path)
    before = _sst_bytes(tmp_path)
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
    assert _sst_bytes(tmp_path) < before * 0.7
    assert store.sizes()[Family.URLS] < before * 0.7
    assert list(store.items(Family.URLS, b"\x00")) == []
    assert list(store.items(Family.URLS, b"\x01")) == kept
    assert len(list(store.items(Family.URLS))) == 6000
    store.close()


def test_closing_cuts_a_reclaim_short_and_loses_nothing(tmp_path: Path) -> None:
    """A store may be closed while a thread reclaims: neither that nor a later reclaim fails, and nothing is lost."""
    store = _rocks(tmp_path)
    _write_generations(store)
    store.write([Drop(Family.URLS, b"\x00", b"\x01"), Put(Family.META, b"last", b"1")])
    thread = threading.Thread(target=store.reclaim, args=(Family.URLS, b"\x00", b"\x01"))
    thread.start()
    store.close()
    thread.join()
    store.reclaim(Family.URLS, b"\x00", b"\x01")
    again = _rocks(tmp_path)
    assert len(list(again.items(Family.URLS))) == 6000
    assert again.get_many(Family.META, [b"last"]) == [b"1"]
    again.close()


def test_checkpoint_is_a_store_of_its_own(tmp_path: Path) -> None:
    """The copy has the current data and shares files; afterwards both are independent."""
    store = _rocks(tmp_path / "state")
    store.write([Put(Family.ENTRIES, key, _value(key)) for key in _KEYS])
    store.checkpoint(tmp_path / "deep" / "copy")
    store.write([Drop(Family.ENTRIES, _KEYS[0], _KEYS[300]), Put(Family.META, b"first", b"1")])
    copy = _rocks(tmp_path / "deep" / "copy")
    assert _largest(tmp_path / "deep" / "copy", "*.sst").stat().st_nlink > 1
    assert list(copy.items(Family.ENTRIES)) == [(key, _value(key)) for key in _KEYS]
    copy.write([Put(Family.META, b"copy", b"2")])
    assert list(store.items(Family.META)) == [(b"first", b"1")]
    assert list(copy.items(Family.META)) == [(b"copy", b"2")]
    assert len(list(store.items(Family.ENTRIES))) == 300
    copy.close()
    store.close()


def test_checkpoint_takes_files_along(tmp_path: Path) -> None:
    """The copy has the existing files as hard links; afterwards, changes in one do not affect the other."""
    store = _rocks(tmp_path / "state")
    for name in ("a", "b"):
        _make_file(store, name, name.encode())
    store.checkpoint(tmp_path / "copy")
    assert (tmp_path / "copy" / "files" / "a").stat().st_nlink == 2
    store.remove_files(["a"])
    _make_file(store, "b", b"another")
    _make_file(store, "c", b"later")
    copy = _rocks(tmp_path / "copy")
    copy.remove_files(["b"])
    assert {name: _content(copy, name) for name in copy.file_names()} == {"a": b"a"}
    assert {name: _content(store, name) for name in store.file_names()} == {"b": b"another", "c": b"later"}
    copy.close()
    store.close()


def test_checkpoint_wants_a_new_directory(tmp_path: Path) -> None:
    """An existing directory is refused by name, and is not changed."""
    store = _rocks(tmp_path / "state")
    (tmp_path / "copy").mkdir()
    with pytest.raises(StoreError, match=rf"{tmp_path / 'copy'}: it exists already"):
        store.checkpoint(tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []
    store.close()


@pytest.mark.parametrize("kind", ["file", "of nobody"])
def test_checkpoint_tells_of_a_directory_that_cannot_be_made(kind: str, tmp_path: Path) -> None:
    """Below a file, or where the system allows none, the error names the directory and is not one of damage."""
    (tmp_path / "file").touch()
    parent = {"file": tmp_path / "file", "of nobody": Path("/proc/stream-dedup")}[kind]
    store = _rocks(tmp_path / "state")
    with pytest.raises(StoreError, match=rf"cannot copy the state to {parent / 'copy'}: ") as refused:
        store.checkpoint(parent / "copy")
    assert not isinstance(refused.value, StoreDamagedError)
    store.close()


def test_checkpoint_stays_on_its_file_system(tmp_path: Path) -> None:
    """A directory on another file system is refused, because every byte would have to be copied."""
    elsewhere = Path("/dev/shm")  # noqa: S108  # nothing is written to it
    if not elsewhere.exists() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    store = _rocks(tmp_path / "state")
    target = elsewhere / f"stream-dedup-{uuid.uuid4()}"
    with pytest.raises(StoreError, match="on another file system"):
        store.checkpoint(target)
    assert not target.exists()
    store.close()


def test_ingested_pairs_replace_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingested pairs persist, and hide older ones in files or write buffers, and earlier drops."""
    monkeypatch.setattr(rocks, "_SST_BYTES", 4000)
    monkeypatch.setattr(rocks, "_SST_SLICE", 50)
    store = _rocks(tmp_path)
    store.write([Put(Family.ENTRIES, key, b"old") for key in _KEYS[::2]])
    store.checkpoint(tmp_path / "copy")  # flushes all buffers
    store.write([Put(Family.ENTRIES, key, b"old") for key in _KEYS[::3]])
    store.write([Drop(Family.ENTRIES, _KEYS[100], _KEYS[200])])
    store.ingest(Family.ENTRIES, _KEYS[50:], [_value(key) for key in _KEYS[50:]])
    old = [key for number, key in enumerate(_KEYS[:50]) if number % 2 == 0 or number % 3 == 0]
    expected = [(key, b"old") for key in old] + [(key, _value(key)) for key in _KEYS[50:]]
    assert list(store.items(Family.ENTRIES)) == expected
    store.reclaim(Family.ENTRIES, _KEYS[100], _KEYS[200])
    store.write([Put(Family.ENTRIES, _KEYS[-1], b"newer")])
    store.close()
    assert _read_all(tmp_path)[1] == [*expected[:-1], (_KEYS[-1], b"newer")]


def test_ingested_pairs_survive_a_kill(tmp_path: Path) -> None:
    """They are in the directory as soon as the call returns, even without the log."""
    store = _rocks(tmp_path / "state")
    store.ingest(Family.ENTRIES, _KEYS, _KEYS)
    log = _killed(store, tmp_path / "state")
    log.unlink()
    assert _read_all(log.parent)[0] == _KEYS


@pytest.mark.parametrize(
    ("keys", "values"),
    [([b"b", b"a"], [b"1", b"2"]), ([b"a", b"a"], [b"1", b"2"]), ([b"a", b"b"], [b"1"])],
    ids=["descending", "twice", "too few values"],
)
def test_ingest_wants_ascending_pairs(keys: list[bytes], values: list[bytes], tmp_path: Path) -> None:
    """Unordered pairs are refused without a trace; ingesting nothing is no error."""
    store = _rocks(tmp_path)
    with pytest.raises(ValueError, match="ascending"):
        store.ingest(Family.META, keys, values)
    store.ingest(Family.META, [], [])
    assert list(store.items(Family.META)) == []
    store.close()


def test_opening_removes_what_a_crash_left_half_made(tmp_path: Path) -> None:
    """Files of an unfinished ingest are removed at the next opening; a finished one leaves none."""
    store = _rocks(tmp_path)
    store.ingest(Family.META, _KEYS, _KEYS)
    assert list((tmp_path / "scratch").iterdir()) == []
    store.close()
    (tmp_path / "scratch" / "half").mkdir()
    (tmp_path / "scratch" / "half" / "0.sst").write_bytes(b"half")
    store = _rocks(tmp_path)
    assert not (tmp_path / "scratch").exists()
    assert len(list(store.items(Family.META))) == 600
    store.close()


def test_sizes_are_those_of_the_files(flushed: Path) -> None:
    """Each family's size is the bytes of its files, and 0 if it has none."""
    store = _rocks(flushed)
    sizes = store.sizes()
    assert sizes[Family.ENTRIES] == _sst_bytes(flushed)
    assert sum(sizes.values()) == sizes[Family.ENTRIES]
    assert set(sizes) == set(Family)
    store.close()


def test_figures_follow_what_is_done(flushed: Path) -> None:
    """The first look-up misses the cache, the second hits it, and a write is in the write buffer."""
    store = _rocks(flushed)
    at_first = store.figures()
    store.get_many(Family.ENTRIES, _KEYS[:1])
    missed = store.figures()
    store.get_many(Family.ENTRIES, _KEYS[:1])
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
