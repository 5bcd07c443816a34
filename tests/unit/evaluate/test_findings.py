"""Each finding states plainly whether it holds, and shows the numbers this is based on."""

import pytest

from stream_dedup.evaluate.findings import COMPARISONS, Verdict, algorithms_for_findings, findings_of
from stream_dedup.evaluate.registry import algorithms
from stream_dedup.evaluate.segmenters import segmenters
from tests.unit.evaluate.made import evaluation, measured, replaced

_FULL, _PRECISE = COMPARISONS[0].better, COMPARISONS[0].worse


@pytest.mark.parametrize(
    ("full", "precise", "verdict"),
    [
        ((0.9, 0.6), (0.8, 0.5), Verdict.HOLDS),
        ((0.9, 0.6), (0.9, 0.5), Verdict.HOLDS),  # equal in one, higher in the others
        ((0.9, 0.5), (0.8, 0.6), Verdict.IN_PART),
        ((0.8, 0.5), (0.9, 0.6), Verdict.NOT),
        ((0.9, 0.6), (0.9, 0.6), Verdict.NOT),  # no difference, no finding
    ],
)
def test_above_in_all_in_some_or_in_nothing(
    full: tuple[float, float], precise: tuple[float, float], verdict: Verdict
) -> None:
    """A finding holds if precision, recall and best F1 are nowhere lower and at least one of them is higher."""
    finding = findings_of(evaluation(measured(_FULL, *full), measured(_PRECISE, *precise)))[0]
    assert finding.verdict is verdict
    assert f"precision {full[0]:.4f}, recall {full[1]:.4f}" in finding.numbers[0]


def test_best_threshold_counts_as_well() -> None:
    """Higher at the study's threshold but lower at the best one means: holds in part."""
    better = measured(_FULL, 0.9, 0.6, best=0.7)
    assert findings_of(evaluation(better, measured(_PRECISE, 0.8, 0.5, best=0.9)))[0].verdict is Verdict.IN_PART


def test_numbers_are_those_of_both_algorithms() -> None:
    """The one that the study found better comes first; each has its own threshold, and the best one."""
    better, worse = measured(_FULL, 0.9, 0.6, best=0.7), measured(_PRECISE, 0.8, 0.4)
    assert findings_of(evaluation(better, worse))[0].numbers == (
        f"{_FULL}: precision 0.9000, recall 0.6000, F1 0.7200 at 0.500; best F1 0.7000 at 0.400",
        f"{_PRECISE}: precision 0.8000, recall 0.4000, F1 0.5333 at 0.500; best F1 0.5333 at 0.500",
    )


def test_recall_alone() -> None:
    """For the shorter-article variant the study claims only higher recall, so precision does not count."""
    pair = measured("jieba-precise/none/jaccard-shorter", 0.5, 0.9), measured("jieba-precise/none/jaccard", 1.0, 0.7)
    assert findings_of(evaluation(*pair))[2].verdict is Verdict.HOLDS


def test_not_checked_without_results() -> None:
    """A finding whose algorithms were not run is not checked, and says what is missing."""
    findings = findings_of(evaluation(measured(_FULL)))
    assert {finding.verdict for finding in findings} == {Verdict.UNCHECKED}
    assert findings[0].numbers == (f"no result for: {_PRECISE}",)


@pytest.mark.parametrize(
    ("correlations", "verdict"),
    [
        ((0.5, 0.6, 0.7, 0.8, 0.9, 0.95), Verdict.HOLDS),
        ((0.5, 0.6, 0.7, 0.8, 0.96, 0.95), Verdict.HOLDS),
        ((0.5, 0.6, 0.7, 0.96, 0.9, 0.95), Verdict.NOT),
        ((0.99, 0.6, 0.7, 0.8, 0.9, 0.95), Verdict.NOT),
    ],
)
def test_peak_of_the_correlation(correlations: tuple[float, ...], verdict: Verdict) -> None:
    """The finding holds if the correlation peaks near K = 7."""
    finding = findings_of(evaluation(experiment=replaced(*correlations)))[-1]
    assert finding.verdict is verdict
    assert f"K = 7: {correlations[5]:.4f}" in finding.numbers[0]
    assert finding.numbers[0].endswith(f"the highest is at K = {correlations.index(max(correlations)) + 2}")


def test_findings_are_checked_with_what_there_is() -> None:
    """Every algorithm that a finding refers to exists."""
    assert set(algorithms_for_findings()) <= set(algorithms(segmenters()))
