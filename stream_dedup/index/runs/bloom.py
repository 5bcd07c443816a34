"""Filters that tell of most absent keys that they are absent: blocked Bloom filters (Putze, Sanders and Singler 2007).

Knows keys and bits; knows nothing of runs.
"""

from math import ceil

import numpy as np

from stream_dedup.compiled import kernel
from stream_dedup.hashing import U64, mix64

# All bits of a key are in one line of the processor's cache: a look-up waits for memory once.
_LINE_WORDS = 8
LINE_BITS = 64 * _LINE_WORDS
KEY_BITS = 6  # set for a key
_POSITION_BITS = np.uint64(9)  # log2 of LINE_BITS
_POSITION = np.uint64(LINE_BITS - 1)
_32, _63, _6 = np.uint64(32), np.uint64(63), np.uint64(6)
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
    for key in keys:
        hashed = mix64(key ^ _SALT)
        line, positions = _line(words, hashed), mix64(hashed)
        for _ in range(KEY_BITS):
            position = positions & _POSITION
            words[line + np.int64(position >> _6)] |= np.uint64(1) << (position & _63)
            positions >>= _POSITION_BITS


@kernel
def in_filter(words: U64, key: np.uint64) -> bool:
    """Tell whether a filter may hold a key: False is certain."""
    hashed = mix64(key ^ _SALT)
    line, positions = _line(words, hashed), mix64(hashed)
    for _ in range(KEY_BITS):
        position = positions & _POSITION
        if not (words[line + np.int64(position >> _6)] >> (position & _63)) & np.uint64(1):
            return False
        positions >>= _POSITION_BITS
    return True


@kernel
def _line(words: U64, hashed: np.uint64) -> int:
    """Return the first word of a key's line."""
    lines = np.uint64(len(words) // _LINE_WORDS)
    return _LINE_WORDS * np.int64(((hashed >> _32) * lines) >> _32)  # type: ignore[return-value]  # compiled
