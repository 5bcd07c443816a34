"""The store in a directory: RocksDB, and its upkeep.

Knows RocksDB; knows nothing of what keys and values mean.
"""

import ctypes
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from operator import ge
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import BinaryIO, cast
from weakref import WeakSet

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
from stream_dedup.index.stores.database import check_files, open_database
from stream_dedup.index.stores.errors import DATABASE_FILE, store_error
from stream_dedup.index.stores.figures import Figures, figure, figures_of
from stream_dedup.index.stores.linked import LinkedDirectory, needs_links
from stream_dedup.index.stores.options import access_of, all_in_order, options_of, write_options
from stream_dedup.index.stores.store import (
    Drop,
    Family,
    Put,
    StoreError,
    Write,
    wait_in_silence,
)
from stream_dedup.settings import StateSettings

# Files besides those of the database, whose names are never used again.
_FILES = "files"
# For files under construction, on the file system of the database; what a crash leaves, the next opening removes.
_SCRATCH = "scratch"
# RocksDB's default target size of a file.
_SST_BYTES = 64 << 20
# Entries written between two checks of a file's size.
_SST_SLICE = 4096
# Pause between attempts to remove a compacted file, and how many: a look-up ends sooner, an iterator may outlast all.
_REMOVAL_SECONDS = 0.5
_REMOVALS = 4
# Between two attempts to write while writes have to wait for compaction.
_STALL_SECONDS = 0.02


