"""Sorts postings by their keys, or merges sorted ones, and keeps the newest of each key.

Knows keys that are spread evenly; knows nothing of where postings come from.
"""

from collections.abc import Sequence

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.index.runs.blocks import KeyedPostings, no_postings
from stream_dedup.text.texts import offsets_of

_KEY, _ENTRY, _DETAIL = 0, 1, 2  # columns
_1 = np.uint64(1)


def in_order(keyed: KeyedPostings, cap: int, floor: int) -> KeyedPostings:
    """Return postings in ascending order of key, then of entry.

    Args:
        keyed: the postings, in any order of keys, but those of one key in ascending order of entry.
        cap: how many postings of a key are kept at most, the newest.
        floor: postings of entries with smaller numbers are left out.
    """
    if len(keyed.keys) == 0:
        return no_postings()
    return _newest(_by_key(keyed, keyed.keys.min(), keyed.keys.max()), cap, floor)


def merged(parts: Sequence[KeyedPostings], cap: int, floor: int) -> KeyedPostings:
    """Return the postings of several parts in ascending order of key, then of entry.

    Args:
        parts: postings in that order, at least one part; entries of one part are older than those of the next.
        cap: how many postings of a key are kept at most, the newest.
        floor: postings of entries with smaller numbers are left out.
    """
    joined = KeyedPostings(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return _merged(joined, offsets_of([len(part.keys) for part in parts]), cap, np.uint64(floor))


@kernel
def _by_key(keyed: KeyedPostings, low: np.uint64, high: np.uint64) -> U64:
    """Return postings in ascending order of keys, otherwise in the order given, shape (n, 3).

    Keys are spread evenly: sorted into about as many buckets as postings, each holds only a few to sort.
    """
    shift = np.uint64(0)
    while (high - low) >> shift >= np.uint64(2 * len(keyed.keys)):
        shift += _1
    stops = np.zeros(np.int64((high - low) >> shift) + 2, np.int64)
    for key in keyed.keys:
        stops[np.int64((key - low) >> shift) + 1] += 1
    for before in range(len(stops) - 1):
        stops[before + 1] += stops[before]
    rows = np.empty((len(keyed.keys), 3), np.uint64)
    for i in range(len(keyed.keys)):
        slot = np.int64((keyed.keys[i] - low) >> shift)
        place = stops[slot]
        stops[slot] += 1
        rows[place, _KEY], rows[place, _ENTRY], rows[place, _DETAIL] = keyed.keys[i], keyed.entries[i], keyed.details[i]
    _sort_neighbours(rows)
    return rows


@kernel
def _sort_neighbours(rows: U64) -> None:
    """Sort rows that are nearly in order, by insertion."""
    for i in range(1, len(rows)):
        if rows[i - 1, _KEY] <= rows[i, _KEY]:
            continue
        key, entry, detail, place = rows[i, _KEY], rows[i, _ENTRY], rows[i, _DETAIL], i
        while place > 0 and rows[place - 1, _KEY] > key:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place, _KEY], rows[place, _ENTRY], rows[place, _DETAIL] = key, entry, detail


@kernel
def _newest(rows: U64, cap: int, floor: int) -> KeyedPostings:
    """Return the newest postings of each key."""
    keyed = KeyedPostings(
        np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
    )
    used = row = 0
    while row < len(rows):
        first = row
        while row < len(rows) and rows[row, _KEY] == rows[first, _KEY]:
            row += 1
        for kept in range(max(first, row - cap), row):
            keyed.keys[used], keyed.entries[used] = rows[kept, _KEY], rows[kept, _ENTRY]
            keyed.details[used] = rows[kept, _DETAIL]
            # Entries ascend, so those of a key that have not expired are its last.
            used += rows[kept, _ENTRY] >= np.uint64(floor)
    return KeyedPostings(keyed.keys[:used], keyed.entries[:used], keyed.details[:used])


@kernel
def _merged(keyed: KeyedPostings, offsets: I64, cap: int, floor: np.uint64) -> KeyedPostings:
    """Merge the parts that begin at `offsets`."""
    size = len(keyed.keys)
    kept = KeyedPostings(np.empty(size, np.uint64), np.empty(size, np.uint64), np.empty(size, np.uint64))
    parts, at, used = len(offsets) - 1, offsets[:-1].copy(), 0
    while True:
        key, oldest = np.uint64(0), -1
        for part in range(parts):
            if at[part] < offsets[part + 1] and (oldest < 0 or keyed.keys[at[part]] < key):
                key, oldest = keyed.keys[at[part]], part
        if oldest < 0:
            return KeyedPostings(kept.keys[:used], kept.entries[:used], kept.details[:used])
        first = used
        for part in range(oldest, parts):
            while at[part] < offsets[part + 1] and keyed.keys[at[part]] == key:
                kept.keys[used], kept.entries[used] = key, keyed.entries[at[part]]
                kept.details[used] = keyed.details[at[part]]
                used += keyed.entries[at[part]] >= floor
                at[part] += 1
        if used - first > cap:
            for place in range(cap):
                kept.entries[first + place] = kept.entries[used - cap + place]
                kept.details[first + place] = kept.details[used - cap + place]
            used = first + cap
