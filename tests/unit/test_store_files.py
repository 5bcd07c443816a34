"""Files in a store: whole or not there, safe on the disk, and errors that say what to do.

Knows files and their names; knows nothing of what is in them.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from stream_dedup.index.stores import rocks
from stream_dedup.index.stores.errors import store_error
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import (
    Family,
    FileStore,
    MemoryStore,
    Put,
    StoreDamagedError,
    StoreError,
    StoreFullError,
)
from tests.unit.stores import content_of, killed_copy, make_file, read_whole, rocks_in

Forbidden = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture(params=["memory", "rocks"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FileStore]:
    """Return each kind of store that keeps files."""
    store: FileStore = MemoryStore() if request.param == "memory" else rocks_in(tmp_path / "state")
    yield store
    store.close()


def _fail_to_make(store: FileStore, name: str, error: Exception) -> None:
    with store.new_file(name) as file:
        file.write(b"half of it")
        raise error


def test_files_are_there_as_they_were_written(files: FileStore) -> None:
    """Each file has its bytes under its name, even if there are none, and can be opened repeatedly."""
    assert files.file_names() == []
    contents = {"1.run": b"one", "2.run": os.urandom(200_000), "empty": b""}
    for name, content in contents.items():
        make_file(files, name, content)
    assert sorted(files.file_names()) == sorted(contents)
    for _ in range(2):
        assert {name: content_of(files, name) for name in contents} == contents


def test_file_is_there_once_it_is_whole(files: FileStore) -> None:
    """While it is being written its name does not exist; an error leaves nothing, or the earlier file."""
    with files.new_file("run") as file:
        file.write(b"first")
        assert files.file_names() == []
    for name in ("run", "other"):
        with pytest.raises((ValueError, StoreError), match="no"):
            _fail_to_make(files, name, ValueError("no"))
    assert files.file_names() == ["run"]
    assert content_of(files, "run") == b"first"


def test_open_files_are_read_on(files: FileStore) -> None:
    """An open file keeps its bytes if it is removed or replaced."""
    make_file(files, "run", b"old")
    descriptors = [files.open_file("run")]
    make_file(files, "run", b"new")
    descriptors.append(files.open_file("run"))
    files.remove_files(["run"])
    assert files.file_names() == []
    assert [read_whole(descriptor) for descriptor in descriptors] == [b"old", b"new"]
    for descriptor in descriptors:
        os.close(descriptor)


def test_removing_files_takes_those_named(files: FileStore) -> None:
    """Other files stay, and a missing one is no error."""
    for name in ("a", "b", "c"):
        make_file(files, name, name.encode())
    files.remove_files(["a", "x", "c"])
    files.remove_files([])
    assert files.file_names() == ["b"]
    assert content_of(files, "b") == b"b"


def test_files_are_there_after_a_kill(tmp_path: Path) -> None:
    """A file exists as soon as its context ends, and no trace is left of unfinished ones."""
    store = rocks_in(tmp_path / "state")
    make_file(store, "run", b"whole")
    with pytest.raises(StoreError):
        _fail_to_make(store, "other", OSError("no"))
    assert list((tmp_path / "state" / "scratch").iterdir()) == []
    killed = killed_copy(store, tmp_path / "state").parent
    again = rocks_in(killed)
    assert {name: content_of(again, name) for name in again.file_names()} == {"run": b"whole"}
    again.close()


def test_files_are_safe_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's bytes reach the disk before its name does, and its name before the caller continues."""
    store = rocks_in(tmp_path)
    synced: list[tuple[int, list[str]]] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, store.file_names())))
    make_file(store, "run", b"x")
    directories = [(path.stat().st_ino, ["run"]) for path in (tmp_path / "files", tmp_path)]
    assert synced == [((tmp_path / "files" / "run").stat().st_ino, []), *directories]
    store.close()


