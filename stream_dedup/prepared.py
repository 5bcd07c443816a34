"""What is worked out of articles before their turn: their features, which no other article has a say in.

Knows what must be the same still when their turn has come; knows nothing of threads or of decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_dedup.fingerprint.features import Features
from stream_dedup.hashing import I64, U64


@dataclass(frozen=True, slots=True)
class Prepared:
    """The features of n articles, in order.

    Attributes:
        features: of all of them.
        learnt: the lines that were known to be their sites', see `LineCounts`.
    """

    features: Features
    learnt: U64

    def of(self, articles: I64, learnt: U64) -> Features | None:
        """Return the features of some of the articles; None where other lines are known by now.

        Args:
            articles: their places, ascending, at least one.
            learnt: the lines that are known by now.
        """
        if not np.array_equal(self.learnt, learnt):
            return None
        runs = np.split(articles, np.flatnonzero(np.diff(articles) != 1) + 1)
        return Features.joined([self.features.part(int(run[0]), int(run[-1]) + 1) for run in runs])


def joined(parts: Sequence[Prepared]) -> Prepared | None:
    """Return what was prepared in several parts; None where there are none, or other lines became known in between."""
    if not parts or any(not np.array_equal(part.learnt, parts[0].learnt) for part in parts[1:]):
        return None
    return Prepared(Features.joined([part.features for part in parts]), parts[0].learnt)
