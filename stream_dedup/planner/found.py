"""Simulates bit sums to find the share of the pairs at each Hamming distance that a plan finds.

Knows tables, the order of probes and how bits flip; knows nothing of costs.

The sums of a text and of its copy are drawn from a bivariate normal distribution: with a flip probability q their
correlation is cos(pi q) (Charikar 2002), so the bits whose sums are nearest zero flip first (Sood and Loguinov 2011).
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import F64, I64, U16, U64, Bool
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.simhash import BITS
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import flip_order
from stream_dedup.planner.distances import FlipMixture

MOST_PROBES = 4096
FARTHEST = 32  # the largest `simhash.max_distance`
# 12,000 pairs are about 300 per distance: the recall is within 0.003 of that with 100,000 pairs.
_PAIRS = 12_000
_SEED = 20
_BINS = np.linspace(0.0, 0.56, 29)  # of flip probabilities
_NEGLIGIBLE = 1e-12
_NEVER = np.uint16(0xFFFF)


@dataclass(frozen=True, slots=True, eq=False)  # a key of caches, by identity
class FoundPairs:
    """Simulated pairs, and the probe of each table that finds them.

    Attributes:
        flips: flip probability of each pair, shape (n,).
        distances: Hamming distance of each pair, up to `FARTHEST`, shape (n,).
        probes: at [i, r], the number, from 0, of the probe that finds pair i in a table rotated by r bits, shape
            (n, 64).
    """

    flips: F64
    distances: I64
    probes: U16

    def shares(self, tables: int, probes: int, mixture: FlipMixture) -> F64:
        """Return the share of the pairs at each distance that some table finds, shape (FARTHEST + 1,).

        Of two pairs at the same distance, the one with the smaller flip probability is found sooner, so each pair is
        weighted by how frequent its flip probability is in the mixture.

        Args:
            tables: number of tables.
            probes: keys tried per table.
            mixture: flip probabilities of the pairs.
        """
        weights, totals = _weights(self, mixture)
        hits = np.bincount(self.distances, weights * (_earliest(self, tables) < probes), FARTHEST + 1)
        return np.asarray(hits / totals)


@lru_cache
def _weights(pairs: FoundPairs, mixture: FlipMixture) -> tuple[F64, F64]:
    """Return the weight of each pair, shape (n,), and the total weight at each distance, shape (FARTHEST + 1,)."""
    wanted, _ = np.histogram(mixture.flips, _BINS, weights=mixture.weights)
    # If the mixture has no pairs at a distance, the simulated ones there all get the same weight.
    weights = wanted[np.digitize(pairs.flips, _BINS[1:-1])] + _NEGLIGIBLE
    return weights, np.asarray(np.bincount(pairs.distances, weights, FARTHEST + 1), np.float64)


@lru_cache
def _earliest(pairs: FoundPairs, tables: int) -> U16:
    """Return the number of the first probe that finds each pair in any table, shape (n,)."""
    rotations = TablePlan(tables, 1).rotations().astype(np.int64)
    return np.asarray(pairs.probes[:, rotations].min(axis=1))


@cache
def found_pairs(prefix_bits: int) -> FoundPairs:
    """Return the simulated pairs for keys of `prefix_bits` bits; they serve any number of tables and probes."""
    flips, differing, volatility = _simulated()
    probes = _first_probes(differing, volatility, prefix_bits, _sets(prefix_bits))
    return FoundPairs(flips, differing.sum(axis=1), probes)


@cache
def _simulated() -> tuple[F64, Bool, F64]:
    """Return flip probabilities, shape (n,), and which bits differ and |sum| of the copy's bits, shape (n, 64) each."""
    chance = np.random.default_rng(_SEED)
    # Evenly spaced flip probabilities up to just over a half, so that every distance has about as many pairs.
    flips = np.linspace(_BINS[0], _BINS[-1], _PAIRS)
    correlations = np.cos(np.pi * flips)[:, np.newaxis]
    copies = chance.standard_normal((_PAIRS, BITS))
    own = chance.standard_normal((_PAIRS, BITS))
    originals = correlations * copies + np.sqrt(1 - correlations**2) * own
    differing = (originals > 0) != (copies > 0)
    near = differing.sum(axis=1) <= FARTHEST
    return flips[near], differing[near], np.abs(copies[near])


class _Sets(NamedTuple):
    """The sets of bit flips that are tried.

    Attributes:
        masks: ranks of each set's bits as a bit mask, ascending, shape (probes,).
        probes: number of the probe that tries each set, shape (probes,).
        most: largest sum of the ranks of a set, with ranks counted from 1.
    """

    masks: U64
    probes: U16
    most: int


def _sets(prefix_bits: int) -> _Sets:
    order = flip_order(MOST_PROBES, prefix_bits)
    used = order >= 0
    masks = ((np.uint64(1) << np.where(used, order, 0).astype(np.uint64)) * used).sum(axis=1, dtype=np.uint64)
    ascending = np.argsort(masks)
    return _Sets(masks[ascending], ascending.astype(np.uint16), int((order + 1).sum(axis=1).max()))


@kernel
def _first_probes(differing: Bool, volatility: F64, prefix_bits: int, sets: _Sets) -> U16:
    """Return the number of the probe that finds each pair at each rotation, shape (n, 64); see `_probe`."""
    probes = np.empty((len(differing), BITS), np.uint16)
    for i in range(len(differing)):
        by_volatility = np.argsort(volatility[i])
        for rotation in range(BITS):
            probes[i, rotation] = _probe(differing[i], by_volatility, rotation, prefix_bits, sets)
    return probes


@kernel
def _probe(differing: Bool, by_volatility: I64, rotation: int, prefix_bits: int, sets: _Sets) -> np.uint16:
    """Return the number of the probe that finds a pair in a table rotated by `rotation` bits, `_NEVER` if none does.

    Args:
        differing: which bits of the pair differ, shape (64,).
        by_volatility: the bits in ascending order of their |sum|, shape (64,).
        rotation: of the table, bits.
        prefix_bits: bits of a key.
        sets: the sets of bit flips that are tried.
    """
    flipped, rank, cost = np.uint64(0), 0, 0
    for bit in by_volatility:
        # The key is the leading bits of the fingerprint rotated left: bit BITS - 1 comes first.
        if (BITS - 1 - bit - rotation) & (BITS - 1) < prefix_bits:
            rank += 1
            if differing[bit]:
                flipped |= np.uint64(1) << np.uint64(rank - 1)
                cost += rank
                if cost > sets.most:
                    return _NEVER
    place = np.searchsorted(sets.masks, flipped)
    return sets.probes[place] if place < len(sets.masks) and sets.masks[place] == flipped else _NEVER
