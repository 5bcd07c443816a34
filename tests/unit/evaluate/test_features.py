"""Weights match scikit-learn's TF-IDF, networkx's PageRank, the 2020 paper's formula and the engine itself."""

from collections import Counter
from functools import cache
from math import log

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from stream_dedup.article import Article
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.catalogue import features
from stream_dedup.evaluate.features.feature import Texts
from stream_dedup.evaluate.features.sequences import words_in_order
from stream_dedup.evaluate.features.textrank import DAMPING, TOLERANCE, WINDOW
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.fingerprint.simhash import simhash
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import DocumentCounts, document_delta
from stream_dedup.text.lexicon import read_words, shipped_list
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.segment import segmenter
from stream_dedup.text.texts import Texts as NormalTexts
from stream_dedup.text.weights import PAPER_2020

_NORMAL = Normaliser()
_WORDS = ["甲", "乙", "丙", "丁", "戊", "己"]
# Each round reduces the error to 0.85 of it; all remaining rounds add up to 0.85 / 0.15 of the last change.
_RANK_ERROR = TOLERANCE * DAMPING / (1 - DAMPING) * len(_WORDS)
_TEXTS = st.lists(st.lists(st.sampled_from(_WORDS), max_size=15), min_size=1, max_size=5)
_NEWS = [
    ["经济", "发展", "的", "综上所述", "企业家", "经济"],
    ["天气预报", "说", "的", "发展", "天气"],
    ["经济", "前景", "看好", "但是", "投资", "企业家", "投资"],
]
_TITLES = ["经济发展", "", "看好投资"]


def _extract(name: str, words: list[list[str]], titles: list[str] | None = None) -> Bags:
    pairs = zip(words, titles or [""] * len(words), strict=True)
    articles = [Article(str(i), "".join(text) or "。", title=title) for i, (text, title) in enumerate(pairs)]
    return features()[name].extract(Texts(articles, words))


def _weights(bags: Bags, text: int) -> dict[int, float]:
    """Return the weights of a text by the hash of the word."""
    row = bags.matrix[[text]].tocoo()
    return dict(zip(bags.keys[row.col].tolist(), row.data.tolist(), strict=True))


def _by_hash(weights: dict[str, float]) -> dict[int, float]:
    return dict(zip(hash_words(list(weights)).tolist(), weights.values(), strict=True))


@given(_TEXTS)
def test_without_weights_every_distinct_word_weighs_1(texts: list[list[str]]) -> None:
    """Each distinct word of a text has the weight 1, however often it occurs."""
    bags = _extract("none", texts)
    for i, words in enumerate(texts):
        assert _weights(bags, i) == _by_hash(dict.fromkeys(words, 1.0))


def test_bags_leave_the_texts_alone() -> None:
    """Counting words, some of them repeated in a text, modifies neither the words nor the start of each text."""
    words = words_in_order([["甲", "乙", "甲"], ["乙"]])
    words.counted()
    assert words.offsets.tolist() == [0, 3, 4]
    assert words.items.tolist() == hash_words(["甲", "乙", "甲", "乙"]).tolist()


@given(_TEXTS)
def test_frequency_is_relative(texts: list[list[str]]) -> None:
    """A word's weight is its number of occurrences divided by the number of words in the text."""
    bags = _extract("frequency", texts)
    for i, words in enumerate(texts):
        expected = {word: count / len(words) for word, count in Counter(words).items()}
        assert _weights(bags, i) == pytest.approx(_by_hash(expected))


@given(_TEXTS.filter(any))
def test_tf_idf_is_that_of_scikit_learn_but_for_its_smoothing(texts: list[list[str]]) -> None:
    """Tf x log(N / (df + 1)); scikit-learn's idf is log((N + 1) / (df + 1)) + 1, so the test adds the difference."""
    vectorizer = CountVectorizer(analyzer=list)
    counts = vectorizer.fit_transform(texts)
    sklearn_idf = TfidfTransformer(norm=None, smooth_idf=True).fit(counts).idf_
    idf = sklearn_idf - 1 + log(len(texts) / (len(texts) + 1))
    columns = vectorizer.vocabulary_
    bags = _extract("tfidf", texts)
    for i, words in enumerate(texts):
        expected = {word: count / len(words) * idf[columns[word]] for word, count in Counter(words).items()}
        assert _weights(bags, i) == pytest.approx(_by_hash(expected), abs=1e-12)


def _graph(words: list[str]) -> "nx.Graph[str]":
    """Return a graph of the words; different words within one window of each other are connected."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(words)
    for i, word in enumerate(words):
        graph.add_edges_from((word, other) for other in words[i + 1 : i + WINDOW] if other != word)
    return graph


@given(_TEXTS)
def test_text_rank_is_page_rank_of_the_graph_of_words(texts: list[list[str]]) -> None:
    """Ranks are networkx's times the number of words: PageRank ranks add up to 1, TextRank starts each word at 1."""
    bags = _extract("textrank", texts)
    for i, words in enumerate(texts):
        graph = _graph(words)
        if len(graph) > 1:  # a single word has no neighbours: see below
            ranks = nx.pagerank(graph, alpha=DAMPING, tol=1e-10, max_iter=1000)
            expected = {word: rank * len(graph) for word, rank in ranks.items()}
            assert _weights(bags, i) == pytest.approx(_by_hash(expected), abs=_RANK_ERROR)


