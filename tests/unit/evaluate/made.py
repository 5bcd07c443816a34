"""Hand-made evaluation results."""

from stream_dedup.evaluate.quality import KindRecall, Score, ScoresAtThreshold, Stability, ThresholdSweep
from stream_dedup.evaluate.results import (
    AlgorithmInfo,
    AlgorithmResult,
    AlgorithmWithoutResult,
    Evaluation,
    KindCount,
    ReplacedCurve,
    ReplacementExperiment,
    Seconds,
    SetSummary,
)


def score(threshold: float, precision: float, recall: float) -> Score:
    """Return a score with counts out of 100 copies."""
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    right = round(100 * recall)
    return Score(
        threshold, right, round(right / precision) - right if precision else 0, 100 - right, precision, recall, f1
    )


def measured(
    name: str, precision: float = 0.9, recall: float = 0.8, *, best: float | None = None, swept: bool = True
) -> AlgorithmResult:
    """Return a result.

    Args:
        name: name of the algorithm.
        precision: at the algorithm's own threshold.
        recall: at the algorithm's own threshold.
        best: precision and recall at the best threshold; if None, the same as at its own.
        swept: whether other thresholds were tried.
    """
    segmenter, feature, measure = (*name.split("/"), "", "")[:3]
    family = segmenter if not swept else measure.partition("-")[0]
    kinds = (KindRecall("错字", 0.05, 10, 9, 0.9), KindRecall("retitle", None, 4, 4, 1.0))
    own = ScoresAtThreshold(score(0.5, precision, recall), 0.7, kinds)
    top = ScoresAtThreshold(score(0.4, best, best), 0.8, kinds) if best is not None else own
    curve = tuple(score(step / 100, 1.0, 1 - step / 100) for step in range(101))
    stability = Stability(0.3, 0.5, 0.2, 1.5, 1.25, 0.6)
    return AlgorithmResult(
        AlgorithmInfo(name, family, segmenter, feature, "a paper, equation 1"),
        own,
        ThresholdSweep(top, curve, stability) if swept else None,
        None if swept else 0.99,
        12.5,
        Seconds(1.0 if swept else None, 0.25, 0.125),
    )


def replaced(*correlations: float) -> ReplacementExperiment:
    """Return an experiment with these correlations for K = 2, 3, ..."""
    shares = (0.05, 0.5, 0.95)
    curves = [ReplacedCurve(k, shares, (0.9, 0.5, 0.1), one) for k, one in enumerate(correlations, 2)]
    return ReplacementExperiment(3, 10_000, tuple(curves))


def evaluation(
    *results: AlgorithmResult,
    experiment: ReplacementExperiment | None = None,
    unmeasured: tuple[AlgorithmWithoutResult, ...] = (),
) -> Evaluation:
    """Return an evaluation with these results."""
    kinds = (KindCount("错字", 0.05, 10), KindCount("retitle", None, 4))
    articles = SetSummary("新闻 <b>", "0123456789abcdef", 1234, 1000, 300, 5, kinds)
    return Evaluation(articles, results, unmeasured, experiment, "stream-dedup evaluate run '<x>.jsonl'", "1.2.3")
