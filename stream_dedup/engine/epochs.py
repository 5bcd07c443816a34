"""The epochs of a batch: what its articles add to the counts of words and lines, and what changes when an epoch ends.

Knows when to count, freeze and measure; knows nothing of how articles are judged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from stream_dedup.arrays import I64, U64
from stream_dedup.fingerprint.drift import Drift, DriftSample
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.index.records.counts import delta_puts, epoch_puts, line_delta_puts, line_epoch_puts
from stream_dedup.index.stores.store import Put, Store
from stream_dedup.text.idf import Counts, DocumentCounts, Epoch, delta_of
from stream_dedup.text.learnt import LineCounts
from stream_dedup.text.lines import EndLines


@dataclass(frozen=True, slots=True)
class EpochState:
    """The epoch in force, and the counts for the next one.

    Attributes:
        epoch: the epoch.
        counts: live document counts, without those in `counted`.
        lines: live counts of lines, without those in `counted_lines`, and the lines learnt as of the epoch.
        sample: newest articles of the epoch; in memory only.
        counted: counts to add to `counts`: a number of articles, and how many of them contain each word.
        counted_lines: counts to add to `lines`.
    """

    epoch: Epoch
    counts: DocumentCounts
    lines: LineCounts
    sample: DriftSample = field(default_factory=DriftSample)
    counted: Sequence[tuple[int, Counts]] = ()
    counted_lines: Sequence[Counts] = ()

    def add_counted(self, counts: DocumentCounts) -> None:
        """Add the counts in `counted` to document counts."""
        for documents, words in self.counted:
            counts.add(documents, words)

    def settled(self) -> "EpochState":
        """Add what was counted to the live counts, and return the state with nothing left to add."""
        self.add_counted(self.counts)
        for lines in self.counted_lines:
            self.lines.add(lines)
        return replace(self, counted=(), counted_lines=())


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
    """The epochs in the course of a batch. Counts are only noted, not added: a batch may yet be given up.

    Args:
        fingerprinter: fingerprinter of the engine.
        store: the state, with what the batch has changed so far.
        state: epoch in force before the batch.

    Attributes:
        state: epoch in force.
        drifts: drifts at the beginnings of new epochs, where they could be measured.
    """

    def __init__(self, fingerprinter: Fingerprinter, store: Store, state: EpochState) -> None:
        self._fingerprinter = fingerprinter
        self._store = store
        self.state = state
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
        before, terms = self.state, run.features.terms
        delta = delta_of(terms.offsets, terms.hashes, run.unique)
        self.state = replace(
            before,
            sample=before.sample.followed_by(run.features, run.fingerprints, run.unique),
            counted=[*before.counted, (len(run.unique), delta)],
        )
        yield from delta_puts(step, before.epoch.number, len(run.unique), delta)

    def _count_lines(self, step: int, lines: EndLines, told: I64) -> Iterator[Put]:
        before = self.state
        fresh = before.lines.fresh(lines, told, before.counted_lines)
        if len(fresh):
            delta = delta_of(lines.offsets, lines.keys, fresh)
            self.state = replace(before, counted_lines=[*before.counted_lines, delta])
            yield from line_delta_puts(step, before.epoch.number, len(fresh), delta)

    def end(self) -> Iterator[Put]:
        """Begin the next epoch, and yield the writes that store it in place of all earlier counts."""
        ended = self.state
        counts = ended.counts.copy()
        ended.add_counted(counts)
        epoch = counts.freeze(ended.epoch.number + 1)
        lines = ended.lines.freeze(ended.counted_lines)
        self.state = EpochState(epoch, counts, ended.lines.followed_by(lines))
        drift = ended.sample.drift(self._fingerprinter, epoch)
        self.drifts += [drift] if drift else []
        yield from epoch_puts(self._store, epoch)
        yield from line_epoch_puts(self._store, epoch.number, lines)
