"""The store in a directory: RocksDB, and its upkeep.

Knows RocksDB; knows nothing of what keys and values mean.
"""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from operator import ge
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import BinaryIO, cast

from rocksdict import (
    Checkpoint,
    CompactOptions,
    IngestExternalFileOptions,
    Options,
    Rdict,
    RdictIter,
    SstFileWriter,
    WriteBatch,
)

from stream_dedup.closing import SelfClosing
from stream_dedup.index.stores.errors import store_error
from stream_dedup.index.stores.figures import Figures, figure, figures_of
from stream_dedup.index.stores.options import access_of, all_in_order, options_of, write_options
from stream_dedup.index.stores.store import (
    Drop,
    Family,
    Put,
    StoreError,
    Write,
)
from stream_dedup.settings import StateSettings

# Files besides those of the database, under names that never come again.
_FILES = "files"
# What is being made stands here, on the file system of the database; a crash leaves it to the next opening to remove.
_SCRATCH = "scratch"
# RocksDB's own target size of a file.
_SST_BYTES = 64 << 20
# Entries between two looks at the size of the file being written.
_SST_SLICE = 4096
# A look-up that holds a compacted file ends sooner; an iterator may hold it longer than all of them.
_REMOVAL_SECONDS = 0.5
_REMOVALS = 4
# Between two attempts to write while writes have to wait for compaction.
_STALL_SECONDS = 0.02


