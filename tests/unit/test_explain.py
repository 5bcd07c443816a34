"""Explain's numbers are those of its underlying parts, and of a computation by hand."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from deploy.demo.samples.corpus import BaseText
from stream_dedup.article import Article, Relation, VerdictReason
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.explain import Explanation, _verdict, explain, ground_of
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import DocumentCounts, Epoch, document_delta
from stream_dedup.text.weights import weigh

_SETTINGS = EngineSettings()

pytestmark = pytest.mark.usefixtures("one_fingerprinter")


@pytest.fixture
def one_fingerprinter(
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Share one fingerprinter, so that explain does not read the dictionary in each test."""
    monkeypatch.setattr("stream_dedup.engine.explain.Fingerprinter", cached_fingerprinter)


@pytest.fixture(scope="module")
def pair(texts: list[BaseText]) -> tuple[str, str]:
    """Return an article, and the same without its first sentence."""
    body = texts[0].body
    return body, body[body.index("。") + 1 :]


@pytest.fixture(scope="module")
def explanation(pair: tuple[str, str]) -> Explanation:
    """Return the explanation of this pair."""
    return explain(*pair, _SETTINGS)


def _grams(text: str) -> set[str]:
    plain = "".join(filter(str.isalnum, text.lower()))
    return {plain[i : i + 5] for i in range(len(plain) - 4)}


def test_fingerprints_and_cosine_are_those_of_the_fingerprinter(
    explanation: Explanation, pair: tuple[str, str], fingerprinter: Fingerprinter
) -> None:
    """Fingerprints, distance, differing bits and cosine follow from the two articles' bit sums."""
    features = fingerprinter.features([Article("a", pair[0]), Article("b", pair[1])])
    fingerprints, sums = fingerprinter.fingerprints(features, Epoch())
    assert explanation.fingerprints == tuple(fingerprints.tolist())
    digits = [f"{fingerprint:064b}"[::-1] for fingerprint in fingerprints.tolist()]
    assert explanation.differing_bits == [bit for bit in range(64) if digits[0][bit] != digits[1][bit]]
    assert explanation.hamming == len(explanation.differing_bits)
    a, b = sums.astype(float)
    assert explanation.cosine == pytest.approx(float(a @ b) / sqrt(float(a @ a) * float(b @ b)))


def test_resemblance_is_that_of_the_sets_of_grams(explanation: Explanation, pair: tuple[str, str]) -> None:
    """Sizes are exact, and Jaccard and containment are within four standard errors of the exact values."""
    a, b = map(_grams, pair)
    jaccard = len(a & b) / len(a | b)
    assert explanation.grams == (len(a), len(b))
    assert explanation.jaccard == pytest.approx(jaccard, abs=4 * sqrt(jaccard * (1 - jaccard) / 128))
    assert explanation.containment == pytest.approx(len(a & b) / min(len(a), len(b)), abs=0.15)


def test_words_have_the_weights_of_the_formula(
    explanation: Explanation, pair: tuple[str, str], fingerprinter: Fingerprinter
) -> None:
    """Each word has its weight in either text, or 0 if it does not occur; the heaviest words are listed."""
    features = fingerprinter.features([Article("a", pair[0]), Article("b", pair[1])])
    weights = weigh(features.terms, None, fingerprinter.lexicon, Epoch(), fingerprinter.profile)
    by_text = [
        dict(zip(features.terms.hashes[at].tolist(), weights[at].tolist(), strict=True))
        for at in (features.terms.of(0), features.terms.of(1))
    ]
    for word in [*explanation.shared_words, *explanation.differing_words]:
        value = int(hash_words([word.word])[0])
        assert word.weights == (by_text[0].get(value, 0), by_text[1].get(value, 0))
    shared = [by_text[0][value] + by_text[1][value] for value in by_text[0].keys() & by_text[1].keys()]
    assert [sum(word.weights) for word in explanation.shared_words] == pytest.approx(sorted(shared)[:-13:-1])
    assert all(min(word.weights) == 0 < max(word.weights) for word in explanation.differing_words)


def test_top_bounds_the_lists_of_words(pair: tuple[str, str]) -> None:
    """At most `top` words are listed."""
    short = explain(*pair, _SETTINGS, top=3)
    assert (len(short.shared_words), len(short.differing_words) <= 3) == (3, True)


