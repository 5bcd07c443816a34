"""An in-memory changelog, and a service that decides, appends and applies as the real one does.

Knows the order of a commit, and that a transaction is all or nothing; knows no broker.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from stream_dedup import Deduplicator, EngineSettings
from stream_dedup.engine.judged import Change
from stream_dedup.index.changelog import Commit, CommitReader, LogRecord, commit_records
from stream_dedup.index.records.ledger import ChangelogPosition, Positions
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.store import Family, FileStore, MemoryStore, StoreError
from tests.engine.model import Item

TOPIC = "changelog"
_START = b"start/"

Lists = dict[tuple[int, int], list[tuple[int, int]]]
Contents = dict[Family, list[tuple[bytes, bytes]]]


@dataclass
class Log:
    """A compacted topic of one partition: records with their offsets, some of which may be missing."""

    records: list[tuple[int, LogRecord]] = field(default_factory=list)
    end: int = 0

    @property
    def begin(self) -> int:
        """Offset of the oldest record that remains."""
        return self.records[0][0] if self.records else self.end

    def append(self, records: Sequence[LogRecord]) -> None:
        """Append the records of a transaction, and the marker that Kafka writes after them."""
        self.records += enumerate(records, self.end)
        self.end += len(records) + 1

    def cut(self, begin: int) -> None:
        """Delete the records before an offset."""
        self.records = [pair for pair in self.records if pair[0] >= begin]

    def compact(self, *, tombstones: bool) -> None:
        """Keep the newest record of each key; drop deletions too if `tombstones` is false."""
        newest = {key: offset for offset, (key, _) in self.records}
        self.records = [
            (offset, (key, value))
            for offset, (key, value) in self.records
            if newest[key] == offset and (tombstones or value is not None)
        ]


def commits(log: Log, reader: CommitReader, begin: int = 0) -> Iterator[tuple[Commit, int]]:
    """Yield the commits of a log from an offset on, each with the offset after it."""
    for offset, (key, value) in log.records:
        commit = reader.feed(key, value) if offset >= begin else None
        if commit is not None:
            yield commit, offset + 1


def append(engine: Deduplicator, change: Change, positions: Positions, log: Log) -> ChangelogPosition:
    """Append a change to the log; return the position after it, which is before the transaction's marker."""
    log.append(list(commit_records(engine.commit_of(change, positions))))
    return ChangelogPosition(TOPIC, log.end - 1)


def written(engine: Deduplicator, log: Log, batches: Sequence[Sequence[Item]]) -> None:
    """Let an engine judge batches, and append the commit of each to the log."""
    for batch in batches:
        judged = engine.decide(batch)
        positions = {("in", engine.progress.steps % 3): engine.progress.judged + len(batch)}
        engine.apply(judged.change, positions, append(engine, judged.change, positions, log))


def restored(
    log: Log, settings: EngineSettings, groups: Sequence[int] = (), store: FileStore | None = None
) -> Deduplicator:
    """Return an engine whose state was built from a log, in groups of commits; the last group is the rest."""
    engine = Deduplicator(settings=settings, store=store or MemoryStore())
    place = engine.state.place
    try:
        follow(engine, log, place.offset if place else 0, groups)
    except StoreError:
        # A process that dies releases its files; the store outlives it.
        engine.state.index.close()
        raise
    engine.state.refresh()
    return engine


def follow(engine: Deduplicator, log: Log, begin: int, groups: Sequence[int] = ()) -> None:
    """Let a state follow a log from an offset on, in groups of commits."""
    waiting = list(commits(log, CommitReader(engine.state.index.format), begin))
    engine.state.changelog_first = log.begin
    for group in (*groups, len(waiting)):
        if waiting[:group]:
            engine.state.replay(waiting[:group], TOPIC)
        waiting = waiting[group:]


def shown_lists(engine: Deduplicator) -> Lists:
    """Return what each posting list shows, by the number of its kind and its key: entries and what postings carry."""
    shelf, floor = engine.state.index.shelf, engine.progress.floor
    keys: dict[int, set[int]] = {}
    for place, keyed in shelf.keyed_postings():
        keys.setdefault(place, set()).update(keyed.keys.tolist())
    lists: Lists = {}
    for place, own in keys.items():
        found = shelf.find(place, np.array(sorted(own), np.uint64), floor, None)
        postings = list(zip(*(column.tolist() for column in found.postings), strict=True))
        bounds = pairwise(found.offsets.tolist())
        lists |= {(place, key): postings[start:stop] for key, (start, stop) in zip(sorted(own), bounds, strict=True)}
    return {key: shown for key, shown in lists.items() if shown}


def contents(engine: Deduplicator, *, starts: bool = True) -> Contents:
    """Return everything in a state, except which posting lists are currently in runs.

    Without `starts`, also except where in the changelog each generation begins.
    """
    pairs = {family: list(engine.state.store.items(family)) for family in Family}
    left_out = RUN_KEYS if starts else (_START, *RUN_KEYS)
    pairs[Family.META] = [pair for pair in pairs[Family.META] if not pair[0].startswith(left_out)]
    return pairs
