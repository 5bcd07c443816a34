"""Texts as bags: what occurs in each, and with what weight.

Knows sparse matrices of weights; knows nothing of where the weights come from.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from stream_dedup.arrays import F64, I64, U64, Bool
from stream_dedup.text.texts import offsets_of


@dataclass(frozen=True, slots=True)
class Bags:
    """The bags of n texts over a vocabulary of v members (words, or grams).

    Attributes:
        matrix: weight of each member in each text, float64, shape (n, v), sorted, without duplicates.
        keys: 64-bit hash of each member, ascending, shape (v,).
    """

    matrix: csr_array
    keys: U64

    def offsets(self) -> I64:
        """Return the offsets of each text's members in `members` and `matrix.data`, shape (n + 1,)."""
        return np.asarray(self.matrix.indptr, np.int64)

    def members(self) -> U64:
        """Return the hashes of the members of all texts, text by text, shape (nnz,)."""
        return np.asarray(self.keys[self.matrix.indices], np.uint64)

    def sizes(self) -> I64:
        """Return how many members each text has, shape (n,)."""
        return np.diff(self.offsets())

    def text_of(self) -> I64:
        """Return the index of the text that each member belongs to, shape (nnz,)."""
        return np.repeat(np.arange(self.matrix.shape[0]), self.sizes())

    def document_frequencies(self) -> I64:
        """Return how many texts contain each member, shape (v,)."""
        return np.bincount(self.matrix.indices, minlength=len(self.keys))

    def weighing(self, weights: F64) -> "Bags":
        """Return the same members with other weights, shape (nnz,), in the order of `members`."""
        matrix = csr_array((weights, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)
        return replace(self, matrix=matrix)

    def keeping(self, kept: Bool) -> "Bags":
        """Return the bags with only the members that `kept` marks, shape (nnz,), in the order of `members`."""
        parts = (self.matrix.data[kept], self.matrix.indices[kept], offsets_of(kept)[self.matrix.indptr])
        return replace(self, matrix=csr_array(parts, shape=self.matrix.shape))


def bags(offsets: I64, hashes: U64, weights: F64) -> Bags:
    """Return the bags of n texts; the weights of a member that occurs several times in a text are summed.

    Args:
        offsets: the members of text i are at offsets[i]:offsets[i + 1], shape (n + 1,).
        hashes: hash of each member, shape (m,).
        weights: weight of each member, shape (m,).
    """
    keys, columns = np.unique(hashes, return_inverse=True)
    # A copy, since summing changes the offsets in place.
    matrix = csr_array((weights, columns, offsets), shape=(len(offsets) - 1, len(keys)), copy=True)
    matrix.sum_duplicates()
    return Bags(matrix, keys)
