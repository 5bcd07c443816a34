"""Families of keys and values with atomic writes: RocksDB on a directory, or dictionaries in memory.

Knows bytes; knows nothing of what they mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, cast

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DataBlockIndexType,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from stream_dedup.settings import StateSettings


class Family(StrEnum):
    """The column families. RocksDB insists on one of the name `default`."""

    META = "default"
    ARTICLES = "articles"  # article id -> what became of it
    ENTRIES = "entries"  # entry number -> what later articles are compared with
    CONTENTS = "contents"  # content hash -> entry numbers
    LANDMARKS = "landmarks"  # landmark -> entry numbers
    TABLES = "tables"  # table and prefix -> fingerprints and entry numbers
    COUNTS = "counts"  # document counts of the epoch, and what was added since


@dataclass(frozen=True, slots=True)
class Put:
    """One write; a value of None deletes the key."""

    family: Family
    key: bytes
    value: bytes | None


class StoreError(Exception):
    """The store cannot be opened, read or written. The message says what to do."""


class StoreLockedError(StoreError):
    """Another process has the state directory open."""


class Store(Protocol):
    """What the index asks of a store. Readers see whole writes only."""

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none. Fastest with sorted keys."""
        ...

    def items(self, family: Family, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of a family whose keys begin with a prefix, in ascending order."""
        ...

    def write(self, puts: Sequence[Put]) -> None:
        """Write all or nothing."""
        ...

    def close(self) -> None:
        """Release the directory. The store cannot be used afterwards."""
        ...


class MemoryStore:
    """A store which is gone when the process ends."""

    def __init__(self) -> None:
        self._families: dict[Family, dict[bytes, bytes]] = {family: {} for family in Family}

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Store`."""
        return [self._families[family].get(key) for key in keys]

    def items(self, family: Family, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See `Store`."""
        pairs = self._families[family]
        yield from ((key, pairs[key]) for key in sorted(pairs) if key.startswith(prefix))

    def write(self, puts: Sequence[Put]) -> None:
        """See `Store`."""
        for put in puts:
            if put.value is None:
                self._families[put.family].pop(put.key, None)
            else:
                self._families[put.family][put.key] = put.value

    def close(self) -> None:
        """See `Store`."""


class RocksStore:
    """A store in a directory, held by one process at a time.

    Args:
        directory: made if it does not exist.
        cache_bytes: block cache, shared by all families.
        write_buffer_bytes: of each write buffer.
        sync: whether a write waits for the disk.
        read_only: open what is there to read, also while another process writes to it; make and lock nothing.

    Raises:
        StoreLockedError: another process holds the directory.
        StoreError: RocksDB cannot open it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        cache_bytes: int = 256 << 20,
        write_buffer_bytes: int = 32 << 20,
        sync: bool = False,
        read_only: bool = False,
    ) -> None:
        self._directory = directory
        cache = Cache(cache_bytes)
        options = {family: _options(cache, write_buffer_bytes) for family in Family}
        try:
            if not read_only:
                directory.mkdir(parents=True, exist_ok=True)
            self._database = Rdict(
                str(directory),
                options[Family.META],
                column_families={str(family): options[family] for family in Family if family is not Family.META},
                access_type=AccessType.read_only() if read_only else AccessType.read_write(),
            )
        except Exception as error:  # noqa: BLE001  # RocksDB raises nothing more specific
            raise _opening_error(directory, error) from None
        self._families = {
            family: self._database if family is Family.META else self._database.get_column_family(family)
            for family in Family
        }
        self._handles = {family: self._database.get_column_family_handle(family) for family in Family}
        self._write_options = WriteOptions()
        self._write_options.sync = sync
        # A write that names a family which is gone would be applied in part.
        self._write_options.ignore_missing_column_families = True

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Store`.

        Raises:
            StoreError: RocksDB cannot read.
        """
        if not keys:
            return []
        try:
            values = self._families[family].get(list(keys))
        except Exception as error:  # noqa: BLE001  # RocksDB raises nothing more specific
            raise self._error("read", error) from None
        return cast("list[bytes | None]", values)

    def items(self, family: Family, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See `Store`.

        Raises:
            StoreError: RocksDB cannot read.
        """
        cursor = self._families[family].iter()
        try:
            cursor.seek(prefix)
            while cursor.valid() and cursor.key().startswith(prefix):
                yield cursor.key(), cursor.value()
                cursor.next()
            # An iterator that meets damage merely ends.
            cursor.status()
        except Exception as error:  # noqa: BLE001  # RocksDB raises nothing more specific
            raise self._error("read", error) from None

    def write(self, puts: Sequence[Put]) -> None:
        """See `Store`.

        Raises:
            StoreError: RocksDB cannot write, for instance because the disk is full.
        """
        batch = WriteBatch(raw_mode=True)
        for put in puts:
            if put.value is None:
                batch.delete(put.key, self._handles[put.family])
            else:
                batch.put(put.key, put.value, self._handles[put.family])
        try:
            self._database.write(batch, self._write_options)
        except Exception as error:  # noqa: BLE001  # RocksDB raises nothing more specific
            raise self._error("write", error) from None

    def close(self) -> None:
        """See `Store`. Closing twice does no harm."""
        if not self._families:
            return
        self._handles.clear()
        for family, handle in self._families.items():
            if family is not Family.META:
                handle.close()
        self._families.clear()
        self._database.close()

    def _error(self, action: str, error: Exception) -> StoreError:
        return StoreError(f"cannot {action} the state directory {self._directory}: {error}")


def open_store(directory: Path, settings: StateSettings) -> RocksStore:
    """Open the store in a directory with the sizes of the settings; see `RocksStore`."""
    return RocksStore(
        directory,
        cache_bytes=settings.cache_bytes,
        write_buffer_bytes=settings.write_buffer_bytes,
        sync=settings.sync,
    )


def _opening_error(directory: Path, error: Exception) -> StoreError:
    if "lock file" in str(error) or "lock hold by" in str(error):
        return StoreLockedError(
            f"state directory {directory} is in use by another process: stop that one, or give this one a "
            "directory of its own (state.directory)"
        )
    return StoreError(f"cannot open the state directory {directory}: {error}")


def _options(cache: Cache, write_buffer_bytes: int) -> Options:
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(10, block_based=False)
    table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
    table.set_cache_index_and_filter_blocks(True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_max_write_buffer_number(2)
    # Most look-ups are for keys that are not there: they need not search the write buffer either.
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(0.1)
    options.set_max_background_jobs(2)
    options.set_max_open_files(512)
    options.set_max_total_wal_size(256 << 20)
    options.set_max_log_file_size(4 << 20)
    options.set_keep_log_file_num(4)
    # A torn end of the log is a write that was never acknowledged; damage before it must be heard.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    return options
