"""Weights follow the formula of the 2020 paper exactly, and each setting changes its own part."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from math import inf, log

import numpy as np
import pytest

from stream_dedup.article import Article
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.settings.engine import WeightSettings
from stream_dedup.text.idf import DocumentCounts, Epoch, document_delta
from stream_dedup.text.lexicon import Lexicon, build_lexicon
from stream_dedup.text.terms import extract_terms
from stream_dedup.text.weights import (
    DEFAULT,
    PAPER_2020,
    Profile,
    inverse_document_frequency,
    profile_of,
    term_weight,
    weigh,
)
from stream_dedup.text.words import words_of

_STOPS = {"的", "与"}
_MARKERS = {"综上所述", "数据显示", "但"}
_TITLE = ["经济", "的", "前景"]
_WORDS = [
    *("数据显示屏", "，", "经济", "的", "发展", "很快", "经济", "与", "企业家", "投资"),
    *("综上所述", "但", "前景", "看好", "没这词儿吧", "。", "经济", "投资"),
]
_EARLIER = [["经济", "投资"], ["经济", "发展"], ["经济"], ["综上所述", "企业家"], ["天气"]]


@cache
def _dictionary() -> dict[str, tuple[int, str]]:
    """Return the frequency and tag of each word of jieba's dictionary."""
    lines = files("jieba").joinpath("dict.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ") for line in lines]
    return {word.lower(): (int(frequency), tag) for word, frequency, tag in rows}


@cache
def _corpus() -> int:
    """Return the number of words in the corpus that jieba's dictionary was counted in."""
    lines = files("jieba").joinpath("dict.txt").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split(" ")[1]) for line in lines)


def _pos(word: str) -> int:
    tag = _dictionary()[word][1] if word in _dictionary() else "n"
    return 3 if tag.startswith("n") or tag == "eng" else 2 if tag.startswith("v") else 1


def _marked(word: str) -> bool:
    return word in _MARKERS or any(len(marker) > 1 and marker in word for marker in _MARKERS)


def _prior(word: str) -> float:
    """Return the share of 300-word documents that contain the word if their words are drawn from the corpus."""
    frequency = _dictionary().get(word, (0, ""))[0] or 0.3
    return 1 - (1 - frequency / (_corpus() + 1)) ** 300


def _idf(word: str, prior_documents: float) -> float:
    df = sum(word in words for words in _EARLIER)
    if prior_documents:
        ratio = (len(_EARLIER) + prior_documents) / (df + prior_documents * _prior(word))
        return min(max(log(ratio + 0.01), 0.5), 9.0)
    return log(len(_EARLIER) / max(df, 1) + 0.01)


def _naive_weights(title: float, prior_documents: float) -> dict[str, float]:
    """Weigh the words as the paper describes, one line per symbol."""
    terms = Counter(word for word in _WORDS if word not in _STOPS and word not in "，。")
    longest, shortest = max(map(len, terms)), min(map(len, terms))
    weights = {}
    for word, count in terms.items():
        tf = count / terms.total()
        relative = (len(word) - shortest) / (longest - shortest)
        factor = 1 + _pos(word) + relative + 5 * _marked(word) + title * (word in _TITLE)
        weights[word] = tf * _idf(word, prior_documents) * factor
    return weights


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """Return jieba's dictionary with the stop words and marker words of this file."""
    return build_lexicon((), tuple(sorted(_STOPS)), tuple(sorted(_MARKERS)))


@pytest.fixture(scope="module")
def epoch() -> Epoch:
    """Return the counts of the earlier articles."""
    counts = DocumentCounts(1000)
    hashes = np.concatenate([hash_words(words) for words in _EARLIER])
    counts.add(len(_EARLIER), document_delta(hashes))
    return counts.freeze(1)


def _weights(lexicon: Lexicon, epoch: Epoch, profile: Profile) -> dict[int, float]:
    terms, titles = extract_terms(words_of([_WORDS]), lexicon), extract_terms(words_of([_TITLE]), lexicon)
    weights = weigh(terms, titles if profile.title else None, lexicon, epoch, profile)
    return dict(zip(terms.hashes.tolist(), weights.tolist(), strict=True))


