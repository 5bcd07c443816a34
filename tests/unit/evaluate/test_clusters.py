"""Cluster scores count all pairs of articles except the overlapping ones."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.cluster import pair_confusion_matrix

from stream_dedup.evaluate.clusters import score_of_clusters
from stream_dedup.evaluate.components import components

_NONE = np.empty((0, 2), np.int64)
_NUMBERS = st.integers(2, 12).flatmap(
    lambda size: st.tuples(*(st.lists(st.integers(0, 4), min_size=size, max_size=size) for _ in range(2)))
)


def test_components_join_over_others() -> None:
    """Links connect directly and through others; an article without links is alone."""
    numbers = components(5, np.array([[1, 0], [2, 1]]))
    assert len(set(numbers[:3].tolist())) == 1
    assert len(set(numbers.tolist())) == 3


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_components_are_those_of_the_graph(links: list[tuple[int, int]]) -> None:
    """The components are the same as those of networkx."""
    numbers = components(10, np.array(links, np.int64).reshape(-1, 2))
    graph = nx.Graph(links)
    graph.add_nodes_from(range(10))
    expected = {frozenset(part) for part in nx.connected_components(graph)}
    assert {frozenset(np.flatnonzero(numbers == number).tolist()) for number in set(numbers)} == expected


@given(_NUMBERS)
def test_scores_count_pairs(numbers: tuple[list[int], list[int]]) -> None:
    """The counts match scikit-learn's pair confusion matrix, which counts each pair twice."""
    found, true = map(np.array, numbers)
    score = score_of_clusters(found, true, _NONE, 0.5)
    (_, wrong), (missed, right) = pair_confusion_matrix(true, found) // 2
    assert (score.true_positives, score.false_positives, score.false_negatives) == (right, wrong, missed)


@given(_NUMBERS, st.data())
def test_overlapping_pairs_do_not_count(numbers: tuple[list[int], list[int]], data: st.DataObject) -> None:
    """Overlapping pairs are ignored; the rest are counted in plain Python."""
    found, true = map(np.array, numbers)
    pairs = list(combinations(range(len(found)), 2))
    skipped = data.draw(st.sets(st.sampled_from(pairs)))
    score = score_of_clusters(found, true, np.array(sorted(skipped), np.int64).reshape(-1, 2), 0.5)
    counted = [(found[i] == found[k], true[i] == true[k]) for i, k in pairs if (i, k) not in skipped]
    assert score.true_positives == sum(together and same for together, same in counted)
    assert score.false_positives == sum(together and not same for together, same in counted)
    assert score.false_negatives == sum(same and not together for together, same in counted)


def test_precision_recall_and_f1() -> None:
    """With {0, 1, 2} {3} found and {0, 1} {2, 3} true, one pair is right, two are wrong and one is missed."""
    score = score_of_clusters(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), _NONE, 0.5)
    assert (score.precision, score.recall, score.f1) == pytest.approx((1 / 3, 1 / 2, 2 / 5))


def test_nothing_found_is_nothing_wrong() -> None:
    """If no pair is found, precision is 1, as in the scores of similarities."""
    score = score_of_clusters(np.array([0, 1]), np.array([0, 0]), _NONE, 0.5)
    assert (score.precision, score.recall, score.f1) == (1.0, 0.0, 0.0)
