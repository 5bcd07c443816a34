"""How well one clustering of articles agrees with another.

Knows cluster numbers and pairs of indices; knows nothing of who made the clusters.
"""

import numpy as np

from stream_dedup.arrays import I64, Bool
from stream_dedup.evaluate.quality import Score


def score_of_clusters(found: I64, true: I64, overlapping: I64, threshold: float) -> Score:
    """Return the scores of the pairs of items that a clustering puts together.

    Args:
        found: cluster number of each item in the clustering, shape (n,).
        true: the true cluster numbers, shape (n,).
        overlapping: pairs of indices that count neither for nor against, shape (m, 2).
        threshold: at which the clusters were found, for the record.
    """
    both = np.unique(np.stack([found, true]), axis=1, return_inverse=True)[1].ravel()
    together, same = _together(found, overlapping), _together(true, overlapping)
    right = _pairs(both) - int((together & same).sum())
    wrong = _pairs(found) - int(together.sum()) - right
    missed = _pairs(true) - int(same.sum()) - right
    return Score.of(threshold, right, wrong, missed)


def _pairs(numbers: I64) -> int:
    sizes = np.unique(numbers, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def _together(numbers: I64, pairs: I64) -> Bool:
    return np.equal(numbers[pairs[:, 0]], numbers[pairs[:, 1]])
