"""The n-grams of a text as hashes: all of them, the distinct ones, the smallest.

Knows how n-grams are hashed and told apart; knows nothing of sketches.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.compiled.hashing import HASH_OF_NONE, I32, U32, U64, hash_end, hash_step, table_size, upper_half
from stream_dedup.compiled.kernel import kernel

_FEW = 16  # values that are sorted as any
_SPARSE = 4  # buckets for each value: where two seldom meet the processor foresees that
_HALF = np.uint64(32)
_ANY = np.uint64(0xFFFFFFFFFFFFFFFF)


class Room(NamedTuple):
    """Room for the n-grams of one text after the other.

    Attributes:
        grams: the hashes of the text's n-grams.
        seen: an open-addressing table of distinct n-grams by their hash: each one's number in the batch. What is below
            the text's first is of a text before it: free.
        distinct: the hashes of the text's distinct n-grams, in order of first occurrence.
        small: the smallest of them.
        sorting: the same again.
        stops: where each bucket of the sort ends.
    """

    grams: U64
    seen: I32
    distinct: U64
    small: U64
    sorting: U64
    stops: I32


@kernel
def room_for(longest: int) -> Room:
    """Return room for texts of up to so many characters."""
    return Room(
        np.empty(longest + 1, np.uint64),
        np.full(2 * table_size(longest), -1, np.int32),
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.uint64),
        np.empty(_SPARSE * longest + 2, np.int32),
    )


@kernel
def smallest_grams(characters: U32, gram: int, k: int, first: int, room: Room) -> tuple[int, int]:
    """Put the smallest distinct hashes of a text's n-grams into `small`, ascending: k of them or more, if it has them.

    Args:
        characters: of the text.
        gram: n.
        k: how many at least.
        first: number of the text's first distinct n-gram in the batch.
        room: to work in.

    Returns:
        How many distinct ones the text has, and how many are in `small`.
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
        # Written whether it is new and small or not: that cannot be foretold.
        is_new = seen[slot] < first
        number = size if is_new else np.int64(seen[slot]) - first
        seen[slot], distinct[number], small[used] = first + number, value, value
        size += is_new
        used += is_new & (value <= bound)
    if used < min(k, size):
        # So much of the text is repeated, or its hashes are so large.
        used = size
        small[:size] = distinct[:size]
    _sort_uniform(small[:used], room.sorting, room.stops)
    return size, used


@kernel
def _sort_uniform(values: U64, given: U64, stops: I32) -> None:
    """Sort values that are about uniformly distributed: each goes to where it should be, and then a few steps.

    Args:
        values: to be sorted.
        given: room for as many.
        stops: room for `_SPARSE` times as many and one.
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
    """Return the bucket of a value: its upper half in proportion."""
    return (value >> _HALF) * scale >> _HALF


@kernel
def _bound(k: int, count: int) -> np.uint64:
    """Return a bound below which at least k of so many hashes lie but for one text in a million: six sigma."""
    share = (k + 6.0 * np.sqrt(k)) / max(count, 1)
    return np.uint64(share * 2.0**64) if share < 1.0 else _ANY


@kernel
def gram_count(characters: int, gram: int) -> int:
    """Return how many n-grams so many characters have: fewer than n are one, none have none."""
    return max(1, characters - gram + 1) if characters > 0 else 0


@kernel
def hash_grams(points: U32, gram: int, hashes: U64) -> None:
    """Write the hash of each n-gram, character after character for all of them: the compiler makes vectors of that."""
    hashes[:] = HASH_OF_NONE
    for place in range(min(gram, len(points))):
        behind = points[place : place + len(hashes)]
        for i in range(len(behind)):
            hashes[i] = hash_step(hashes[i], behind[i])
    for i in range(len(hashes)):
        hashes[i] = hash_end(hashes[i])
