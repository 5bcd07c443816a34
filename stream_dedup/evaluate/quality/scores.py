"""Precision, recall, F1 and ARI from a tally, and how stable they are across thresholds.

Knows counts; knows nothing of algorithms.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

from stream_dedup.arrays import F64, I64
from stream_dedup.evaluate.quality.tally import BINS, Tally, bin_of

_CURVE = 100  # steps of the curve from 0 to 1
_GOOD = 0.95  # an F1 of at least this share of the best one is as good
_SLOPE = BINS // 20  # slopes are taken over a twentieth of the range: wide enough for measures of 32 steps


@dataclass(frozen=True, slots=True)
class Score:
    """What is found at one threshold.

    Attributes:
        threshold: pairs at least this similar are found.
        true_positives: pairs of copies that are found.
        false_positives: other pairs that are found.
        false_negatives: pairs of copies that are not found.
        precision: share of the pairs found that are copies; 1 if none are found.
        recall: share of the pairs of copies that are found; 1 if there are none.
        f1: 2 TP / (2 TP + FP + FN); 0 if all three are 0.
    """

    threshold: float
    true_positives: int
    false_positives: int
    false_negatives: int
    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, threshold: float, right: int, wrong: int, missed: int) -> "Score":
        """Return the score of counts: true positives, false positives and false negatives."""
        precision, recall, f1 = _ratios(*np.array([right, wrong, missed])[:, None])
        return cls(threshold, right, wrong, missed, float(precision[0]), float(recall[0]), float(f1[0]))


@dataclass(frozen=True, slots=True)
class KindRecall:
    """How many pairs of an original and its copy are found.

    Attributes:
        kind: kind of the edit that made the copy.
        strength: strength of the edit; None if it has none.
        pairs: number of pairs of this kind and strength.
        found: number of these at or above the threshold.
        recall: found / pairs.
    """

    kind: str
    strength: float | None
    pairs: int
    found: int
    recall: float


@dataclass(frozen=True, slots=True)
class Stability:
    """How little the choice of the threshold matters.

    The mean slope of recall would say nothing: from threshold 0 to 1, recall always falls by the same amount in total.
    What differs is how evenly it falls, so slopes are squared before the mean is taken.

    Attributes:
        lowest: lowest threshold of the range around the best one in which F1 is at least 0.95 of the best.
        highest: highest threshold of that range.
        width: highest - lowest.
        precision_slope: root mean square, over all intervals of 0.05, of the change in precision per unit of threshold;
            1 for a straight line from 0 to 1.
        recall_slope: the same for recall.
        mean_f1: mean of F1 over all thresholds.
    """

    lowest: float
    highest: float
    width: float
    precision_slope: float
    recall_slope: float
    mean_f1: float


@dataclass(frozen=True, slots=True)
class ScoresAtThreshold:
    """How good the answers at one threshold are.

    Attributes:
        score: score of the pairs that were found.
        ari: adjusted Rand index (Hubert and Arabie 1985) of the clusters: articles that the pairs connect.
        kinds: recall by kind and strength of edit.
    """

    score: Score
    ari: float
    kinds: tuple[KindRecall, ...]


@dataclass(frozen=True, slots=True)
class ThresholdSweep:
    """How good the answers at all thresholds are.

    Attributes:
        best: the answers at the threshold with the largest F1, the highest such threshold if there are several.
        curve: scores at the thresholds 0, 0.01, ... 1.
        stability: how little the choice of the threshold matters.
    """

    best: ScoresAtThreshold
    curve: tuple[Score, ...]
    stability: Stability


@dataclass(frozen=True, slots=True)
class Quality:
    """Everything that is derived from a tally.

    Attributes:
        given: the answers at the given threshold.
        swept: the answers at all thresholds.
    """

    given: ScoresAtThreshold
    swept: ThresholdSweep


@dataclass(frozen=True, slots=True)
class _Curves:
    """Counts and scores at all bin edges, each of shape (BINS + 1,)."""

    true_positives: I64
    false_positives: I64
    false_negatives: I64
    precision: F64
    recall: F64
    f1: F64

    @classmethod
    def of(cls, tally: Tally) -> "_Curves":
        found, true = _at_or_above(tally.pairs), _at_or_above(tally.positives)
        wrong, missed = found - true, true[0] - true
        return cls(true, wrong, missed, *_ratios(true, wrong, missed))

    def at(self, edge: int) -> Score:
        return Score(
            edge / BINS,
            int(self.true_positives[edge]),
            int(self.false_positives[edge]),
            int(self.false_negatives[edge]),
            float(self.precision[edge]),
            float(self.recall[edge]),
            float(self.f1[edge]),
        )


def judge(tally: Tally, threshold: float) -> Quality:
    """Return how good the similarities of a tally are.

    Args:
        tally: the tally of all articles.
        threshold: the given one; it is rounded up to a multiple of 1/16,000.

    Raises:
        ValueError: the threshold is not between 0 and 1, or the tally lacks rows.
    """
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"the threshold is {threshold}; it must be between 0 and 1")
    if tally.rows != tally.truth.size:
        raise ValueError(f"the tally has only {tally.rows} rows of {tally.truth.size}")
    curves = _Curves.of(tally)
    best = BINS - int(np.argmax(curves.f1[::-1]))
    curve = tuple(curves.at(edge) for edge in range(0, BINS + 1, BINS // _CURVE))
    return Quality(
        _at_edge(tally, curves, bin_of(threshold)),
        ThresholdSweep(_at_edge(tally, curves, best), curve, _stability(curves, best)),
    )


def _at_edge(tally: Tally, curves: _Curves, edge: int) -> ScoresAtThreshold:
    ari = adjusted_rand_score(tally.truth.clusters, tally.forest.clusters(edge))
    return ScoresAtThreshold(curves.at(edge), float(ari), _by_kind(tally, edge))


def _by_kind(tally: Tally, edge: int) -> tuple[KindRecall, ...]:
    truth = tally.truth
    pairs = np.bincount(truth.edit_of, minlength=len(truth.edits)).tolist()
    found = np.bincount(truth.edit_of[tally.edited >= edge], minlength=len(truth.edits)).tolist()
    counted = zip(truth.edits, pairs, found, strict=True)
    return tuple(KindRecall(kind, strength, of, hits, hits / of) for (kind, strength), of, hits in counted)


def _stability(curves: _Curves, best: int) -> Stability:
    poor = np.flatnonzero(curves.f1 < _GOOD * curves.f1[best])
    below, above = poor[poor < best], poor[poor > best]
    lowest = (int(below[-1]) + 1 if len(below) else 0) / BINS
    highest = (int(above[0]) - 1 if len(above) else BINS) / BINS
    return Stability(
        lowest=lowest,
        highest=highest,
        width=highest - lowest,
        precision_slope=_slope(curves.precision),
        recall_slope=_slope(curves.recall),
        mean_f1=float(curves.f1.mean()),
    )


def _slope(curve: F64) -> float:
    changes = np.diff(curve[::_SLOPE]) * (BINS / _SLOPE)
    return float(np.sqrt(np.mean(changes**2)))


def _at_or_above(counts: I64) -> I64:
    return np.cumsum(counts[::-1])[::-1]


def _ratios(right: I64, wrong: I64, missed: I64) -> tuple[F64, F64, F64]:
    """Return precision, recall and F1; see `Score` for denominators of 0."""
    return (
        _share(right, right + wrong, 1.0),
        _share(right, right + missed, 1.0),
        _share(2 * right, 2 * right + wrong + missed, 0.0),
    )


def _share(part: I64, whole: I64, of_nothing: float) -> F64:
    return np.where(whole > 0, part / np.maximum(whole, 1), of_nothing)
