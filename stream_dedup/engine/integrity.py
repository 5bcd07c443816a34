"""Checks a state: whether its indexes, records and counts agree, and whether it equals another state.

Knows what must hold between the families; repairs nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice, zip_longest

import numpy as np

from stream_dedup.arrays import U64
from stream_dedup.engine.clusters import Cluster
from stream_dedup.index.entries.entries import RESERVE
from stream_dedup.index.lookup.multi import MultiIndex
from stream_dedup.index.records.counts import load_counts, load_lines
from stream_dedup.index.records.generations import newest
from stream_dedup.index.records.ledger import CHANGELOG_KEYS, Progress
from stream_dedup.index.records.records import NOT_INDEXED, ArticleRecord, generation_prefix, key_of, keys_of
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.store import Family, Store
from stream_dedup.text.learnt import LearnRule

_CHUNK = 4_096
_SHOWN_BYTES = 40

Report = Callable[[str, int], None]  # what is being checked, and how many so far


class Integrity:
    """Checks one state.

    Args:
        store: the state.
        index: its indexes.
        progress: its progress.
        report: called from time to time with what is being checked and how many were so far.
    """

    def __init__(self, store: Store, index: MultiIndex, progress: Progress, report: Report) -> None:
        self._store = store
        self._index = index
        self._progress = progress
        self._first = progress.floor
        self._report = report
        self._done: Counter[str] = Counter()

    def faults(self, max_words: int, learning: LearnRule) -> Iterator[str]:
        """Yield a line for each fault.

        Args:
            max_words: largest number of words that are counted.
            learning: rule by which a line is learnt to be its site's.
        """
        yield from self._entries()
        yield from self._postings()
        yield from self._articles()
        yield from self._clusters()
        yield from self._counts(max_words, learning)

    def _entries(self) -> Iterator[str]:
        first, stop = self._first, self._progress.entries
        for pairs in self._chunks(Family.ENTRIES, b"", "entries"):
            numbers = np.array([int.from_bytes(key) for key, _ in pairs], np.uint64)
            out = numbers[(numbers < first) | (numbers >= stop)].tolist()
            yield from (f"entry {number} is not between {first} and {stop}" for number in out)
            fixed = self._index.format.fixed([value for _, value in pairs])
            active = (fixed["flags"] & RESERVE) == 0
            own_keys = self._index.own_keys(fixed[active])
            for place, (own, used) in enumerate(own_keys):
                row, _ = np.nonzero(used)
                yield from self._not_listed(place, own[used], numbers[active][row])

    def _not_listed(self, place: int, keys: U64, numbers: U64) -> Iterator[str]:
        """Yield a line for each entry that is missing from the list of its key.

        Args:
            place: index of the kind of key.
            keys: keys of the entries, shape (m,).
            numbers: numbers of the entries, shape (m,).
        """
        kind = self._index.kinds[place]
        lists = self._index.shelf.find(place, np.unique(keys), self._first, None)
        places = np.searchsorted(lists.keys, keys)
        for at, key, number in zip(places.tolist(), keys.tolist(), numbers.tolist(), strict=True):
            found = lists.postings.entries[lists.offsets[at] : lists.offsets[at + 1]]
            # A full list has lost its oldest entries.
            if number not in found and len(found) < kind.cap:
                yield f"entry {number} is missing from the list of its key {key:x} of kind {kind.name}"

    def _postings(self) -> Iterator[str]:
        for place, keyed in self._index.shelf.keyed_postings():
            yield from self._stray(place, keyed)
            self._done["postings"] += len(keyed.keys)
            self._report("postings", self._done["postings"])

    def _stray(self, place: int, keyed: KeyedPostings) -> Iterator[str]:
        """Yield a line for each posting whose entry does not have its key."""
        kind, first, following = self._index.kinds[place].name, self._first, self._progress.entries
        wanted = np.unique(keyed.entries)
        values = self._store.get_many(Family.ENTRIES, keys_of(wanted))
        there = np.array([value is not None for value in values], np.bool_)
        fixed = self._index.format.fixed([value for value in values if value is not None])
        own, used = self._index.own_keys(fixed)[place]
        held = {
            number: set(row[use].tolist()) for number, row, use in zip(wanted[there].tolist(), own, used, strict=True)
        }
        for key, number in zip(keyed.keys.tolist(), keyed.entries.tolist(), strict=True):
            # The posting of an entry that was removed or has expired stays until its run is dropped or merged.
            if number >= first and number in held and key not in held[number]:
                yield f"entry {number} is in the list of key {key:x} of kind {kind}, which is not one of its keys"
            if number >= following:
                yield f"the list of key {key:x} of kind {kind} has entry {number}, but the next new one is {following}"

    def _articles(self) -> Iterator[str]:
        for name, value in self._current(Family.ARTICLES):
            yield from self._article(name, ArticleRecord.unpack(value))
        yield from self._expired(Family.ARTICLES)

    def _article(self, name: bytes, record: ArticleRecord) -> Iterator[str]:
        numbers = [number for number in record.entries if number >= self._first]
        entries = self._store.get_many(Family.ENTRIES, list(map(key_of, numbers)))
        for number, entry in zip(numbers, entries, strict=True):
            if entry is None:
                yield f"article {_shown(name)} has entry {number}, which does not exist"
            elif (other := self._index.format.unpack([entry])[1][0]) != name:
                yield f"article {_shown(name)} has entry {number}, which belongs to {_shown(other)}"

    def _clusters(self) -> Iterator[str]:
        for key, value in self._current(Family.CLUSTERS):
            yield from self._cluster(key, Cluster.unpack(value))
        yield from self._expired(Family.CLUSTERS)
        yield from self._expired(Family.URLS)
        yield from self._expired(Family.MEMBERS)

    def _cluster(self, key: bytes, cluster: Cluster) -> Iterator[str]:
        name = f"cluster {cluster.number}"
        if key_of(cluster.number) != key:
            yield f"{name} is stored under the key {key.hex()}"
        if sum(cluster.sources.values()) + cluster.other_members != cluster.copies + 1:
            yield f"{name} has {cluster.copies} copies, but its sources do not add up to one more than that"
        if cluster.member(cluster.canonical) is None:
            yield f"{name} does not have its canonical article {cluster.canonical!r} among its members"
        kept = [member for member in cluster.members if member.entry != NOT_INDEXED and member.entry >= self._first]
        entries = self._store.get_many(Family.ENTRIES, [key_of(member.entry) for member in kept])
        for member, entry in zip(kept, entries, strict=True):
            if entry is None:
                yield f"{name}: entry {member.entry} of {member.id!r} does not exist"
                continue
            fixed = self._index.format.fixed([entry])
            if bool(fixed["flags"][0] & RESERVE) == member.active:
                yield f"{name}: entry {member.entry} of {member.id!r} contradicts its member's active = {member.active}"
            if int(fixed["cluster"][0]) != cluster.number:
                yield f"{name}: entry {member.entry} of {member.id!r} belongs to cluster {fixed['cluster'][0]}"

    def _counts(self, max_words: int, learning: LearnRule) -> Iterator[str]:
        counts, epoch = load_counts(self._store, max_words)
        self._report("words", counts.words)
        if counts.documents > self._progress.judged:
            yield f"{counts.documents} documents are counted, more than the {self._progress.judged} articles judged"
        most = int(counts.packed()["documents"].max(initial=0))
        if most > counts.documents:
            yield f"a word is counted in {most} documents, more than the total of {counts.documents}"
        lines = load_lines(self._store, learning, epoch.number).packed()["documents"]
        self._report("lines", len(lines))
        if int(lines.max(initial=0)) > self._progress.judged:
            yield f"a line is counted in {lines.max()} articles, more than the total of {self._progress.judged}"

    def _expired(self, family: Family) -> Iterator[str]:
        """Yield a line if something is left of a generation that has expired, or that does not exist yet."""
        live = {generation_prefix(generation) for generation in self._progress.live}
        ends = [islice(self._store.items(family, descending=descending), 1) for descending in (False, True)]
        for prefix in sorted({key[:4] for key, _ in chain.from_iterable(ends)} - live):
            yield f"{family} has a key of generation {int.from_bytes(prefix)}, which is not a live one"

    def _current(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of a family that no newer one hides, with keys that do not include the generation."""
        for generation in self._progress.live:
            prefix = generation_prefix(generation)
            for pairs in self._chunks(family, prefix, str(family)):
                keys = [key[len(prefix) :] for key, _ in pairs]
                last = newest(self._store, family, keys, self._progress.live)
                yield from (
                    (key, value) for key, (_, value), kept in zip(keys, pairs, last, strict=True) if value == kept
                )

    def _chunks(self, family: Family, prefix: bytes, what: str) -> Iterator[list[tuple[bytes, bytes]]]:
        pairs = self._store.items(family, prefix)
        while chunk := list(islice(pairs, _CHUNK)):
            yield chunk
            self._done[what] += len(chunk)
            self._report(what, self._done[what])


def differences(first: Store, second: Store, report: Report) -> Iterator[str]:
    """Yield a line for each family in which two states differ, with the first pair that is not the same in both.

    Where in the changelog each generation began is left out, as it cannot be known if the beginning of the changelog
    has been deleted. So are the runs, which only repeat what the entries say.
    """
    for family in Family:
        pairs = zip_longest(_pairs(first, family), _pairs(second, family))
        for done, (one, other) in enumerate(pairs, 1):
            if one != other:
                yield f"{family}: {_told(one)} here, {_told(other)} according to the changelog"
                break
            if done % _CHUNK == 0:
                report(f"{family} compared with the changelog", done)


def _pairs(store: Store, family: Family) -> Iterator[tuple[bytes, bytes]]:
    for key, value in store.items(family):
        if family is not Family.META or not key.startswith(CHANGELOG_KEYS + RUN_KEYS):
            yield key, value


def _told(pair: tuple[bytes, bytes] | None) -> str:
    if pair is None:
        return "nothing more"
    key, value = pair
    return f"{_shown(key)} = {value[:_SHOWN_BYTES].hex()} ({len(value)} bytes)"


def _shown(key: bytes) -> str:
    return repr(key[:_SHOWN_BYTES])[1:]
