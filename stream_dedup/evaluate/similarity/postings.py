"""Sums over what two bags share, from inverted lists: bags that share nothing cost nothing.

Knows weights and posting lists; knows nothing of what the sums mean.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from stream_dedup.arrays import F32, F64, I32, I64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.evaluate.features.bags import Bags


class Lists(NamedTuple):
    """Compressed rows, or columns, of a sparse matrix: the entries of line i are at starts[i]:starts[i + 1].

    Attributes:
        starts: int64, shape (lines + 1,).
        others: columns, or rows, of the entries, int32, ascending in each line.
        values: values of the entries, float32.
    """

    starts: I64
    others: I32
    values: F32


@dataclass(frozen=True, slots=True)
class Postings:
    """n bags by text and by member.

    Attributes:
        texts: the members of each text.
        members: the texts of each member.
        size: n.
    """

    texts: Lists
    members: Lists
    size: int

    def products(self, rows: slice) -> F32:
        """Return the sum of the products of the weights of shared members, shape (rows, n)."""
        first, last, _ = rows.indices(self.size)
        return _products(first, last, self.size, self.texts, self.members)


def postings(bags: Bags, weights: F64) -> Postings:
    """Return the posting lists of bags with these weights, shape (nnz,)."""
    matrix = bags.weighing(weights).matrix
    return Postings(_lists(matrix), _lists(matrix.tocsc()), matrix.shape[0])


def _lists(matrix: csr_array | csc_array) -> Lists:
    return Lists(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32))


@kernel
def _products(first: int, last: int, size: int, texts: Lists, members: Lists) -> F32:
    sums = np.empty((last - first, size), np.float32)
    # In double precision: the thousands of products of a long text would add up to less than 1 with itself.
    row = np.empty(size, np.float64)
    for text in range(first, last):
        row[:] = 0.0
        for i in range(texts.starts[text], texts.starts[text + 1]):
            value, member = texts.values[i], texts.others[i]
            for k in range(members.starts[member], members.starts[member + 1]):
                row[members.others[k]] += value * members.values[k]
        sums[text - first] = row
    return sums
