"""The findings of the studies, checked against the results of a run.

Knows what the studies say and which algorithms test it; knows nothing of how results are computed.

The studies are the comparison for public-opinion data (2017, doi 10.15888/j.cnki.csa.005745), the K-gram study (2017,
doi 10.15888/j.cnki.csa.006123) and the improved SimHash (2020, doi 10.12677/csa.2020.102038).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from stream_dedup.evaluate.results import AlgorithmResult, Evaluation, ReplacementExperiment
from stream_dedup.evaluate.studies import GRAM_LENGTHS


class Verdict(StrEnum):
    """Whether a finding holds."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    NOT = "does not hold"
    UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """A study's finding, checked on the articles of a run.

    Attributes:
        claim: what the study found, with its numbers.
        verdict: whether it holds here.
        numbers: the numbers behind the verdict, a line each.
    """

    claim: str
    verdict: Verdict
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A finding of the kind "this algorithm is better than that one".

    Attributes:
        claim: what the study found, with its numbers.
        better: name of the algorithm that the study found better.
        worse: name of the other.
        recall_alone: whether the claim is about recall only, not about precision and F1 as well.
    """

    claim: str
    better: str
    worse: str
    recall_alone: bool = False


COMPARISONS = (
    Comparison(
        "2017: with plain SimHash, jieba's full mode beats its precise mode (precision .9081 against .8794, recall "
        ".5583 against .5283)",
        "jieba-full/none/simhash32-hamming",
        "jieba-precise/none/simhash32-hamming",
    ),
    Comparison(
        "2017: with SimHash, words without weights beat TF-IDF (precision .9677 against .9302, recall .60 against "
        ".40, there with words from IK smart)",
        "jieba-precise/none/simhash32-hamming",
        "jieba-precise/tfidf/simhash32-hamming",
    ),
    Comparison(
        "2017: Jaccard on the shorter article has a higher recall than Jaccard (.9046 against .7385)",
        "jieba-precise/none/jaccard-shorter",
        "jieba-precise/none/jaccard",
        recall_alone=True,
    ),
    Comparison(
        "2017: SimHash compared by cosine beats SimHash compared by Hamming distance (precision .9877 against "
        ".9081, recall .6749 against .5583)",
        "jieba-precise/none/simhash32-cosine",
        "jieba-precise/none/simhash32-hamming",
    ),
    Comparison(
        "2020: the improved weights beat plain SimHash (precision about .953, recall about .940 on topics)",
        "jieba-precise/improved/simhash64-hamming",
        "jieba-precise/none/simhash64-hamming",
    ),
)


def algorithms_for_findings() -> list[str]:
    """Return the names of the algorithms needed to check the findings."""
    return sorted({name for comparison in COMPARISONS for name in (comparison.better, comparison.worse)})


def findings_of(evaluation: Evaluation) -> list[Finding]:
    """Return all findings with their verdicts for a run."""
    return [*(_compared(comparison, evaluation) for comparison in COMPARISONS), _peak(evaluation.replaced)]


def _compared(comparison: Comparison, evaluation: Evaluation) -> Finding:
    pair = [evaluation.result(name) for name in (comparison.better, comparison.worse)]
    better, worse = pair
    if better is None or worse is None:
        names = zip((comparison.better, comparison.worse), pair, strict=True)
        missing = ", ".join(name for name, result in names if result is None)
        return Finding(comparison.claim, Verdict.UNCHECKED, (f"no result for: {missing}",))
    differences = _differences(better, worse, recall_alone=comparison.recall_alone)
    return Finding(comparison.claim, _verdict(differences), (_numbers(better), _numbers(worse)))


def _differences(better: AlgorithmResult, worse: AlgorithmResult, *, recall_alone: bool) -> list[float]:
    """Return by how much one beats the other: precision and recall at their own thresholds, F1 at the best."""
    one, other = better.given.score, worse.given.score
    recall = one.recall - other.recall
    if recall_alone:
        return [recall]
    return [one.precision - other.precision, recall, better.best.score.f1 - worse.best.score.f1]


def _verdict(differences: Sequence[float]) -> Verdict:
    """Return whether a finding holds: better in something and worse in nothing."""
    if not any(difference > 0 for difference in differences):
        return Verdict.NOT
    return Verdict.IN_PART if any(difference < 0 for difference in differences) else Verdict.HOLDS


def _numbers(measured: AlgorithmResult) -> str:
    own, best = measured.given.score, measured.best.score
    return (
        f"{measured.named.name}: precision {own.precision:.4f}, recall {own.recall:.4f}, F1 {own.f1:.4f} at "
        f"{own.threshold:.3f}; best F1 {best.f1:.4f} at {best.threshold:.3f}"
    )


def _peak(replaced: ReplacementExperiment | None) -> Finding:
    claim = "2017, K-grams: the correlation of similarity with the share kept peaks near K = 7 (K from 2 to 7)"
    if replaced is None:
        return Finding(claim, Verdict.UNCHECKED, ("the experiment on replaced characters was not run",))
    peak = max(replaced.curves, key=lambda curve: curve.correlation)
    listed = ", ".join(f"K = {curve.k}: {curve.correlation:.4f}" for curve in replaced.curves)
    # The study found the peak at its largest K.
    verdict = Verdict.HOLDS if peak.k >= GRAM_LENGTHS[-1] - 1 else Verdict.NOT
    return Finding(claim, verdict, (f"{listed}; the highest is at K = {peak.k}",))
