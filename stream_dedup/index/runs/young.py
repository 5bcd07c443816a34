"""Posting lists in memory: those of the entries that no run holds yet.

Knows keys and postings; knows nothing of files.
"""

from typing import TypeVar

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.compiled.hashing import range_of_key
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import AHEAD, prefetch
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.hits import Hits, with_room
from stream_dedup.index.runs.order import in_order

_Numbers = TypeVar("_Numbers", I64, U64)

_FREE = -1
_LEAST = 1 << 10  # slots of an empty table


class YoungLists:
    """Posting lists as an open-addressing table of chains, the newest posting of each first."""

    def __init__(self) -> None:
        self._keys: U64 = np.zeros(_LEAST, np.uint64)
        self._heads: I64 = np.full(_LEAST, _FREE, np.int64)
        self._nodes: KeyedPostings = KeyedPostings(*np.empty((3, _LEAST), np.uint64))
        self._older: I64 = np.empty(_LEAST, np.int64)
        self._used = 0
        self._lists = 0

    def add(self, keyed: KeyedPostings) -> None:
        """Add postings.

        Args:
            keyed: in ascending order of entries, all newer than those already held.
        """
        more = len(keyed.keys)
        if self._used + more > len(self._older):
            grown = max(self._used + more, 2 * len(self._older))
            self._nodes = KeyedPostings(*(_grown(part, grown) for part in self._nodes))
            self._older = _grown(self._older, grown)
        if 2 * (self._lists + more) > len(self._keys):
            self._rehash(2 * (self._lists + more))
        self._lists += _add(self._keys, self._heads, self._nodes, self._older, self._used, keyed)
        self._used += more

    def find(self, keys: U64, room: I64, floor: int, hits: Hits) -> Hits:
        """Return the hits with the newest postings of keys in these lists added.

        Args:
            keys: shape (m,).
            room: how many more postings of each key are wanted, shape (m,); reduced by those found.
            floor: postings of entries with smaller numbers are left out.
            hits: hits of newer sources.
        """
        return _find(self._keys, self._heads, self._nodes, self._older, keys, room, floor, hits)

    def mark(self, keys: U64, may_be: Bool) -> None:
        """Mark the keys that have a list here, shape (m,) both."""
        if self._used:
            _mark(self._keys, self._heads, keys, may_be)

    def sorted(self, cap: int, floor: int = 0) -> KeyedPostings:
        """Return the postings in ascending order of key, then of entry.

        Args:
            cap: how many postings of a key are returned at most, the newest.
            floor: postings of entries with smaller numbers are left out.
        """
        return in_order(KeyedPostings(*(column[: self._used] for column in self._nodes)), cap, floor)

    def _rehash(self, least: int) -> None:
        size = len(self._keys)
        while size < least:
            size *= 2
        keys, heads = np.zeros(size, np.uint64), np.full(size, _FREE, np.int64)
        _move(self._keys, self._heads, keys, heads)
        self._keys, self._heads = keys, heads


def _grown(part: _Numbers, size: int) -> _Numbers:
    return np.concatenate([part, np.empty(size - len(part), part.dtype)])


@kernel
def _slot(keys: U64, heads: I64, key: np.uint64) -> int:
    """Return the slot of a key, or the free one where it belongs; ascending keys are looked up in ascending slots."""
    slot = range_of_key(key, len(keys))
    while heads[slot] != _FREE and keys[slot] != key:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@kernel
def _ask_for(keys: U64, heads: I64, wanted: U64, place: int) -> None:
    if place < len(wanted):
        slot = range_of_key(wanted[place], len(keys))
        prefetch(keys, slot)
        prefetch(heads, slot)


@kernel
def _add(keys: U64, heads: I64, nodes: KeyedPostings, older: I64, used: int, keyed: KeyedPostings) -> int:
    """Add postings and return how many lists are new."""
    begun = 0
    for i in range(len(keyed.keys)):
        _ask_for(keys, heads, keyed.keys, i + AHEAD)
        slot = _slot(keys, heads, keyed.keys[i])
        begun += heads[slot] == _FREE
        node = used + i
        nodes.keys[node], nodes.entries[node], nodes.details[node] = keyed.keys[i], keyed.entries[i], keyed.details[i]
        keys[slot], older[node], heads[slot] = keyed.keys[i], heads[slot], node
    return begun


@kernel
def _move(keys: U64, heads: I64, new_keys: U64, new_heads: I64) -> None:
    for slot in range(len(keys)):
        if heads[slot] != _FREE:
            place = _slot(new_keys, new_heads, keys[slot])
            new_keys[place], new_heads[place] = keys[slot], heads[slot]


@kernel
def _length(head: int, nodes: KeyedPostings, older: I64, cap: int, floor: int) -> int:
    """Return how many postings of a chain are to be taken."""
    length, node = 0, head
    while node != _FREE and length < cap and nodes.entries[node] >= np.uint64(floor):
        length += 1
        node = older[node]
    return length


@kernel
def _find(
    keys: U64, heads: I64, nodes: KeyedPostings, older: I64, wanted: U64, room: I64, floor: int, hits: Hits
) -> Hits:
    chains, lengths, total = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64), 0
    for i in range(len(wanted)):
        _ask_for(keys, heads, wanted, i + AHEAD)
        chains[i] = heads[_slot(keys, heads, wanted[i])]
        lengths[i] = _length(chains[i], nodes, older, room[i], floor)
        room[i] -= lengths[i]
        total += lengths[i]
    hits = with_room(hits, len(wanted), total)
    find, stop = hits.used[0], hits.used[1]
    for i in range(len(wanted)):
        stop += lengths[i]
        node = chains[i]
        for place in range(stop - 1, stop - lengths[i] - 1, -1):
            hits.entries[place], hits.details[place] = nodes.entries[node], nodes.details[node]
            node = older[node]
        hits.places[find], hits.counts[find] = i, lengths[i]
        find += lengths[i] > 0
    hits.used[0], hits.used[1] = find, stop
    return hits


@kernel
def _mark(keys: U64, heads: I64, wanted: U64, may_be: Bool) -> None:
    for i in range(len(wanted)):
        _ask_for(keys, heads, wanted, i + AHEAD)
        if not may_be[i] and heads[_slot(keys, heads, wanted[i])] != _FREE:
            may_be[i] = True