def test_cut_copy_is_explained_as_the_engine_judges_it(texts: list[BaseText]) -> None:
    """The relation is that of the first text to the second, and the verdict puts it into words."""
    body = texts[0].body
    half = body[: len(body) // 2]
    assert explain(half, body, _SETTINGS).relation is Relation.CONTAINED
    assert explain(body, half, _SETTINGS).relation is Relation.CONTAINS
    assert "the first is a part of the second" in explain(half, body, _SETTINGS).verdict
    same = explain(body, body.replace("，", " "), _SETTINGS)
    assert (same.relation, same.jaccard, same.hamming) == (Relation.EXACT, 1, 0)
    assert same.cosine == pytest.approx(1)


def test_verdict_says_why_texts_are_no_copies(texts: list[BaseText]) -> None:
    """The verdict names the reason: too little in common, too short, or different numbers."""
    unlike = explain(texts[0].body, texts[5].body, _SETTINGS)
    assert (unlike.relation, unlike.ground, "too little" in unlike.verdict) == (None, "too_little", True)
    short = explain("今天天气真好", "今天天气真好呀", _SETTINGS)
    assert (short.relation, short.ground, "n-grams is only compared as a whole" in short.verdict) == (
        None,
        "too_short",
        True,
    )
    template = (
        "最高气温{}度，最低气温{}度，相对湿度百分之{}，风力{}级，空气质量指数为{}。请市民合理安排出行，注意防晒和补水，"
        "老人和儿童尽量避免在午后外出。监测站将继续发布信息，欢迎通过热线和网站查询，并以当地气象台的最新预报为准。"
    )
    bulletins = explain(template.format(31, 22, 60, 3, 45), template.format(12, 8, 77, 5, 91), _SETTINGS)
    assert (bulletins.relation, bulletins.ground, "numbers or place names differ" in bulletins.verdict) == (
        None,
        "template",
        True,
    )


def test_text_without_content_is_like_no_other(pair: tuple[str, str]) -> None:
    """It is not even like itself, as for the engine: a shell around a picture does not tell what the picture is."""
    shell = "编辑：张三"
    for texts in ((shell, shell), (shell, pair[0]), (pair[0], shell)):
        explained = explain(*texts, _SETTINGS)
        assert (explained.relation, explained.ground) == (None, "no_content")
    with Deduplicator(settings=_SETTINGS) as engine:
        assert [engine.add(Article(name, shell)).unique for name in "ab"] == [True, True]


@pytest.mark.parametrize(
    ("jaccard", "containment", "ground"),
    [(0.32, 0.59, "too_little"), (0.32, 0.6, "template"), (0.33, 0.59, "template"), (0.5, 0.7, "template")],
)
def test_unlike_texts_that_reach_either_threshold_are_of_one_template(
    jaccard: float, containment: float, ground: str
) -> None:
    """A short bulletin within a long one has much of it in common by containment alone."""
    assert ground_of(None, jaccard, containment, 100, _SETTINGS) == ground


def test_weights_come_from_the_given_epoch(pair: tuple[str, str], fingerprinter: Fingerprinter) -> None:
    """With a state's counts, the weights are those of its epoch, and the epoch is named."""
    counts = DocumentCounts(10_000)
    terms = fingerprinter.features([Article("a", pair[0])]).terms
    counts.add(5000, document_delta(np.repeat(terms.hashes, 4000)))
    explained = explain(*pair, _SETTINGS, counts.freeze(4))
    plain = explain(*pair, _SETTINGS)
    assert (explained.epoch, plain.epoch) == (4, 0)
    assert sum(explained.shared_words[0].weights) < sum(plain.shared_words[0].weights)


@pytest.mark.parametrize("blank", ["", "  \n\u3000"])
def test_blank_text_is_refused(blank: str) -> None:
    """A blank text cannot be explained."""
    with pytest.raises(ValueError, match="blank"):
        explain("正文", blank, _SETTINGS)


@pytest.mark.parametrize("wordless", ["👍", "。。。", "\u200b"])
def test_text_without_words_is_explained(wordless: str) -> None:
    """A text of emoji, punctuation or nothing visible is not a copy of an article."""
    explanation = explain(wordless, "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开。", _SETTINGS)
    assert (explanation.relation, explanation.jaccard, explanation.grams[0]) == (None, 0, 0)


@pytest.mark.parametrize(
    ("body", "groups", "keys"),
    [
        ("今天天气好，我们去公园。", {}, (True, 0, 0)),
        ("编辑：张三", {}, (False, 0, 0)),
        (None, {"landmarks": {"enabled": False}}, (True, 0, 4)),
        (None, {"simhash": {"enabled": False}}, (True, 16, 0)),
    ],
    ids=["short", "bare", "no landmarks", "no tables"],
)
def test_only_keys_that_articles_stand_under_are_shared(
    pair: tuple[str, str], body: str | None, groups: dict[str, dict[str, bool]], keys: tuple[bool, int, int]
) -> None:
    """Short texts have only the content key, texts without content none; indexes that are off have none either."""
    text = body or pair[0]
    assert explain(text, text, EngineSettings.model_validate(groups)).keys == keys


def test_keys_that_one_text_alone_stands_under_are_not_shared() -> None:
    """A text that is too short for landmarks and tables is not found by those that a longer one shares with it."""
    short = "今天天气好，我们去公园玩吧。"
    for texts in ((short, short * 2), (short * 2, short)):
        explained = explain(*texts, _SETTINGS)
        assert min(explained.grams) < _SETTINGS.verify.min_grams <= max(explained.grams)
        assert (explained.containment, explained.keys) == (1, (False, 0, 0))


@pytest.mark.parametrize("ground", VerdictReason)
def test_every_ground_is_told_in_words(ground: VerdictReason) -> None:
    """The page and the command line show them; none is told by its code alone."""
    assert len(_verdict(ground, 0.5, 0.5, _SETTINGS).split()) > 3


def test_shortest_text_that_is_compared_by_its_grams_is_not_too_short(pair: tuple[str, str]) -> None:
    """The bound itself is long enough; of two texts, the shorter one counts."""
    fewest = _SETTINGS.verify.min_grams
    grounds = [ground_of(None, 0.1, 0.1, smallest, _SETTINGS) for smallest in (fewest - 1, fewest)]
    assert grounds == [VerdictReason.TOO_SHORT, VerdictReason.TOO_LITTLE]
    short = "大桥今天通车。"
    assert len(_grams(short)) < fewest < len(_grams(pair[0]))
    assert explain(short, pair[0], _SETTINGS).ground is VerdictReason.TOO_SHORT
    assert explain(pair[0], short, _SETTINGS).ground is VerdictReason.TOO_SHORT


def test_heaviest_words_are_those_with_most_weight_in_both() -> None:
    """Rather than in one of the two: that a word is repeated in one text says less of what they share."""
    first = "地铁施工" * 2 + "。" + "暴雨来袭。" * 12
    second = "地铁施工" * 9 + "。" + "暴雨来袭。"
    words = explain(first + "大桥通车。" * 5, second + "大桥通车。" * 5, _SETTINGS, top=99).shared_words
    sums = [sum(word.weights) for word in words]
    assert sums == sorted(sums, reverse=True)
    assert [max(word.weights) for word in words] != sorted((max(word.weights) for word in words), reverse=True)
    fewer = explain(first + "大桥通车。" * 5, second + "大桥通车。" * 5, _SETTINGS, top=2).shared_words
    assert fewer == words[:2]


def test_words_without_weight_are_not_told(pair: tuple[str, str]) -> None:
    """Stop words that one text lacks make no difference."""
    found = explain(pair[0], "的了是在和" + pair[0] + "地铁明天停运。", _SETTINGS, top=10_000)
    assert found.differing_words
    assert all(max(word.weights) > 0 for word in found.differing_words)


def test_unlike_texts_share_no_keys(texts: list[BaseText]) -> None:
    """And the same text has all of them in common with itself."""
    one, other = texts[0].body, texts[1].body
    assert explain(one, other, _SETTINGS).keys == (False, 0, 0)
    found = explain(one, one, _SETTINGS).keys
    assert (found.content, found.tables) == (True, _SETTINGS.simhash.tables)
    assert found.landmarks > 0
