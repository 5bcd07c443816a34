"""A run: the posting lists of consecutive entries in one file that never changes, one section for each kind.

Knows the file's layout; knows nothing of which runs there are or when they are merged.

The file is the blocks of all sections, then for each section the smallest key of each block, the byte behind each
block and the filter; then a footer, and the checksum of all behind the blocks.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64
from stream_dedup.index.runs.blocks import (
    Bytes,
    Flat,
    Found,
    PackedBlocks,
    Widths,
    find_in_block,
    pack_blocks,
    sound,
    take_postings,
    unpack_blocks,
    widths_of,
)
from stream_dedup.index.runs.bloom import empty_filter, in_filter, put_in_filter
from stream_dedup.index.runs.hits import Hits
from stream_dedup.index.store import StoreDamagedError

Bool = NDArray[np.bool_]

_FOOTER = struct.Struct("<8sQQQH")  # magic, first entry, stop, bytes of blocks, sections
_CHECKSUM = struct.Struct("<I")
_SECTION = struct.Struct("<QQQQQ")  # first byte, blocks, words of the filter, keys, postings
_MAGIC = b"postrun1"
_SOUND, _UNREADABLE, _DAMAGED = 0, 1, 2
_LANDING = 64  # blocks between two landings
FENCE_BYTES = 16  # of a block, beside its own: its smallest key and the byte behind it
HELD_BYTES = FENCE_BYTES + 8 / _LANDING + 1  # in memory, where there are landings, and whether it was checked
_LARGEST_BLOCK = 1 << 12  # bytes that are room for nearly all blocks

# C's pread(descriptor, buffer, count, offset): numba finds it in the process.
_pread: Any = types.ExternalFunction("pread", types.intp(types.int32, types.uintp, types.uintp, types.int64))


class Section(NamedTuple):
    """What is known in memory of one kind's part of a run.

    Attributes:
        start: first byte of its blocks.
        first_keys: smallest key of each block, shape (blocks,).
        landings: of every 64th block: as few as the processor's cache holds, shape (blocks / 64,).
        stops: byte behind each, counted from the first, shape (blocks,).
        words: filter.
        checked: which blocks were found sound since the run was opened, shape (blocks,).
        keys: how many keys it has.
        postings: and postings.
    """

    start: int
    first_keys: U64
    landings: U64
    stops: I64
    words: U64
    checked: Bool
    keys: int
    postings: int


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
        self._sections.append(_section(start, first_keys, stops, words, keys, postings))

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


@dataclass(frozen=True, slots=True)
class Run:
    """An open run.

    Attributes:
        name: of its file.
        descriptor: of the file, open for reading.
        first: number of its first entry.
        stop: number behind the last.
        sections: one for each kind.
    """

    name: str
    descriptor: int
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
        hits, blocks, state = _find(self.descriptor, section, widths, keys, room, floor)
        if state != _SOUND:
            what = "a block cannot be read" if state == _UNREADABLE else "the checksum of a block is wrong"
            raise self._damaged(what)
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
            np.frombuffer(packed, np.uint8),
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
        first_keys = np.frombuffer(tail, np.uint64, blocks, at)
        stops = np.frombuffer(tail, np.int64, blocks, at + 8 * blocks)
        bits = np.frombuffer(tail, np.uint64, words, at + 16 * blocks)
        at += 16 * blocks + 8 * words
        sections.append(_section(begin, first_keys, stops, bits, keys, postings))
    return Run(name, descriptor, first, stop, sections)


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


def _section(start: int, first_keys: U64, stops: I64, words: U64, keys: int, postings: int) -> Section:
    landings, checked = first_keys[::_LANDING].copy(), np.zeros(len(stops), np.bool_)
    return Section(start, first_keys, landings, stops, words, checked, keys, postings)


@kernel
def mark_present(words: U64, keys: U64, may_be: Bool) -> None:
    """Mark which keys a filter may hold, shape (m,) both; those that are marked already are not looked at."""
    for i in range(len(keys)):
        if not may_be[i] and in_filter(words, keys[i]):
            may_be[i] = True


@kernel
def _find(descriptor: int, section: Section, widths: Widths, keys: U64, room: I64, floor: int) -> tuple[Hits, int, int]:
    hits = Hits(np.empty(len(keys), np.int64), np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64))
    nothing = Hits(hits.places[:0], hits.entries[:0], hits.details[:0])
    buffer = np.empty(_LARGEST_BLOCK, np.uint8)
    count = blocks = 0
    loaded = -1
    for i in range(len(keys)):
        if room[i] == 0 or not in_filter(section.words, keys[i]):
            continue
        block = _block_of(section, keys[i])
        if block < 0:
            continue
        if block != loaded:
            start = section.stops[block - 1] if block else 0
            size = section.stops[block] - start
            if size > len(buffer):
                buffer = np.empty(2 * size, np.uint8)
            if not _read_bytes(descriptor, buffer, size, section.start + start):
                return nothing, blocks, _UNREADABLE
            if not section.checked[block] and not sound(buffer, 0, size):
                return nothing, blocks, _DAMAGED
            section.checked[block] = True
            loaded = block
            blocks += 1
        found = find_in_block(buffer, 0, keys[i] - section.first_keys[block])
        newest = max(found.first, found.stop - room[i])
        found = Found(newest, found.stop, found.postings, found.key_bytes)
        while count + found.stop - found.first > len(hits.places):
            hits = _doubled(hits)
        stop = take_postings(buffer, 0, found, widths, hits.entries, hits.details, count)
        stop = _kept(hits, count, stop, i, floor)
        room[i] -= stop - count
        count = stop
    return Hits(hits.places[:count].copy(), hits.entries[:count].copy(), hits.details[:count].copy()), blocks, _SOUND


@kernel
def _block_of(section: Section, key: np.uint64) -> int:
    """Return the block in which a key is, if it is anywhere; -1 if it is before all."""
    landing = np.searchsorted(section.landings, key, side="right") - 1
    if landing < 0:
        return -1
    near = section.first_keys[landing * _LANDING : (landing + 1) * _LANDING]
    return int(landing * _LANDING + np.searchsorted(near, key, side="right") - 1)


@kernel
def _read_bytes(descriptor: int, buffer: Bytes, count: int, offset: int) -> bool:
    """Read bytes of a file to the beginning of a buffer; tell whether there were as many."""
    done = 0
    while done < count:
        got = _pread(np.int32(descriptor), buffer.ctypes.data + done, count - done, offset + done)
        if got <= 0:
            return False
        done += got
    return True


@kernel
def _kept(hits: Hits, first: int, stop: int, place: int, floor: int) -> int:
    """Keep those of the last hits whose entries have not expired, and return how many hits there are."""
    count = first
    for hit in range(first, stop):
        if hits.entries[hit] >= np.uint64(floor):
            hits.places[count], hits.entries[count], hits.details[count] = place, hits.entries[hit], hits.details[hit]
            count += 1
    return count


@kernel
def _doubled(hits: Hits) -> Hits:
    size = 2 * len(hits.places) + 16
    places, entries, details = np.empty(size, np.int64), np.empty(size, np.uint64), np.empty(size, np.uint64)
    places[: len(hits.places)] = hits.places
    entries[: len(hits.places)] = hits.entries
    details[: len(hits.places)] = hits.details
    return Hits(places, entries, details)
