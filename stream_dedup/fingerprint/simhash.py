"""Weighted 64-bit SimHash (Charikar 2002) and the measures on it.

Knows hashes and weights; knows nothing of where they come from.
"""

import numpy as np

from stream_dedup.arrays import F64, I64, U64
from stream_dedup.compiled.kernel import kernel

BITS = 64
# Weights are added as integers, so that the sums do not depend on the order of the words.
_WEIGHT_SCALE = float(1 << 24)
_BYTE = np.uint64(0xFF)


@kernel
def simhash(offsets: I64, hashes: U64, weights: F64) -> tuple[U64, I64]:
    """Return the fingerprint and the bit sums of each article.

    Bit b of a fingerprint is 1 if sum b is positive; a sum of 0 gives 0 (Charikar 2002).

    Args:
        offsets: terms of article i at offsets[i]:offsets[i + 1], shape (n + 1,).
        hashes: 64-bit hash of each term, shape (m,).
        weights: weight of each term, shape (m,), up to about 2^20.

    Returns:
        Fingerprints, uint64, shape (n,); sums, int64, shape (n, 64), in units of 2^-24.
    """
    articles = len(offsets) - 1
    fingerprints = np.zeros(articles, np.uint64)
    sums = np.empty((articles, BITS), np.int64)
    by_byte = np.empty((BITS // 8, 256), np.int64)
    for article in range(articles):
        total = _add_bytes(hashes[offsets[article] : offsets[article + 1]], weights[offsets[article] :], by_byte)
        fingerprint = np.uint64(0)
        for byte in range(BITS // 8):
            fingerprint |= np.uint64(_fold(by_byte[byte], total, sums[article, 8 * byte :])) << np.uint64(8 * byte)
        fingerprints[article] = fingerprint
    return fingerprints, sums


@kernel
def _add_bytes(hashes: U64, weights: F64, by_byte: I64) -> np.int64:
    """For each of the eight bytes of a hash, sum the terms' weights by the value of that byte, shape (8, 256).

    Returns:
        The sum of all weights.
    """
    by_byte[:] = 0
    total = np.int64(0)
    for i in range(len(hashes)):
        weight, value = np.int64(np.rint(weights[i] * _WEIGHT_SCALE)), hashes[i]
        total += weight
        for byte in range(BITS // 8):
            by_byte[byte, value >> np.uint64(8 * byte) & _BYTE] += weight
    return total


@kernel
def _fold(by_value: I64, total: np.int64, sums: I64) -> int:
    """Write the sums of a byte's eight bits, and return the byte that has the bits with a positive sum set.

    The upper half of the values has the top bit set; adding it to the lower half leaves the same table for one bit
    fewer.

    Args:
        by_value: sum of the weights by the byte's value, shape (256,); overwritten.
        total: sum of all weights.
        sums: receives the sum of each bit, at least 8 long.
    """
    half, positive = len(by_value) // 2, 0
    for bit in range(7, -1, -1):
        ones = np.int64(0)
        for value in range(half):
            ones += by_value[half + value]
            by_value[value] += by_value[half + value]
        sums[bit] = 2 * ones - total
        positive |= (sums[bit] > 0) << bit
        half //= 2
    return positive


@kernel
def popcount(value: np.uint64) -> int:
    """Return the number of set bits in a 64-bit word."""
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]  # compiled


def hamming(a: int, b: int) -> int:
    """Return the Hamming distance of two fingerprints: the number of set bits in their XOR."""
    return (a ^ b).bit_count()


def cosine(sums_a: I64, sums_b: I64) -> float:
    """Return the cosine of two vectors of bit sums, shape (64,): SimHash cosine of the 2017 study.

    0 if one of them is all zero.
    """
    a, b = sums_a.astype(np.float64), sums_b.astype(np.float64)
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm else 0.0