def _by_hash(weights: dict[str, float]) -> dict[int, float]:
    return dict(zip(hash_words(list(weights)).tolist(), weights.values(), strict=True))


def test_worked_idf_of_the_paper() -> None:
    """With N = 1000 and df = 10, idf = ln 100.01 = 4.60527."""
    idf = inverse_document_frequency(1000.0, 10.0, 0.5, PAPER_2020.factors())
    assert idf == pytest.approx(log(100.01), rel=1e-15)
    assert idf == pytest.approx(4.60527, abs=5e-6)


def test_worked_weight_of_the_paper() -> None:
    """Tf 0.1, a noun, length 3 (of 1 to 5), in the title, no marker: 0.1 x 4.60527 x 9.5 = 4.37501."""
    weight = term_weight(0.1, log(100.01), 3, 0.5, False, True, PAPER_2020.factors())
    assert weight == pytest.approx(4.37501, abs=5e-6)


@pytest.mark.parametrize(
    ("part_of_speech", "marker", "title", "factor"),
    [(3, False, False, 4), (2, False, False, 3), (1, False, False, 2), (1, True, False, 7), (2, True, True, 13)],
)
def test_factors_of_the_paper_add_up(part_of_speech: int, marker: bool, title: bool, factor: int) -> None:  # noqa: FBT001  # parametrised
    """A noun adds 3, a verb 2, another word 1; a marker word 5; a word of the title 5."""
    weight = term_weight(0.5, 2.0, part_of_speech, 0.0, marker, title, PAPER_2020.factors())
    assert weight == pytest.approx(factor)


def test_whole_text_has_the_weights_of_the_paper(lexicon: Lexicon, epoch: Epoch) -> None:
    """With profile paper2020, a text is weighed by the formula as written in this file."""
    expected = _by_hash(_naive_weights(title=5.0, prior_documents=0.0))
    assert _weights(lexicon, epoch, PAPER_2020) == pytest.approx(expected, rel=1e-12)


def test_whole_text_has_the_weights_of_the_default_profile(lexicon: Lexicon, epoch: Epoch) -> None:
    """The default profile has no title factor, and an idf smoothed by the dictionary for 2000 documents."""
    expected = _by_hash(_naive_weights(title=0.0, prior_documents=2000.0))
    assert _weights(lexicon, epoch, DEFAULT) == pytest.approx(expected, rel=1e-9)


def test_stop_words_and_punctuation_have_no_weight(lexicon: Lexicon, epoch: Epoch) -> None:
    """Neither stop words nor punctuation are among the weighted terms."""
    weighted = _weights(lexicon, epoch, PAPER_2020)
    assert not weighted.keys() & set(hash_words(["的", "与", "，", "。"]).tolist())


def test_title_counts_only_in_profiles_with_a_title_factor() -> None:
    """Another title changes the fingerprint under paper2020 and not under the default profile."""
    articles = [Article("a", "企业家投资经济，前景看好。", title="经济"), Article("b", "企业家投资经济，前景看好。")]
    changed = {}
    for profile in ("default", "paper2020"):
        fingerprinter = Fingerprinter(EngineSettings.model_validate({"weights": {"profile": profile}}))
        _, sums = fingerprinter.fingerprints(fingerprinter.features(articles), Epoch())
        changed[profile] = bool((sums[0] != sums[1]).any())
    assert changed == {"default": False, "paper2020": True}


def test_each_epoch_has_weights_of_its_own(lexicon: Lexicon, epoch: Epoch) -> None:
    """With 经济 in 3 of 5 articles, idf is ln(5 / 3 + 0.01), without articles ln(1 / 1 + 0.01), in any order."""
    terms = extract_terms(words_of([["经济"]]), lexicon)
    for asked, idf in ((epoch, log(5 / 3 + 0.01)), (Epoch(), log(1.01)), (epoch, log(5 / 3 + 0.01))):
        for _ in range(2):
            assert weigh(terms, None, lexicon, asked, PAPER_2020)[0] == pytest.approx(idf * (1 + 3), rel=1e-12)


