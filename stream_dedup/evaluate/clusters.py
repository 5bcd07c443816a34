"""How well one clustering of articles agrees with another.

Knows cluster numbers and pairs of indices; knows nothing of who made the clusters.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stream_dedup.compiled.hashing import I64
from stream_dedup.evaluate.quality import Score


def components(size: int, links: I64) -> I64:
    """Return the cluster number of each item, shape (size,): linked items share one, directly or through others.

    Args:
        size: number of items.
        links: pairs of item indices, shape (m, 2).
    """
    graph = coo_array((np.ones(len(links), np.bool_), (links[:, 0], links[:, 1])), shape=(size, size))
    _, numbers = connected_components(graph, directed=False)
    return np.asarray(numbers, np.int64)


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
    return _score(threshold, right, wrong, missed)


def _score(threshold: float, right: int, wrong: int, missed: int) -> Score:
    """Return a score; ratios with a denominator of 0 are as in `quality.Score`."""
    return Score(
        threshold=threshold,
        true_positives=right,
        false_positives=wrong,
        false_negatives=missed,
        precision=right / (right + wrong) if right + wrong else 1.0,
        recall=right / (right + missed) if right + missed else 1.0,
        f1=2 * right / (2 * right + wrong + missed) if right + wrong + missed else 0.0,
    )


def _pairs(numbers: I64) -> int:
    sizes = np.unique(numbers, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def _together(numbers: I64, pairs: I64) -> NDArray[np.bool_]:
    return np.equal(numbers[pairs[:, 0]], numbers[pairs[:, 1]])
