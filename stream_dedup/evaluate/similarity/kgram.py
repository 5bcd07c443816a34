"""The K-gram improved Jaccard of 2017.

Knows how often each K-gram occurs in each text; knows nothing of characters.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import F32, F64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.similarity.postings import Lists, Postings, postings


@dataclass(frozen=True, slots=True)
class Counts:
    """The K-grams of n texts.

    Attributes:
        postings: how often each occurs in each text.
        totals: number of K-grams in each text, float64, shape (n,).
    """

    postings: Postings
    totals: F64


def counts(bags: Bags) -> Counts:
    """Return the counts of bags whose weights are counts."""
    return Counts(postings(bags, bags.matrix.data), np.asarray(bags.matrix.sum(axis=1), np.float64))


def kgram_improved(data: Counts, rows: slice) -> F32:
    """Return the sum of C(w) e(w) over the shared K-grams w, divided by the sum of e(w) over them, shape (rows, n).

    doi 10.15888/j.cnki.csa.006123: C(w) = min(NX, NY) / max(NX, NY) for the relative frequencies NX and NY of w, and
    e(w) = its occurrences in both texts / all K-grams of both. It is normalised only by what is shared: two texts
    that share a single K-gram, equally often, have similarity 1, whatever else they contain. 0 if none is shared.
    """
    first, last, _ = rows.indices(data.postings.size)
    return _similarities(first, last, data.totals, data.postings.texts, data.postings.members)


@kernel
def _similarities(first: int, last: int, totals: F64, texts: Lists, grams: Lists) -> F32:
    similarities = np.empty((last - first, len(totals)), np.float32)
    agreeing, shared = np.empty(len(totals)), np.empty(len(totals))
    for text in range(first, last):
        agreeing[:], shared[:] = 0.0, 0.0
        for i in range(texts.starts[text], texts.starts[text + 1]):
            here, gram = float(texts.values[i]), texts.others[i]
            for k in range(grams.starts[gram], grams.starts[gram + 1]):
                other, there = grams.others[k], float(grams.values[k])
                # Both shares times both totals: one division instead of three.
                share, other_share = here * totals[other], there * totals[text]
                # The denominator of e(w) is the same for all w of a pair, and cancels.
                agreeing[other] += min(share, other_share) / max(share, other_share) * (here + there)
                shared[other] += here + there
        for other in range(len(totals)):
            similarities[text - first, other] = agreeing[other] / shared[other] if shared[other] > 0.0 else 0.0
    return similarities