def test_titles_count_for_their_own_article(lexicon: Lexicon) -> None:
    """In a batch, each article's title raises only the words of that article."""
    terms = extract_terms(words_of([["经济", "前景"], ["经济", "前景"], ["经济", "前景"]]), lexicon)
    titles = extract_terms(words_of([["经济"], [], ["前景"]]), lexicon)
    plain = weigh(terms, None, lexicon, Epoch(), PAPER_2020)
    lifted = weigh(terms, titles, lexicon, Epoch(), PAPER_2020) > plain
    assert lifted.tolist() == [True, False, False, False, False, True]


def test_words_of_one_length_have_relative_length_0(lexicon: Lexicon) -> None:
    """If all words are equally long, the length factor is 0, without a division by zero."""
    terms = extract_terms(words_of([["经济", "前景"]]), lexicon)
    with_length = weigh(terms, None, lexicon, Epoch(), Profile(length=9.0))
    assert with_length.tolist() == weigh(terms, None, lexicon, Epoch(), Profile(length=0.0)).tolist()


def test_idf_is_clamped() -> None:
    """The default profile's idf is between 0.5 and 9, however common or rare the word."""
    factors = DEFAULT.factors()
    assert inverse_document_frequency(1e9, 1e9, 1.0, factors) == 0.5
    assert inverse_document_frequency(1e9, 0.0, 1e-9, factors) == 9.0


def test_idf_of_an_unseen_word_is_that_of_a_word_seen_once() -> None:
    """With plain counts, df and N count as at least 1, so that nothing is divided by 0."""
    factors = PAPER_2020.factors()
    assert inverse_document_frequency(50.0, 0.0, 0.1, factors) == pytest.approx(log(50.01))
    assert inverse_document_frequency(0.0, 0.0, 0.1, factors) == pytest.approx(log(1.01))


def test_profiles_are_those_of_the_settings() -> None:
    """The settings select a profile, and individual factors override its own."""
    assert profile_of(WeightSettings()) == DEFAULT
    assert profile_of(WeightSettings(profile="paper2020")) == PAPER_2020
    own = profile_of(WeightSettings(profile="paper2020", title=0.0, noun=7.0))
    assert (own.title, own.noun, own.verb, own.marker) == (0.0, 7.0, 2.0, 5.0)
    assert (own.prior_documents, own.idf_floor, own.idf_ceiling) == (0.0, -inf, inf)


@pytest.mark.parametrize("name", ["noun", "verb", "other", "length", "marker", "title"])
def test_each_factor_is_a_setting(name: str, lexicon: Lexicon, epoch: Epoch) -> None:
    """Raising one factor by 1 adds tf x idf (x relative length) to exactly the words it applies to."""
    terms, titles = extract_terms(words_of([_WORDS]), lexicon), extract_terms(words_of([_TITLE]), lexicon)
    profiles = [profile_of(WeightSettings.model_validate({"profile": "paper2020", name: value})) for value in (4, 5)]
    before, after = (weigh(terms, titles, lexicon, epoch, profile) for profile in profiles)
    words = [word for word in dict.fromkeys(_WORDS) if word not in _STOPS and word not in "，。"]
    count = Counter(_WORDS)
    total = sum(count[word] for word in words)
    amounts: dict[str, Callable[[str], float]] = {
        "noun": lambda word: _pos(word) == 3,
        "verb": lambda word: _pos(word) == 2,
        "other": lambda word: _pos(word) == 1,
        "length": lambda word: (len(word) - 1) / 4,
        "marker": _marked,
        "title": lambda word: word in _TITLE,
    }
    expected = [count[word] / total * _idf(word, 0) * amounts[name](word) for word in words]
    assert (after - before).tolist() == pytest.approx(expected, abs=1e-12)
