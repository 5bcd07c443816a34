"""Quality scores match hand-worked examples and scikit-learn, and can be added up over blocks."""

import pickle
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from math import sqrt

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, f1_score, precision_score, recall_score

from stream_dedup.arrays import F32
from stream_dedup.article import Article
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.evaluate.quality import KindRecall, Quality, Tally, Truth, judge
from stream_dedup.evaluate.quality.tally import BINS
from tests.unit.evaluate.pairs import positives

_SEEDS = st.integers(0, 10_000)


def _truth(clusters: list[int], overlapping: list[tuple[int, int]] | None = None) -> Truth:
    articles = [LabelledArticle(Article(str(i), "文"), str(cluster)) for i, cluster in enumerate(clusters)]
    return Truth.of(LabelledSet("t", articles, np.array(overlapping or [], np.int64).reshape(-1, 2)))


def _similarities(size: int, pairs: dict[tuple[int, int], float]) -> F32:
    """Return similarities that are 0 except for the given pairs and the diagonal."""
    block = np.eye(size, dtype=np.float32)
    for (first, second), value in pairs.items():
        block[first, second] = block[second, first] = value
    return block


def _judged(truth: Truth, block: F32, threshold: float) -> Quality:
    return judge(Tally.empty(truth).add(0, block), threshold)


def _random(seed: int, step: int = BINS) -> tuple[list[int], F32]:
    """Return random clusters of 25 articles, and similarities weakly related to them, in multiples of 1 / step."""
    generator = random.Random(seed)
    clusters = [generator.randrange(8) for _ in range(25)]
    pairs = {
        (i, k): generator.randrange(step) / step * (0.6 + 0.4 * (clusters[i] == clusters[k]))
        for k in range(25)
        for i in range(k)
    }
    return clusters, _similarities(25, {pair: round(value * step) / step for pair, value in pairs.items()})


def _upper(block: F32) -> list[float]:
    return [float(block[i, k]) for i in range(len(block)) for k in range(i + 1, len(block))]


def _components(block: F32, threshold: float) -> list[int]:
    """Return each article's cluster if pairs at or above the threshold are connected, by networkx."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(block)))
    graph.add_edges_from(np.argwhere(block >= np.float32(threshold)).tolist())
    labels = {node: label for label, group in enumerate(nx.connected_components(graph)) for node in group}
    return [labels[node] for node in range(len(block))]


def test_scores_by_hand() -> None:
    """Copies {0, 1, 2} and {3, 4}: 3 of 4 pairs are at 0.5 or above, and one false pair. P = 3/4, R = 3/4, F1 = 3/4."""
    block = _similarities(5, {(0, 1): 0.9, (0, 2): 0.5, (1, 2): 0.4, (3, 4): 0.8, (2, 3): 0.6})
    quality = _judged(_truth([0, 0, 0, 1, 1]), block, 0.5)
    given = quality.given.score
    assert (given.true_positives, given.false_positives, given.false_negatives) == (3, 1, 1)
    assert (given.precision, given.recall, given.f1) == (0.75, 0.75, 0.75)
    # At 0.4 all are found and one too many: F1 = 8/9, the best.
    assert quality.swept.best.score.threshold == 0.4
    assert quality.swept.best.score.f1 == pytest.approx(8 / 9)


def test_ari_by_hand() -> None:
    """Scikit-learn's worked example: the ARI of [0, 0, 1, 1] and [0, 0, 1, 2] is 0.57."""
    quality = _judged(_truth([0, 0, 1, 1]), _similarities(4, {(0, 1): 0.9, (2, 3): 0.3}), 0.5)
    assert quality.given.ari == pytest.approx(4 / 7)
    assert quality.swept.best.ari == 1


def test_threshold_counts_itself() -> None:
    """A pair exactly at the threshold is found, despite single precision; one just below it is not."""
    for value in (0.1, 0.3, 0.7, 0.9, 1 - 3 / 64, 1 - 3 / 32, 77 / 128):
        quality = _judged(_truth([0, 0]), _similarities(2, {(0, 1): value}), value)
        assert quality.given.score.recall == 1
        assert _judged(_truth([0, 0]), _similarities(2, {(0, 1): value - 0.001}), value).given.score.recall == 0


