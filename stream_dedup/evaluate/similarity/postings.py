"""Sums over what two bags share, from inverted lists: bags that share nothing cost nothing.

Knows weights and posting lists; knows nothing of what the sums mean.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array

from stream_dedup.arrays import F32, F64, I32, I64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.evaluate.features.bags import Bags


@dataclass(frozen=True, slots=True)
class Lists:
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
        texts, members = self.texts, self.members
        return _products(
            first,
            last,
            self.size,
            texts.starts,
            texts.others,
            texts.values,
            members.starts,
            members.others,
            members.values,
        )


def postings(bags: Bags, weights: F64) -> Postings:
    """Return the posting lists of bags with these weights, shape (nnz,)."""
    matrix = bags.weighing(weights).matrix
    return Postings(_lists(matrix), _lists(matrix.tocsc()), matrix.shape[0])


def _lists(matrix: csr_array | csc_array) -> Lists:
    return Lists(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32))


@kernel
def _products(
    first: int,
    last: int,
    size: int,
    text_starts: I64,
    text_members: I32,
    text_values: F32,
    member_starts: I64,
    member_texts: I32,
    member_values: F32,
) -> F32:
    sums = np.zeros((last - first, size), np.float32)
    for text in range(first, last):
        row = sums[text - first]
        for i in range(text_starts[text], text_starts[text + 1]):
            value, member = text_values[i], text_members[i]
            for k in range(member_starts[member], member_starts[member + 1]):
                row[member_texts[k]] += value * member_values[k]
    return sums
