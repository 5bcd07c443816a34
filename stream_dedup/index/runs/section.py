"""A section of a run: where its keys are, and the search for many of them at once.

Knows blocks, their fences and a filter; knows nothing of files or of which runs there are.

A search goes step by step for some keys together: each step asks for the memory of the next, so that the processor
waits for many places at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64
from stream_dedup.index.runs.blocks import Found, Widths, ask_for, find_in_block, sound, take_postings
from stream_dedup.index.runs.bloom import keep_possible
from stream_dedup.index.runs.hits import Hits
from stream_dedup.prefetch import prefetch

Bool = NDArray[np.bool_]

_LANDING = 64  # blocks between two landings
FENCE_BYTES = 16  # of a block, beside its own: its smallest key and the byte behind it
HELD_BYTES = FENCE_BYTES + 8 / _LANDING + 1  # in memory, where there are landings, and whether it was checked
_POSTINGS = 8  # of a key in a run, in the mean and a little more
_TOGETHER = 64  # keys whose blocks are looked for at once


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


class _Spots(NamedTuple):
    """Where some keys are, if they are anywhere.

    Attributes:
        blocks: of each, shape (n,).
        shares: about how much of the block is before it, shape (n,).
    """

    blocks: I64
    shares: NDArray[np.float64]


def section_of(start: int, first_keys: U64, stops: I64, words: U64, keys: int, postings: int) -> Section:
    """Return a section that was just opened or written; see `Section`."""
    landings, checked = first_keys[::_LANDING].copy(), np.zeros(len(stops), np.bool_)
    return Section(start, first_keys, landings, stops, words, checked, keys, postings)


@kernel
def mark_present(words: U64, keys: U64, may_be: Bool) -> None:
    """Mark which keys a filter may hold, shape (m,) both; those that are marked already are not looked at."""
    places = np.flatnonzero(~may_be)
    for place in places[: keep_possible(words, keys, places)]:
        may_be[place] = True


@kernel
def find_in_section(
    blocks: U64, section: Section, widths: Widths, keys: U64, room: I64, floor: int
) -> tuple[Hits, int, bool]:
    """Find the newest postings of keys.

    Args:
        blocks: the file, as words.
        section: of the run.
        widths: as its blocks were packed with.
        keys: ascending, shape (m,).
        room: how many postings of each key are wanted, shape (m,); less afterwards.
        floor: postings of entries with smaller numbers are left out.

    Returns:
        Postings, how many blocks were read for them, and whether these were sound; if not there are no postings.
    """
    places = np.flatnonzero(room)
    places = places[: keep_possible(section.words, keys, places)]
    hits, nothing = _room(_POSTINGS * len(places)), _room(0)
    spots = _Spots(np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER))
    count = read = 0
    loaded, expiring = -1, widths.first_entry < floor
    for begin in range(0, len(places), _TOGETHER):
        some = places[begin : begin + _TOGETHER]
        _look_for_blocks(blocks, section, widths, keys, some, spots)
        for i in range(len(some)):
            block, place = spots.blocks[i], some[i]
            if block < 0:
                continue
            start = _start_of(section, block)
            if block != loaded:
                if not section.checked[block] and not sound(blocks, start, section.start + section.stops[block]):
                    return nothing, read, False
                section.checked[block] = True
                loaded = block
                read += 1
            found = find_in_block(blocks, start, keys[place] - section.first_keys[block], spots.shares[i])
            newest = max(found.first, found.stop - room[place])
            found = Found(newest, found.stop, found.postings, found.key_bytes)
            while count + found.stop - found.first > len(hits.places):
                hits = _doubled(hits)
            stop = take_postings(blocks, start, found, widths, hits.entries, hits.details, count)
            stop = _kept(hits, count, stop, floor) if expiring else stop
            hits.places[count:stop] = place
            room[place] -= stop - count
            count = stop
    return Hits(hits.places[:count], hits.entries[:count], hits.details[:count]), read, True


@kernel
def _look_for_blocks(blocks: U64, section: Section, widths: Widths, keys: U64, places: I64, spots: _Spots) -> None:
    """Look for the blocks of some keys, step by step, and ask for the memory of the next step of each."""
    for i in range(len(places)):
        spots.blocks[i] = _guess(section, keys[places[i]])
        prefetch(section.first_keys, spots.blocks[i])
        prefetch(section.stops, spots.blocks[i])
        prefetch(section.checked, spots.blocks[i])
    for i in range(len(places)):
        spots.blocks[i], spots.shares[i] = _spot(section, keys[places[i]], spots.blocks[i])
        prefetch(blocks, _start_of(section, max(0, spots.blocks[i])) // 8)
    for i in range(len(places)):
        block = max(0, spots.blocks[i])
        if section.checked[block]:
            ask_for(blocks, _start_of(section, block), widths, spots.shares[i])


@kernel
def _start_of(section: Section, block: int) -> int:
    """Return the byte of the file at which a block begins."""
    return section.start + (section.stops[block - 1] if block else 0)


@kernel
def _guess(section: Section, key: np.uint64) -> int:
    """Return about the block in which a key is, if it is anywhere."""
    landing = max(0, _before(section.landings, key))
    first = landing * _LANDING
    if landing + 1 == len(section.landings):
        return (first + len(section.first_keys)) // 2
    return first + int(_LANDING * _share(key, section.landings[landing], section.landings[landing + 1]))


@kernel
def _spot(section: Section, key: np.uint64, block: int) -> tuple[int, float]:
    """Return the block in which a key is, if it is anywhere, and about how much of this is before it.

    The block is -1 if the key is before all.

    Args:
        section: of a run.
        key: that is looked for.
        block: near it.
    """
    while block + 1 < len(section.first_keys) and section.first_keys[block + 1] <= key:
        block += 1
    while block >= 0 and section.first_keys[block] > key:
        block -= 1
    if block < 0 or block + 1 == len(section.first_keys):
        return block, 0.5
    return block, _share(key, section.first_keys[block], section.first_keys[block + 1])


@kernel
def _share(key: np.uint64, first: np.uint64, stop: np.uint64) -> float:
    """Return how much of a stretch is before a key, if keys are spread evenly; 0 to 1."""
    return float(key - first) / float(stop - first) if key > first else 0.0


@kernel
def _before(ascending: U64, key: np.uint64) -> int:
    """Return the place of the last number that is not above a key; -1 if there is none.

    Without a branch on what is compared the processor looks for several keys at once.
    """
    low, count = -1, len(ascending)
    while count > 0:
        half = (count + 1) // 2
        low += half * int(ascending[low + half] <= key)
        count -= half
    return low


@kernel
def _kept(hits: Hits, first: int, stop: int, floor: int) -> int:
    """Keep those of the last hits whose entries have not expired, and return how many hits there are."""
    count = first
    for hit in range(first, stop):
        if hits.entries[hit] >= np.uint64(floor):
            hits.entries[count], hits.details[count] = hits.entries[hit], hits.details[hit]
            count += 1
    return count


@kernel
def _doubled(hits: Hits) -> Hits:
    larger = _room(2 * len(hits.places) + 16)
    larger.places[: len(hits.places)] = hits.places
    larger.entries[: len(hits.places)] = hits.entries
    larger.details[: len(hits.places)] = hits.details
    return larger


@kernel
def _room(size: int) -> Hits:
    return Hits(np.empty(size, np.int64), np.empty(size, np.uint64), np.empty(size, np.uint64))
