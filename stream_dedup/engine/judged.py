"""The result of a batch: an outcome for each item, and the change of the state that goes with them.

Knows what the result consists of; knows nothing of how it is obtained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_dedup.arrays import I64
from stream_dedup.article import Decision, Succession, Unjudged, Withdrawn
from stream_dedup.engine.clusters import Cluster
from stream_dedup.engine.epochs import EpochState
from stream_dedup.fingerprint.drift import Drift
from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.steps import Step
from stream_dedup.index.stores.store import Write

Outcome = Decision | Withdrawn | Unjudged


@dataclass(frozen=True, slots=True)
class Change:
    """What a batch will change in the state.

    Attributes:
        steps: steps in order; the changelog stores these.
        writes: the writes that carry them out, for the store.
        base: progress of the state before the change.
        epoch_state: the epoch after the change.
    """

    steps: Sequence[Step]
    writes: Sequence[Write]
    base: Progress
    epoch_state: EpochState

    @property
    def progress(self) -> Progress:
        """Progress of the state after the change."""
        return self.steps[-1].progress

    @property
    def begins_generation(self) -> bool:
        """Whether a generation, a part of the window, begins with it."""
        return self.progress.generation != self.base.generation


def _of_each_kind() -> I64:
    return np.zeros(3, np.int64)


@dataclass(slots=True)
class Tally:
    """Counts over the articles of a batch: what they found in the index, and from how many site lines were removed.

    The kinds of keys, in this order: content, landmark, SimHash.

    Attributes:
        candidates: entries compared, by the kind of key that found them, int64, shape (3,).
        confirmed: those of them that matched, shape (3,).
        hot_keys: keys looked up whose posting lists are full, by kind, shape (3,).
        longest_lists: articles under the fullest key looked up, by kind, shape (3,).
        probes: keys of the SimHash tables looked up.
        hits: those of them under which there are entries.
        without_lines: articles from which lines of their site were removed.
    """

    candidates: I64 = field(default_factory=_of_each_kind)
    confirmed: I64 = field(default_factory=_of_each_kind)
    hot_keys: I64 = field(default_factory=_of_each_kind)
    longest_lists: I64 = field(default_factory=_of_each_kind)
    probes: int = 0
    hits: int = 0
    without_lines: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged batch.

    Attributes:
        outcomes: one per item, in order: a `Decision` on each article, unless it is late and late ones are not judged.
        change: what `Deduplicator.apply` does to the state.
        successions: changes of canonical articles, in order, by the index of the outcome that led to them.
        clusters: the clusters that changed, by the name of their canonical article; None if no cluster goes by that
            name any more.
        tally: counts over its articles.
        drifts: how far fingerprints moved at the beginning of each epoch that began; none for one without a sample.
        seconds: time spent, by stage.
    """

    outcomes: Sequence[Outcome]
    change: Change
    successions: Mapping[int, Sequence[Succession]]
    clusters: Mapping[str, Cluster | None]
    tally: Tally
    drifts: Sequence[Drift]
    seconds: Mapping[str, float]

    @property
    def decisions(self) -> list[Decision]:
        """The decisions among the outcomes."""
        return [outcome for outcome in self.outcomes if isinstance(outcome, Decision)]
