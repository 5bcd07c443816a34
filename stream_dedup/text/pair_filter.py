"""The first two characters of some words, as a filter: it rules out a word at nearly every position of a text.

Knows pairs of characters; knows nothing of the words.
"""

import numpy as np

from stream_dedup.arrays import I64, U8, U32
from stream_dedup.compiled.kernel import kernel

_SPREAD = np.uint64(7919)  # a prime
_BITS, _LOW_BITS = np.uint64(3), np.uint64(7)  # position in the filter: of the byte, and of the bit within it


@kernel
def pair_filter(points: U32, starts: I64, size: int) -> U8:
    """Return the filter of words: a bit for each pair of characters, by hash, shape (size,).

    Args:
        points: code points of the words.
        starts: where each word begins; all have two characters or more.
        size: bytes, a power of two; at most a tenth of its bits should be set by the words.
    """
    filled = np.zeros(size, np.uint8)
    for start in starts:
        pair = _pair(points[start], points[start + 1], size)
        filled[pair >> _BITS] |= np.uint8(1 << (pair & _LOW_BITS))
    return filled


@kernel
def may_be_first_pair(one: np.uint32, other: np.uint32, filled: U8) -> bool:
    """Return whether a word may begin with two characters; if False, none does."""
    pair = _pair(one, other, len(filled))
    return bool(filled[pair >> _BITS] >> (pair & _LOW_BITS) & 1)


@kernel
def _pair(one: np.uint32, other: np.uint32, size: int) -> np.uint64:
    return (np.uint64(one) * _SPREAD + np.uint64(other)) & np.uint64(8 * size - 1)
