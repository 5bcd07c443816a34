"""Steps of a state: what some articles or withdrawals change, and the writes that make the change.

Knows how a step becomes writes, in the same way when it is first made and when it is read back from the changelog;
knows nothing of how it was decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import U64
from stream_dedup.index.entries.entries import Entries, EntryFormat
from stream_dedup.index.lookup.multi import MultiIndex
from stream_dedup.index.records.generations import expire, put_records
from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.records.records import key_of, keys_of
from stream_dedup.index.runs.shelf import removed_put
from stream_dedup.index.stores.store import Family, Put, Puts, Store, Write


@dataclass(frozen=True, slots=True)
class Step:
    """What some articles or withdrawals change.

    Attributes:
        progress: progress of the state after it.
        entries: fixed parts of the entries that it adds; their numbers end at `progress.entries`, shape (n,).
        packed: each of these entries as it is stored, n of them.
        removed: numbers of the entries that it removes.
        records: articles, URLs and clusters, under keys without a generation.
        counts: writes of the document counts.
    """

    progress: Progress
    entries: Entries
    packed: Sequence[bytes]
    removed: Sequence[int]
    records: Sequence[Puts]
    counts: Sequence[Put]

    def numbers(self) -> U64:
        """Return the numbers of its entries, shape (n,)."""
        last = self.progress.entries
        return np.arange(last - len(self.entries), last, dtype=np.uint64)


def step_writes(store: Store, index: MultiIndex, before: Progress, step: Step) -> Iterator[Write]:
    """Yield the writes that make a step; the posting lists of its entries are not among them.

    Args:
        store: the state before the step.
        index: knows which entries no run holds yet.
        before: progress of the state before the step.
        step: the step.
    """
    yield Puts(Family.ENTRIES, keys_of(step.numbers()), step.packed)
    yield from _removals(store, index, step)
    for puts in step.records:
        yield from put_records(puts, before.live)
    yield from step.counts
    yield from expire(before, step.progress)
    yield step.progress.put()


def _removals(store: Store, index: MultiIndex, step: Step) -> Iterator[Put]:
    """Yield the writes that remove entries. They are kept for their keys, without names, until a run holds these."""
    if not step.removed:
        return
    keys = [key_of(number) for number in step.removed]
    stored = dict(zip(step.removed, store.get_many(Family.ENTRIES, keys), strict=True))
    stored |= zip(step.numbers().tolist(), step.packed, strict=True)
    for number, key in zip(step.removed, keys, strict=True):
        yield Put(Family.ENTRIES, key, None)
        packed = stored[number]
        if number >= index.shelf.young_first and packed is not None:
            yield removed_put(number, index.format.pack(index.format.fixed([packed]), [b""])[0])


def joined(steps: Sequence[Step], layout: EntryFormat) -> Step:
    """Return consecutive steps as one step; only the last may begin a generation.

    Args:
        steps: the steps, in order.
        layout: format of their entries.
    """
    return Step(
        steps[-1].progress,
        layout.joined([step.entries for step in steps]),
        [entry for step in steps for entry in step.packed],
        [number for step in steps for number in step.removed],
        [puts for step in steps for puts in step.records],
        [put for step in steps for put in step.counts],
    )
