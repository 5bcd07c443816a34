"""Stores on disk for the tests of stores: small ones, what they hold, and their files.

Knows RocksDB's directories; knows nothing of what a test expects.
"""

import os
import shutil
from pathlib import Path

from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, FileStore, Put

KEYS = [number.to_bytes(8, "big") for number in range(600)]


def value_of(key: bytes) -> bytes:
    """Return a value that does not compress, so that files are not tiny."""
    return b"".join((int.from_bytes(key) * 2654435761 + i * 40503).to_bytes(8, "big") for i in range(12))


def rocks_in(directory: Path) -> RocksStore:
    """Open a store with small buffers."""
    return RocksStore(directory, cache_bytes=1 << 20, write_buffer_bytes=1 << 20)


def killed_copy(store: RocksStore, directory: Path) -> Path:
    """Copy the directory of an open store, as a killed process would leave it, and return its log."""
    store.write([Put(Family.META, b"last", b"1")])
    shutil.copytree(directory, directory.with_name("killed"))
    store.close()
    return largest(directory.with_name("killed"), "*.log")


def largest(directory: Path, pattern: str) -> Path:
    """Return the largest of the files whose names match."""
    return max(directory.glob(pattern), key=lambda path: path.stat().st_size)


def all_in(directory: Path) -> tuple[list[bytes | None], list[tuple[bytes, bytes]]]:
    """Return the entries of a directory's store, looked up by `KEYS` and walked through."""
    store = rocks_in(directory)
    try:
        return store.get_many(Family.ENTRIES, KEYS), list(store.items(Family.ENTRIES))
    finally:
        store.close()


def make_file(store: FileStore, name: str, content: bytes) -> None:
    """Write a file into a store."""
    with store.new_file(name) as file:
        file.write(content)


def content_of(store: FileStore, name: str) -> bytes:
    """Return what a file in a store holds."""
    with os.fdopen(store.open_file(name), "rb") as file:
        return read_whole(file.fileno())


def read_whole(descriptor: int) -> bytes:
    """Return what an open file holds."""
    return os.pread(descriptor, 1 << 20, 0)


def sst_bytes(directory: Path) -> int:
    """Return the size of a store's SST files together."""
    return sum(path.stat().st_size for path in directory.glob("*.sst"))
