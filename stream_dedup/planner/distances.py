"""How many bits of a fingerprint differ: between an article and its copy, and between two unrelated articles.

Knows distributions of Hamming distances; knows nothing of tables.

Each pair of texts has a flip probability q, the angle between their word vectors divided by pi (Charikar 2002), and
each of its 64 bits differs independently with probability q. As q varies from pair to pair, distances follow a mixture
of binomials.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from stream_dedup.arrays import F64, I64
from stream_dedup.fingerprint.simhash import BITS

_DISTANCES = np.arange(BITS + 1)
_CHOICES = np.array([comb(BITS, distance) for distance in _DISTANCES.tolist()], np.float64)
# Flip probabilities of a fitted mixture: fine enough that neighbours overlap even if few bits differ.
_GRID = np.concatenate([np.arange(0.005, 0.1, 0.005), np.arange(0.1, 0.56, 0.02)])
_ROUNDS = 3_000
_NEGLIGIBLE = 1e-9
_BETA_STEPS = 400

# Measured on 17,999 articles of a news portal, of a bulletin archive and their reposts, with 2,500 copies of each
# similarity and all 48 million pairs of the 9,800 unique articles:
#     stream-dedup plan --articles 1M --recall 0.9 --sample articles.jsonl --similarity 0.8 --json
# Similarity, mean Hamming distance of the copies, correlation of the flips of two bits.
_COPIES = (
    (0.5, 13.51, 0.0196),
    (0.6, 11.30, 0.0189),
    (0.7, 9.20, 0.0157),
    (0.8, 7.00, 0.0120),
    (0.9, 4.73, 0.0078),
    (0.95, 3.48, 0.0072),
)
MIN_SIMILARITY, MAX_SIMILARITY = _COPIES[0][0], _COPIES[-1][0]


@dataclass(frozen=True, slots=True)
class FlipMixture:
    """How pairs of texts are distributed over flip probabilities.

    Attributes:
        flips: probabilities that a bit differs.
        weights: share of the pairs with each probability, same length, sum 1.
    """

    flips: tuple[float, ...]
    weights: tuple[float, ...]

    def distances(self) -> F64:
        """Return the probability of each Hamming distance from 0 to 64, shape (65,)."""
        return _distances(self)

    def agreement(self, bits: int) -> float:
        """Return the probability that two fingerprints agree in `bits` given bits; random ones: 2^-bits."""
        return float(np.asarray(self.weights) @ (1 - np.asarray(self.flips)) ** bits)


# Most pairs differ in half of their bits; one in 6,000 is about the same matter, one in 250,000 of the same template.
STRANGERS = FlipMixture(
    (0.01, 0.1, 0.12, 0.26, 0.28, 0.46, 0.48, 0.5, 0.52, 0.54),
    (1.47e-7, 4.28e-7, 3.68e-6, 1.4217e-4, 3.125e-5, 1.3028e-4, 0.12416, 0.855625045, 0.019906, 1e-6),
)


def fitted(pairs: I64) -> FlipMixture:
    """Return the mixture of binomials that makes the observed distances most likely, by expectation maximisation.

    Args:
        pairs: how many pairs were seen at each Hamming distance, shape (65,).

    Raises:
        ValueError: there are no pairs.
    """
    if not pairs.any():
        raise ValueError("distances cannot be fitted: there are no pairs of texts")
    likelihoods = _binomials(_GRID)
    weights = np.full(len(_GRID), 1 / len(_GRID))
    for _ in range(_ROUNDS):
        shares = weights[:, np.newaxis] * likelihoods
        weights = (shares / shares.sum(axis=0)) @ (pairs / pairs.sum())
    kept = weights > _NEGLIGIBLE
    return _mixture(_GRID[kept], weights[kept])


@lru_cache
def _distances(mixture: FlipMixture) -> F64:
    return np.asarray(np.asarray(mixture.weights) @ _binomials(np.asarray(mixture.flips)))


def _binomials(flips: F64) -> F64:
    """Return the distribution of the distance for each flip probability, shape (k, 65)."""
    column = flips[:, np.newaxis]
    return np.asarray(_CHOICES * column**_DISTANCES * (1 - column) ** (BITS - _DISTANCES))


def _mixture(flips: F64, weights: F64) -> FlipMixture:
    return FlipMixture(tuple(flips.tolist()), tuple((weights / weights.sum()).tolist()))


def copies_of(similarity: float) -> FlipMixture:
    """Return the flip probabilities between articles and copies that share a given part of their text.

    They follow a beta distribution (which makes the distances beta-binomial), interpolated between the measured ones.

    Args:
        similarity: share of the text, from `MIN_SIMILARITY` to `MAX_SIMILARITY`.

    Raises:
        ValueError: the similarity is outside the measured range.
    """
    if not MIN_SIMILARITY <= similarity <= MAX_SIMILARITY:
        raise ValueError(
            f"a similarity of {similarity:g} is out of bounds: distances were measured from {MIN_SIMILARITY:g} to "
            f"{MAX_SIMILARITY:g}"
        )
    shares, means, overlaps = np.array(_COPIES).T
    mean = np.interp(similarity, shares, means) / BITS
    size = 1 / np.interp(similarity, shares, overlaps) - 1
    flips = np.arange(0.5, _BETA_STEPS) / _BETA_STEPS
    logarithm = (mean * size - 1) * np.log(flips) + ((1 - mean) * size - 1) * np.log1p(-flips)
    return _mixture(flips, np.exp(logarithm - logarithm.max()))
