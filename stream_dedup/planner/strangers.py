"""How many unrelated articles ("strangers") are listed under the keys that an article looks up.

Knows tables, the order of probes and how bits flip; knows nothing of copies and of costs.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import erfc, sqrt

import numpy as np

from stream_dedup.arrays import F64
from stream_dedup.index.lookup.probing import flip_order
from stream_dedup.planner.distances import FlipMixture
from stream_dedup.planner.found import MOST_PROBES

_DRAWS = 48  # articles whose sums are drawn; each serves for all probes and all kinds of strangers
_SEED = 21
_erfc = np.vectorize(erfc, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class StrangerHits:
    """What an article comes across in one table, by the number of keys that it tries there.

    Attributes:
        keys: how many of the first i + 1 keys tried are occupied, or taken for occupied by a filter, shape (probes,).
        postings: postings of strangers under the first i + 1 keys, shape (probes,).
    """

    keys: F64
    postings: F64


@lru_cache(maxsize=256)
def stranger_hits(strangers: FlipMixture, prefix_bits: int, entries: float, wrong: float) -> StrangerHits:
    """Return what an article comes across in a table.

    Strangers are independent of one another, so the keys they occupy follow a Poisson process.

    Args:
        strangers: flip probabilities of unrelated pairs.
        prefix_bits: bits of a key.
        entries: entries in the table.
        wrong: share of the free keys that a filter takes for occupied.
    """
    expected = entries * _chances(strangers, prefix_bits)
    occupied = 1 - (1 - wrong) * np.exp(-expected)
    return StrangerHits(occupied.mean(axis=0).cumsum(), expected.mean(axis=0).cumsum())


@lru_cache
def _chances(strangers: FlipMixture, prefix_bits: int) -> F64:
    """Return the probability that a stranger is listed under each key tried, for some articles, shape (n, probes).

    For an article with given sums the probability is exact: a bit with sum s, in standard deviations, differs with
    probability Phi(-rho |s| / sqrt(1 - rho^2)), rho = cos(pi q), so the bits that are tried first are also those in
    which related articles differ. Only the sums are drawn.
    """
    sums = np.sort(np.abs(np.random.default_rng(_SEED).standard_normal((_DRAWS, prefix_bits))), axis=1)
    order = flip_order(MOST_PROBES, prefix_bits)
    chances = np.zeros((_DRAWS, len(order)))
    for flip, weight in zip(strangers.flips, strangers.weights, strict=True):
        differs = _flip_chances(sums, flip)
        # What each flip adds to the logarithm of the probability; the last column stands for no flip.
        gains = np.concatenate([np.log(differs) - np.log1p(-differs), np.zeros((_DRAWS, 1))], axis=1)
        same = np.log1p(-differs).sum(axis=1, keepdims=True)
        chances += weight * np.exp(same + gains[:, order].sum(axis=2))
    return chances


def _flip_chances(sums: F64, flip: float) -> F64:
    """Return the probability that each bit differs, given the magnitude of its sum in standard deviations."""
    correlation = np.cos(np.pi * flip)
    chances = _erfc(correlation * sums / np.sqrt(1 - correlation**2) / sqrt(2)) / 2
    return np.asarray(np.clip(chances, 1e-300, 1 - 1e-16))
