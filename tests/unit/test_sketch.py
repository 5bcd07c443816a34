"""Sketches are exact for small sets, and for large ones unbiased and as accurate as theory allows."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import U32
from stream_dedup.compiled.hashing import code_points
from stream_dedup.fingerprint.sketch import (
    PAD,
    LandmarkRule,
    Resemblance,
    Sketches,
    gram_hashes,
    resemblance,
    sketch,
)

_GRAM, _SIZE, _RULE = 5, 128, LandmarkRule(8, 24, 64)
# Of two different characters a longer text repeats its n-grams.
_SMALL = st.sampled_from(["甲乙丙丁ab12", "甲乙"]).flatmap(lambda some: st.text(st.sampled_from(some), max_size=120))


def _points(text: str) -> U32:
    """Return code points in a fresh array, as the normal form has them."""
    return code_points(text).copy()


def _grams(text: str, gram: int = _GRAM) -> set[str]:
    if not text:
        return set()
    return {text[i : i + gram] for i in range(max(1, len(text) - gram + 1))}


def _sketches(*texts: str, gram: int = _GRAM, size: int = _SIZE, rule: LandmarkRule = _RULE) -> Sketches:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return sketch(_points("".join(texts)), offsets, gram, size, rule, np.zeros(len(texts), np.uint64))


def _estimate(both: Sketches) -> Resemblance:
    return resemblance(
        *(both.values[0], both.lengths[0], both.sizes[0]), *(both.values[1], both.lengths[1], both.sizes[1])
    )


def _resemblance(both: Sketches) -> tuple[float, float]:
    estimate = _estimate(both)
    return estimate.jaccard, estimate.containment


def _random_text(rng: np.random.Generator, length: int) -> str:
    """Draw a text of Han characters whose n-grams are practically distinct."""
    return "".join(map(chr, rng.integers(0x4E00, 0x9FA5, length)))


def _measured(one: str, other: str) -> tuple[float, float]:
    a, b = _grams(one), _grams(other)
    return len(a & b) / len(a | b), len(a & b) / min(len(a), len(b))


@given(_SMALL, _SMALL)
def test_resemblance_of_sets_that_fit_the_sketch_is_exact(one: str, other: str) -> None:
    """If both sets of n-grams fit, Jaccard and containment are exactly those of Python's sets."""
    jaccard, containment = _resemblance(_sketches(one, other))
    if not one or not other:
        assert (jaccard, containment) == (0, 0)
        return
    exact_jaccard, exact_containment = _measured(one, other)
    assert jaccard == exact_jaccard
    assert containment == pytest.approx(exact_containment, abs=1e-12)


@given(_SMALL)
def test_text_resembles_itself_fully(text: str) -> None:
    """Any text but the empty one has Jaccard 1 and containment 1 with itself."""
    assert _resemblance(_sketches(text, text)) == ((1, 1) if text else (0, 0))


def test_resemblance_is_symmetric() -> None:
    """The order of the two texts does not matter, even if only one fits the sketch."""
    rng = np.random.default_rng(5)
    long = _random_text(rng, 900)
    for other in (long[100:160] + _random_text(rng, 20), long[300:] + _random_text(rng, 400)):
        assert _resemblance(_sketches(long, other)) == _resemblance(_sketches(other, long))


def _least_error(both: Sketches, containment: float) -> float:
    """Return the Cramer-Rao bound on the standard error of the containment, given its true value."""
    one, other = both.sizes.tolist()
    shared = containment * min(one, other)
    cut = [int(both.values[i][-1]) for i in (0, 1) if both.lengths[i] < both.sizes[i]]
    kept = min(cut) / 2**24
    error: float = sqrt((1 - kept) / kept / (1 / shared + 1 / (one - shared) + 1 / (other - shared))) / min(one, other)
    return error


