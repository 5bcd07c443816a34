"""Which texts of a collection overlap, exactly.

Knows sets of character 5-grams; knows nothing of how copies were made.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from stream_dedup.arrays import I64
from stream_dedup.article import Article
from stream_dedup.evaluate.labelled import LabelledSet
from stream_dedup.fingerprint.sketch import gram_hashes
from stream_dedup.text.normal import Normaliser, word_table
from stream_dedup.text.texts import offsets_of

GRAM = 5
OVERLAPS_FROM = 0.35  # containment of the smaller text at or above which two texts cannot be called different
_ROWS = 512  # of the product at a time: 80 MB if every text shares a gram with each of 20,000


def overlapping(bodies: Sequence[str], least: float = OVERLAPS_FROM) -> I64:
    """Return exactly the pairs of texts that overlap: all n-grams of the normalised texts are compared.

    It takes some 80 bytes of memory per n-gram, and time proportional to the square of the number of texts that contain
    an n-gram: half a minute for 18,000 articles of 900 characters.

    Args:
        bodies: n texts.
        least: minimum containment: shared distinct 5-grams / distinct 5-grams of the smaller text.

    Returns:
        Pairs of indices (first < second), ascending, shape (m, 2).
    """
    grams = _incidence(bodies)
    sizes = np.diff(grams.indptr)
    columns = grams.T.tocsr()
    found = [_pairs_of_rows(grams, columns, sizes, start, least) for start in range(0, len(bodies), _ROWS)]
    return np.concatenate([np.empty((0, 2), np.int64), *found])


def distinct(articles: Sequence[Article]) -> list[Article]:
    """Return the articles that do not overlap an earlier article of their scope that is itself returned."""
    kept = np.ones(len(articles), np.bool_)
    pairs = overlapping([article.body for article in articles])
    scopes = np.array([article.scope for article in articles])
    pairs = pairs[scopes[pairs[:, 0]] == scopes[pairs[:, 1]]]
    for first, second in pairs[np.argsort(pairs[:, 1], kind="stable")]:
        kept[second] &= not kept[first]
    return [article for article, keep in zip(articles, kept, strict=True) if keep]


def with_overlaps(labelled: LabelledSet) -> LabelledSet:
    """Return a set that also lists as overlapping the pairs of a scope whose texts overlap but whose clusters differ.

    Pairs that were listed before stay.
    """
    found = overlapping([each.article.body for each in labelled.articles])
    clusters, scopes = labelled.clusters(), labelled.scopes()
    one, other = found.T
    apart = found[(clusters[one] != clusters[other]) & (scopes[one] == scopes[other])]
    return replace(labelled, overlapping=np.unique(np.concatenate([labelled.overlapping, apart]), axis=0))


def _incidence(bodies: Sequence[str]) -> csr_array:
    """Return which text contains which n-gram, shape (n, distinct n-grams)."""
    characters = Normaliser().all(bodies).kept(word_table())
    grams = [gram_hashes(characters.of(place), GRAM) for place in range(len(bodies))]
    names, columns = np.unique(np.concatenate([np.empty(0, np.uint64), *grams]), return_inverse=True)
    ones = np.ones(len(columns), np.int32)
    return csr_array((ones, columns, offsets_of([*map(len, grams)])), shape=(len(bodies), len(names)))


def _pairs_of_rows(grams: csr_array, columns: csr_array, sizes: I64, start: int, least: float) -> I64:
    shared = (grams[start : start + _ROWS] @ columns).tocoo()
    first, second = shared.row.astype(np.int64) + start, shared.col.astype(np.int64)
    wanted = (first < second) & (shared.data >= least * np.minimum(sizes[first], sizes[second]))
    pairs = np.column_stack([first[wanted], second[wanted]])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
