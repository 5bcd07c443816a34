"""Posting lists in memory: those of the entries that no run holds yet.

Knows keys and postings; knows nothing of files.
"""

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.compiled.hashing import range_of_key
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import AHEAD, prefetch
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.hits import Hits, with_room
from stream_dedup.index.runs.order import in_order

# Columns, next to each other, so that a slot or a posting is in a single cache line.
_KEY, _NEWEST = 0, 1  # of a slot
_ENTRY, _DETAIL, _OLDER = 1, 2, 3  # of a posting, after its key
_SLOT_WORDS, _POSTING_WORDS = 2, 4
_NONE = np.uint64(0)  # instead of a posting; postings are numbered from 1 on
_1 = np.uint64(1)
_LEAST = 1 << 10  # slots of an empty table


class YoungLists:
    """Posting lists as an open-addressing table of chains, the newest posting of each first."""

    def __init__(self) -> None:
        self._slots: U64 = np.zeros((_LEAST, _SLOT_WORDS), np.uint64)
        self._postings: U64 = np.empty((_LEAST, _POSTING_WORDS), np.uint64)
        self._used = 0
        self._lists = 0

    def add(self, keyed: KeyedPostings) -> None:
        """Add postings.

        Args:
            keyed: in ascending order of entries, all newer than those already held.
        """
        more = len(keyed.keys)
        if self._used + more > len(self._postings):
            postings = np.empty((max(self._used + more, 2 * len(self._postings)), _POSTING_WORDS), np.uint64)
            postings[: self._used] = self._postings[: self._used]
            self._postings = postings
        if 2 * (self._lists + more) > len(self._slots):
            self._rehash(2 * (self._lists + more))
        self._lists += _add(self._slots, self._postings, self._used, keyed)
        self._used += more

    def clear(self) -> None:
        """Remove all postings, but keep the room for as many: new memory costs more than what is done with it."""
        self._slots[:] = 0
        self._used = self._lists = 0

    def find(self, keys: U64, room: I64, floor: int, hits: Hits) -> Hits:
        """Return the hits with the newest postings of keys in these lists added.

        Args:
            keys: shape (m,).
            room: how many more postings of each key are wanted, shape (m,); reduced by those found.
            floor: postings of entries with smaller numbers are left out.
            hits: hits of newer sources.
        """
        if not self._used:
            return hits
        return _find(self._slots, self._postings, keys, room, np.uint64(floor), hits)

    def mark(self, keys: U64, may_be: Bool) -> None:
        """Mark the keys that have a list here, shape (m,) both."""
        if self._used:
            _mark(self._slots, keys, may_be)

    def sorted(self, cap: int, floor: int = 0) -> KeyedPostings:
        """Return the postings in ascending order of key, then of entry.

        Args:
            cap: how many postings of a key are returned at most, the newest.
            floor: postings of entries with smaller numbers are left out.
        """
        used = self._postings[: self._used]
        return in_order(KeyedPostings(used[:, _KEY], used[:, _ENTRY], used[:, _DETAIL]), cap, floor)

    def _rehash(self, least: int) -> None:
        size = len(self._slots)
        while size < least:
            size *= 2
        slots = np.zeros((size, _SLOT_WORDS), np.uint64)
        _move(self._slots, slots)
        self._slots = slots


@kernel
def _slot(slots: U64, key: np.uint64) -> int:
    """Return the slot of a key, or the free one where it belongs; ascending keys are looked up in ascending slots."""
    slot = range_of_key(key, len(slots))
    while slots[slot, _NEWEST] != _NONE and slots[slot, _KEY] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def _ask_for(slots: U64, wanted: U64, place: int) -> None:
    if place < len(wanted):
        prefetch(slots, _SLOT_WORDS * range_of_key(wanted[place], len(slots)))


@kernel
def _add(slots: U64, postings: U64, used: int, keyed: KeyedPostings) -> int:
    """Add postings and return how many lists are new."""
    begun = 0
    for i in range(len(keyed.keys)):
        _ask_for(slots, keyed.keys, i + AHEAD)
        slot, place = _slot(slots, keyed.keys[i]), used + i
        begun += slots[slot, _NEWEST] == _NONE
        postings[place, _KEY], postings[place, _ENTRY] = keyed.keys[i], keyed.entries[i]
        postings[place, _DETAIL], postings[place, _OLDER] = keyed.details[i], slots[slot, _NEWEST]
        slots[slot, _KEY], slots[slot, _NEWEST] = keyed.keys[i], np.uint64(place + 1)
    return begun


@kernel
def _move(slots: U64, larger: U64) -> None:
    for slot in range(len(slots)):
        if slots[slot, _NEWEST] != _NONE:
            larger[_slot(larger, slots[slot, _KEY])] = slots[slot]


@kernel
def _length(newest: np.uint64, postings: U64, cap: int, floor: np.uint64) -> int:
    """Return how many postings of a chain are to be taken."""
    length, place = 0, newest
    while place != _NONE and length < cap and postings[place - _1, _ENTRY] >= floor:
        length += 1
        place = postings[place - _1, _OLDER]
    return length


@kernel
def _find(slots: U64, postings: U64, wanted: U64, room: I64, floor: np.uint64, hits: Hits) -> Hits:
    chains, lengths, total = np.empty(len(wanted), np.uint64), np.empty(len(wanted), np.int64), 0
    for i in range(len(wanted)):
        _ask_for(slots, wanted, i + AHEAD)
        chains[i] = slots[_slot(slots, wanted[i]), _NEWEST]
        lengths[i] = _length(chains[i], postings, room[i], floor)
        room[i] -= lengths[i]
        total += lengths[i]
    hits = with_room(hits, len(wanted), total)
    find, stop = hits.used[0], hits.used[1]
    for i in range(len(wanted)):
        stop += lengths[i]
        newest = chains[i]
        for place in range(stop - 1, stop - lengths[i] - 1, -1):
            hits.entries[place], hits.details[place] = postings[newest - _1, _ENTRY], postings[newest - _1, _DETAIL]
            newest = postings[newest - _1, _OLDER]
        hits.places[find], hits.counts[find] = i, lengths[i]
        find += lengths[i] > 0
    hits.used[0], hits.used[1] = find, stop
    return hits


@kernel
def _mark(slots: U64, wanted: U64, may_be: Bool) -> None:
    for i in range(len(wanted)):
        _ask_for(slots, wanted, i + AHEAD)
        if not may_be[i] and slots[_slot(slots, wanted[i]), _NEWEST] != _NONE:
            may_be[i] = True
