"""Synthetic entries whose fingerprints are related like those of real articles, and copies of them.

Knows the fitted mixture of strangers; knows nothing of the index.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import F64, I64, U32, U64
from stream_dedup.fingerprint.features import Features, landmark_rule
from stream_dedup.fingerprint.particulars import SmallSketches, small_sketches
from stream_dedup.fingerprint.simhash import BITS
from stream_dedup.fingerprint.sketch import Sketches, landmark_count
from stream_dedup.planner.costs import TYPICAL_NUMBERS, TYPICAL_PLACES
from stream_dedup.planner.distances import STRANGERS, FlipMixture
from stream_dedup.settings import EngineSettings
from stream_dedup.text.lines import EndLines
from stream_dedup.text.terms import Terms
from stream_dedup.text.texts import Texts as NormalTexts
from tests.benchmarks.texts import GRAMS, VALUES, texts

# All families share a component, that of the commonest words; their correlations with it are distributed like this.
_COMMON_MEAN, _COMMON_DEVIATION = 0.12, 0.17
_RELATED = 0.4  # flip probability below which two articles are about the same matter
_POWERS = np.uint64(1) << np.arange(BITS, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Families:
    """Families of one kind: weather bulletins, stories of one event.

    Attributes:
        centres: sums that the members of each share, shape (families, 64).
        correlation: correlation between the sums of two members.
    """

    centres: F64
    correlation: float


class Population:
    """Articles as random sums. Each belongs to a family of one kind, so that pairs are related as often as real ones.

    With a share s of the articles in equally large families of a kind, s^2 / families of all pairs share a family.

    Args:
        seed: seeds all random numbers.
        strangers: distribution of how closely pairs are related.
    """

    def __init__(self, seed: int, strangers: FlipMixture = STRANGERS) -> None:
        self._chance = np.random.default_rng(seed)
        self._texts = 0  # number of texts made so far
        self._common = self._chance.standard_normal(BITS)
        related = [pair for pair in zip(strangers.flips, strangers.weights, strict=True) if pair[0] < _RELATED]
        self._kinds = [self._families(flip, weight, 1 / len(related)) for flip, weight in related]

    def sums(self, count: int) -> F64:
        """Return the bit sums of so many articles, shape (count, 64)."""
        sums = np.empty((count, BITS))
        kinds = self._chance.integers(len(self._kinds), size=count)
        for place, kind in enumerate(self._kinds):
            members = np.flatnonzero(kinds == place)
            centres = kind.centres[self._chance.integers(len(kind.centres), size=len(members))]
            sums[members] = _related(centres, kind.correlation, self._normal(len(members)))
        return sums

    def copies(self, originals: F64, copies: FlipMixture) -> F64:
        """Return the sums of a copy of each article, same shape."""
        flips = self._chance.choice(copies.flips, len(originals), p=copies.weights)[:, np.newaxis]
        return _related(originals, np.cos(np.pi * flips) ** 2, self._normal(len(originals)))

    def features(self, count: int) -> Features:
        """Return features of new articles, which share landmarks as often as real news do."""
        settings = EngineSettings()
        rule = landmark_rule(settings)
        marks = landmark_count(GRAMS, rule)
        made = texts(self._texts, count, marks)
        self._texts += count
        sketches = Sketches(
            made.sketches,
            np.full(count, VALUES),
            np.full(count, GRAMS),
            np.pad(made.landmarks, ((0, 0), (0, rule.most - marks))),
            self._chance.integers(1 << 63, size=count, dtype=np.uint64),
        )
        numbers, places = (
            small_sketches(self._hashes(count * typical), np.arange(1, count + 1) * typical, size)
            for typical, size in (
                (TYPICAL_NUMBERS, settings.sketch.numbers),
                (TYPICAL_PLACES, settings.sketch.places),
            )
        )
        return features_of(sketches, numbers, places)

    def _hashes(self, count: int) -> U32:
        return self._chance.integers(1 << 32, size=count, dtype=np.uint32)

    def _families(self, flip: float, weight: float, share: float) -> Families:
        count = max(1, round(share**2 / weight))
        loads = self._chance.normal(_COMMON_MEAN, _COMMON_DEVIATION, (count, 1))
        centres = loads * self._common + np.sqrt(np.maximum(0, 1 - loads**2)) * self._normal(count)
        return Families(centres, float(np.cos(np.pi * flip)))

    def _normal(self, count: int) -> F64:
        return self._chance.standard_normal((count, BITS))


def fingerprints_of(sums: F64) -> tuple[U64, I64]:
    """Return the fingerprints of bit sums, shape (n,), and the sums as integers, shape (n, 64)."""
    return np.asarray(((sums > 0) * _POWERS).sum(axis=1, dtype=np.uint64)), (sums * (1 << 24)).astype(np.int64)


def features_of(sketches: Sketches, numbers: SmallSketches, places: SmallSketches) -> Features:
    """Return the features of texts that have only sketches: no words and no lines."""
    count = len(sketches.values)
    (cut, bare), lines, none = np.zeros((2, count), np.bool_), EndLines.none(count), NormalTexts.none(count)
    return Features(cut, Terms.none(count), None, sketches, numbers, places, bare, lines, none, None)


def slices(count: int, size: int) -> Iterator[slice]:
    """Yield the slices that divide `count` items into parts of at most that size."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


def _related(centres: F64, correlation: F64 | float, own: F64) -> F64:
    """Return sums; two with the same centre have the given correlation."""
    return np.asarray(np.sqrt(correlation) * centres + np.sqrt(1 - np.asarray(correlation)) * own)
