"""A section of a run: where its keys are, and the search for many of them at once.

Knows blocks, their fences and a filter; knows nothing of files or of which runs there are.

A search proceeds step by step for a group of keys: each step prefetches the memory that the next one reads, so that the
processor waits for many locations at once.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64, Bool, Bytes
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import prefetch
from stream_dedup.index.runs.blocks import (
    CHECKED,
    Layout,
    block_of,
    block_start,
    find_rows,
    posting_at,
    prefetch_rows,
    row_bytes,
    rows_before,
    sound,
)
from stream_dedup.index.runs.bloom import keep_possibly_present
from stream_dedup.index.runs.hits import Hits, with_room

FENCE_BYTES = 8  # per block, besides its own bytes
_TOGETHER = 64  # keys whose postings are searched for at once


class Section(NamedTuple):
    """What is kept in memory of one kind's part of a run.

    Attributes:
        start: first byte of its blocks.
        layout: layout of the blocks.
        fences: how many postings are before each block and after the last, and which blocks were found sound since
            the run was opened (`CHECKED`), shape (blocks + 1,).
        words: words of its filter.
        keys: how many keys it has.
    """

    start: int
    layout: Layout
    fences: U64
    words: U64
    keys: int

    @property
    def postings(self) -> int:
        """How many postings it has."""
        return rows_before(self.fences, self.blocks)

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return len(self.fences) - 1

    @property
    def stop(self) -> int:
        """The first byte after its blocks."""
        return self.start + block_start(self.layout, self.postings, self.blocks)


class _Spots(NamedTuple):
    """Where the postings of some keys are.

    Attributes:
        starts: byte at which the block of each key begins, shape (n,).
        firsts: first row of each key in its block, shape (n,).
        stops: the row after its last, at first the row after the last of the block, shape (n,).
    """

    starts: I64
    firsts: I64
    stops: I64


@kernel
def mark_present(words: U64, keys: U64, may_be: Bool) -> None:
    """Mark the keys that a filter may hold, shape (m,) both; keys that are marked already are not looked up."""
    places = np.flatnonzero(~may_be)
    for place in places[: keep_possibly_present(words, keys, places)]:
        may_be[place] = True


@kernel
def find_in_section(
    data: Bytes, section: Section, keys: U64, room: I64, floor: int, hits: Hits
) -> tuple[Hits, int, bool]:
    """Find the newest postings of keys.

    Args:
        data: the file.
        section: a section of the run.
        keys: ascending, shape (m,).
        room: how many more postings of each key are wanted, shape (m,); reduced by those found.
        floor: postings of entries with smaller numbers are left out.
        hits: hits of newer sources.

    Returns:
        The hits with those of this section added, how many blocks were read, and whether all of them were sound.
    """
    places = _wanted(room)
    places = places[: keep_possibly_present(section.words, keys, places)]
    spots = _Spots(np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64))
    read, loaded = 0, -1
    for begin in range(0, len(places), _TOGETHER):
        some = places[begin : begin + _TOGETHER]
        _look_for_blocks(data, section, keys, some, spots)
        for place in some:
            block = block_of(section.layout, keys[place])
            if block != loaded:
                if not is_sound(data, section, block):
                    return hits, read, False
                loaded = block
                read += 1
        hits = with_room(hits, len(some), _find_all(data, section, keys, some, room, spots))
        _take(data, section, some, spots, room, floor, hits)
    return hits, read, True


@kernel
def is_sound(data: Bytes, section: Section, block: int) -> bool:
    """Tell whether a block is sound; its checksum is computed only once."""
    if section.fences[block] & CHECKED:
        return True
    rows = rows_before(section.fences, block)
    start = section.start + block_start(section.layout, rows, block)
    stop = start + (rows_before(section.fences, block + 1) - rows) * row_bytes(section.layout)
    if not sound(data, start, stop):
        return False
    section.fences[block] |= CHECKED
    return True


@kernel
def _wanted(room: I64) -> I64:
    """Return the places of the keys of which more postings are wanted."""
    places, count = np.empty(len(room), np.int64), 0
    for place in range(len(room)):
        places[count] = place
        count += room[place] > 0
    return places[:count]


@kernel
def _look_for_blocks(data: Bytes, section: Section, keys: U64, places: I64, spots: _Spots) -> None:
    """Locate the blocks of some keys, and prefetch the memory that holds their postings."""
    layout, fences = section.layout, section.fences
    for i in range(len(places)):
        prefetch(fences, block_of(layout, keys[places[i]]))
    for i in range(len(places)):
        block = block_of(layout, keys[places[i]])
        before = rows_before(fences, block)
        spots.starts[i] = section.start + block_start(layout, before, block)
        spots.stops[i] = rows_before(fences, block + 1) - before
        prefetch_rows(data, spots.starts[i], spots.stops[i], keys[places[i]], layout)


@kernel
def _find_all(data: Bytes, section: Section, keys: U64, places: I64, room: I64, spots: _Spots) -> int:
    """Find the newest postings of some keys in their blocks, and return how many there are."""
    total = 0
    for i in range(len(places)):
        first, stop = find_rows(data, spots.starts[i], spots.stops[i], keys[places[i]], section.layout)
        first = max(first, stop - room[places[i]])
        spots.firsts[i], spots.stops[i] = first, stop
        total += stop - first
    return total


@kernel
def _take(data: Bytes, section: Section, places: I64, spots: _Spots, room: I64, floor: int, hits: Hits) -> None:
    """Add the postings that were found to the hits."""
    layout, least = section.layout, np.uint64(floor)
    size = row_bytes(layout)
    find, to = hits.used[0], hits.used[1]
    for i in range(len(places)):
        begin = to
        for row in range(spots.firsts[i], spots.stops[i]):
            hits.entries[to], hits.details[to] = posting_at(data, spots.starts[i] + row * size, layout)
            # Without a branch, which the processor would have to predict.
            to += hits.entries[to] >= least
        hits.places[find], hits.counts[find] = places[i], to - begin
        find += to > begin
        room[places[i]] -= to - begin
    hits.used[0], hits.used[1] = find, to
