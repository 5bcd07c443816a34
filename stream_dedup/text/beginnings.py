"""Which two characters some words begin with: a filter that saves looking for one at nearly every place of a text.

Knows pairs of characters; knows nothing of the words.
"""

import numpy as np

from stream_dedup.compiled.hashing import I64, U8, U32
from stream_dedup.compiled.kernel import kernel

_SPREAD = np.uint64(7919)  # a prime
_BITS, _LOW_BITS = np.uint64(3), np.uint64(7)  # of a byte's number in the filter, and of a bit's in the byte


@kernel
def beginnings(points: U32, starts: I64, size: int) -> U8:
    """Return the filter of words: a bit for each pair of characters, shape (size,).

    Args:
        points: code points of the words.
        starts: where each begins; all have two characters or more.
        size: bytes, a power of two; of 8 bits each, a tenth or less should be those of words.
    """
    filled = np.zeros(size, np.uint8)
    for start in starts:
        pair = _pair(points[start], points[start + 1], size)
        filled[pair >> _BITS] |= np.uint8(1 << (pair & _LOW_BITS))
    return filled


@kernel
def may_begin(one: np.uint32, other: np.uint32, filled: U8) -> bool:
    """Tell whether a word may begin with two characters; where it says no, none does."""
    pair = _pair(one, other, len(filled))
    return bool(filled[pair >> _BITS] >> (pair & _LOW_BITS) & 1)


@kernel
def _pair(one: np.uint32, other: np.uint32, size: int) -> np.uint64:
    return (np.uint64(one) * _SPREAD + np.uint64(other)) & np.uint64(8 * size - 1)
