"""Set measures match worked examples, plain Python sets, and datasketch."""

import pickle
import random

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.article import Article
from stream_dedup.evaluate import registry
from tests import plain_measures as plain
from tests.plain_measures import similarities

_TEXTS = st.lists(st.lists(st.sampled_from("天地玄黄宇宙洪荒日月"), max_size=12), min_size=2, max_size=5)


def _all_pairs(texts: list[list[str]], measure: object) -> list[list[float]]:
    assert callable(measure)
    return [[measure(a, b) for b in texts] for a in texts]


def _long_texts(shared: int, own: int) -> list[list[str]]:
    """Return two texts of distinct words, this many of them shared."""
    both = [f"b{i}" for i in range(shared)]
    return [both + [f"{name}{i}" for i in range(own)] for name in "xy"]


def test_worked_example_of_the_shorter_text() -> None:
    """500 words that all occur among 1,500 give 1 relative to the shorter text, and 1/3 by plain Jaccard."""
    long = [f"w{i}" for i in range(1500)]
    texts = [long, long[700:1200]]
    assert similarities("words/none/jaccard-shorter", texts)[0, 1] == 1
    assert similarities("words/none/jaccard", texts)[0, 1] == pytest.approx(1 / 3)


@given(_TEXTS)
def test_jaccard_is_that_of_plain_sets(texts: list[list[str]]) -> None:
    """Both measures equal those of Python sets; a text without words is similar to none, not even itself."""
    for name, measure in (("jaccard", plain.jaccard), ("jaccard-shorter", plain.jaccard_shorter)):
        expected = np.array(_all_pairs(texts, measure))
        assert similarities(f"words/none/{name}", texts) == pytest.approx(expected, abs=1e-6)


@given(_TEXTS, st.sampled_from([2, 4, 10]))
def test_shingles_are_runs_of_words(texts: list[list[str]], length: int) -> None:
    """The Jaccard of w-shingles is that of the sets of runs of w words in order."""
    expected = np.array(_all_pairs([plain.runs(text, length) for text in texts], plain.jaccard))
    assert similarities(f"words/{length}-shingles/jaccard", texts) == pytest.approx(expected, abs=1e-6)


@given(_TEXTS, st.integers(2, 7))
def test_grams_are_runs_of_characters(texts: list[list[str]], length: int) -> None:
    """Jaccard and containment of character n-grams are those of the texts' sets of substrings."""
    grams = [plain.runs(text, length) for text in texts]
    for name, measure in (("jaccard", plain.jaccard), ("jaccard-shorter", plain.jaccard_shorter)):
        expected = np.array(_all_pairs(grams, measure))
        assert similarities(f"chars/{length}-grams/{name}", texts) == pytest.approx(expected, abs=1e-6)


def test_grams_leave_out_blanks_punctuation_and_symbols() -> None:
    """Punctuation, spaces and full width do not change a text's n-grams."""
    assert similarities("chars/5-grams/jaccard", [["ABC，经济 发展！☆"], ["ａｂｃ经济发展"]])[0, 1] == 1


def test_shingles_of_other_order_are_others() -> None:
    """The same words in reverse share no shingle."""
    words = [f"w{i}" for i in range(30)]
    assert similarities("words/2-shingles/jaccard", [words, words[::-1]])[0, 1] == 0
    assert similarities("words/none/jaccard", [words, words[::-1]])[0, 1] == 1


@pytest.mark.parametrize(("shared", "own"), [(300, 20), (200, 100), (60, 200)])
@pytest.mark.parametrize("name", ["minhash-128", "minhash-one-128", "minhash-32", "minhash-one-32"])
def test_min_hashes_estimate_jaccard(name: str, shared: int, own: int) -> None:
    """The estimate is within four standard errors of the exact value.

    The standard error is sqrt(J (1 - J) / n) with many functions, and at most that with the n smallest hashes of one.
    """
    texts = _long_texts(shared, own)
    true = plain.jaccard(*texts)
    size = int(name.rsplit("-", 1)[1])
    error = (true * (1 - true) / size) ** 0.5
    assert similarities(f"words/none/{name}", texts)[0, 1] == pytest.approx(true, abs=4 * error + 0.5 / size)