def test_error_of_the_estimate_is_less_than_that_of_a_sample_of_the_union() -> None:
    """Over 400 random pairs, Jaccard is unbiased, and its error is below Broder's sqrt(J (1 - J) / 128)."""
    rng = np.random.default_rng(11)
    errors, standard, told = [], [], []
    for _ in range(400):
        shared = _random_text(rng, int(rng.integers(300, 2500)))
        own = [_random_text(rng, int(rng.integers(100, 1500))) for _ in range(2)]
        one, other = shared + own[0], shared + own[1]
        exact_jaccard, exact = _measured(one, other)
        both = _sketches(one, other)
        estimate, least = _estimate(both), _least_error(both, exact)
        errors.append((estimate.jaccard - exact_jaccard) / sqrt(exact_jaccard * (1 - exact_jaccard) / _SIZE))
        standard.append((estimate.containment - exact) / least)
        told.append(estimate.error / least)
    # The mean of 400 standardised errors has deviation 1/20, and their deviation has 1/28: four of each are allowed.
    assert abs(np.mean(errors)) < 4 / 20
    assert np.std(errors) < 1 - 4 / 28
    # No unbiased estimate can have a smaller error, and the estimate knows its own.
    assert abs(np.mean(standard)) < 4 / 20
    assert 1 - 4 / 28 - 0.05 < np.std(standard) < 1 + 4 / 28
    assert 0.95 < np.median(told) < 1.05


