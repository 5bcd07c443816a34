"""The minimum number of landmarks that copies share."""

from math import exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.fingerprint.sketch import LandmarkRule
from stream_dedup.index.lookup.sharing import (
    Sharing,
    least_shared,
    least_shared_of_class,
    mean_shared,
    most_shared_of_class,
    size_classes,
)

_RULE = Sharing(near_jaccard=0.33, min_containment=0.6, rule=LandmarkRule(least=16, spacing=24, most=128))
_SIZES = st.integers(1, 200_000)


@pytest.mark.parametrize(
    ("size", "other", "mean"),
    [
        (800, 800, 0.33 / 1.33 * 1600 / 24.2424),  # 33 landmarks each, one for 24.24 n-grams
        (2400, 100, 0.6 * 100 / 24),  # nearly all n-grams with small hashes of the short text are also in the long one
        (100, 100, 0.33 / 1.33 * 200 * 16 / 100),
        (10, 10, 0.33 / 1.33 * 20),  # each n-gram is a landmark
        (0, 10, 0.0),
    ],
)
def test_mean_is_that_of_the_least_alike_copies(size: int, other: int, mean: float) -> None:
    """By hand: the n-grams both must have, times the smaller of the two shares of landmarks."""
    assert mean_shared(size, other, _RULE) == pytest.approx(mean, rel=1e-5)


@given(_SIZES, _SIZES, st.integers(0, 2**32))
def test_mean_is_what_drawn_copies_share(size: int, other: int, seed: int) -> None:
    """Random sets that just reach a threshold share this many on average, within 5 sigma."""
    size, other = min(size, 4_000), min(other, 4_000)
    shared = min(0.6 * min(size, other), 0.33 / 1.33 * (size + other))
    both = int(min(shared, size, other))
    random = np.random.default_rng(seed)
    hashes = random.permutation(size + other - both)
    one, two = hashes[:size], hashes[size - both :]
    counted = len(np.intersect1d(np.sort(one)[: _landmarks(size)], np.sort(two)[: _landmarks(other)]))
    mean = mean_shared(size, other, _RULE)
    assert abs(counted - mean) <= 5.0 * np.sqrt(mean + 1.0) + 2.0


def _landmarks(size: int) -> int:
    return min(max(size // 24, 16), 128, size)


@pytest.mark.parametrize(("size", "mean", "least", "missed"), [(240, 6, 2, 1 / 58), (648, 16, 4, 1 / 10_000)])
def test_hardly_any_copies_share_fewer(size: int, mean: float, least: int, missed: float) -> None:
    """Of Poisson-distributed numbers with these means, one in 58 is below 2, and one in 10,000 below 4."""
    longer = 128 * 24
    assert mean_shared(size, longer, _RULE) == pytest.approx(mean, rel=0.02)
    assert least_shared(size, longer, _RULE) == least
    assert sum(exp(-mean) * mean**fewer / factorial(fewer) for fewer in range(least)) == pytest.approx(missed, rel=0.1)


@given(_SIZES, _SIZES)
def test_class_of_a_size_bounds_the_number(size: int, other: int) -> None:
    """So reading entries by the size classes in postings includes all that the judge would accept by exact sizes.

    And leaving the tables out includes only what it would.
    """
    (known,) = size_classes(np.array([other])).tolist()
    exactly = least_shared(size, other, _RULE)
    assert 1 <= least_shared_of_class(size, known, _RULE) <= exactly <= most_shared_of_class(size, known, _RULE)


@given(_SIZES, _SIZES)
def test_number_is_the_same_from_both_sides(size: int, other: int) -> None:
    """The order of the two texts does not matter."""
    assert least_shared(size, other, _RULE) == least_shared(other, size, _RULE)
