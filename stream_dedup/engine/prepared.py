"""What is computed from articles before their turn: their features, and fingerprints for the epoch in force.

Knows what must still be the same when their turn comes; knows nothing of threads or of decisions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.fingerprint.features import Features


@dataclass(frozen=True, slots=True)
class Prepared:
    """The features of n articles, in order.

    Attributes:
        features: features of all of them; the fingerprints are valid as long as the epoch lasts.
        learnt: lines that were then learnt to be their sites', see `LineCounts`.
    """

    features: Features
    learnt: U64

    def of(self, articles: I64, learnt: U64, anew: Callable[[I64], Features]) -> Features:
        """Return the features of some of the articles.

        Args:
            articles: their indices, ascending, at least one.
            learnt: lines that are learnt now.
            anew: computes features again, given indices into `articles`: those of the articles from which other lines
                are removed now. Not called if there are none.
        """
        stale = self.features.lines.affected_by(self.learnt, learnt)[articles]
        own = anew(np.flatnonzero(stale)) if stale.any() else None
        places = np.where(stale, np.cumsum(stale) - 1, articles)
        parts = []
        for run in np.split(np.arange(len(articles)), np.flatnonzero((np.diff(places) != 1) | np.diff(stale)) + 1):
            features = own if own is not None and stale[run[0]] else self.features
            parts.append(features.part(int(places[run[0]]), int(places[run[-1]]) + 1))
        return Features.joined(parts)


def joined(parts: Sequence[Prepared]) -> Prepared | None:
    """Return several prepared parts as one; None if there are none, or if other lines were learnt in between."""
    if not parts or any(not np.array_equal(part.learnt, parts[0].learnt) for part in parts[1:]):
        return None
    return Prepared(Features.joined([part.features for part in parts]), parts[0].learnt)
