"""Patterns select what is run, and errors for unknown names suggest similar ones."""

import pytest

from stream_dedup.evaluate.engine import configurations
from stream_dedup.evaluate.findings import algorithms_for_findings
from stream_dedup.evaluate.selection import WantedPatterns, selected


def test_all_of_the_engine_by_default() -> None:
    """The default is the documented selection with every configuration of the engine."""
    selection = selected(WantedPatterns())
    assert set(selection.configurations) == set(configurations())
    assert {*algorithms_for_findings()} <= set(selection.algorithms)
    assert len(selection.algorithms) >= 40


def test_patterns_of_names() -> None:
    """A pattern matches algorithms, configurations, or both."""
    assert not selected(WantedPatterns(["engine/*"])).algorithms
    assert set(selected(WantedPatterns(["engine/default"])).configurations) == {"engine/default"}
    both = selected(WantedPatterns(["engine/jieba", "rjieba/tfidf/cosine"]))
    assert (list(both.configurations), list(both.algorithms)) == (["engine/jieba"], ["rjieba/tfidf/cosine"])


def test_patterns_of_parts() -> None:
    """Segmenters, features and similarities restrict each other; the engine has none of these."""
    selection = selected(WantedPatterns(segmenters=["rjieba", "ik-*"], features=["none"], similarities=["jaccard"]))
    assert set(selection.algorithms) == {f"{name}/none/jaccard" for name in ("rjieba", "ik-fine", "ik-smart")}
    assert not selection.configurations


def test_findings_add_what_they_take() -> None:
    """The algorithms that findings need are run in addition to the selected ones."""
    selection = selected(WantedPatterns(["rjieba/none/jaccard"], findings=True))
    assert set(selection.algorithms) == {"rjieba/none/jaccard", *algorithms_for_findings()}


def test_unknown_names_are_told_with_close_ones() -> None:
    """A misspelt name is refused; the message suggests the right one."""
    with pytest.raises(ValueError, match="'engine/defalt' matches no algorithm; closest: engine/default"):
        selected(WantedPatterns(["engine/defalt"]))
    with pytest.raises(ValueError, match="jieba-precise"):
        selected(WantedPatterns(segmenters=["jieba-precize"]))


def test_slow_ones_are_known() -> None:
    """An algorithm that uses a slow segmenter is slow."""
    assert selected(WantedPatterns(["thulac/none/jaccard", "rjieba/none/jaccard"])).slow() == ["thulac/none/jaccard"]


def test_k_grams_of_the_study() -> None:
    """The experiment uses the K-gram measure for K from 2 to 7."""
    measures = selected(WantedPatterns(["engine/default"])).measures
    assert {k: one.name for k, one in measures.items()} == {k: f"chars/{k}-grams/kgram-improved" for k in range(2, 8)}
