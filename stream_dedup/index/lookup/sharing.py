"""The fewest landmarks that two texts share if one is a copy of the other: with fewer they need not be compared.

Knows sizes and the thresholds of verification; knows nothing of keys or postings.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U8
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.sketch import LandmarkRule, landmark_count
from stream_dedup.settings import EngineSettings

FIRST_LANDMARKS = 8  # the smallest of a text, which are looked up first
FIRST_SHARED = 4  # with this many of them in common, an entry is worth reading before the others are looked up
_SHARE = 0.25  # of the landmarks that the least similar copies share on average
_STEPS = 8  # size classes per doubling
_SLACK = 0.8  # since a class does not tell the exact size


class Sharing(NamedTuple):
    """What that number depends on: thresholds of verification, and how many landmarks a text has.

    Attributes:
        near_jaccard: see `VerifySettings`.
        min_containment: see `VerifySettings`.
        rule: how many landmarks a text has.
    """

    near_jaccard: float
    min_containment: float
    rule: LandmarkRule


def sharing_of(settings: EngineSettings) -> Sharing:
    """Return the `Sharing` of the settings."""
    return Sharing(settings.verify.near_jaccard, settings.verify.min_containment, landmark_rule(settings))


@kernel
def least_shared(size: int, other: int, sharing: Sharing) -> int:
    """Return the fewest landmarks that two copies share, at least 1: a quarter of what copies share on average.

    The number that two texts share is very nearly Poisson distributed. Of pairs that only just reach a threshold, with
    a mean of 6, one in 58 shares fewer than 2; with a mean of 16, one in 10,000 shares fewer than 4.

    Args:
        size: number of n-grams of one text.
        other: number of n-grams of the other.
        sharing: thresholds and rule.
    """
    return max(1, int(_SHARE * mean_shared(size, other, sharing) + 0.5))


@kernel
def least_shared_of_class(size: int, size_class: int | np.uint64, sharing: Sharing) -> int:
    """Return the same number as `least_shared`, or less, if only the size class of the other text is known."""
    other = int(2.0 ** (size_class / _STEPS))
    return max(1, int(_SLACK * _SHARE * mean_shared(size, other, sharing) + 0.5))


@kernel
def most_shared_of_class(size: int, size_class: int | np.uint64, sharing: Sharing) -> int:
    """Return the same number as `least_shared`, or more, if only the size class of the other text is known."""
    other = int(2.0 ** (size_class / _STEPS))
    return max(1, int(_SHARE / _SLACK * mean_shared(size, other, sharing) + 0.5))


@kernel
def least_shared_nearby(size: int, sharing: Sharing) -> int:
    """Return the same number as `least_shared`, if all that is known of the other text is that its fingerprint is near.

    It is then taken to be of the same size: the fingerprint of a much longer or shorter copy would not be near.
    """
    return least_shared(size, size, sharing)


@kernel
def mean_shared(size: int, other: int, sharing: Sharing) -> float:
    """Return how many landmarks two texts share on average if they only just count as copies.

    Such texts have |A and B| = C min(|A|, |B|) or |A and B| = J / (1 + J) (|A| + |B|), whichever is less; of the
    n-grams that both have, those whose hashes are small enough for both texts are landmarks of both.

    Args:
        size: number of n-grams of one text.
        other: number of n-grams of the other.
        sharing: thresholds and rule.
    """
    if size == 0 or other == 0:
        return 0.0
    contained = sharing.min_containment * min(size, other)
    near = sharing.near_jaccard / (1.0 + sharing.near_jaccard) * (size + other)
    return min(contained, near) * min(
        landmark_count(size, sharing.rule) / size, landmark_count(other, sharing.rule) / other
    )


def size_classes(sizes: I64) -> U8:
    """Return the size classes, shape (n,), each an eighth of a doubling wide."""
    return np.asarray(np.rint(_STEPS * np.log2(np.maximum(sizes, 1))), np.uint8)