@pytest.mark.parametrize(("size", "longer"), [(120, 200), (300, 900), (300, 3000)])
def test_error_of_a_long_and_a_short_text_is_the_least_too(size: int, longer: int) -> None:
    """The same holds if only one of the sets fits its sketch, and if one is three or ten times as large."""
    rng = np.random.default_rng(12)
    standard = []
    for _ in range(400):
        short = _random_text(rng, size)
        long = short[: int(rng.integers(size // 2, size * 9 // 10))] + _random_text(rng, longer)
        both, exact = _sketches(long, short), _measured(long, short)[1]
        standard.append((_estimate(both).containment - exact) / _least_error(both, exact))
    assert abs(np.mean(standard)) < 4 / 20
    assert 0.8 < np.std(standard) < 1.25


def test_estimate_is_the_likeliest() -> None:
    """No other size of the intersection makes the counts below the common threshold likelier."""
    rng = np.random.default_rng(17)
    for _ in range(50):
        shared, *own = (_random_text(rng, int(rng.integers(200, 2000))) for _ in range(3))
        both = _sketches(shared + own[0], shared + own[1])
        sizes = both.sizes.tolist()
        end = min(int(values[-1]) for values in both.values)
        one, other = ({value for value in values.tolist() if value < end} for values in both.values)
        counts = (len(one & other), len(one - other), len(other - one))
        candidates = np.arange(1, min(sizes))
        means = np.stack([candidates, sizes[0] - candidates, sizes[1] - candidates]) * (end / 2**24)
        likelihood = (np.array(counts)[:, np.newaxis] * np.log(means) - means).sum(axis=0)
        best = candidates[likelihood.argmax()] / min(sizes)
        assert _estimate(both).containment == pytest.approx(best, abs=1.5 / min(sizes))


def test_containment_of_a_cut_copy_is_near_1() -> None:
    """A text cut to 20 to 90% is contained in the whole: never above 1, and 0.95 on average."""
    rng = np.random.default_rng(13)
    estimates = []
    for _ in range(200):
        whole = _random_text(rng, 3000)
        start, share = rng.uniform(0, 0.1), rng.uniform(0.2, 0.9)
        cut = whole[int(3000 * start) : int(3000 * (start + share))]
        estimates.append(_resemblance(_sketches(cut, whole))[1])
    assert max(estimates) <= 1
    assert np.mean(estimates) > 0.95
    assert min(estimates) > 0.6


def test_containment_of_unrelated_texts_is_0() -> None:
    """Texts without a common n-gram have Jaccard 0 and containment 0."""
    rng = np.random.default_rng(14)
    assert _resemblance(_sketches(_random_text(rng, 2000), _random_text(rng, 300))) == (0, 0)


@given(_SMALL, st.integers(2, 7))
def test_size_is_the_number_of_distinct_grams(text: str, gram: int) -> None:
    """A sketch's size is the exact number of distinct n-grams, for any n."""
    assert _sketches(text, gram=gram).sizes.tolist() == [len(_grams(text, gram))]


def test_sizes_of_real_texts_are_exact(bodies: list[str]) -> None:
    """The same holds for the word characters of articles, all in one batch."""
    plain = ["".join(filter(str.isalnum, body)) for body in bodies]
    assert _sketches(*plain).sizes.tolist() == [len(_grams(text)) for text in plain]


@given(text=_SMALL, size=st.sampled_from([1, 16, 128]))
def test_sketch_holds_the_smallest_hashes(hash_of: Callable[[str], int], text: str, size: int) -> None:
    """The sketch is the upper 24 bits of the smallest n-gram hashes."""
    hashes = sorted(map(hash_of, _grams(text)))
    made = _sketches(text, size=size)
    kept = [value >> 40 for value in hashes[:size]]
    assert made.values[0].tolist() == kept + [int(PAD)] * (size - len(kept))
    assert made.lengths.tolist() == [len(kept)]


def test_text_that_repeats_itself_has_a_whole_sketch(hash_of: Callable[[str], int]) -> None:
    """Of 12,000 n-grams only 600 are distinct, so the smallest 128 of these are larger than is usual."""
    text = _random_text(np.random.default_rng(18), 600) * 20
    smallest = sorted(map(hash_of, _grams(text)))[:_SIZE]
    assert _sketches(text).values[0].tolist() == [value >> 40 for value in smallest]


@given(
    text=_SMALL,
    rule=st.sampled_from([LandmarkRule(0, 9, 5), LandmarkRule(4, 9, 7), LandmarkRule(8, 1000, 8)]),
    size=st.sampled_from([1, 128]),
)
def test_landmarks_are_as_many_as_the_text_is_long(
    hash_of: Callable[[str], int], text: str, rule: LandmarkRule, size: int
) -> None:
    """Landmarks are the upper 40 bits of the smallest hashes, one per fixed number of n-grams, within limits."""
    hashes = sorted(map(hash_of, _grams(text)))
    count = min(max(rule.least, min(rule.most, len(hashes) // rule.spacing)), len(hashes))
    marks = [value >> 24 for value in hashes[:count]]
    assert _sketches(text, size=size, rule=rule).landmarks[0].tolist() == marks + [0] * (rule.most - len(marks))


@pytest.mark.parametrize("text", ["甲", "甲乙", "甲乙丙丁"])
def test_text_shorter_than_a_gram_is_one_gram(text: str, hash_of: Callable[[str], int]) -> None:
    """A short text is its own only n-gram; it resembles itself and no longer text."""
    assert gram_hashes(_points(text), _GRAM).tolist() == [hash_of(text)]
    assert _resemblance(_sketches(text, text + "戊己庚")) == (0, 0)


def test_empty_text_has_no_grams() -> None:
    """An empty text has an empty sketch and no landmarks, and resembles nothing, not even another empty text."""
    empty = _sketches("", "", "甲乙丙")
    assert empty.sizes.tolist() == [0, 0, 1]
    assert empty.lengths.tolist() == [0, 0, 1]
    assert not empty.landmarks[:2].any()
    assert _resemblance(empty) == (0, 0)


def test_texts_of_a_batch_do_not_touch_each_other() -> None:
    """A text's sketch is the same alone and in the middle of a batch."""
    rng = np.random.default_rng(15)
    texts = [_random_text(rng, length) for length in (3, 0, 700, 40)]
    together = _sketches(*texts)
    for i, text in enumerate(texts):
        alone = _sketches(text)
        assert together.values[i].tolist() == alone.values[0].tolist()
        assert together.landmarks[i].tolist() == alone.landmarks[0].tolist()
        assert together.sizes[i] == alone.sizes[0]
