"""The labels of a set, as arrays.

Knows pairs, clusters and kinds of edits; knows nothing of similarities.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64
from stream_dedup.evaluate.labelled import Edit, LabelledArticle, LabelledSet, in_order


@dataclass(frozen=True, slots=True)
class Truth:
    """The labels of n articles.

    Attributes:
        size: n.
        clusters: number of each article's cluster, shape (n,).
        positives: pairs of indices (first < second) that are copies, ascending, shape (p, 2).
        edits: kinds of edits with their strengths, only those between a copy and its original.
        edit_of: index of the edit that leads from one article of each positive pair to the other, -1 if neither is the
            other's original, or if the kind is unknown, shape (p,).
        overlapping: pairs of indices (first < second) that count neither for nor against, ascending, shape (m, 2).
        scopes: number of each article's scope, shape (n,).
    """

    size: int
    clusters: I64
    positives: I64
    edits: tuple[Edit, ...]
    edit_of: I64
    overlapping: I64
    scopes: I64

    @classmethod
    def of(cls, labelled: LabelledSet) -> "Truth":
        """Return the truth of a labelled set."""
        size = len(labelled.articles)
        overlapping = np.unique(labelled.overlapping.reshape(-1, 2), axis=0).astype(np.int64)
        positives = labelled.positives()
        positives = positives[~np.isin(positives @ [size, 1], overlapping @ [size, 1])]
        kinds = [_edit(labelled.articles[i], labelled.articles[k]) for i, k in positives.tolist()]
        edits = sorted({kind for kind in kinds if kind is not None}, key=in_order)
        places = {edit: place for place, edit in enumerate(edits)}
        edit_of = np.array([-1 if kind is None else places[kind] for kind in kinds], np.int64)
        return cls(size, labelled.clusters(), positives, tuple(edits), edit_of, overlapping, labelled.scopes())


def _edit(one: LabelledArticle, other: LabelledArticle) -> Edit | None:
    """Return the edit by which one of two articles was made from the other; None if there is none."""
    for copy, original in ((one, other), (other, one)):
        if copy.edit is not None and copy.original == original.article.id:
            return copy.edit
    return None
