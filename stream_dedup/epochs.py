"""The epochs of a batch: what its unique articles add to the document counts, and what changes where an epoch ends.

Knows when to count, freeze and measure; knows nothing of how articles are judged.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from stream_dedup.fingerprint.drift import Drift, DriftSample
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.hashing import U64
from stream_dedup.index.counts import delta_puts, epoch_puts
from stream_dedup.index.store import Put, Store
from stream_dedup.text.idf import Counts, DocumentCounts, Epoch, document_delta


class Epochs:
    """The epoch in force and the counts of the next, as a batch goes on. What it is given does not change.

    Args:
        fingerprinter: of the engine.
        store: the state, with what the batch has changed so far.
        counts: the live counts before the batch.
        epoch: in force before the batch.
        sample: of the articles counted in that epoch.

    Attributes:
        counts: the live counts, without those of `counted`.
        epoch: in force.
        sample: of the articles counted in it.
        counted: what is to be counted since: articles, and how many of them hold each word.
        drifts: of the epochs that have begun, those that could be measured.
    """

    def __init__(
        self,
        fingerprinter: Fingerprinter,
        store: Store,
        counts: DocumentCounts,
        epoch: Epoch,
        sample: DriftSample,
    ) -> None:
        self._fingerprinter = fingerprinter
        self._store = store
        self.counts, self.epoch, self.sample = counts, epoch, sample
        self.counted: list[tuple[int, Counts]] = []
        self.drifts: list[Drift] = []

    def count(self, step: int, features: Features, fingerprints: U64, unique: Sequence[int]) -> Iterator[Put]:
        """Count the words of unique articles and yield the writes that keep them.

        Copies are not counted: forty of them would deflate their own words.

        Args:
            step: number of the step.
            features: of a batch of n.
            fingerprints: of the batch, shape (n,).
            unique: places of the unique articles in it.
        """
        if not unique:
            return
        delta = document_delta(np.concatenate([features.terms.hashes[features.terms.of(place)] for place in unique]))
        self.counted.append((len(unique), delta))
        self.sample = self.sample.followed_by(features, fingerprints, unique)
        yield from delta_puts(step, self.epoch.number, len(unique), delta)

    def end(self) -> Iterator[Put]:
        """Begin the next epoch and yield the writes that keep it, in place of all counts before it."""
        self.counts = self.counts.copy()
        for documents, words in self.counted:
            self.counts.add(documents, words)
        self.counted = []
        self.epoch = self.counts.freeze(self.epoch.number + 1)
        drift = self.sample.drift(self._fingerprinter, self.epoch)
        self.drifts += [drift] if drift else []
        self.sample = DriftSample()
        yield from epoch_puts(self._store, self.epoch)