def test_min_hash_with_many_functions_is_as_good_as_datasketch() -> None:
    """Over 40 pairs of random sets, both estimate Jaccard with about the same error, sqrt(J (1 - J) / n)."""
    generator = random.Random(1)
    ours, theirs, expected = [], [], []
    for _ in range(40):
        texts = [[f"w{word}" for word in generator.sample(range(300), 180)] for _ in "ab"]
        true = plain.jaccard(*texts)
        sketches = [MinHash(num_perm=128, seed=1) for _ in texts]
        for sketch, words in zip(sketches, texts, strict=True):
            sketch.update_batch([word.encode() for word in words])
        ours.append(similarities("words/none/minhash-128", texts)[0, 1] - true)
        theirs.append(sketches[0].jaccard(sketches[1]) - true)
        expected.append(true * (1 - true) / 128)
    error = np.sqrt(np.mean(expected))
    for differences in (ours, theirs):
        assert np.sqrt(np.mean(np.square(differences))) == pytest.approx(error, rel=0.35)
        assert np.mean(differences) == pytest.approx(0, abs=3 * error / 40**0.5)


@pytest.mark.parametrize("name", ["minhash-one-32", "minhash-one-128"])
@given(texts=_TEXTS)
def test_one_function_on_short_texts_is_jaccard(name: str, texts: list[list[str]]) -> None:
    """If the sketch holds all hashes, the sets are the texts' own."""
    expected = np.array(_all_pairs(texts, plain.jaccard))
    assert similarities(f"words/none/{name}", texts) == pytest.approx(expected, abs=1e-6)


def test_sampled_shingles_estimate_jaccard() -> None:
    """One shingle in four estimates the Jaccard of all, within four standard errors."""
    texts = _long_texts(900, 300)
    true = plain.jaccard(*(plain.runs(text, 4) for text in texts))
    error = (true * (1 - true) / (1500 / 4)) ** 0.5
    sampled = similarities("words/4-shingles/jaccard-sampled", texts)[0, 1]
    assert sampled == pytest.approx(true, abs=4 * error)
    assert sampled != similarities("words/4-shingles/jaccard", texts)[0, 1]


@pytest.mark.parametrize("name", registry.algorithms(["words"]))
def test_every_algorithm_compares_in_blocks(name: str) -> None:
    """Combined blocks of rows are the full matrix: symmetric, from 0 to 1, and 1 on the diagonal."""
    generator = random.Random(2)
    words = [[f"w{generator.randrange(60)}" for _ in range(40)] for _ in range(11)]
    articles = [Article(str(i), "".join(text)) for i, text in enumerate(words)]
    algorithm = registry.algorithms(["words"])[name]
    features = pickle.loads(pickle.dumps(algorithm.features(articles, words)))  # noqa: S301  # of its own making
    whole = algorithm.similarities(features, slice(0, 11))
    parts = [algorithm.similarities(features, slice(first, min(first + 4, 11))) for first in range(0, 11, 4)]
    assert whole.dtype == np.float32
    assert np.concatenate(parts) == pytest.approx(whole, abs=1e-6)
    assert whole == pytest.approx(whole.T, abs=1e-6)
    assert np.diag(whole) == pytest.approx(1.0, abs=1e-6)
    assert 0 <= whole.min() <= whole.max() <= 1


@pytest.mark.parametrize("name", registry.algorithms(["words"]))
def test_texts_without_anything_are_like_none(name: str) -> None:
    """A text without words, or without characters that count, has similarity 0 to all, including another such text."""
    texts = [["经济", "发展"], [], []]
    assert not similarities(name, texts)[1:].any()
    assert not similarities(name, texts)[:, 1:].any()
