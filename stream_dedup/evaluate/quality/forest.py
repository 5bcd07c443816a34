"""The maximum spanning forest of the pairs: which articles are connected at any threshold, in O(n) memory.

Knows edges and bins; knows nothing of labels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from stream_dedup.arrays import I16, I64, Bool
from stream_dedup.evaluate.components import components

_LEVEL = 0.1  # share of the forest's edges below the level of `_connecting`


@dataclass(frozen=True, slots=True)
class Forest:
    """The edges that connect n articles as strongly as all of their pairs do.

    The clusters at a threshold are the connected components of the pairs at or above it (single linkage), and those
    of the forest's edges at or above it are the same (Gower and Ross 1969).

    Attributes:
        size: n.
        first: one article of each edge, shape (edges,), fewer than n.
        second: the other article of each edge.
        bins: bin of each edge's similarity, at least 0.
    """

    size: int
    first: I64
    second: I64
    bins: I64

    @classmethod
    def empty(cls, size: int) -> "Forest":
        """Return the forest without edges."""
        none = np.empty(0, np.int64)
        return cls(size, none, none, none)

    def add(self, start: int, bins: I16) -> "Forest":
        """Return the forest of these edges and those of a block, shape (rows, n), -1 where there is no edge."""
        rows, columns = np.nonzero(self._connecting(start, bins))
        return self.merge(Forest(self.size, rows + start, columns, bins[rows, columns].astype(np.int64)))

    def merge(self, other: "Forest") -> "Forest":
        """Return the forest of the edges of both forests."""
        first = np.concatenate([self.first, other.first])
        second = np.concatenate([self.second, other.second])
        # The strongest edges are the cheapest; a cost of 0 would mean no edge.
        costs = 2.0 + np.iinfo(np.int16).max - np.concatenate([self.bins, other.bins])
        graph = coo_array((costs, (first, second)), shape=(self.size, self.size))
        tree = minimum_spanning_tree(graph.tocsr()).tocoo()
        bins = np.rint(2.0 + np.iinfo(np.int16).max - tree.data).astype(np.int64)
        return Forest(self.size, tree.row.astype(np.int64), tree.col.astype(np.int64), bins)

    def _connecting(self, start: int, bins: I16) -> Bool:
        """Return which edges of a block may connect what is not yet connected as strongly, shape of `bins`.

        Nearly all articles are connected at a level above that of most pairs, so hardly any edges are left.
        """
        level = int(np.quantile(self.bins, _LEVEL, method="lower")) if len(self.bins) else 0
        labels = self.clusters(level)
        apart = labels[start : start + len(bins), None] != labels
        return np.asarray((bins > level) | (apart & (bins >= 0)), np.bool_)

    def clusters(self, least: int) -> I64:
        """Return the number of each article's cluster, shape (n,), if pairs in bins of at least `least` connect."""
        strong = self.bins >= least
        return components(self.size, np.stack([self.first[strong], self.second[strong]], axis=1))
