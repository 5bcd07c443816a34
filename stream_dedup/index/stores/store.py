"""Families of keys and values with atomic writes: what a store promises, and the stores that live in memory.

Knows bytes; knows nothing of what they mean. The store in a directory is in `stream_dedup.index.stores.rocks`.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from typing import BinaryIO, Protocol


class Family(StrEnum):
    """The column families. RocksDB insists on one called `default`."""

    META = "default"
    ARTICLES = "articles"  # article -> what became of it
    ENTRIES = "entries"  # entry number -> what later articles are compared with
    COUNTS = "counts"  # document counts of the epoch, and what was added since
    CLUSTERS = "clusters"  # the clusters of duplicates
    MEMBERS = "members"  # which copy joined a cluster when, and why
    URLS = "urls"  # the addresses seen


@dataclass(frozen=True, slots=True)
class Put:
    """One write; a value of None deletes the key."""

    family: Family
    key: bytes
    value: bytes | None

    def pairs(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the key with the value."""
        yield self.key, self.value


@dataclass(frozen=True, slots=True)
class Puts:
    """Many writes to one family: like many `Put`s, in a fraction of the time; a value of None deletes its key."""

    family: Family
    keys: Sequence[bytes]
    values: Sequence[bytes | None]

    def pairs(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield each key with its value, in order."""
        return zip(self.keys, self.values, strict=True)


@dataclass(frozen=True, slots=True)
class Drop:
    """Deletion of all keys with begin <= key < end; of none if end is not after begin."""

    family: Family
    begin: bytes
    end: bytes


Write = Put | Puts | Drop


class StoreError(Exception):
    """The store cannot be opened, read or written. The message says what to do."""


class StoreDamagedError(StoreError):
    """What the store holds is damaged: a file is missing, or its checksum is wrong."""


class StoreFullError(StoreError):
    """There is no space left on the disk of the store."""


class StoreLockedError(StoreError):
    """Another process has the state directory open, or this one already has."""


class Store(Protocol):
    """What the index needs of a store. Readers see whole writes only."""

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none. Fastest with sorted keys."""
        ...

    def items(self, family: Family, prefix: bytes = b"", *, descending: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of a family whose keys begin with a prefix, in ascending or descending order.

        These are the pairs that were there when the first one was asked for: later writes do not show.
        """
        ...

    def write(self, writes: Sequence[Write]) -> None:
        """Write all or nothing, in the order given."""
        ...


class FileStore(Store, Protocol):
    """A whole store: it also takes very many writes, and keeps files, which never change once they are there.

    Attributes:
        while_waiting: called now and then while a write, or what precedes it, has to wait; may raise to give up, with
            nothing written.
    """

    while_waiting: Callable[[], None]

    def load(self, writes: Sequence[Write]) -> None:
        """Make very many writes, fast and in order, but not all or nothing: after a crash they are loaded again."""
        ...

    def close(self) -> None:
        """Release the directory. The store cannot be used afterwards."""
        ...

    def new_file(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Write a file: it is there, complete and safely on disk, once the context is left without an exception."""
        ...

    def open_file(self, name: str) -> int:
        """Return a descriptor of a file, open for reading; the caller closes it."""
        ...

    def remove_files(self, names: Sequence[str]) -> None:
        """Remove files; those that are open can still be read. May be called from a thread of its own."""
        ...

    def file_names(self) -> list[str]:
        """Return the names of the files that are there."""
        ...

    def has_room(self, size: int) -> bool:
        """Tell whether a file of `size` bytes would leave writes the room that they need."""
        ...

    def reclaim(self, family: Family, begin: bytes, end: bytes) -> None:
        """Free the disk space of a dropped range; may be called from a thread of its own."""
        ...


class MemoryStore:
    """A store that is gone when the process ends. A `Drop` takes time in proportion to its whole family."""

    def __init__(self) -> None:
        self.while_waiting: Callable[[], None] = wait_in_silence
        self._families: dict[Family, dict[bytes, bytes]] = {family: {} for family in Family}
        self._files: dict[str, BinaryIO] = {}

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Store`."""
        return [self._families[family].get(key) for key in keys]

    def items(self, family: Family, prefix: bytes = b"", *, descending: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See `Store`."""
        pairs = [pair for pair in self._families[family].items() if pair[0].startswith(prefix)]
        yield from sorted(pairs, reverse=descending)

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`."""
        for write in writes:
            pairs = self._families[write.family]
            if isinstance(write, Drop):
                for key in [key for key in pairs if write.begin <= key < write.end]:
                    del pairs[key]
            else:
                for key, value in write.pairs():
                    if value is None:
                        pairs.pop(key, None)
                    else:
                        pairs[key] = value

    def load(self, writes: Sequence[Write]) -> None:
        """See `FileStore`."""
        self.write(writes)

    @contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """See `FileStore`. It is a temporary file without a name."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  # it stays open until it is removed
        try:
            yield file
            file.flush()
        except BaseException:
            file.close()
            raise
        self.remove_files([name])
        self._files[name] = file

    def open_file(self, name: str) -> int:
        """See `FileStore`."""
        return os.dup(self._files[name].fileno())

    def remove_files(self, names: Sequence[str]) -> None:
        """See `FileStore`."""
        for name in names:
            if name in self._files:
                self._files.pop(name).close()

    def file_names(self) -> list[str]:
        """See `FileStore`."""
        return list(self._files)

    def has_room(self, size: int) -> bool:  # noqa: ARG002  # memory is not measured
        """See `FileStore`."""
        return True

    def reclaim(self, family: Family, begin: bytes, end: bytes) -> None:
        """See `FileStore`. Nothing is left of what was dropped."""

    def close(self) -> None:
        """See `FileStore`."""
        self.remove_files(self.file_names())


class Overlay:
    """A store as it will be once some writes are made: they are kept in memory, and the base is only read.

    The base must not change in the meantime.

    Args:
        store: the base.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._staged: list[Write] = []
        self._seen = 0  # how many of the staged writes reads already take into account
        self._puts: dict[Family, dict[bytes, bytes | None]] = {family: {} for family in Family}
        self._drops: dict[Family, list[Drop]] = {family: [] for family in Family}

    @property
    def staged(self) -> list[Write]:
        """The writes so far, in order: written to the base, they make it what the overlay shows."""
        return self._staged.copy()

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Store`."""
        self._look()
        puts = self._puts[family]
        if not puts and not self._drops[family]:
            return self._store.get_many(family, keys)
        below = [key for key in keys if key not in puts and not _covered(key, self._drops[family])]
        found = dict(zip(below, self._store.get_many(family, below), strict=True))
        found.update((key, puts[key]) for key in keys if key in puts)
        return [found.get(key) for key in keys]

    def items(self, family: Family, prefix: bytes = b"", *, descending: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See `Store`."""
        self._look()
        puts = self._puts[family].copy()
        drops = self._drops[family].copy()
        own = [(key, value) for key, value in puts.items() if value is not None and key.startswith(prefix)]
        below = (
            pair
            for pair in self._store.items(family, prefix, descending=descending)
            if pair[0] not in puts and not _covered(pair[0], drops)
        )
        yield from merge(sorted(own, reverse=descending), below, reverse=descending)

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`. The writes are staged."""
        self._staged.extend(writes)

    def _look(self) -> None:
        """Take in what was staged since the last read; not earlier, as most overlays are never read after a write."""
        for write in self._staged[self._seen :]:
            puts = self._puts[write.family]
            if not isinstance(write, Drop):
                puts.update(write.pairs())
                continue
            self._drops[write.family].append(write)
            for key in [key for key in puts if write.begin <= key < write.end]:
                del puts[key]
        self._seen = len(self._staged)


def wait_in_silence() -> None:
    """Do nothing while a store waits."""


def _covered(key: bytes, drops: Sequence[Drop]) -> bool:
    return any(drop.begin <= key < drop.end for drop in drops)
