"""The epochs of a batch: what its articles add to the counts of words and lines, and what changes when an epoch ends.

Knows when to count, freeze and measure; knows nothing of how articles are judged.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stream_dedup.arrays import I64, U64
from stream_dedup.fingerprint.drift import Drift, DriftSample
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.index.records.counts import delta_puts, epoch_puts, line_delta_puts, line_epoch_puts
from stream_dedup.index.stores.store import Put, Store
from stream_dedup.text.idf import Counts, DocumentCounts, Epoch, delta_of
from stream_dedup.text.learnt import LineCounts
from stream_dedup.text.lines import EndLines


@dataclass(frozen=True, slots=True)
class CountInput:
    """What to count of a run of n articles.

    Attributes:
        features: their features.
        fingerprints: their fingerprints, shape (n,).
        unique: indices of the articles whose words are counted, ascending: unique ones that are not a later text of an
            article seen before. Forty copies, or forty texts of one article, would deflate the weights of their words.
        told: indices of the articles whose lines are counted: those that are neither redelivered nor revised, copies
            included. If a site's lines are longer than its stories, these look like copies of one another until the
            lines are learnt.
    """

    features: Features
    fingerprints: U64
    unique: I64
    told: I64


class Epochs:
    """The epoch in force and the counts for the next one, in the course of a batch. Its arguments are not modified.

    Args:
        fingerprinter: fingerprinter of the engine.
        store: the state, with what the batch has changed so far.
        counts: live counts before the batch.
        epoch: epoch in force before the batch.
        sample: sample of the articles counted in that epoch.
        lines: live counts of lines before the batch.

    Attributes:
        counts: live counts, without those in `counted`.
        epoch: epoch in force.
        sample: sample of the articles counted in it.
        counted: counts to add to `counts`: a number of articles, and how many of them contain each word.
        lines: live counts of lines, without those in `counted_lines`, and the lines learnt.
        counted_lines: counts to add to `lines`.
        drifts: drifts at the beginnings of new epochs, where they could be measured.
    """

    def __init__(
        self,
        fingerprinter: Fingerprinter,
        store: Store,
        counts: DocumentCounts,
        epoch: Epoch,
        sample: DriftSample,
        lines: LineCounts,
    ) -> None:
        self._fingerprinter = fingerprinter
        self._store = store
        self.counts, self.epoch, self.sample = counts, epoch, sample
        self.lines = lines
        self.counted: list[tuple[int, Counts]] = []
        self.counted_lines: list[Counts] = []
        self.drifts: list[Drift] = []

    def count(self, step: int, run: CountInput) -> Iterator[Put]:
        """Count the words and lines of some articles, and yield the writes that store the counts.

        Args:
            step: number of the step.
            run: the articles.
        """
        if len(run.unique):
            yield from self._count_words(step, run)
        if len(run.features.lines.keys):
            yield from self._count_lines(step, run.features.lines, run.told)

    def _count_words(self, step: int, run: CountInput) -> Iterator[Put]:
        terms = run.features.terms
        delta = delta_of(terms.offsets, terms.hashes, run.unique)
        self.counted.append((len(run.unique), delta))
        self.sample = self.sample.followed_by(run.features, run.fingerprints, run.unique)
        yield from delta_puts(step, self.epoch.number, len(run.unique), delta)

    def _count_lines(self, step: int, lines: EndLines, told: I64) -> Iterator[Put]:
        fresh = self.lines.fresh(lines, told, self.counted_lines)
        if len(fresh):
            delta = delta_of(lines.offsets, lines.keys, fresh)
            self.counted_lines.append(delta)
            yield from line_delta_puts(step, self.epoch.number, len(fresh), delta)

    def end(self) -> Iterator[Put]:
        """Begin the next epoch, and yield the writes that store it in place of all earlier counts."""
        self.counts = self.counts.copy()
        for documents, words in self.counted:
            self.counts.add(documents, words)
        self.counted = []
        self.epoch = self.counts.freeze(self.epoch.number + 1)
        drift = self.sample.drift(self._fingerprinter, self.epoch)
        self.drifts += [drift] if drift else []
        self.sample = DriftSample()
        yield from epoch_puts(self._store, self.epoch)
        frozen = self.lines.freeze(self.counted_lines)
        self.lines, self.counted_lines = self.lines.followed_by(frozen), []
        yield from line_epoch_puts(self._store, self.epoch.number, frozen)
