"""Connected components: which items links join, directly or through others.

Knows indices and pairs of them; knows nothing of what they stand for.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stream_dedup.arrays import I64


def components(size: int, links: I64) -> I64:
    """Return the number of each item's component, shape (size,): linked items share one, directly or through others.

    Args:
        size: number of items.
        links: pairs of item indices, shape (m, 2).
    """
    graph = coo_array((np.ones(len(links), np.bool_), (links[:, 0], links[:, 1])), shape=(size, size))
    _, numbers = connected_components(graph, directed=False)
    return np.asarray(numbers, np.int64)
