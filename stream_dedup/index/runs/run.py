"""A run: the posting lists of consecutive entries in one file that never changes, one section for each kind.

Knows the file's layout; knows nothing of which runs there are or when they are merged.

The file is the blocks of all sections, then for each section the smallest key of each block, the byte behind each
block and the filter; then a footer, and the checksum of all behind the blocks.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from stream_dedup.hashing import I64, U64
from stream_dedup.index.runs.blocks import Flat, PackedBlocks, Widths, pack_blocks, unpack_blocks, widths_of
from stream_dedup.index.runs.bloom import empty_filter, put_in_filter
from stream_dedup.index.runs.hits import Hits
from stream_dedup.index.runs.section import Section, find_in_section, section_of
from stream_dedup.index.store import StoreDamagedError

_FOOTER = struct.Struct("<8sQQQH")  # magic, first entry, stop, bytes of blocks, sections
_CHECKSUM = struct.Struct("<I")
_SECTION = struct.Struct("<QQQQQ")  # first byte, blocks, words of the filter, keys, postings
_MAGIC = b"postrun1"


class RunWriter:
    """Writes a run, section after section.

    Args:
        file: empty.
        first: number of the first entry.
        stop: number behind the last.
    """

    def __init__(self, file: BinaryIO, first: int, stop: int) -> None:
        self._file = file
        self._first = first
        self._stop = stop
        self._used = 0
        self._sections: list[Section] = []

    def section(self, parts: Iterator[Flat], most_keys: int, detail_bytes: int) -> None:
        """Write a section.

        Args:
            parts: its postings; the keys of each part are greater than those of the part before.
            most_keys: it has no more.
            detail_bytes: of what each posting carries.
        """
        start, words = self._used, empty_filter(most_keys)
        widths = widths_of(self._first, self._stop, detail_bytes)
        blocks: list[PackedBlocks] = []
        postings = 0
        for flat in parts:
            packed = pack_blocks(flat, widths)
            put_in_filter(words, flat.keys)
            self._file.write(packed.packed.data)
            blocks.append(packed._replace(packed=packed.packed[:0], stops=packed.stops + (self._used - start)))
            self._used += len(packed.packed)
            postings += len(flat.keys)
        first_keys = np.concatenate([np.empty(0, np.uint64), *(part.first_keys for part in blocks)])
        stops = np.concatenate([np.empty(0, np.int64), *(part.stops for part in blocks)])
        keys = sum(part.keys for part in blocks)
        self._sections.append(section_of(start, first_keys, stops, words, keys, postings))

    def finish(self) -> None:
        """Write what is read when the run is opened."""
        tail = b"".join(
            part.tobytes() for section in self._sections for part in (section.first_keys, section.stops, section.words)
        )
        tail += b"".join(
            _SECTION.pack(section.start, len(section.first_keys), len(section.words), section.keys, section.postings)
            for section in self._sections
        )
        tail += _FOOTER.pack(_MAGIC, self._first, self._stop, self._used, len(self._sections))
        self._file.write(tail)
        self._file.write(_CHECKSUM.pack(zlib.crc32(tail)))


@dataclass(slots=True, eq=False)
class Run:
    """An open run.

    Attributes:
        name: of its file.
        descriptor: of the file, open for reading.
        size: bytes of the file.
        words: the file, mapped into memory, but for the bytes behind its last whole word.
        first: number of its first entry.
        stop: number behind the last.
        sections: one for each kind.
    """

    name: str
    descriptor: int
    size: int
    words: U64
    first: int
    stop: int
    sections: Sequence[Section]

    @property
    def entries(self) -> int:
        """How many entries it covers."""
        return self.stop - self.first

    def widths(self, detail_bytes: int) -> Widths:
        """Return how postings that carry so much are packed."""
        return widths_of(self.first, self.stop, detail_bytes)

    def find(self, kind: int, detail_bytes: int, keys: U64, room: I64, floor: int) -> tuple[Hits, int]:
        """Return the newest postings of keys, and how many blocks were read for them.

        Args:
            kind: number of the section.
            detail_bytes: of what each posting of it carries.
            keys: ascending, shape (m,).
            room: how many postings of each key are wanted, shape (m,); less afterwards.
            floor: postings of entries with smaller numbers are left out.

        Raises:
            StoreDamagedError: a block cannot be read, or its checksum is wrong.
        """
        section, widths = self.sections[kind], self.widths(detail_bytes)
        # To read what is mapped but gone would end the process.
        if os.fstat(self.descriptor).st_size < self.size:
            raise self._damaged("a block cannot be read")
        hits, blocks, whole = find_in_section(self.words, section, widths, keys, room, floor)
        if not whole:
            raise self._damaged("the checksum of a block is wrong")
        return hits, blocks

    def part(self, kind: int, detail_bytes: int, first_key: int, stop_key: int | None) -> Flat:
        """Return the postings of all keys from one to another, or to the end.

        Raises:
            StoreDamagedError: a block cannot be read, or its checksum is wrong.
        """
        section = self.sections[kind]
        after = len(section.first_keys)
        if stop_key is not None:
            after = int(np.searchsorted(section.first_keys, np.uint64(stop_key)))
        before = max(0, int(np.searchsorted(section.first_keys, np.uint64(first_key), side="right")) - 1)
        if before >= after:
            return Flat(*np.empty((3, 0), np.uint64))
        start = int(section.stops[before - 1]) if before else 0
        packed = os.pread(self.descriptor, int(section.stops[after - 1]) - start, section.start + start)
        if len(packed) != section.stops[after - 1] - start:
            raise self._damaged("blocks cannot be read")
        flat, whole = unpack_blocks(
            np.frombuffer(packed, np.uint64),
            section.stops[before:after] - start,
            section.first_keys[before:after],
            self.widths(detail_bytes),
        )
        if not whole:
            raise self._damaged("the checksum of a block is wrong")
        begin = int(np.searchsorted(flat.keys, np.uint64(first_key)))
        end = len(flat.keys) if stop_key is None else int(np.searchsorted(flat.keys, np.uint64(stop_key)))
        return Flat(flat.keys[begin:end], flat.entries[begin:end], flat.details[begin:end])

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)
        # The mapping, which has a descriptor of its own, goes with its last user.
        self.words = np.empty(0, np.uint64)

    def _damaged(self, what: str) -> StoreDamagedError:
        return damaged_run(self.name, what)


def open_run(name: str, descriptor: int) -> Run:
    """Open a run.

    Args:
        name: of its file.
        descriptor: of the file, open for reading; closed with the run, or if this fails.

    Raises:
        StoreDamagedError: the file is cut short or damaged.
    """
    try:
        return _opened(name, descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _opened(name: str, descriptor: int) -> Run:
    size = os.fstat(descriptor).st_size
    footer = size - _FOOTER.size - _CHECKSUM.size
    if footer < 0:
        raise damaged_run(name, "it is cut short")
    magic, first, stop, start, count = _FOOTER.unpack(os.pread(descriptor, _FOOTER.size, footer))
    if magic != _MAGIC:
        raise damaged_run(name, "it does not end as a run does")
    tail = _read(descriptor, start, size - start)
    if _CHECKSUM.pack(zlib.crc32(tail[: -_CHECKSUM.size])) != tail[-_CHECKSUM.size :]:
        raise damaged_run(name, "the checksum of what describes it is wrong")
    sections, at, described = [], 0, footer - start
    for fields in _SECTION.iter_unpack(tail[described - count * _SECTION.size : described]):
        begin, blocks, words, keys, postings = fields
        # numpy asks for huge pages, where each of these lines of memory would need an address of its own to be found.
        first_keys = np.frombuffer(tail, np.uint64, blocks, at).copy()
        stops = np.frombuffer(tail, np.int64, blocks, at + 8 * blocks).copy()
        bits = np.frombuffer(tail, np.uint64, words, at + 16 * blocks).copy()
        at += 16 * blocks + 8 * words
        sections.append(section_of(begin, first_keys, stops, bits, keys, postings))
    return Run(name, descriptor, size, _mapped(descriptor, size), first, stop, sections)


def _mapped(descriptor: int, size: int) -> U64:
    """Return a file as words; their memory is given back with the last that refers to it."""
    mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_RANDOM"):
        # What stands beside a block is of other articles.
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.uint64, size // 8)


def _read(descriptor: int, offset: int, count: int) -> bytes:
    """Return bytes of a file; the system gives at most 2 GiB at once."""
    parts = []
    while count > 0 and (part := os.pread(descriptor, count, offset)):
        parts.append(part)
        offset, count = offset + len(part), count - len(part)
    return b"".join(parts)


def damaged_run(name: str, what: str) -> StoreDamagedError:
    """Return the error that a run is damaged."""
    return StoreDamagedError(
        f"the file {name} of the state's posting lists is damaged: {what}. Restore the state from its changelog "
        "(`stream-dedup state restore --fresh`), put a snapshot in its place, or remove it for a new one"
    )
