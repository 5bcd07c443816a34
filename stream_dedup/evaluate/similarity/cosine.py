"""Cosine of weighted vectors over the union of words.

Knows weights; knows nothing of what they stand for.
"""

import numpy as np

from stream_dedup.arrays import F32
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.similarity.postings import Postings, postings


def unit_vectors(bags: Bags) -> Postings:
    """Return the bags as vectors of weights, scaled to length 1."""
    squares = np.asarray(bags.matrix.power(2).sum(axis=1), np.float64)
    norms = np.sqrt(squares)[bags.text_of()]
    return postings(bags, bags.matrix.data / np.where(norms > 0.0, norms, 1.0))


def cosine(data: Postings, rows: slice) -> F32:
    """Return a.b / (|a| |b|), shape (rows, n); negative values become 0."""
    return np.clip(data.products(rows), np.float32(0.0), np.float32(1.0))
