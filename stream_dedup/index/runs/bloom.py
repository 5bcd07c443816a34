"""Filters that tell of most absent keys that they are absent: blocked Bloom filters (Putze, Sanders and Singler 2007).

Knows keys and bits; knows nothing of runs.
"""

from math import ceil

import numpy as np

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64, mix64
from stream_dedup.prefetch import AHEAD, prefetch

# All bits of a key are in one line of the processor's cache: a look-up waits for memory once.
_LINE_WORDS = 8
LINE_BITS = 64 * _LINE_WORDS
KEY_BITS = 6  # set for a key
_POSITION_BITS = np.uint64(9)  # log2 of LINE_BITS
_POSITION = np.uint64(LINE_BITS - 1)
_1, _6, _32, _63 = np.uint64(1), np.uint64(6), np.uint64(32), np.uint64(63)
_SALT = np.uint64(0x9E3779B97F4A7C15)
# Small filters are asked as often as large ones and take little: so they get more bits and are wrong more seldom.
_GENEROUS = ((1 << 20, 16), (1 << 23, 12))
_SPARING = 9  # bits a key


def filter_bytes(keys: int) -> int:
    """Return the bytes of a filter for so many keys, 9 to 16 bits each."""
    bits = next((bits for most, bits in _GENEROUS if keys <= most), _SPARING)
    return LINE_BITS // 8 * max(1, ceil(keys * bits / LINE_BITS))


def empty_filter(keys: int) -> U64:
    """Return an empty filter for so many keys: of absent keys it takes 1.7% to 0.1% for present."""
    return np.zeros(filter_bytes(keys) // 8, np.uint64)


@kernel
def put_in_filter(words: U64, keys: U64) -> None:
    """Put keys into a filter."""
    for i in range(len(keys)):
        _ask_for(words, keys, i + AHEAD)
        hashed = mix64(keys[i] ^ _SALT)
        line, positions = _line(words, hashed), mix64(hashed)
        for _ in range(KEY_BITS):
            position = positions & _POSITION
            words[line + np.int64(position >> _6)] |= _1 << (position & _63)
            positions >>= _POSITION_BITS


@kernel
def keep_possible(words: U64, keys: U64, places: I64) -> int:
    """Keep, in front, the places of those keys that a filter may hold, and return how many they are.

    Of the others it is certain that the filter does not hold them.

    Args:
        words: of the filter.
        keys: shape (m,).
        places: of the keys that are asked for, shape (n,).
    """
    kept = 0
    for i in range(len(places)):
        if i + AHEAD < len(places):
            _ask_for(words, keys, places[i + AHEAD])
        place = places[i]
        # No branch that the processor would have to guess.
        places[kept] = place
        kept += _holds(words, keys[place])
    return kept


@kernel
def _holds(words: U64, key: np.uint64) -> int:
    """Return 1 if a filter may hold a key, else 0."""
    hashed = mix64(key ^ _SALT)
    line, positions, bits = _line(words, hashed), mix64(hashed), _1
    for _ in range(KEY_BITS):
        position = positions & _POSITION
        bits &= words[line + np.int64(position >> _6)] >> (position & _63)
        positions >>= _POSITION_BITS
    return np.int64(bits)  # type: ignore[return-value]  # compiled code has no Python integers


@kernel
def _ask_for(words: U64, keys: U64, place: int) -> None:
    if place < len(keys):
        prefetch(words, _line(words, mix64(keys[place] ^ _SALT)))


@kernel
def _line(words: U64, hashed: np.uint64) -> int:
    """Return the first word of a key's line."""
    lines = np.uint64(len(words) // _LINE_WORDS)
    return _LINE_WORDS * np.int64(((hashed >> _32) * lines) >> _32)  # type: ignore[return-value]  # compiled