@given(_SEEDS, st.sampled_from([10, 64, 1000]), st.data())
def test_scores_are_those_of_scikit_learn(seed: int, step: int, data: st.DataObject) -> None:
    """Precision, recall and F1 over all pairs, and ARI over networkx's components, match scikit-learn everywhere."""
    clusters, block = _random(seed, step)
    threshold = data.draw(st.integers(0, step)) / step
    quality = _judged(_truth(clusters), block, threshold)
    true = [clusters[i] == clusters[k] for i in range(25) for k in range(i + 1, 25)]
    found = [value >= np.float32(threshold) for value in _upper(block)]
    assert quality.given.score.precision == pytest.approx(precision_score(true, found, zero_division=1.0))
    assert quality.given.score.recall == pytest.approx(recall_score(true, found))
    assert quality.given.score.f1 == pytest.approx(f1_score(true, found, zero_division=0.0))
    assert quality.given.ari == pytest.approx(adjusted_rand_score(clusters, _components(block, threshold)))


@settings(max_examples=12)  # scikit-learn is slow, and runs once per threshold
@given(_SEEDS)
def test_best_threshold_has_the_largest_f1(seed: int) -> None:
    """No occurring similarity gives a larger F1 as a threshold, by scikit-learn; of equal ones the highest is taken."""
    clusters, block = _random(seed, 20)
    true = [clusters[i] == clusters[k] for i in range(25) for k in range(i + 1, 25)]
    values = _upper(block)
    scores = {value: f1_score(true, [other >= value for other in values]) for value in set(values)}
    best = _judged(_truth(clusters), block, 0.5).swept.best.score
    assert best.f1 == pytest.approx(max(scores.values()))
    assert best.threshold == pytest.approx(max(value for value, f1 in scores.items() if f1 == max(scores.values())))


@given(_SEEDS, st.lists(st.integers(1, 24), unique=True))
def test_blocks_in_any_order_add_up(seed: int, cuts: list[int]) -> None:
    """Merging blocks counted separately by workers, in any order, gives the same result as counting all at once."""
    clusters, block = _random(seed, 50)
    truth = _truth(clusters, [(0, 9), (3, 4)])
    edges = [0, *sorted(cuts), 25]
    parts = [Tally.empty(truth).add(a, block[a:b]) for a, b in pairwise(edges)]
    random.Random(seed).shuffle(parts)
    assert judge(reduce(Tally.merge, parts), 0.5) == _judged(truth, block, 0.5)


