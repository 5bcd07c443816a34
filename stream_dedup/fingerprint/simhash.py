"""Weighted 64-bit SimHash (Charikar 2002) and the measures on it.

Knows hashes and weights; knows nothing of where they come from.
"""

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64

BITS = 64
F64 = NDArray[np.float64]
# Weights are added as integers, so that the sums do not depend on the order of the words.
_WEIGHT_SCALE = float(1 << 24)


def simhash(offsets: I64, hashes: U64, weights: F64) -> tuple[U64, I64]:
    """Return the fingerprint and the bit sums of each article.

    Bit b of a fingerprint is 1 where sum b is positive; a sum of 0 gives 0 (Charikar 2002).

    Args:
        offsets: terms of article i at offsets[i]:offsets[i + 1], shape (n + 1,).
        hashes: 64-bit hash of each term, shape (m,).
        weights: weight of each term, shape (m,), up to 2^20 or so.

    Returns:
        Fingerprints, uint64, shape (n,); sums, int64, shape (n, 64), in units of 2^-24.
    """
    return _simhash(offsets, hashes, weights)


@kernel
def _simhash(offsets: I64, hashes: U64, weights: F64) -> tuple[U64, I64]:
    articles = len(offsets) - 1
    fingerprints = np.zeros(articles, np.uint64)
    sums = np.zeros((articles, BITS), np.int64)
    for article in range(articles):
        row = sums[article]
        for i in range(offsets[article], offsets[article + 1]):
            weight = np.int64(np.rint(weights[i] * _WEIGHT_SCALE))
            value = hashes[i]
            for bit in range(BITS):
                sign = np.int64((value >> np.uint64(bit)) & np.uint64(1))
                row[bit] += weight * (2 * sign - 1)
        fingerprint = np.uint64(0)
        for bit in range(BITS):
            if row[bit] > 0:
                fingerprint |= np.uint64(1) << np.uint64(bit)
        fingerprints[article] = fingerprint
    return fingerprints, sums


@kernel
def popcount(value: np.uint64) -> int:
    """Return the number of ones of a 64-bit word."""
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]  # compiled


def hamming(a: int, b: int) -> int:
    """Return the Hamming distance of two fingerprints: the ones of their XOR."""
    return (a ^ b).bit_count()


def cosine(sums_a: I64, sums_b: I64) -> float:
    """Return the cosine of two vectors of bit sums, shape (64,): SimHash cosine of the 2017 study.

    0 where one of them is all zero.
    """
    a, b = sums_a.astype(np.float64), sums_b.astype(np.float64)
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm else 0.0