def test_nothing_on_the_disk_refers_to_a_removed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is synced before a file is removed: after a loss of power, an older log would name a missing file."""
    store = rocks_in(tmp_path)
    make_file(store, "run", b"x")
    order: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(database, name)

        def flush_wal(self, *, sync: bool) -> None:
            database.flush_wal(sync)
            order.append("synced" if sync else "flushed")

    database, unlink = store._database, Path.unlink  # noqa: SLF001  # what RocksDB syncs cannot be seen from outside

    def watched_unlink(path: Path, *, missing_ok: bool = False) -> None:
        order.append(path.name)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(store, "_database", Watched())
    monkeypatch.setattr(Path, "unlink", watched_unlink)
    store.remove_files(["run"])
    assert order == ["synced", "run"]
    store.close()


def test_missing_file_is_damage(tmp_path: Path) -> None:
    """A missing file is reported as damage, with the directory and its name."""
    store = rocks_in(tmp_path)
    make_file(store, "1.run", b"x")
    (tmp_path / "files" / "1.run").unlink()
    with pytest.raises(StoreDamagedError, match=rf"{tmp_path}.*it is damaged.*1\.run"):
        store.open_file("1.run")
    store.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_file_without_space_is_told_as_such(number: int, tmp_path: Path) -> None:
    """A lack of space reported by the system is the error of a full disk, whoever writes the file."""
    store = rocks_in(tmp_path)
    with pytest.raises(StoreFullError, match="disk is full"):
        _fail_to_make(store, "run", OSError(number, os.strerror(number)))
    assert store.file_names() == []
    store.close()


@pytest.mark.parametrize(
    ("number", "way_out"), [(errno.EACCES, "grant it to the user that this process runs as"), (errno.EROFS, "writable")]
)
def test_directory_that_may_not_be_written_is_told_with_the_way_out(number: int, way_out: str, tmp_path: Path) -> None:
    """For a volume of another user or mounted read-only, the error names the setting and what to do."""
    store = rocks_in(tmp_path)
    with pytest.raises(StoreError, match=rf"{tmp_path}.*{way_out}.*state\.directory"):
        _fail_to_make(store, "run", OSError(number, os.strerror(number)))
    store.close()


def test_reader_without_permission_is_not_told_to_write(tmp_path: Path) -> None:
    """A process that only reads, as the API does, needs no permission to write."""
    told = str(store_error("read", tmp_path, OSError(errno.EACCES, "Permission denied")))
    assert told.startswith(f"cannot read the state directory {tmp_path}: permission denied")
    assert "write" not in told


@pytest.mark.parametrize("follows", [False, True])
def test_store_is_read_where_nothing_may_be_written(*, follows: bool, tmp_path: Path, forbidden: Forbidden) -> None:
    """A backup that is mounted read-only, or the state of a service of another user, is read and left as it is."""
    state, notes = tmp_path / "state", tmp_path / "notes"
    notes.mkdir()
    with rocks_in(state) as store:
        store.write([Put(Family.ARTICLES, b"a", b"1")])
        make_file(store, "run", b"x")
    before = _times_in(state)
    with forbidden(state), RocksStore(state, read_only=not follows, follow=notes if follows else None) as reading:
        assert reading.get_many(Family.ARTICLES, [b"a"]) == [b"1"]
        assert content_of(reading, "run") == b"x"
    assert _times_in(state) == before


def test_follower_that_may_not_write_sees_what_is_written(tmp_path: Path, forbidden: Forbidden) -> None:
    """Also what lies in files that were not there when it began, and after others have gone."""
    keys = [b"a", b"b", b"c", b"d"]
    state, notes = tmp_path / "state", tmp_path / "notes"
    notes.mkdir()
    with rocks_in(state) as store:
        store.ingest(Family.URLS, keys[:1], [b"x"])
        with forbidden(state):
            following = RocksStore(state, follow=notes)
        first = set(state.glob("*.sst"))
        for count in range(2, len(keys) + 1):
            store.ingest(Family.URLS, keys[:count], [b"x"] * count)
            store.reclaim(Family.URLS, b"a", b"z")
            with forbidden(state):
                following.catch_up()
                assert following.get_many(Family.URLS, keys) == [b"x"] * count + [None] * (len(keys) - count)
        following.close()
        assert first.isdisjoint(state.glob("*.sst"))


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Forbidden:
    """Return a context in which nothing may be written to a directory."""

    @contextmanager
    def forbid(directory: Path) -> Iterator[None]:
        directory.chmod(0o555)
        with monkeypatch.context() as patched:
            if os.geteuid() == 0:  # may write all the same: then what counts is that nothing was written
                patched.setattr(rocks, "needs_links", lambda asked: asked == directory)
            yield
        directory.chmod(0o755)

    return forbid


def _times_in(directory: Path) -> dict[Path, int]:
    """Return when a directory and each file in it was last changed: a new file changes the directory."""
    return {file: file.stat().st_mtime_ns for file in (directory, *directory.rglob("*"))}


def test_store_that_is_read_removes_no_files(tmp_path: Path) -> None:
    """A store opened for reading sees the files and leaves them all there."""
    store = rocks_in(tmp_path)
    make_file(store, "run", b"x")
    reading = RocksStore(tmp_path, read_only=True)
    assert content_of(reading, "run") == b"x"
    reading.remove_files(reading.file_names())
    assert store.file_names() == ["run"]
    reading.close()
    store.close()


@pytest.mark.parametrize("follows", [False, True])
def test_store_that_is_read_leaves_what_the_writer_is_making(tmp_path: Path, *, follows: bool) -> None:
    """To the next writer, what is under construction is what a crash has left; a reader cannot tell."""
    notes = tmp_path / "notes"
    notes.mkdir()
    with rocks_in(tmp_path / "state") as store:
        with store.new_file("run") as file:
            file.write(b"first half, ")
            RocksStore(tmp_path / "state", read_only=not follows, follow=notes if follows else None).close()
            file.write(b"second half")
        assert content_of(store, "run") == b"first half, second half"


def test_store_that_is_read_outlasts_what_the_writer_removes(tmp_path: Path) -> None:
    """However many files it has, all stay readable when the writer merges them meanwhile: that is not damage."""
    keys = [b"%02d" % number for number in range(40)]
    with rocks_in(tmp_path) as store:
        for key in keys:
            store.ingest(Family.ARTICLES, [key], [b"x"])
        with RocksStore(tmp_path, read_only=True) as reading:
            store.reclaim(Family.ARTICLES, keys[0], keys[-1])
            assert [key for key, _ in reading.items(Family.ARTICLES)] == keys
