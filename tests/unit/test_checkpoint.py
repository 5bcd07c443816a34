"""A checkpoint is a store of its own, made of hard links, in a new directory of the same file system.

Knows stores and directories; snapshots of a service's state are tested in tests/stream.
"""

import threading
import uuid
from pathlib import Path

import pytest

from stream_dedup.index.stores.store import Drop, Family, Put, StoreDamagedError, StoreError
from tests.unit.stores import KEYS, content_of, largest, make_file, rocks_in, value_of


def test_checkpoint_is_a_store_of_its_own(tmp_path: Path) -> None:
    """The copy has the current data and shares files; afterwards both are independent."""
    store = rocks_in(tmp_path / "state")
    store.write([Put(Family.ENTRIES, key, value_of(key)) for key in KEYS])
    store.checkpoint(tmp_path / "deep" / "copy")
    store.write([Drop(Family.ENTRIES, KEYS[0], KEYS[300]), Put(Family.META, b"first", b"1")])
    copy = rocks_in(tmp_path / "deep" / "copy")
    assert largest(tmp_path / "deep" / "copy", "*.sst").stat().st_nlink > 1
    assert list(copy.items(Family.ENTRIES)) == [(key, value_of(key)) for key in KEYS]
    copy.write([Put(Family.META, b"copy", b"2")])
    assert list(store.items(Family.META)) == [(b"first", b"1")]
    assert list(copy.items(Family.META)) == [(b"copy", b"2")]
    assert len(list(store.items(Family.ENTRIES))) == 300
    copy.close()
    store.close()


def test_checkpoint_takes_files_along(tmp_path: Path) -> None:
    """The copy has the existing files as hard links; afterwards, changes in one do not affect the other."""
    store = rocks_in(tmp_path / "state")
    for name in ("a", "b"):
        make_file(store, name, name.encode())
    store.checkpoint(tmp_path / "copy")
    assert (tmp_path / "copy" / "files" / "a").stat().st_nlink == 2
    store.remove_files(["a"])
    make_file(store, "b", b"another")
    make_file(store, "c", b"later")
    copy = rocks_in(tmp_path / "copy")
    copy.remove_files(["b"])
    assert {name: content_of(copy, name) for name in copy.file_names()} == {"a": b"a"}
    assert {name: content_of(store, name) for name in store.file_names()} == {"b": b"another", "c": b"later"}
    copy.close()
    store.close()


def test_no_file_is_removed_while_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal in another thread waits for a checkpoint that has begun to link what it removes."""
    store = rocks_in(tmp_path / "state")
    make_file(store, "a", b"a")
    removal = threading.Thread(target=store.remove_files, args=(["a"],))
    names = store.file_names

    def beginning_to_remove() -> list[str]:
        listed = names()
        removal.start()
        removal.join(0.3)
        return listed

    monkeypatch.setattr(store, "file_names", beginning_to_remove)
    store.checkpoint(tmp_path / "copy")
    removal.join()
    assert [path.name for path in (tmp_path / "copy" / "files").iterdir()] == ["a"]
    assert names() == []
    store.close()


def test_checkpoint_wants_a_new_directory(tmp_path: Path) -> None:
    """An existing directory is refused by name, and is not changed."""
    store = rocks_in(tmp_path / "state")
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
    store = rocks_in(tmp_path / "state")
    with pytest.raises(StoreError, match=rf"cannot copy the state to {parent / 'copy'}: ") as refused:
        store.checkpoint(parent / "copy")
    assert not isinstance(refused.value, StoreDamagedError)
    store.close()


def test_checkpoint_stays_on_its_file_system(tmp_path: Path) -> None:
    """A directory on another file system is refused, because every byte would have to be copied."""
    elsewhere = Path("/dev/shm")  # noqa: S108  # nothing is written to it
    if not elsewhere.exists() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    store = rocks_in(tmp_path / "state")
    target = elsewhere / f"stream-dedup-{uuid.uuid4()}"
    with pytest.raises(StoreError, match="on another file system"):
        store.checkpoint(target)
    assert not target.exists()
    store.close()