class RocksStore(SelfClosing):
    """A store in a directory, held by one process at a time.

    All methods may be called from several threads, except `close`, which ends a running `reclaim` but must not run at
    the same time as anything else.

    If the disk is full, writes fail with `StoreFullError`, and none that succeeded is lost; one that failed may be
    found after reopening, but only as a whole. Reads keep working. Once there is space for the unflushed write
    buffers, writes succeed again within some five seconds, without reopening.

    A flipped byte, a file cut short or a missing file is reported as `StoreDamagedError`, on opening or on reading
    what it held. Two kinds of damage go unnoticed, as they look like what a killed process leaves: if the end of the
    newest log is gone, the last writes are missing, each as a whole; if the end of MANIFEST is gone, each family is as
    it was at some earlier moment, or empty.

    Args:
        directory: created if it does not exist.
        cache_bytes: size of the block cache, shared by all families.
        write_buffer_bytes: size of each write buffer.
        sync: whether a write waits for the disk.
        read_only: open an existing store for reading, even while another process writes to it; create and lock nothing.
            Nothing need be writable.
        follow: open it for reading likewise, as it was at the last `catch_up`; names a directory that only this process
            uses, for RocksDB's notes. If the writer removes a file meanwhile, this may fail as if it were missing.

    Attributes:
        while_waiting: see `FileStore`.

    Raises:
        StoreLockedError: the directory is open already, in another process or in this one.
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
        self.while_waiting: Callable[[], None] = wait_in_silence
        # RocksDB locks a directory by its name: under a second one, the same process would write to it twice.
        self._directory = directory = directory.resolve()
        self._read_only = read_only = read_only or follow is not None
        self._links: LinkedDirectory | None = None
        options = options_of(cache_bytes, write_buffer_bytes, read_only=read_only, follows=follow is not None)
        with self._action("open"), ExitStack() as opened:
            if not read_only:
                _check_index(directory)
                directory.mkdir(parents=True, exist_ok=True)
            elif needs_links(directory):
                self._links = opened.enter_context(LinkedDirectory(directory))
            shown = self._links.path if self._links else directory
            if follow is not None:
                check_files(shown, follow)
            self._database = open_database(shown, options, access_of(read_only=read_only, follow=follow))
            opened.pop_all()
        if not read_only:
            shutil.rmtree(directory / _SCRATCH, ignore_errors=True)
        self._families = {
            family: self._database if family is Family.META else self._database.get_column_family(family)
            for family in Family
        }
        self._handles = {family: self._database.get_column_family_handle(family) for family in Family}
        self._write_options = write_options(sync=sync)
        self._file_options = options
        _OPENED.add(self)
        # A write buffer that is being written out, and the log of the next one.
        self._reserve_bytes = 2 * write_buffer_bytes
        self._upkeep = Lock()
        self._removing = Lock()
        self._closing = Event()

    def catch_up(self) -> None:
        """Show what the writer has written since, if the store was opened to follow one.

        Takes 0.7 us or more for each key that was written; the first time, it also reads the log of everything that is
        not in a file yet.

        Raises:
            StoreError: RocksDB cannot read.
        """
        with self._action("read"):
            if self._links:
                self._links.refresh()
            self._database.try_catch_up_with_primary()

    @property
    def last_write(self) -> int:
        """Number of the last write that is visible here; each write raises it."""
        return self._database.latest_sequence_number()

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
                # An iterator that comes upon damage merely ends.
                cursor.status()
        finally:
            # An exception that somebody keeps would keep the cursor alive, and with it the directory's lock.
            del cursor

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`. Waits for compaction if it has fallen behind; other threads carry on.

        Raises:
            StoreFullError: the disk is full; see the class.
            StoreError: RocksDB cannot write.
        """
        while not self._written(self._batch(writes)):
            time.sleep(_STALL_SECONDS)
            self.while_waiting()

    def load(self, writes: Sequence[Write]) -> None:
        """See `FileStore`.

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
        """Write ascending, distinct keys as finished files: all or nothing, replacing old values, and safely on disk.

        For many keys at once: an entry of 20 bytes costs 1.2 us and one of 600 bytes 4 us, where `write` takes 2.7 and
        6 us for keys in order, and 8 and 24 us or more otherwise, and leaves work for compaction. Each call costs some
        20 ms in addition, and 100 ms if there are unflushed keys between the first and the last.

        Raises:
            ValueError: the keys do not ascend, or are not as many as the values.
            StoreFullError: the disk is full.
            StoreError: RocksDB cannot write.
        """
        if len(keys) != len(values) or any(map(ge, keys, islice(keys, 1, None))):
            raise ValueError("ingest needs ascending, distinct keys and as many values")
        if not keys:
            return
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        with self._action("write"), self._scratch() as scratch:
            files = _write_files(scratch, self._file_options[family], keys, values)
            self._families[family].ingest_external_file([str(file) for file in files], options)
        # A follower finds what it read from the log before it looks into files, until the log goes on in the family.
        self.write([Put(family, keys[-1], values[-1])])

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
            # After a loss of power, a file on the disk is only found if its name is on the disk too.
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
        """See `FileStore`. A store opened for reading removes none: the writer may have just made them.

        Raises:
            StoreError: one cannot be removed, or the log cannot be written.
        """
        if self._read_only or not names:
            return
        with self._action("remove files of"), self._removing:
            # After a loss of power, what is on the disk must not refer to them any more.
            self._database.flush_wal(sync=True)
            for name in names:
                (self._directory / _FILES / name).unlink(missing_ok=True)

    def file_names(self) -> list[str]:
        """See `FileStore`."""
        return [path.name for path in (self._directory / _FILES).glob("*")]

    def has_room(self, size: int) -> bool:
        """See `FileStore`.

        Raises:
            StoreError: the directory cannot be reached.
        """
        with self._action("read"):
            return shutil.disk_usage(self._directory).free >= size + self._reserve_bytes

    def reclaim(self, family: Family, begin: bytes, end: bytes) -> None:
        """See `FileStore`. Otherwise there is no telling when RocksDB would free it.

        Rewrites the files which the range shares with other keys, and takes 10 s for 600 MB. It waits without the
        GIL and is meant for a thread of its own: meanwhile, reads and writes of other threads take up to twice as long
        on two busy cores, but none stalls. `close` interrupts it; another call does the rest.

        Raises:
            StoreError: RocksDB cannot compact.
        """
        options = CompactOptions()
        # The compactions that writes wait for carry on meanwhile.
        options.set_exclusive_manual_compaction(False)
        with self._upkeep, self._action("compact"):
            if not self._closing.is_set():
                with _cut_short():
                    self._families[family].compact_range(begin, end, options)
        self._remove_files(family)

    @property
    def is_reclaiming(self) -> bool:
        """Whether `reclaim` is at work: `checkpoint` would wait for it."""
        return self._upkeep.locked()

    def checkpoint(self, directory: Path) -> None:
        """Copy the store as it is now to a new directory on the same file system, by hard links.

        The copy is a store of its own; files that neither store changes take up space only once. Takes some 50 ms, in
        addition to writing out the write buffers.

        Raises:
            StoreError: the directory exists, cannot be made or is on another file system, or RocksDB cannot write.
        """
        _check_makeable(directory)
        with self._action("copy"):
            here, there = self._directory.stat().st_dev, directory.parent.stat().st_dev
        if here != there:
            # RocksDB would copy every byte, and stop all threads of the process until it is done.
            raise StoreError(
                f"cannot copy the state directory {self._directory} to {directory}, which is on another file system: "
                "name a directory on the same file system, and copy that one"
            )
        with self._upkeep, self._action("copy"), self._removing:
            self._link(directory)
            (directory / _FILES).mkdir()
            for name in self.file_names():
                (directory / _FILES / name).hardlink_to(self._directory / _FILES / name)

    def sizes(self) -> dict[Family, int]:
        """Return the size of each family's files in bytes, without what is only in write buffers and the log."""
        return {family: figure("live-sst-files-size", database) for family, database in self._families.items()}

    def figures(self) -> Figures:
        """Return how RocksDB is doing, in less than a millisecond."""
        return figures_of(self._database, [*self._families.values()])

    def leave_open(self) -> None:
        """Never release the database, not even when this store is gone: releasing a family writes it out."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._families))

    def close(self) -> None:
        """See `FileStore`. Closing twice does no harm.

        Raises:
            StoreError: the write buffers cannot be written out. The directory is still released, and nothing is lost:
                the log has it all.
        """
        self._closing.set()
        with self._action("close"):
            self._end_upkeep()
        with self._upkeep, self._action("close"), ExitStack() as closing:
            self._handles.clear()
            if self._links:
                closing.callback(self._links.close)
            # The last one registered is closed first, so the database is closed after its families.
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
        """Not part of `write`: an exception that somebody keeps would keep the handle, and so the directory's lock."""
        batch = WriteBatch(raw_mode=True)
        for write in writes:
            handle = self._handles[write.family]
            if isinstance(write, Drop):
                # RocksDB takes a range that ends before it begins for a disk failure, after which no write succeeds.
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
        """Write a batch; return False if it was not written because writes have to wait for compaction."""
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
            # Time for the look-up to end.
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
        # A checkpoint does this too, but holds the GIL for it: 0.5 s.
        self._flush()
        Checkpoint(self._database).create_checkpoint(str(directory))


_OPENED = WeakSet[RocksStore]()


def _leave_open() -> None:
    """Keep the databases of a forked process open for good.

    It has none of RocksDB's threads, for which closing one would wait forever, also at the end of the process.
    """
    for store in _OPENED:
        store.leave_open()


os.register_at_fork(after_in_child=_leave_open)


def _check_makeable(directory: Path) -> None:
    """Check that a directory for a copy can be created; RocksDB would report a failure as a fault of the state.

    Raises:
        StoreError: it cannot be created, or exists already.
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
    """Move to the last key that begins with a prefix or, if there is none, to a key before all such keys."""
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
    """Ignore that closing ends an upkeep: nothing is lost, as everything was written out before."""
    try:
        yield
    except Exception as error:
        if "Shutdown in progress" not in str(error):
            raise


def _check_index(directory: Path) -> None:
    """Refuse files without CURRENT: RocksDB would take the directory for a new one and remove the files in it."""
    if not (directory / DATABASE_FILE).exists() and any(directory.glob("*.sst")):
        raise FileNotFoundError(f"Corruption: there are *.sst files, but no {directory / DATABASE_FILE}")


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
