"""How many landmarks two texts share at least if one is a copy of the other: with fewer they need not be compared.

Knows sizes and the thresholds of verification; knows nothing of keys or postings.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled.hashing import I64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.sketch import LandmarkRule, landmark_count
from stream_dedup.settings import EngineSettings

FIRST_LANDMARKS = 8  # the smallest of a text, which are looked up first
FIRST_SHARED = 4  # of them, with which an entry is worth reading before the others are looked up
_SHARE = 0.25  # of the landmarks that the least alike of copies share in the mean
_STEPS = 8  # classes of sizes in a doubling
_SLACK = 0.8  # for what a class leaves open


class Sharing(NamedTuple):
    """What the number follows from: thresholds of verification, and how many landmarks a text has.

    Attributes:
        near_jaccard: see `VerifySettings`; `min_containment` likewise.
        min_containment: see `near_jaccard`.
        rule: how many landmarks a text has.
    """

    near_jaccard: float
    min_containment: float
    rule: LandmarkRule


def sharing_of(settings: EngineSettings) -> Sharing:
    """Return what the settings make of it."""
    return Sharing(settings.verify.near_jaccard, settings.verify.min_containment, landmark_rule(settings))


@kernel
def least_shared(size: int, other: int, sharing: Sharing) -> int:
    """Return how many landmarks two texts share at least, at least 1: a quarter of what copies share in the mean.

    The number that two texts share is all but Poisson distributed. Of pairs that just reach a threshold with a mean of
    6 one in 58 shares fewer than 2, with a mean of 16 one in 10,000 fewer than 4.

    Args:
        size: n-grams of the one.
        other: n-grams of the other.
        sharing: thresholds and rule.
    """
    return max(1, int(_SHARE * mean_shared(size, other, sharing) + 0.5))


@kernel
def least_shared_of_class(size: int, size_class: int | np.uint64, sharing: Sharing) -> int:
    """Return the same, or less, where of the other text only the class of its size is known."""
    other = int(2.0 ** (size_class / _STEPS))
    return max(1, int(_SLACK * _SHARE * mean_shared(size, other, sharing) + 0.5))


@kernel
def mean_shared(size: int, other: int, sharing: Sharing) -> float:
    """Return how many landmarks two texts share in the mean that are just copies.

    These have |A and B| = C min(|A|, |B|) or |A and B| = J / (1 + J) (|A| + |B|), whichever is less; and of the n-grams
    that both have those are landmarks of both whose hashes are small enough for either.

    Args:
        size: n-grams of the one.
        other: n-grams of the other.
        sharing: thresholds and rule.
    """
    if size == 0 or other == 0:
        return 0.0
    contained = sharing.min_containment * min(size, other)
    near = sharing.near_jaccard / (1.0 + sharing.near_jaccard) * (size + other)
    return min(contained, near) * min(
        landmark_count(size, sharing.rule) / size, landmark_count(other, sharing.rule) / other
    )


def size_classes(sizes: I64) -> NDArray[np.uint8]:
    """Return the classes of sizes, shape (n,): an eighth of a doubling each."""
    return np.asarray(np.rint(_STEPS * np.log2(np.maximum(sizes, 1))), np.uint8)
