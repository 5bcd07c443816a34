"""SimHash of weighted words: Hamming distance of fingerprints, and the cosine of the bit sums before the sign.

Knows the engine's SimHash; knows nothing of weights.
"""

import numpy as np

from stream_dedup.arrays import F32, U64
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.fingerprint.simhash import simhash


def fingerprints(bags: Bags, bits: int) -> U64:
    """Return the fingerprint of each text, the lowest `bits` bits of 64, shape (n,)."""
    values, _ = simhash(bags.offsets(), bags.members(), bags.matrix.data)
    return values & np.uint64((1 << bits) - 1)


def hamming(data: U64, rows: slice, bits: int) -> F32:
    """Return 1 - distance / bits, shape (rows, n)."""
    distances = np.bitwise_count(data[rows, None] ^ data)
    return np.asarray(1.0 - distances / np.float32(bits), np.float32)


def directions(bags: Bags, bits: int) -> F32:
    """Return the sums of the lowest `bits` bits of each text, scaled to vectors of length 1, shape (n, bits)."""
    _, sums = simhash(bags.offsets(), bags.members(), bags.matrix.data)
    vectors = sums[:, :bits].astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0), np.float32)


def cosine(data: F32, rows: slice) -> F32:
    """Return the cosine of the bit sums, shape (rows, n); negative values become 0."""
    return np.asarray(np.clip(data[rows] @ data.T, 0.0, 1.0), np.float32)
