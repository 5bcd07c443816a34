"""Filters that recognise most absent keys as absent: blocked Bloom filters (Putze, Sanders and Singler 2007).

Knows keys and bits; knows nothing of runs.
"""

from math import ceil

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.compiled.hashing import GOLDEN, range_of_key
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import AHEAD, prefetch

# All bits of a key are in one cache line of the processor, so a look-up waits for memory once.
_LINE_WORDS = 8
LINE_BITS = 64 * _LINE_WORDS
BITS_SET = 6  # per key
_POSITION_BITS = np.uint64(9)  # log2 of LINE_BITS
_POSITION_SHIFT = np.uint64(64) - _POSITION_BITS
_1, _6, _32, _63 = np.uint64(1), np.uint64(6), np.uint64(32), np.uint64(63)
# Small filters are asked as often as large ones and take little memory, so they get more bits to be wrong less often.
_GENEROUS = ((1 << 20, 16), (1 << 23, 12))
_SPARING = 9  # bits per key


def filter_bytes(keys: int) -> int:
    """Return the size in bytes of a filter for a number of keys, with 9 to 16 bits per key."""
    bits = next((bits for most, bits in _GENEROUS if keys <= most), _SPARING)
    return LINE_BITS // 8 * max(1, ceil(keys * bits / LINE_BITS))


def empty_filter(keys: int) -> U64:
    """Return an empty filter for a number of keys; once full, it takes 0.1% to 1.7% of absent keys for present."""
    return aligned_to_cache_lines(np.zeros(filter_bytes(keys) // 8, np.uint64))


def aligned_to_cache_lines(words: U64) -> U64:
    """Return a copy of a filter's words in which its lines are aligned with the processor's cache lines.

    A line spread over two cache lines would be waited for twice.
    """
    room = np.empty(len(words) + _LINE_WORDS, np.uint64)
    first = -(room.ctypes.data // room.itemsize) % _LINE_WORDS
    aligned = room[first : first + len(words)]
    aligned[:] = words
    return aligned


@kernel
def put_in_filter(words: U64, keys: U64) -> None:
    """Put keys, which are spread evenly over 64 bits, into a filter."""
    for i in range(len(keys)):
        if i + AHEAD < len(keys):
            prefetch(words, _line(words, keys[i + AHEAD]))
        line, positions = _line(words, keys[i]), _positions(keys[i])
        for _ in range(BITS_SET):
            position = positions >> _POSITION_SHIFT
            words[line + np.int64(position >> _6)] |= _1 << (position & _63)
            positions <<= _POSITION_BITS


@kernel
def keep_possibly_present(words: U64, keys: U64, places: I64) -> int:
    """Move the places of the keys that a filter may hold to the front, and return how many there are.

    The other keys are certainly not in the filter; their places are overwritten.

    Args:
        words: words of the filter.
        keys: shape (m,).
        places: indices of the keys to check, shape (n,).
    """
    kept = 0
    for i in range(len(places)):
        if i + AHEAD < len(places):
            prefetch(words, _line(words, keys[places[i + AHEAD]]))
        place = places[i]
        # Without a branch, which the processor would have to predict.
        places[kept] = place
        kept += _holds(words, keys[place])
    return kept


@kernel
def _holds(words: U64, key: np.uint64) -> int:
    """Return 1 if a filter may hold a key, else 0."""
    line, positions, bits = _line(words, key), _positions(key), _1
    for step in range(BITS_SET):
        # Half of the bits give away nearly all absent keys, so the processor seldom predicts this branch wrong.
        if step == BITS_SET // 2 and bits == 0:
            return 0
        position = positions >> _POSITION_SHIFT
        bits &= words[line + np.int64(position >> _6)] >> (position & _63)
        positions <<= _POSITION_BITS
    return np.int64(bits)  # type: ignore[return-value]  # compiled code has no Python integers


@kernel
def _line(words: U64, key: np.uint64) -> int:
    """Return the first word of a key's line; ascending keys have ascending lines."""
    return _LINE_WORDS * range_of_key(key, len(words) // _LINE_WORDS)


@kernel
def _positions(key: np.uint64) -> np.uint64:
    """Return the positions of a key's bits in its line, one after another from the uppermost bits down."""
    # The lowest bits of all keys may be zero, and the uppermost are the same for all keys of a line: those of the
    # product depend on all bits of the key.
    return (key ^ key >> _32) * GOLDEN
