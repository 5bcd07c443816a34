"""MinHash with one hash function and with many, and shingles sampled by a modulus.

Knows hashes of members; knows nothing of what they stand for.
"""

import numpy as np

from stream_dedup.arrays import F32, I64, U32, U64
from stream_dedup.compiled.hashing import GOLDEN, mix64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.similarity.sets import Sets, sets

_NONE = np.uint32(0xFFFFFFFF)


def smallest(bags: Bags, size: int) -> Sets:
    """Return the `size` smallest hashes of each text as sets: MinHash with one function."""
    text, members = bags.text_of(), bags.members()
    order = np.lexsort((members, text))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - bags.offsets()[text]
    return sets(bags.keeping(rank < size))


def sampled(bags: Bags, modulus: int) -> Sets:
    """Return the members whose hash is a multiple of `modulus`, as sets: Broder 1997, V(A)."""
    return sets(bags.keeping(bags.members() % np.uint64(modulus) == 0))


def signatures(bags: Bags, functions: int) -> U32:
    """Return the minimum of each of many hash functions over each text, shape (n, functions); 2^32 - 1 if empty."""
    return _signatures(bags.offsets(), bags.members(), functions)


def agreement(data: U32, rows: slice) -> F32:
    """Return the share of hash functions whose minima agree, shape (rows, n)."""
    first, last, _ = rows.indices(len(data))
    return _agreement(data, first, last)


@kernel
def _signatures(offsets: I64, members: U64, functions: int) -> U32:
    minima = np.full((len(offsets) - 1, functions), _NONE, np.uint32)
    for text in range(len(offsets) - 1):
        for i in range(offsets[text], offsets[text + 1]):
            for function in range(functions):
                # Seeds one step of splitmix64 apart.
                value = np.uint32(mix64(members[i] + np.uint64(function + 1) * GOLDEN) >> np.uint64(32))
                minima[text, function] = min(minima[text, function], value)
    return minima


@kernel
def _agreement(minima: U32, first: int, last: int) -> F32:
    texts, functions = minima.shape
    shares = np.empty((last - first, texts), np.float32)
    for text in range(first, last):
        for other in range(texts):
            equal = np.int32(0)
            for function in range(functions):
                equal += np.int32(minima[text, function] == minima[other, function])
            shares[text - first, other] = equal / functions
    return shares
