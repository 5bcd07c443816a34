"""The labels of a set, as arrays.

Knows pairs, clusters and kinds of edits; knows nothing of similarities.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64
from stream_dedup.evaluate.labelled import Edit, LabelledArticle, LabelledSet, in_order
from stream_dedup.scope import name_of


@dataclass(frozen=True, slots=True)
class Truth:
    """The labels of n articles.

    Attributes:
        size: n.
        clusters: number of each article's cluster, shape (n,): those of the same cluster are copies of each other.
        edited: pairs of indices (first < second) of a copy and its original with a known edit, unless they overlap,
            ascending, shape (e, 2).
        edits: kinds of edits with their strengths, only those of these pairs.
        edit_of: index of each pair's edit, shape (e,).
        overlapping: pairs of indices (first < second) that count neither for nor against, ascending, shape (m, 2).
        scopes: number of each article's scope, shape (n,).
    """

    size: int
    clusters: I64
    edited: I64
    edits: tuple[Edit, ...]
    edit_of: I64
    overlapping: I64
    scopes: I64

    @classmethod
    def of(cls, labelled: LabelledSet) -> "Truth":
        """Return the truth of a labelled set, in memory proportional to its articles and overlapping pairs."""
        size = len(labelled.articles)
        overlapping = np.unique(labelled.overlapping.reshape(-1, 2), axis=0).astype(np.int64)
        edit_by_pair = _edit_by_pair(labelled.articles)
        edited = np.array(sorted(edit_by_pair), np.int64).reshape(-1, 2)
        edited = edited[~np.isin(edited @ [size, 1], overlapping @ [size, 1])]
        kinds = [edit_by_pair[first, second] for first, second in edited.tolist()]
        edits = sorted(set(kinds), key=in_order)
        places = {edit: place for place, edit in enumerate(edits)}
        edit_of = np.array([places[kind] for kind in kinds], np.int64)
        return cls(size, labelled.clusters(), edited, tuple(edits), edit_of, overlapping, labelled.scopes())


def _edit_by_pair(articles: Sequence[LabelledArticle]) -> dict[tuple[int, int], Edit]:
    """Return the edit by which one article of a pair (first < second) was made from the other, in the same cluster.

    If each was made from the other, it is the edit that made the first.
    """
    places = {one.article.name: place for place, one in enumerate(articles)}
    found: dict[tuple[int, int], Edit] = {}
    for place, one in enumerate(articles):
        if one.original is None or one.edit is None:
            continue
        original = places.get(name_of(one.article.scope, one.original), place)
        if original != place and articles[original].story == one.story:
            found.setdefault((min(place, original), max(place, original)), one.edit)
    return found