def test_text_rank_of_a_word_without_neighbours_is_1_less_d() -> None:
    """A word that no other points to has WS = 1 - d = 0.15."""
    assert _weights(_extract("textrank", [["甲", "甲", "甲"]]), 0) == pytest.approx(_by_hash({"甲": 0.15}))


def test_text_rank_of_a_chain_by_hand() -> None:
    """With 乙 and 丙 at either side of 甲: WS(甲) = .15 + .85 x 2 WS(乙), WS(乙) = .15 + .85 WS(甲) / 2."""
    words = ["乙", "甲", "甲", "甲", "甲", "丙"]
    centre = (0.15 + 0.85 * 2 * 0.15) / (1 - 0.85**2)
    leaf = 0.15 + 0.85 * centre / 2
    expected = _by_hash({"甲": centre, "乙": leaf, "丙": leaf})
    assert _weights(_extract("textrank", [words]), 0) == pytest.approx(expected, abs=_RANK_ERROR)


@cache
def _stop_words() -> set[str]:
    return set(read_words(shipped_list("stop_words.txt")))


_POS = {
    "经济": 3,
    "发展": 2,
    "企业家": 3,
    "综上所述": 1,
    "天气": 3,
    "天气预报": 3,
    "说": 2,
    "但是": 1,
    "前景": 3,
    "看好": 2,
    "投资": 2,
}  # jieba's dict.txt


def _paper_weight(text: int, word: str, factors: set[str]) -> float:
    """Return a word's weight by the formula of the 2020 paper with only some of its factors."""
    kept = [[word for word in words if word not in _stop_words()] for words in _NEWS]
    tf = kept[text].count(word) / len(kept[text])
    idf = log(len(kept) / sum(word in words for words in kept) + 0.01) if "idf" in factors else 1.0
    lengths = [len(other) for other in kept[text]]
    values = {
        "pos": float(_POS.get(word, 1)),
        "length": (len(word) - min(lengths)) / (max(lengths) - min(lengths)),
        "marker": 5.0 * (word in {"综上所述", "但是"}),
        "title": 5.0 * (word in _TITLES[text]),
    }
    return tf * idf * (1 + sum(value for name, value in values.items() if name in factors))


_BONUSES = ("pos", "length", "marker", "title")
_ALL = {*_BONUSES, "idf"}
_VARIANTS = {
    "improved": _ALL,
    "improved-plain": {"idf"},
    **{f"improved-no-{factor}": _ALL - {factor} for factor in (*_BONUSES, "idf")},
    **{f"improved-only-{factor}": {factor, "idf"} for factor in _BONUSES},
}


@pytest.mark.parametrize(("name", "factors"), _VARIANTS.items())
def test_improved_weights_are_those_of_the_paper(name: str, factors: set[str]) -> None:
    """Each has just its factors of tf x log(N / df + 0.01) x (1 + pos + len + marker + title), no stop words."""
    bags = _extract(name, _NEWS, _TITLES)
    for i, words in enumerate(_NEWS):
        expected = {word: _paper_weight(i, word, factors) for word in set(words) - _stop_words()}
        assert _weights(bags, i) == pytest.approx(_by_hash(expected))


def test_all_variants_of_the_improved_weights_are_tested() -> None:
    """All variants that are offered are tested above."""
    assert {name for name in features() if name.startswith("improved")} == _VARIANTS.keys()


def test_worked_weight_of_the_paper() -> None:
    """Tf 0.1, N = 1000, df = 10, a noun, length 3 (of 1 to 5), in the title, no marker: 4.37501."""
    text = ["企业家", "猪", "社会主义者", *(["猪"] * 7)]
    others = [["企业家"] if i < 9 else ["羊"] for i in range(999)]
    bags = _extract("improved", [text, *others], ["企业家说", *[""] * 999])
    assert _weights(bags, 0)[int(hash_words(["企业家"])[0])] == pytest.approx(4.37501, abs=5e-6)


def test_improved_simhash_is_that_of_the_engine(bodies: list[str]) -> None:
    """With the profile paper2020, no titles and the same counts, the engine computes the same fingerprints."""
    settings = EngineSettings.model_validate(
        {"weights": {"profile": "paper2020"}, "text": {"strip_boilerplate": False}}
    )
    fingerprinter = Fingerprinter(settings)
    assert fingerprinter.profile == PAPER_2020
    articles = [Article(str(i), body) for i, body in enumerate(bodies[:50])]
    engine = fingerprinter.features(articles)
    counts = DocumentCounts(1_000_000)
    counts.add(len(articles), document_delta(engine.terms.hashes))
    expected, _ = fingerprinter.fingerprints(engine, counts.freeze(1))
    cut = segmenter("rjieba", ())
    words = cut(NormalTexts.of_strings([_NORMAL(article.body) for article in articles]))
    bags = _extract("improved", [words.of(place) for place in range(len(articles))])
    found, _ = simhash(bags.offsets(), bags.members(), bags.matrix.data)
    assert np.array_equal(found, expected)
