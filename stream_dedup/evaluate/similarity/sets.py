"""Jaccard of sets, and Jaccard on the shorter text.

Knows which members a bag has; knows nothing of their weights.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import F32
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.similarity.postings import Postings, postings


@dataclass(frozen=True, slots=True)
class Sets:
    """n sets.

    Attributes:
        postings: for the number of members that two of them share.
        sizes: members of each, float32, shape (n,).
    """

    postings: Postings
    sizes: F32


def sets(bags: Bags) -> Sets:
    """Return the sets of the members of bags."""
    return Sets(postings(bags, np.ones(bags.matrix.nnz)), bags.sizes().astype(np.float32))


def jaccard(data: Sets, rows: slice) -> F32:
    """Return |A and B| / |A or B|, shape (rows, n)."""
    shared = data.postings.products(rows)
    return _ratio(shared, data.sizes[rows, None] + data.sizes - shared)


def jaccard_shorter(data: Sets, rows: slice) -> F32:
    """Return |A and B| / min(|A|, |B|), shape (rows, n): 1 if one text lies wholly within the other."""
    return _ratio(data.postings.products(rows), np.minimum(data.sizes[rows, None], data.sizes))


def _ratio(part: F32, whole: F32) -> F32:
    # If the whole is 0, so is the part.
    return np.asarray(part / np.maximum(whole, np.float32(1.0)), np.float32)
