"""Which algorithms a plot or a wide table shows: more than a few cannot be told apart.

Knows families and scores; knows nothing of plots.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_dedup.evaluate.quality import Score
from stream_dedup.evaluate.results import ENGINE, AlgorithmResult, Evaluation

MOST = 8  # lines in one plot


@dataclass(frozen=True, slots=True)
class Line:
    """The scores of an algorithm over thresholds."""

    name: str
    scores: Sequence[Score]


def lines_by_family(evaluation: Evaluation) -> dict[str, list[Line]]:
    """Return the lines of the best few of each family; that of the engine joins its runs at other thresholds."""
    families: dict[str, list[Line]] = {}
    for measured in evaluation.measured:
        if measured.swept is not None:
            line = Line(measured.named.name, measured.swept.curve)
            families.setdefault(measured.named.family, []).append(line)
    engine = _line_of_engine(evaluation)
    if engine is not None:
        families[ENGINE] = [engine]
    return {name: families[name][:MOST] for name in sorted(families)}


def _line_of_engine(evaluation: Evaluation) -> Line | None:
    """Return the line through the runs of the engine that differ only in their threshold."""
    runs = [one for one in evaluation.measured if one.named.name.startswith(f"{ENGINE}/threshold-")]
    scores = [one.given.score for one in runs]
    if len(scores) < 2:  # noqa: PLR2004  # a line has two ends
        return None
    return Line(ENGINE, sorted(scores, key=lambda score: score.threshold))


def best_of_families(evaluation: Evaluation) -> list[AlgorithmResult]:
    """Return the best algorithm of each family, the best family first; for the engine, the user's settings."""
    best: dict[str, AlgorithmResult] = {}
    default = evaluation.result(f"{ENGINE}/default")
    if default is not None:
        best[ENGINE] = default
    for measured in evaluation.measured:
        best.setdefault(measured.named.family, measured)
    return sorted(best.values(), key=lambda one: -one.best.score.f1)[:MOST]
