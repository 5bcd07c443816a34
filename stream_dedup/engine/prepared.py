"""What is computed from articles before their turn: their features, and fingerprints for the epoch in force.

Knows what must still be the same when their turn comes, and what to do if one cannot be computed; knows nothing of
threads or of decisions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.article import Article
from stream_dedup.fingerprint.features import Features
from stream_dedup.machine_faults import MACHINE_FAULTS

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The features of n articles, in order.

    Attributes:
        articles: the articles.
        features: features of all of them; the fingerprints are valid as long as the epoch lasts.
        learnt: lines that were then learnt to be their sites', see `LineCounts`.
    """

    articles: Sequence[Article]
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
    articles = [article for part in parts for article in part.articles]
    return Prepared(articles, Features.joined([part.features for part in parts]), parts[0].learnt)


def prepared_without_faulty(
    items: Sequence[_Item], prepare: Callable[[Sequence[_Item]], Prepared | None]
) -> tuple[Prepared | None, dict[int, Exception]]:
    """Prepare items. One that raises for itself is left out: a fault in one text must not stop all others.

    Args:
        items: articles and whatever `prepare` ignores, in order.
        prepare: prepares all that it is given.

    Returns:
        The others, prepared, and the errors of those left out by their places.

    Raises:
        Exception: whatever `prepare` raises, if that is not the fault of single items.
    """
    try:
        return prepare(items), {}
    except Exception:
        faults = {place: fault for place, item in enumerate(items) if (fault := _fault(item, prepare)) is not None}
        if not faults or (len(faults) == len(items) and len(items) > 1):
            raise
    return prepare([item for place, item in enumerate(items) if place not in faults]), faults


def _fault(item: _Item, prepare: Callable[[Sequence[_Item]], object]) -> Exception | None:
    try:
        prepare([item])
    except MACHINE_FAULTS:
        raise  # not the item's
    except Exception as error:  # noqa: BLE001  # whatever is wrong with it
        return error
    return None
