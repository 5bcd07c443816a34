"""SimHash matches Charikar's worked example and a naive implementation, as do the measures on it."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.article import Article
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.fingerprint.simhash import cosine, hamming, popcount, simhash
from stream_dedup.text.idf import Epoch
from stream_dedup.text.weights import weigh

_UNIT = 1 << 24  # sums are in units of 2^-24
_HASHES = st.integers(0, 2**64 - 1)
# Multiples of 1/1024 are added without rounding by both implementations.
_TERMS = st.lists(st.tuples(_HASHES, st.integers(0, 50_000).map(lambda weight: weight / 1024)), max_size=30)
_SUMS = st.lists(st.integers(-(2**40), 2**40), min_size=64, max_size=64)


def _naive(terms: list[tuple[int, float]]) -> tuple[int, list[float]]:
    """Compute SimHash as it is usually taught."""
    sums = [0.0] * 64
    for value, weight in terms:
        for bit in range(64):
            sums[bit] += weight if value >> bit & 1 else -weight
    return sum(1 << bit for bit in range(64) if sums[bit] > 0), sums


def _simhash(*articles: list[tuple[int, float]]) -> tuple[list[int], list[list[int]]]:
    offsets = np.cumsum([0, *map(len, articles)], dtype=np.int64)
    flat = [term for article in articles for term in article]
    hashes = np.array([value for value, _ in flat], np.uint64)
    fingerprints, sums = simhash(offsets, hashes, np.array([weight for _, weight in flat], np.float64))
    return fingerprints.tolist(), sums.tolist()


def test_worked_example_of_charikar() -> None:
    """Weights 4 and 5 on 100101 and 101011 give the sums 9 -9 1 -1 1 9 and the fingerprint 101011."""
    (fingerprint,), (sums,) = _simhash([(0b100101, 4.0), (0b101011, 5.0)])
    assert fingerprint == 0b101011
    assert [value / _UNIT for value in sums[5::-1]] == [9, -9, 1, -1, 1, 9]
    assert {value / _UNIT for value in sums[6:]} == {-9}


@given(st.lists(_TERMS, max_size=4))
def test_simhash_agrees_with_a_naive_one(articles: list[list[tuple[int, float]]]) -> None:
    """Fingerprints and bit sums of random terms are those of ten lines of Python, article by article."""
    fingerprints, sums = _simhash(*articles)
    expected = [_naive(article) for article in articles]
    assert fingerprints == [fingerprint for fingerprint, _ in expected]
    assert [[value / _UNIT for value in row] for row in sums] == [row for _, row in expected]


def test_simhash_of_real_texts_agrees_with_a_naive_one(fingerprinter: Fingerprinter, bodies: list[str]) -> None:
    """The same holds for articles, whose weights have many digits."""
    features = fingerprinter.features([Article(str(i), body) for i, body in enumerate(bodies[:40])])
    terms, epoch = features.terms, Epoch()
    weights = weigh(terms, None, fingerprinter.lexicon, epoch, fingerprinter.profile).tolist()
    fingerprints, sums = fingerprinter.fingerprints(features, epoch)
    pairs = list(zip(terms.hashes.tolist(), weights, strict=True))
    for i in range(40):
        expected, expected_sums = _naive(pairs[terms.of(i)])
        assert int(fingerprints[i]) == expected
        assert (sums[i] / _UNIT).tolist() == pytest.approx(expected_sums, abs=1e-5)


@given(_HASHES, st.integers(1, 1000))
def test_sum_of_0_gives_bit_0(value: int, weight: int) -> None:
    """If the weights for and against a bit are equal, it is 0."""
    fingerprints, sums = _simhash([(value, float(weight)), (value ^ 2**64 - 1, float(weight))])
    assert fingerprints == [0]
    assert sums == [[0] * 64]


def test_no_terms_give_the_fingerprint_0() -> None:
    """A text without terms has no sums."""
    assert _simhash([]) == ([0], [[0] * 64])


@given(_TERMS.flatmap(lambda terms: st.tuples(st.just(terms), st.permutations(terms))))
def test_order_of_the_words_does_not_matter(
    orders: tuple[list[tuple[int, float]], list[tuple[int, float]]],
) -> None:
    """Reordering words changes neither fingerprint nor sums."""
    assert _simhash(orders[0]) == _simhash(orders[1])


@given(st.permutations([(1 << bit | 1, 0.1 * (bit + 1)) for bit in range(20)]))
def test_order_does_not_matter_for_weights_that_binary_fractions_only_approach(
    terms: list[tuple[int, float]],
) -> None:
    """Sums are added as integers, so 0.1 + 0.2 + 0.3 is the same in any order."""
    assert _simhash(terms) == _simhash(sorted(terms))


def test_weights_are_rounded_to_the_nearest_unit() -> None:
    """0.1 is 1,677,721.6 units and 0.2 is 3,355,443.2."""
    assert _simhash([(0, 0.1)], [(0, 0.2)])[1] == [[-1_677_722] * 64, [-3_355_443] * 64]


def test_worked_hamming_distance() -> None:
    """10101 and 00110 differ in 3 bits."""
    assert hamming(0b10101, 0b00110) == 3


@given(_HASHES, _HASHES)
def test_hamming_counts_the_positions_that_differ(a: int, b: int) -> None:
    """The distance is the number of positions where the 64 binary digits differ."""
    assert hamming(a, b) == sum(x != y for x, y in zip(f"{a:064b}", f"{b:064b}", strict=True))


@given(_HASHES)
def test_popcount_counts_the_ones(value: int) -> None:
    """The compiled popcount counts the ones of the binary digits."""
    assert popcount(np.uint64(value)) == f"{value:b}".count("1")


@given(_SUMS, _SUMS)
def test_cosine_is_the_cosine(a: list[int], b: list[int]) -> None:
    """The cosine of bit sums is a.b / (|a| |b|), computed here in exact integers."""
    norm = sqrt(sum(x * x for x in a)) * sqrt(sum(y * y for y in b))
    expected = sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0
    assert cosine(np.array(a), np.array(b)) == pytest.approx(expected, abs=1e-9)


def test_cosine_of_a_vector_with_itself_its_opposite_and_nothing() -> None:
    """It is 1 with itself, -1 with its opposite, and 0 with the vector of a text without terms."""
    vector, nothing = np.arange(-30, 34), np.zeros(64, np.int64)
    assert cosine(vector, 3 * vector) == pytest.approx(1)
    assert cosine(vector, -vector) == pytest.approx(-1)
    assert cosine(vector, nothing) == 0
