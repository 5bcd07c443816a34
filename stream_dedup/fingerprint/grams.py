"""Hashes the n-grams of a text: all of them, the distinct ones, the smallest.

Knows how n-grams are hashed and deduplicated; knows nothing of sketches.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I32, U32, U64
from stream_dedup.compiled.hashing import HASH_OF_NONE, hash_end, hash_step, table_size, upper_half
from stream_dedup.compiled.kernel import kernel

_FEW = 16  # fewer values than this go to the ordinary sort
_SPARSE = 4  # buckets per value: with few collisions, branches are predicted well
_HALF = np.uint64(32)
_ANY = np.uint64(0xFFFFFFFFFFFFFFFF)


class GramBuffers(NamedTuple):
    """Scratch arrays for the n-grams of a text, reused for one text after another.

    Attributes:
        grams: hashes of the text's n-grams.
        seen: open-addressing table from the hash of a distinct n-gram to its number in the batch. A slot with a number
            below the text's first belongs to an earlier text and counts as free.
        distinct: hashes of the text's distinct n-grams, in order of first occurrence.
        small: the smallest of them.
        sorting: second buffer for sorting `small`.
        stops: where each bucket of the sort ends.
    """

    grams: U64
    seen: I32
    distinct: U64
    small: U64
    sorting: U64
    stops: I32


@kernel
def room_for(longest: int) -> GramBuffers:
    """Return scratch arrays for texts of up to `longest` characters."""
    return GramBuffers(
        np.empty(longest + 1, np.uint64),
        np.full(2 * table_size(longest), -1, np.int32),
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.uint64),
        np.empty(_SPARSE * longest + 2, np.int32),
    )


@kernel
def smallest_grams(characters: U32, gram: int, k: int, first: int, room: GramBuffers) -> tuple[int, int]:
    """Write the smallest distinct n-gram hashes of a text to `room.small`, ascending: at least k, or all it has.

    Args:
        characters: the text's word characters.
        gram: n.
        k: least number of hashes needed.
        first: number of the text's first distinct n-gram in the batch.
        room: scratch arrays.

    Returns:
        How many distinct n-grams the text has, and how many are in `room.small`.
    """
    count = gram_count(len(characters), gram)
    mask = np.uint64(2 * table_size(count) - 1)
    hash_grams(characters, gram, room.grams[:count])
    seen, distinct, small = room.seen, room.distinct, room.small
    bound, size, used = _bound(k, count), 0, 0
    for i in range(count):
        value = room.grams[i]
        slot = value & mask
        while seen[slot] >= first and distinct[seen[slot] - first] != value:
            slot = (slot + np.uint64(1)) & mask
        # Written unconditionally: whether it is new and small is unpredictable, so a branch would be slow.
        is_new = seen[slot] < first
        number = size if is_new else np.int64(seen[slot]) - first
        seen[slot], distinct[number], small[used] = first + number, value, value
        size += is_new
        used += is_new & (value <= bound)
    if used < min(k, size):
        # The bound was too low: the text repeats itself a lot, or its hashes are unusually large.
        used = size
        small[:size] = distinct[:size]
    _sort_uniform(small[:used], room.sorting, room.stops)
    return size, used


@kernel
def _sort_uniform(values: U64, given: U64, stops: I32) -> None:
    """Sort roughly uniformly distributed values in place: a bucket sort, then an insertion sort of a few steps.

    Args:
        values: the values to sort.
        given: buffer for as many values.
        stops: buffer for `_SPARSE` times as many and one more.
    """
    if len(values) < _FEW:
        values.sort()
        return
    largest, buckets = np.uint64(0), _SPARSE * len(values)
    for i in range(len(values)):
        given[i] = values[i]
        largest = max(largest, values[i])
    scale = np.uint64((buckets << 32) // (np.int64(upper_half(largest)) + 1))
    stops[: buckets + 1] = 0
    for i in range(len(values)):
        stops[_bucket(given[i], scale) + np.uint64(1)] += 1
    for bucket in range(buckets):
        stops[bucket + 1] += stops[bucket]
    for i in range(len(values)):
        own = _bucket(given[i], scale)
        values[stops[own]] = given[i]
        stops[own] += 1
    for i in range(1, len(values)):
        value, place = values[i], i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@kernel
def _bucket(value: np.uint64, scale: np.uint64) -> np.uint64:
    """Return the bucket of a value: proportional to its upper half."""
    return (value >> _HALF) * scale >> _HALF


@kernel
def _bound(k: int, count: int) -> np.uint64:
    """Return a bound that at least k of `count` hashes lie below, except for one text in a million: six sigma."""
    share = (k + 6.0 * np.sqrt(k)) / max(count, 1)
    return np.uint64(share * 2.0**64) if share < 1.0 else _ANY


@kernel
def gram_count(characters: int, gram: int) -> int:
    """Return how many n-grams a text has: one if it has fewer than n characters, none if it is empty."""
    return max(1, characters - gram + 1) if characters > 0 else 0


@kernel
def hash_grams(points: U32, gram: int, hashes: U64) -> None:
    """Write the hash of each n-gram. All advance by one character at a time, so that the compiler can vectorise it."""
    hashes[:] = HASH_OF_NONE
    for place in range(min(gram, len(points))):
        behind = points[place : place + len(hashes)]
        for i in range(len(behind)):
            hashes[i] = hash_step(hashes[i], behind[i])
    for i in range(len(hashes)):
        hashes[i] = hash_end(hashes[i])