class RocksStore(SelfClosing):
    """A store in a directory, held by one process at a time.

    Reads and writes may come from several threads; all but `close`, which ends a running `reclaim` and must
    meet nothing else.

    A disk without space fails writes with `StoreFullError` and loses none that succeeded; the one that failed may
    be found after reopening, but only whole. Reads go on. Once there is space for the unflushed write buffers,
    writes succeed again within some five seconds, without reopening.

    A flipped byte, a file cut short or a missing one is heard as `StoreDamagedError`, when opening or when reading
    what it held. Two are not heard, as they look like the end of a process that was killed: where the end of the
    newest log is gone, the last writes are missing, each whole; where the end of MANIFEST is gone, each family is as
    of some earlier moment, or empty.

    Args:
        directory: made if it does not exist.
        cache_bytes: block cache, shared by all families.
        write_buffer_bytes: of each write buffer.
        sync: whether a write waits for the disk.
        read_only: open what is there to read, also while another process writes to it; make and lock nothing.
        follow: open it to read likewise, as it was at the last `catch_up`; a directory of one's own for what RocksDB
            notes down meanwhile.

    Raises:
        StoreLockedError: another process holds the directory.
        StoreDamagedError: files in the directory are damaged or missing.
        StoreFullError: there is no space to open it.
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
        follow: Path | None = None,
    ) -> None:
        self._directory = directory
        self._read_only = read_only = read_only or follow is not None
        options = options_of(cache_bytes, write_buffer_bytes, follows=follow is not None)
        with self._action("open"):
            if not read_only:
                _check_index(directory)
                directory.mkdir(parents=True, exist_ok=True)
            self._database = Rdict(
                str(directory),
                options[Family.META],
                column_families={str(family): options[family] for family in Family if family is not Family.META},
                access_type=access_of(read_only=read_only, follow=follow),
            )
        if not read_only:
            shutil.rmtree(directory / _SCRATCH, ignore_errors=True)
        self._families = {
            family: self._database if family is Family.META else self._database.get_column_family(family)
            for family in Family
        }
        self._handles = {family: self._database.get_column_family_handle(family) for family in Family}
        self._write_options = write_options(sync=sync)
        self._file_options = options
        self._upkeep = Lock()
        self._closing = Event()

    def catch_up(self) -> None:
        """Show what the writer has written since, where the store was opened to follow one.

        It takes 0.7 us or more for each key that was written, and has the log of all that is in no file yet to read
        at first.

        Raises:
            StoreError: RocksDB cannot read.
        """
        with self._action("read"):
            self._database.try_catch_up_with_primary()

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Store`.

        Raises:
            StoreError: RocksDB cannot read.
        """
        if not keys:
            return []
        with self._action("read"):
            return cast("list[bytes | None]", self._families[family].get(list(keys)))

    def items(self, family: Family, prefix: bytes = b"", *, descending: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See `Store`.

        Raises:
            StoreError: RocksDB cannot read.
        """
        cursor = self._families[family].iter(all_in_order())
        try:
            with self._action("read"):
                _seek_last(cursor, prefix) if descending else cursor.seek(prefix)
                while cursor.valid() and cursor.key().startswith(prefix):
                    yield cursor.key(), cursor.value()
                    cursor.prev() if descending else cursor.next()
                # An iterator that meets damage merely ends.
                cursor.status()
        finally:
            # An error that is kept would keep the cursor, and with it the directory's lock.
            del cursor

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`. Where compaction falls behind it waits for it; other threads go on.

        Raises:
            StoreFullError: the disk is full; see the class.
            StoreError: RocksDB cannot write.
        """
        while not self._written(self._batch(writes)):
            time.sleep(_STALL_SECONDS)

    def load(self, writes: Sequence[Write]) -> None:
        """See `Store`.

        Raises:
            StoreFullError: the disk is full.
            StoreError: RocksDB cannot write.
        """
        if any(isinstance(write, Drop) for write in writes):
            self.write(writes)
            return
        last: dict[Family, dict[bytes, bytes | None]] = {}
        for write in writes:
            pairs = last.setdefault(write.family, {})
            if not isinstance(write, Drop):
                pairs.update(write.pairs())
        for family, pairs in last.items():
            keys = sorted(key for key, value in pairs.items() if value is not None)
            self.ingest(family, keys, [value for key in keys if (value := pairs[key]) is not None])
        self.write(
            [Put(family, key, None) for family, pairs in last.items() for key, value in pairs.items() if value is None]
        )

    def ingest(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write ascending, distinct keys as finished files: all or nothing, over what is there, and safe on the disk.

        For many at once: an entry of 20 bytes costs 1.2 us and one of 600 bytes 4 us, where `write` takes 2.7 and 6 us
        if it gets them in order and 8 and 24 us or more if not, and leaves work for compaction. Each call costs some
        20 ms besides, and 100 ms where unflushed keys lie between the first and the last.

        Raises:
            ValueError: the keys do not ascend, or are not as many as the values.
            StoreFullError: the disk is full.
            StoreError: RocksDB cannot write.
        """
        if len(keys) != len(values) or any(map(ge, keys, islice(keys, 1, None))):
            raise ValueError("ingest wants ascending, distinct keys and as many values")
        if not keys:
            return
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        with self._action("write"), self._scratch() as scratch:
            files = _write_files(scratch, self._file_options[family], keys, values)
            self._families[family].ingest_external_file([str(file) for file in files], options)

    @contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """See `FileStore`.

        Raises:
            StoreFullError: the disk is full.
            StoreError: the file cannot be written.
        """
        with self._action("write"), self._scratch() as scratch:
            with (scratch / name).open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            (self._directory / _FILES).mkdir(exist_ok=True)
            (scratch / name).replace(self._directory / _FILES / name)
            # A file that is on the disk is not found after a loss of power where its name is not.
            for directory in (self._directory / _FILES, self._directory):
                _sync_directory(directory)

    def open_file(self, name: str) -> int:
        """See `FileStore`.

        Raises:
            StoreDamagedError: the file is missing.
            StoreError: it cannot be opened.
        """
        with self._action("read"):
            return os.open(self._directory / _FILES / name, os.O_RDONLY | os.O_CLOEXEC)

    def remove_files(self, names: Sequence[str]) -> None:
        """See `FileStore`. A store that is open to read removes none: whoever writes may have just made them.

        Raises:
            StoreError: one cannot be removed.
        """
        if self._read_only:
            return
        with self._action("remove files of"):
            for name in names:
                (self._directory / _FILES / name).unlink(missing_ok=True)

    def file_names(self) -> list[str]:
        """See `FileStore`."""
        return [path.name for path in (self._directory / _FILES).glob("*")]

    def reclaim(self, family: Family, begin: bytes, end: bytes) -> None:
        """Give the disk space of a dropped range back: without it, nobody knows when.

        Rewrites the files which the range shares with other keys, and takes 10 s for 600 MB. It waits without the
        GIL and is meant for a thread of its own: reads and writes of others meanwhile take up to twice as long on two
        busy cores, and none stalls. `close` cuts it short; what is left of it then comes with another call.

        Raises:
            StoreError: RocksDB cannot compact.
        """
        options = CompactOptions()
        # The compactions that writes wait for go on.
        options.set_exclusive_manual_compaction(False)
        with self._upkeep, self._action("compact"):
            if not self._closing.is_set():
                with _cut_short():
                    self._families[family].compact_range(begin, end, options)
        self._remove_files(family)

    def checkpoint(self, directory: Path) -> None:
        """Copy the store as it is now to a new directory on the same file system, by hard links.

        The copy is a store of its own; files that neither changes take their space once. Takes some 50 ms, besides
        writing out the write buffers.

        Raises:
            StoreError: the directory exists, cannot be made or is on another file system, or RocksDB cannot write.
        """
        _check_makeable(directory)
        with self._action("copy"):
            here, there = self._directory.stat().st_dev, directory.parent.stat().st_dev
        if here != there:
            # RocksDB would copy every byte, and stop all threads of the process until it is done.
            raise StoreError(
                f"cannot copy the state directory {self._directory} to {directory}: it is on another file system; "
                "name a directory on the same one, and copy that one"
            )
        with self._upkeep, self._action("copy"):
            self._link(directory)
            (directory / _FILES).mkdir()
            for name in self.file_names():
                (directory / _FILES / name).hardlink_to(self._directory / _FILES / name)

    def sizes(self) -> dict[Family, int]:
        """Return the bytes of each family's files. What is only in write buffers and the log is not in it."""
        return {family: figure("live-sst-files-size", database) for family, database in self._families.items()}

    def figures(self) -> Figures:
        """Return how RocksDB is doing, in less than a millisecond."""
        return figures_of(self._database, [*self._families.values()])

    def close(self) -> None:
        """See `Store`. Closing twice does no harm.

        Raises:
            StoreError: the write buffers cannot be written out. The directory is released, and the log has it all.
        """
        self._closing.set()
        with self._action("close"):
            self._end_upkeep()
        with self._upkeep, self._action("close"), ExitStack() as closing:
            self._handles.clear()
            # The last one is closed first: the database after its families.
            for database in self._families.values():
                closing.callback(_close, database)
            self._families.clear()

    @contextmanager
    def _action(self, action: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # RocksDB raises nothing more specific
            raise store_error(action, self._directory, error) from None

    def _batch(self, writes: Sequence[Write]) -> WriteBatch:
        """Not part of `write`: an error that is kept would keep the handle, and with it the directory's lock."""
        batch = WriteBatch(raw_mode=True)
        for write in writes:
            handle = self._handles[write.family]
            if isinstance(write, Drop):
                # RocksDB takes a range that ends before it begins for a failure of the disk: no write succeeds again.
                if write.begin < write.end:
                    batch.delete_range(write.begin, write.end, handle)
                continue
            put, delete = batch.put, batch.delete
            for key, value in write.pairs():
                if value is None:
                    delete(key, handle)
                else:
                    put(key, value, handle)
        return batch

    def _written(self, batch: WriteBatch) -> bool:
        """Write, unless writes have to wait for compaction."""
        with self._action("write"):
            try:
                self._database.write(batch, self._write_options)
            except Exception as error:
                if "Write stall" not in str(error):
                    raise
                return False
            return True

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        (self._directory / _SCRATCH).mkdir(exist_ok=True)
        with TemporaryDirectory(dir=self._directory / _SCRATCH) as scratch:
            yield Path(scratch)

    def _end_upkeep(self) -> None:
        if self._upkeep.locked():
            self._flush()
            self._database.cancel_all_background(False)

    def _remove_files(self, family: Family) -> None:
        """Remove compacted files that a look-up was reading: they would stay until RocksDB next writes a file."""
        for _ in range(_REMOVALS):
            if not self._lingering(family):
                return
            # The look-up ends meanwhile.
            self._closing.wait(_REMOVAL_SECONDS)
            with self._upkeep, self._action("compact"):
                if self._closing.is_set():
                    return
                # Of what rocksdict offers, only the end of a checkpoint makes RocksDB look for such files.
                with self._scratch() as scratch:
                    self._link(scratch / "checkpoint")

    def _lingering(self, family: Family) -> bool:
        with self._upkeep:
            if self._closing.is_set():
                return False
            files, obsolete = self._families[family], figure("obsolete-sst-files-size", self._database)
            return obsolete + figure("total-sst-files-size", files) > figure("live-sst-files-size", files)

    def _flush(self) -> None:
        for database in self._families.values():
            database.flush()

    def _link(self, directory: Path) -> None:
        # A checkpoint does this too, but without releasing the GIL: 0.5 s.
        self._flush()
        Checkpoint(self._database).create_checkpoint(str(directory))


def _check_makeable(directory: Path) -> None:
    """Check that a directory for a copy can be made: RocksDB, which makes it, would tell it as a fault of the state.

    Raises:
        StoreError: it cannot, or is there already.
    """
    try:
        directory.mkdir(parents=True)
        directory.rmdir()
    except FileExistsError:
        raise StoreError(f"cannot copy the state to {directory}: it exists already; name a new directory") from None
    except OSError as error:
        raise StoreError(f"cannot copy the state to {directory}: {error.strerror}; name another directory") from None


def open_store(directory: Path, settings: StateSettings) -> RocksStore:
    """Open the store in a directory with the sizes of the settings; see `RocksStore`."""
    return RocksStore(
        directory,
        cache_bytes=settings.cache_bytes,
        write_buffer_bytes=settings.write_buffer_bytes,
        sync=settings.sync,
    )


def _seek_last(cursor: RdictIter, prefix: bytes) -> None:
    """Go to the last key that begins with a prefix, or to one before all of these."""
    if not (begin := prefix.rstrip(b"\xff")):
        cursor.seek_to_last()
        return
    behind = begin[:-1] + bytes([begin[-1] + 1])
    cursor.seek_for_prev(behind)
    if cursor.valid() and cursor.key() == behind:
        cursor.prev()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _close(database: Rdict) -> None:
    with _cut_short():
        database.close()


@contextmanager
def _cut_short() -> Iterator[None]:
    """Nothing is lost when closing ends an upkeep: all had been written out before."""
    try:
        yield
    except Exception as error:
        if "Shutdown in progress" not in str(error):
            raise


def _check_index(directory: Path) -> None:
    """RocksDB takes a directory without CURRENT for a new one, and removes the files in it."""
    if not (directory / "CURRENT").exists() and any(directory.glob("*.sst")):
        raise FileNotFoundError(f"Corruption: there are *.sst files, but no {directory / 'CURRENT'}")


def _write_files(directory: Path, options: Options, keys: Sequence[bytes], values: Sequence[bytes]) -> list[Path]:
    """Write ascending pairs to SST files of up to some 64 MB."""
    files: list[Path] = []
    first = 0
    while first < len(keys):
        files.append(directory / f"{len(files)}.sst")
        writer = SstFileWriter(options)
        writer.open(str(files[-1]))
        while first < len(keys) and writer.file_size() < _SST_BYTES:
            last = first + _SST_SLICE
            for key, value in zip(keys[first:last], values[first:last], strict=True):
                writer[key] = value
            first = last
        writer.finish()
    return files
