"""Sorts postings by their keys, or merges sorted ones, and keeps the newest of each key.

Knows keys that are spread evenly; knows nothing of where postings come from.
"""

from collections.abc import Sequence

import numpy as np

from stream_dedup.arrays import U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import AHEAD, prefetch
from stream_dedup.index.runs.blocks import KeyedPostings, no_postings

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
    rows = _by_key(keyed, keyed.keys.min(), keyed.keys.max())
    return _newest(KeyedPostings(rows[:, _KEY], rows[:, _ENTRY], rows[:, _DETAIL]), cap, np.uint64(floor))


def merged(parts: Sequence[KeyedPostings], cap: int, floor: int) -> KeyedPostings:
    """Return the postings of several parts in ascending order of key, then of entry.

    Args:
        parts: postings in that order, at least one part; entries of one part are older than those of the next.
        cap: how many postings of a key are kept at most, the newest.
        floor: postings of entries with smaller numbers are left out.
    """
    *older, joined = parts
    # The newest runs are the smallest, so few postings are moved more than once.
    for part in reversed(older):
        joined = _merged(part, joined)
    return _newest(joined, cap, np.uint64(floor))


@kernel
def _by_key(keyed: KeyedPostings, low: np.uint64, high: np.uint64) -> U64:
    """Return postings in ascending order of keys, otherwise in the order given, shape (n, 3).

    Keys are spread evenly: sorted into about as many buckets as postings, each holds only a few to sort.
    """
    keys, last, shift = keyed.keys, len(keyed.keys) - 1, np.uint64(0)
    while (high - low) >> shift > np.uint64(last):
        shift += _1
    # Numbers of half the size: twice as many buckets are in the processor's cache.
    stops = np.zeros(_bucket(high, low, shift) + 2, np.int32)
    for i in range(len(keys)):
        prefetch(stops, _bucket(keys[min(i + AHEAD, last)], low, shift) + 1)
        stops[_bucket(keys[i], low, shift) + 1] += 1
    for before in range(len(stops) - 1):
        stops[before + 1] += stops[before]
    rows = np.empty((len(keys), 3), np.uint64)
    for i in range(len(keys)):
        prefetch(stops, _bucket(keys[min(i + AHEAD, last)], low, shift))
        bucket = _bucket(keys[i], low, shift)
        place = stops[bucket]
        stops[bucket] += 1
        rows[place, _KEY], rows[place, _ENTRY], rows[place, _DETAIL] = keys[i], keyed.entries[i], keyed.details[i]
    _sort_neighbours(rows)
    return rows


@kernel
def _bucket(key: np.uint64, low: np.uint64, shift: np.uint64) -> int:
    return np.int64((key - low) >> shift)  # type: ignore[return-value]  # compiled code has no Python integers


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
def _merged(older: KeyedPostings, newer: KeyedPostings) -> KeyedPostings:
    """Return two parts that are in order as one."""
    left, right = len(older.keys), len(newer.keys)
    size = left + right
    both = KeyedPostings(np.empty(size, np.uint64), np.empty(size, np.uint64), np.empty(size, np.uint64))
    first = second = 0
    while first < left and second < right:
        # Both are read before one is chosen: without a branch, which the processor would have to predict.
        place, old_key, new_key = first + second, older.keys[first], newer.keys[second]
        old_entry, new_entry = older.entries[first], newer.entries[second]
        old_detail, new_detail = older.details[first], newer.details[second]
        is_new = new_key < old_key
        both.keys[place] = new_key if is_new else old_key
        both.entries[place] = new_entry if is_new else old_entry
        both.details[place] = new_detail if is_new else old_detail
        second += is_new
        first += not is_new
    _put(both, first + second, older, first)
    _put(both, left + second, newer, second)
    return both


@kernel
def _put(keyed: KeyedPostings, place: int, rest: KeyedPostings, first: int) -> None:
    """Copy the postings of `rest` from `first` on to `place`."""
    stop = place + len(rest.keys) - first
    keyed.keys[place:stop] = rest.keys[first:]
    keyed.entries[place:stop] = rest.entries[first:]
    keyed.details[place:stop] = rest.details[first:]


@kernel
def _newest(keyed: KeyedPostings, cap: int, floor: np.uint64) -> KeyedPostings:
    """Return the newest postings of each key."""
    size, used = len(keyed.keys), 0
    kept = KeyedPostings(np.empty(size, np.uint64), np.empty(size, np.uint64), np.empty(size, np.uint64))
    for row in range(size):
        key, entry = keyed.keys[row], keyed.entries[row]
        kept.keys[used], kept.entries[used], kept.details[used] = key, entry, keyed.details[row]
        # Those of a key ascend, so it has `cap` newer ones if it has one that many rows on. Again without a branch.
        used += (entry >= floor) & (row + cap >= size or keyed.keys[row + cap] != key)
    return KeyedPostings(kept.keys[:used], kept.entries[:used], kept.details[:used])
