"""A run: the posting lists of consecutive entries in one file that never changes, with a section for each kind.

Knows the file's layout; knows nothing of which runs there are or when they are merged.

The file consists of the blocks of all sections; the filters of all sections, aligned with cache lines; the fences of
their blocks; descriptions of the sections; a footer; and the checksum of everything after the blocks.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64, Bytes
from stream_dedup.index.runs.blocks import (
    KeyedPostings,
    block_bits_of,
    block_of,
    block_start,
    layout_of,
    no_postings,
    pack_rows,
    rows_before,
    unpack_rows,
    zero_bits_of,
)
from stream_dedup.index.runs.bloom import LINE_BITS, aligned_to_cache_lines, empty_filter, put_in_filter
from stream_dedup.index.runs.hits import Hits
from stream_dedup.index.runs.pages import HugePages
from stream_dedup.index.runs.section import Section, find_in_section
from stream_dedup.index.stores.errors import REPAIR
from stream_dedup.index.stores.store import StoreDamagedError

_FOOTER = struct.Struct("<8sQQQH")  # magic, first entry, stop, bytes of blocks, sections
_CHECKSUM = struct.Struct("<I")
# First byte, words of the filter, number of keys, block bits, zero bits, bytes of a detail.
_SECTION = struct.Struct("<QQQHHH")
_MAGIC = b"postrun2"


class SectionBounds(NamedTuple):
    """What is known of a section before it is written.

    Attributes:
        keys: how many keys it has at most.
        postings: how many postings it has at most.
        zero_bits: number of lowest bits that are zero in all its keys.
    """

    keys: int
    postings: int
    zero_bits: int


def bounds_of(keyed: KeyedPostings) -> SectionBounds:
    """Return the bounds of a section with these postings."""
    return SectionBounds(len(keyed.keys), len(keyed.keys), zero_bits_of(keyed.keys))


class RunWriter:
    """Writes a run, section by section.

    Args:
        file: an empty file.
        first: number of the first entry.
        stop: number after the last.
    """

    def __init__(self, file: BinaryIO, first: int, stop: int) -> None:
        self._file = HugePages(file)
        self._entries = first, stop
        self._used = 0
        self._sections: list[Section] = []

    def section(self, parts: Iterable[KeyedPostings], most: SectionBounds, detail_bytes: int) -> None:
        """Write a section.

        Args:
            parts: its postings; all postings of a block are in the same part.
            most: the largest bounds that it may have.
            detail_bytes: bytes of a posting's detail.

        Raises:
            ValueError: the postings of a block are in two parts, or they are not in order.
        """
        layout = layout_of(self._entries, block_bits_of(most.postings), most.zero_bits, detail_bytes)
        words = empty_filter(most.keys)
        section = Section(self._used, layout, np.zeros((1 << layout.block_bits) + 1, np.uint64), words, 0)
        block = keys = 0
        for keyed in parts:
            if len(keyed.keys):
                put_in_filter(words, keyed.keys)
                keys += 1 + int(np.count_nonzero(keyed.keys[1:] != keyed.keys[:-1]))
                block = self._blocks(section, keyed, block, block_of(layout, keyed.keys[-1]) + 1)
        self._blocks(section, no_postings(), block, section.blocks)
        self._sections.append(section._replace(keys=keys))

    def _blocks(self, section: Section, keyed: KeyedPostings, first: int, stop: int) -> int:
        """Write the blocks from `first` up to, but not including, `stop`, and return `stop`."""
        packed = pack_rows(keyed, section.layout, first, section.fences[first : stop + 1])
        if section.fences[stop] - section.fences[first] != len(keyed.keys):
            raise ValueError("the postings of a block are in two parts, or not in ascending order of their keys")
        self._file.write(packed.data)
        self._used += len(packed)
        return stop

    def finish(self) -> None:
        """Write what is read when the run is opened."""
        checksum = 0
        for part in self._tail():
            self._file.write(part)
            checksum = zlib.crc32(part, checksum)
        self._file.write(_CHECKSUM.pack(checksum))
        self._file.finish()

    def _tail(self) -> Iterator[bytes | memoryview]:
        yield bytes(_gap(self._used))
        yield from (section.words.view(np.uint8).data for section in self._sections)
        yield from (section.fences.view(np.uint8).data for section in self._sections)
        yield from map(_described, self._sections)
        yield _FOOTER.pack(_MAGIC, *self._entries, self._used, len(self._sections))


def _described(section: Section) -> bytes:
    layout = section.layout
    return _SECTION.pack(
        section.start,
        len(section.words),
        section.keys,
        layout.block_bits,
        layout.zero_bits,
        layout.detail_bytes,
    )


@dataclass(slots=True, eq=False)
class Run:
    """An open run.

    Attributes:
        name: name of its file.
        descriptor: file descriptor, open for reading.
        size: size of the file in bytes.
        data: the file, mapped into memory.
        first: number of its first entry.
        stop: number after the last.
        sections: one for each kind.
    """

    name: str
    descriptor: int
    size: int
    data: Bytes
    first: int
    stop: int
    sections: Sequence[Section]

    @property
    def entries(self) -> int:
        """How many entries it covers."""
        return self.stop - self.first

    def find(self, kind: int, keys: U64, room: I64, floor: int, hits: Hits) -> tuple[Hits, int]:
        """Return the hits with the newest postings of keys in this run added, and how many blocks were read.

        Args:
            kind: number of the section.
            keys: ascending, shape (m,).
            room: how many more postings of each key are wanted, shape (m,); reduced by those found.
            floor: postings of entries with smaller numbers are left out.
            hits: hits of newer sources.

        Raises:
            StoreDamagedError: a block cannot be read, or its checksum is wrong.
        """
        # Reading mapped memory beyond the end of a file that was cut short would kill the process.
        if os.fstat(self.descriptor).st_size < self.size:
            raise self._damaged("a block cannot be read")
        hits, blocks, whole = find_in_section(self.data, self.sections[kind], keys, room, floor, hits)
        if not whole:
            raise self._damaged("the checksum of a block is wrong")
        return hits, blocks

    def postings_between(self, kind: int, first_key: int, stop_key: int | None) -> KeyedPostings:
        """Return the postings of all keys from `first_key` up to, but not including, `stop_key`, or to the end.

        Raises:
            StoreDamagedError: a block cannot be read, or its checksum is wrong.
        """
        section = self.sections[kind]
        layout, fences = section.layout, section.fences
        if stop_key is not None and stop_key <= first_key:
            return no_postings()
        before = block_of(layout, np.uint64(first_key))
        after = section.blocks if stop_key is None else block_of(layout, np.uint64(stop_key - 1)) + 1
        start, stop = (block_start(layout, rows_before(fences, block), block) for block in (before, after))
        packed = os.pread(self.descriptor, stop - start, section.start + start)
        if len(packed) != stop - start:
            raise self._damaged("blocks cannot be read")
        keyed, whole = unpack_rows(np.frombuffer(packed, np.uint8), fences[before : after + 1], before, layout)
        if not whole:
            raise self._damaged("the checksum of a block is wrong")
        begin = int(np.searchsorted(keyed.keys, np.uint64(first_key)))
        end = len(keyed.keys) if stop_key is None else int(np.searchsorted(keyed.keys, np.uint64(stop_key)))
        return KeyedPostings(keyed.keys[begin:end], keyed.entries[begin:end], keyed.details[begin:end])

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)
        # The mapping, which has a descriptor of its own, is released with its last user.
        self.data = np.empty(0, np.uint8)

    def _damaged(self, what: str) -> StoreDamagedError:
        return damaged_run(self.name, what)


def open_run(name: str, descriptor: int, *, shared: bool = False) -> Run:
    """Open a run.

    Args:
        name: name of its file.
        descriptor: file descriptor, open for reading; closed with the run, or if this fails.
        shared: whether fences and filters are read from the system's page cache, which all processes share; for
            processes that seldom look anything up. Otherwise they are in this process's own memory, which is faster.

    Raises:
        StoreDamagedError: the file is cut short or damaged.
    """
    try:
        return _opened(name, descriptor, shared=shared)
    except BaseException:
        os.close(descriptor)
        raise


def _opened(name: str, descriptor: int, *, shared: bool) -> Run:
    size = os.fstat(descriptor).st_size
    footer = size - _FOOTER.size - _CHECKSUM.size
    if footer < 0:
        raise damaged_run(name, "it is cut short")
    magic, first, stop, start, count = _FOOTER.unpack(os.pread(descriptor, _FOOTER.size, footer))
    if magic != _MAGIC:
        raise damaged_run(name, "it does not end like a run")
    if start > footer:
        raise damaged_run(name, "it is cut short")
    tail = _own_pages(descriptor, size)[start:] if shared else memoryview(_read(descriptor, start, size - start))
    if _CHECKSUM.pack(zlib.crc32(tail[: -_CHECKSUM.size])) != tail[-_CHECKSUM.size :]:
        raise damaged_run(name, "the checksum of the part after its blocks is wrong")
    described = [*_SECTION.iter_unpack(tail[footer - start - count * _SECTION.size : footer - start])]
    filters = 8 * sum(fields[1] for fields in described)
    sections, line, fence = [], _gap(start), _gap(start) + filters
    for begin, words, keys, block_bits, zero_bits, detail_bytes in described:
        layout = layout_of((first, stop), block_bits, zero_bits, detail_bytes)
        fences = (1 << block_bits) + 1
        bits = np.frombuffer(tail, np.uint64, words, line)
        before = np.frombuffer(tail, np.uint64, fences, fence)
        # A copy of numpy's asks for huge pages; in the file, nearly every access would need an address translation.
        sections.append(
            Section(
                begin,
                layout,
                before if shared else before.copy(),
                bits if shared else aligned_to_cache_lines(bits),
                keys,
            )
        )
        line, fence = line + 8 * words, fence + 8 * fences
    return Run(name, descriptor, size, _mapped(descriptor, size), first, stop, sections)


def _gap(size: int) -> int:
    """Return how many bytes there are up to the next cache line."""
    return -size % (LINE_BITS // 8)


def _own_pages(descriptor: int, size: int) -> memoryview:
    """Return a file as memory that can be written to; what is written is only visible here."""
    return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY))


def _mapped(descriptor: int, size: int) -> Bytes:
    """Return the bytes of a file; their memory is released with the last reference to it."""
    mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_RANDOM"):
        # No reading ahead: neighbouring blocks are about other articles.
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.uint8)


def _read(descriptor: int, offset: int, count: int) -> bytes:
    """Return bytes of a file, of which the system returns at most 2 GiB at once."""
    parts = []
    while count > 0 and (part := os.pread(descriptor, count, offset)):
        parts.append(part)
        offset, count = offset + len(part), count - len(part)
    return b"".join(parts)


def damaged_run(name: str, what: str) -> StoreDamagedError:
    """Return the error for a damaged run."""
    return StoreDamagedError(f"the file {name} of the state's posting lists is damaged: {what}; {REPAIR}")