@settings(max_examples=20)  # likewise
@given(_SEEDS)
def test_forest_connects_what_the_pairs_connect(seed: int) -> None:
    """A forest of fewer than n edges has the same components as all pairs, at every threshold."""
    clusters, block = _random(seed, 10)
    tally = Tally.empty(_truth(clusters))
    for start in range(0, 25, 5):
        tally = tally.add(start, block[start : start + 5])
        assert len(tally.forest.bins) < 25
    for step in range(11):
        expected = _components(block, step / 10)
        assert adjusted_rand_score(tally.forest.clusters(step * BINS // 10), expected) == 1


def test_overlapping_pairs_count_neither_way() -> None:
    """They count neither as found nor as missed or wrong, and connect no clusters."""
    block = _similarities(4, {(0, 1): 0.9, (1, 2): 0.9, (2, 3): 0.9})
    without = _judged(_truth([0, 0, 1, 1]), block, 0.5)
    assert (without.given.score.false_positives, without.given.ari < 1) == (1, True)
    excused = _judged(_truth([0, 0, 1, 1], [(1, 2)]), block, 0.5)
    assert (excused.given.score.true_positives, excused.given.score.false_positives, excused.given.ari) == (2, 0, 1)
    halved = _judged(_truth([0, 0, 1, 1], [(0, 1)]), block, 0.5).given.score
    assert (halved.true_positives, halved.false_positives, halved.false_negatives) == (1, 1, 0)


def test_recall_by_kind_is_of_originals_and_their_copies() -> None:
    """Each pair of an original and its copy counts for the edit that made the copy; pairs of copies do not count."""
    original = LabelledArticle(Article("a", "文"), "a")
    copies = [
        LabelledArticle(Article("b", "文"), "a", "a", "drop", 0.1),
        LabelledArticle(Article("c", "文"), "a", "a", "drop", 0.3),
        LabelledArticle(Article("d", "文"), "a", "a", "punct"),
        LabelledArticle(Article("e", "文"), "a", "a", "drop", 0.1),
    ]
    labelled = LabelledSet("t", [copies[0], original, *copies[1:]], np.empty((0, 2), np.int64))
    block = _similarities(5, {(0, 1): 0.9, (1, 2): 0.2, (1, 3): 0.7, (1, 4): 0.4, (0, 4): 0.1})
    quality = _judged(Truth.of(labelled), block, 0.5)
    assert quality.given.kinds == (
        KindRecall("drop", 0.1, pairs=2, found=1, recall=0.5),
        KindRecall("drop", 0.3, pairs=1, found=0, recall=0.0),
        KindRecall("punct", None, pairs=1, found=1, recall=1.0),
    )


def _labelled_at_random(generator: random.Random, size: int) -> LabelledSet:
    """Return articles in few clusters of two scopes, some made from others by an edit, and pairs that overlap.

    Some originals are in another cluster or in none, some copies come before their originals, and some articles are
    each other's originals.
    """
    edits = (("drop", 0.1), ("drop", 0.3), ("punct", None), ("", None))
    articles = []
    for number in range(size):
        article = Article(f"{number // 2}", "文", scope="甲乙"[number % 2])
        original = str(generator.randrange(size)) if generator.random() < 0.8 else None
        kind, strength = generator.choice(edits) if original else ("", None)
        articles.append(LabelledArticle(article, str(generator.randrange(3)), original, kind, strength))
    pairs = sorted(tuple(sorted(generator.sample(range(size), 2))) for _ in range(size))
    return LabelledSet("random", articles, np.array(pairs))


@given(_SEEDS, st.integers(2, 16), st.integers(0, 10))
def test_counts_are_those_of_the_pairs_one_by_one(seed: int, size: int, tenths: int) -> None:
    """True and false positives, misses and recall by edit are what a loop over all pairs counts."""
    generator = random.Random(seed)
    labelled = _labelled_at_random(generator, size)
    block = _similarities(size, {(i, k): generator.randrange(11) / 10 for k in range(size) for i in range(k)})
    skipped, copies = labelled.overlapping.tolist(), positives(labelled)
    counts: Counter[tuple[bool, bool]] = Counter()
    made: Counter[tuple[str, float | None]] = Counter()
    hits: Counter[tuple[str, float | None]] = Counter()
    for i in range(size):
        for k in range(i + 1, size):
            one, other = labelled.articles[i], labelled.articles[k]
            if [i, k] in skipped or one.article.scope != other.article.scope:
                continue
            found, same = bool(block[i, k] >= np.float32(tenths / 10)), [i, k] in copies
            counts[found, same] += 1
            ways = (
                copy.edit for copy, original in ((one, other), (other, one)) if copy.original == original.article.id
            )
            edit = next((way for way in ways if way is not None), None)
            if same and edit is not None:
                made[edit] += 1
                hits[edit] += found
    start = generator.randrange(size)
    parts = [Tally.empty(Truth.of(labelled)).add(a, block[a:b]) for a, b in ((start, size), (0, start))]
    result = judge(Tally.merge(*parts), tenths / 10).given
    score = result.score
    right, wrong, missed = (counts[answer] for answer in ((True, True), (True, False), (False, True)))
    assert (score.true_positives, score.false_positives, score.false_negatives) == (right, wrong, missed)
    assert {(one.kind, one.strength): (one.pairs, one.found) for one in result.kinds} == {
        edit: (made[edit], hits[edit]) for edit in made
    }


def test_a_large_cluster_takes_no_memory_for_its_pairs() -> None:
    """Of 1,000 articles in one cluster, neither the truth nor a tally holds anything for each of 499,500 pairs."""
    articles = [LabelledArticle(Article(str(number), "文"), "one") for number in range(1_000)]
    labelled = LabelledSet("large", articles, np.empty((0, 2), np.int64))
    tracemalloc.start()
    try:
        truth = Truth.of(labelled)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    tally = Tally.empty(truth).add(0, np.ones((1, 1_000), np.float32))
    assert len(pickle.dumps((truth, tally))) < 500_000


def _spread(values: list[float]) -> tuple[Truth, F32]:
    """Return an article with copies at these similarities, excluding all pairs of copies."""
    size = len(values) + 1
    others = [(i, k) for k in range(1, size) for i in range(1, k)]
    return _truth([0] * size, others), _similarities(size, {(0, i + 1): value for i, value in enumerate(values)})


def test_stability_of_an_even_curve_and_of_a_step() -> None:
    """Recall that falls evenly has a slope of 1; falling from 1 to 0 within a twentieth gives sqrt(20)."""
    even = _judged(*_spread([i / 40 + 1 / 80 for i in range(40)]), threshold=0.5).swept.stability
    assert even.recall_slope == pytest.approx(1, abs=0.01)
    step = _judged(*_spread([0.52] * 40), threshold=0.5).swept.stability
    assert step.recall_slope == pytest.approx(sqrt(20))
    assert even.precision_slope == step.precision_slope == 0


def test_stable_range_is_that_of_nearly_the_best_f1() -> None:
    """With copies at 0.8 and all others at 0.3, F1 is 1 from just above 0.3 up to 0.8, and lower outside."""
    block = _similarities(6, {(0, 1): 0.8, (2, 3): 0.8, (4, 5): 0.8, (1, 2): 0.3, (3, 4): 0.3})
    stability = _judged(_truth([0, 0, 1, 1, 2, 2]), block, 0.5).swept.stability
    assert stability.lowest == pytest.approx(0.3, abs=2 / BINS)
    assert stability.highest == pytest.approx(0.8)
    assert stability.width == pytest.approx(0.5, abs=2 / BINS)
    # F1 is 6/18 at 0 only, 6/8 up to 0.3, 1 up to 0.8, and 0 above.
    assert stability.mean_f1 == pytest.approx(0.3 * 6 / 8 + 0.5, abs=0.001)


def test_nearly_the_best_is_a_twentieth_less() -> None:
    """Of ten pairs of copies, all found, one wrong pair leaves an F1 of 20/21 > 0.95, and two 20/22 < 0.95."""
    copies = {(place, place + 1): 0.8 for place in range(0, 20, 2)}
    block = _similarities(20, {**copies, (1, 2): 0.5, (3, 4): 0.3})
    stability = _judged(_truth([place // 2 for place in range(20)]), block, 0.5).swept.stability
    assert (stability.lowest, stability.highest) == pytest.approx((0.3, 0.8), abs=2 / BINS)


def test_curve_goes_from_0_to_1_in_hundredths() -> None:
    """The curve has 101 scores; at 0 every pair is found."""
    curve = _judged(_truth([0, 0, 1]), _similarities(3, {(0, 1): 0.5}), 0.5).swept.curve
    assert [score.threshold for score in curve] == pytest.approx([i / 100 for i in range(101)])
    assert (curve[0].true_positives, curve[0].false_positives) == (1, 2)
    assert [score.recall for score in curve] == [1.0] * 51 + [0.0] * 50


def test_nothing_found_is_precise() -> None:
    """If nothing is found, precision is 1 and recall and F1 are 0; if there are no copies, recall is 1."""
    given = _judged(_truth([0, 0]), _similarities(2, {}), 0.5).given.score
    assert (given.precision, given.recall, given.f1) == (1, 0, 0)
    given = _judged(_truth([0, 1]), _similarities(2, {}), 0.5).given.score
    assert (given.precision, given.recall, given.f1) == (1, 1, 0)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_similarities_that_are_none_are_refused(wrong: float) -> None:
    """A similarity below 0, above 1 or NaN is reported as a fault of the algorithm."""
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        Tally.empty(_truth([0, 0])).add(0, _similarities(2, {(0, 1): wrong}))


def _half(truth: Truth) -> Tally:
    return Tally.empty(truth).add(0, _similarities(2, {})[:1])


@pytest.mark.parametrize(
    ("make", "threshold", "message"),
    [
        (
            lambda truth: Tally.empty(truth).add(0, _similarities(2, {})),
            1.5,
            "the threshold is 1.5; it must be between 0 and 1",
        ),
        (_half, 0.5, "the tally has only 1 rows of 2"),
    ],
)
def test_what_cannot_be_judged_is_said(make: Callable[[Truth], Tally], threshold: float, message: str) -> None:
    """A threshold out of range and a tally with missing rows are refused."""
    with pytest.raises(ValueError, match=message):
        judge(make(_truth([0, 0])), threshold)
