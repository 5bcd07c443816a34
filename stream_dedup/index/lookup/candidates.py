"""Finds a batch's candidates step by step, the likeliest first; once an article is proved a copy, its search ends.

Knows in which order keys are looked up and which entries are worth reading; knows nothing of thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U8, U64, Bool
from stream_dedup.compiled.hashing import number_slot, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.features import Features
from stream_dedup.index.entries.entries import IN_TABLES, UNSEGMENTED, Rows, rows_of_entries
from stream_dedup.index.lookup.entries_to_read import (
    LookedUp,
    MarkLists,
    Marks,
    near_enough,
    sharing_enough,
    sharing_first_landmarks,
)
from stream_dedup.index.lookup.keys import NO_KEY, BatchKeys, NumberedKeys, articles_under, interleaved, is_member
from stream_dedup.index.lookup.multi import MultiIndex, in_tables, key_flags
from stream_dedup.index.lookup.sharing import FIRST_LANDMARKS, size_classes
from stream_dedup.index.records.records import keys_of
from stream_dedup.index.runs.postings import PostingLists, Postings
from stream_dedup.index.runs.shelf import Young
from stream_dedup.index.stores.store import Family, Store
from stream_dedup.text.texts import offsets_of

NO_ROW = -1
CONTENT, LANDMARK, SIMHASH = 0, 1, 2  # kinds of keys, in the order of their numbers


class KeyedRows(NamedTuple):
    """Which rows are indexed under which keys, for a batch of n articles; keys are numbered across all kinds.

    Attributes:
        look_up_offsets: article i looks up look_up_keys[look_up_offsets[i]:look_up_offsets[i + 1]].
        look_up_keys: key numbers: contents, landmarks in ascending order, tables.
        own_keys: key numbers under which each article is indexed, `NO_KEY` where unused, shape (n, keys).
        key_kinds: `CONTENT`, `LANDMARK` or `SIMHASH` for each key number.
        list_begins: postings of key i are at list_begins[i]:list_stops[i].
        list_stops: see `list_begins`.
        list_rows: row of each posting, oldest first, `NO_ROW` where no article needs it.
    """

    look_up_offsets: I64
    look_up_keys: I64
    own_keys: I64
    key_kinds: U8
    list_begins: I64
    list_stops: I64
    list_rows: I64

    def last_listed(self, stored: int) -> I64:
        """Return for each stored row the last article that looks up a key it is listed under, -1 for none.

        Args:
            stored: how many stored rows there are.
        """
        askers, last = np.full(len(self.key_kinds), -1, np.int64), np.full(stored, -1, np.int64)
        # Of several articles that look up a key, the last is assigned last.
        askers[self.look_up_keys] = np.repeat(np.arange(len(self.own_keys)), np.diff(self.look_up_offsets))
        in_order = np.argsort(self.list_begins, kind="stable")
        asked_by = np.repeat(askers[in_order], (self.list_stops - self.list_begins)[in_order])
        listed = self.list_rows != NO_ROW
        np.maximum.at(last, self.list_rows[listed], asked_by[listed])
        return last


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a batch of n articles may match: m stored entries, and its own articles by the keys that they share.

    Attributes:
        rows: rows 0 to m - 1 are the stored entries, rows m to m + n - 1 the articles of the batch.
        names: name of the article of each stored row, as UTF-8, m of them.
        numbers: entry number of each stored row, shape (m,).
        clusters: cluster of each stored row, shape (m,).
        keyed: which rows are indexed under which keys.
    """

    rows: Rows
    names: list[bytes]
    numbers: U64
    clusters: U64
    keyed: KeyedRows


class Search:
    """The search for the candidates of a batch of n articles.

    Contents and first landmarks of all articles are looked up at once. For articles that these do not prove to be
    copies, the other landmarks follow, and then the tables, if the landmarks leave anything open.

    Args:
        index: the index to search.
        store: the state.
        features: features of the batch.
        times: window times, shape (n,).
        scopes: number of the scope, 0 for none, shape (n,).
        floor: number of the first entry that has not expired.
        pending: posting lists of entries that are in the store but not yet in the index.

    Attributes:
        probes: number of table keys that each article looked up, shape (n,).
        hits: number of those keys that have entries, shape (n,).
    """

    def __init__(
        self,
        index: MultiIndex,
        store: Store,
        features: Features,
        times: I64,
        scopes: U64,
        floor: int,
        pending: Young | None,
    ) -> None:
        self._index = index
        self._store = store
        self._features = features
        self._scopes = scopes
        self._floor = floor
        self._pending = pending
        self._flags = key_flags(features, index.settings)
        self._rows = rows_of(features, np.zeros(len(times), np.uint64), times, self._flags, scopes)
        self._read = _ReadEntries(index, store)
        keys = (*index.text_keys(features, self._flags, scopes), BatchKeys.none(len(times)))
        self._keys = [kind.numbered() for kind in keys]
        self._lists = [_Lists(kind.distinct) for kind in self._keys]
        self.probes, self.hits = np.zeros((2, len(times)), np.int64)
        self._look_up_first()

    def look_up_other_landmarks(self, proved: Bool) -> None:
        """Look up the other landmarks of the articles that are not proved to be copies; `proved` has shape (n,)."""
        keys = self._keys[LANDMARK]
        asked = keys.only(np.repeat(~proved, np.diff(keys.offsets)))
        found = self._find(LANDMARK, asked)
        self._marks = self._marks_of(asked, found)
        wanted, self._left_open = sharing_enough(self._marks)
        self._want(found, wanted)

    def look_up_tables(self, fingerprints: U64, sums: I64, proved: Bool, segmented: Bool) -> None:
        """Look up the tables for articles that are not proved to be copies and whose landmarks leave anything open.

        Args:
            fingerprints: shape (n,).
            sums: bit sums, shape (n, 64).
            proved: which articles are proved to be copies, shape (n,).
            segmented: which articles were segmented into words, shape (n,).
        """
        weighed = in_tables(self._features, sums, self._index.settings)
        flags = self._flags | (IN_TABLES * weighed | UNSEGMENTED * ~segmented).astype(np.uint8)
        self._rows = self._rows._replace(fingerprints=fingerprints, flags=flags)
        asking = weighed & ~proved & self._left_open
        keys = self._index.table_keys(fingerprints, sums, weighed, asking).masked(self._scopes)
        occupied = self._index.shelf.may_hold(SIMHASH, keys.looked_up, self._pending)
        self._keys[SIMHASH] = numbered = keys.only(occupied | keys.own_among_looked_up()).numbered()
        self._lists[SIMHASH] = _Lists(numbered.distinct)
        found = self._find(SIMHASH, numbered)
        self.probes = np.diff(keys.offsets)
        hits = found.stops[numbered.looked_up] > found.begins[numbered.looked_up]
        self.hits = np.diff(numbered.only(hits).offsets)
        looked_up, (entries, stored) = _looked_up(numbered, found), found.postings
        farthest = self._index.settings.simhash.max_distance
        self._want(found, near_enough(looked_up, fingerprints, entries, stored, farthest, self._marks))

    def candidates(self) -> Candidates:
        """Return what was found so far; until the tables are looked up, the fingerprints of the batch are 0."""
        lists = self._lists
        firsts = offsets_of([len(kind.keys) for kind in lists])
        keys = list(zip(self._keys, firsts, strict=False))
        offsets, looked_up = interleaved(
            [kind.offsets for kind in self._keys], [kind.looked_up + first for kind, first in keys]
        )
        stored = self._read.all()
        begins = offsets_of([len(kind.postings.entries) for kind in lists])
        return Candidates(
            stored.rows.followed_by(self._rows),
            stored.names,
            stored.numbers,
            stored.clusters,
            KeyedRows(
                offsets,
                looked_up,
                np.concatenate(
                    [np.where(kind.own == NO_KEY, NO_KEY, kind.own + first) for kind, first in keys], axis=1
                ),
                np.repeat(np.arange(len(lists), dtype=np.uint8), np.diff(firsts)),
                np.concatenate([kind.begins + begin for kind, begin in zip(lists, begins, strict=False)]),
                np.concatenate([kind.stops + begin for kind, begin in zip(lists, begins, strict=False)]),
                _rows_of_numbers(stored.numbers, np.concatenate([kind.postings.entries for kind in lists])),
            ),
        )

    def _look_up_first(self) -> None:
        found = self._find(CONTENT, self._keys[CONTENT])
        self._want(found, np.ones(len(found.postings.entries), np.bool_))
        marks = self._keys[LANDMARK]
        first = marks.only(_ranks(marks.offsets) < FIRST_LANDMARKS)
        found = self._find(LANDMARK, first)
        self._want(found, sharing_first_landmarks(MarkLists(_looked_up(first, found), *found.postings)))

    def _marks_of(self, keys: NumberedKeys, lists: "_Lists") -> Marks:
        index, sizes = self._index, self._features.sketches.sizes
        offsets, articles = articles_under(keys.own, len(keys.distinct))
        others = np.diff(offsets) - 1
        return Marks(
            MarkLists(_looked_up(keys, lists), *lists.postings),
            MarkLists(
                LookedUp(keys.offsets, keys.looked_up, offsets[:-1], offsets[1:]),
                articles,
                size_classes(sizes)[articles].astype(np.uint64),
            ),
            others > 0,
            lists.stops - lists.begins + others >= index.kinds[LANDMARK].cap,
            sizes,
            index.sharing,
        )

    def _find(self, kind: int, keys: NumberedKeys) -> "_Lists":
        """Read the lists of those keys that were not read yet, and return all lists read so far."""
        lists = self._lists[kind]
        missing = lists.missing(keys.looked_up)
        lists.add(missing, self._index.shelf.find(kind, lists.keys[missing], self._floor, self._pending))
        return lists

    def _want(self, lists: "_Lists", wanted: Bool) -> None:
        self._read.read(lists.postings.entries[wanted])


class _Lists:
    """The posting lists read so far for the keys of one kind.

    Args:
        keys: distinct, ascending, shape (m,).

    Attributes:
        keys: likewise.
        begins: postings of key i are at begins[i]:stops[i], shape (m,).
        stops: see `begins`.
        postings: postings of all lists.
    """

    def __init__(self, keys: U64) -> None:
        self.keys = keys
        self.begins, self.stops = np.zeros((2, len(keys)), np.int64)
        self.postings = Postings(*np.empty((2, 0), np.uint64))
        self._known = np.zeros(len(keys), np.bool_)

    def missing(self, numbers: I64) -> I64:
        """Return those of the key numbers whose lists were not read yet, each once, ascending."""
        wanted = np.zeros(len(self.keys), np.bool_)
        wanted[numbers] = True
        return np.flatnonzero(wanted & ~self._known)

    def add(self, places: I64, lists: PostingLists) -> None:
        """Add the lists of the keys with the numbers `places`."""
        self._known[places] = True
        offsets = lists.offsets + len(self.postings.entries)
        self.begins[places], self.stops[places] = offsets[:-1], offsets[1:]
        if len(self.postings.entries):
            self.postings = Postings(*map(np.concatenate, zip(self.postings, lists.postings, strict=True)))
        else:
            self.postings = lists.postings


class _Stored(NamedTuple):
    """Some entries of a store, in ascending order of their numbers.

    Attributes:
        numbers: shape (m,).
        clusters: shape (m,).
        names: names of their articles, as UTF-8, m of them.
        rows: what they are compared by.
    """

    numbers: U64
    clusters: U64
    names: list[bytes]
    rows: Rows


class _ReadEntries:
    """The entries read from a store so far.

    Args:
        index: knows how they are stored.
        store: the state.
    """

    def __init__(self, index: MultiIndex, store: Store) -> None:
        self._format = index.format
        self._store = store
        self._asked: U64 = np.empty(0, np.uint64)
        self._parts: list[_Stored] = []

    def read(self, numbers: U64) -> None:
        """Read the entries that were not read yet; missing ones are left out."""
        new = np.unique(numbers[~is_member(numbers, self._asked)])
        self._asked = np.concatenate([self._asked, new])
        values = self._store.get_many(Family.ENTRIES, keys_of(new))
        there = np.array([value is not None for value in values], np.bool_)
        if there.any() or not self._parts:
            entries, names = self._format.unpack([value for value in values if value is not None])
            self._parts.append(_Stored(new[there], entries["cluster"].copy(), names, rows_of_entries(entries)))

    def all(self) -> _Stored:
        """Return all entries read so far."""
        if len(self._parts) > 1:
            self._parts = [_ascending(self._parts)]
        return self._parts[0]


def _ascending(parts: Sequence[_Stored]) -> _Stored:
    numbers, clusters = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    order = np.argsort(numbers)
    names = [name for part in parts for name in part.names]
    rows = Rows(*(np.concatenate(column)[order] for column in zip(*(part.rows for part in parts), strict=True)))
    return _Stored(numbers[order], clusters[order], [names[place] for place in order.tolist()], rows)


def _looked_up(keys: NumberedKeys, lists: _Lists) -> LookedUp:
    return LookedUp(keys.offsets, keys.looked_up, lists.begins, lists.stops)


def _ranks(offsets: I64) -> I64:
    """Return the rank of each key among those of its article."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


@kernel
def _rows_of_numbers(numbers: U64, entries: U64) -> I64:
    """Return the index of each entry in `numbers`, `NO_ROW` where it is not among them, shape of `entries`."""
    # Nearly all postings are of entries that were not read: most of the slots that they probe should be free.
    size = table_size(4 * len(numbers))
    # Numbers next to their rows, so that a slot is in a single cache line.
    table = np.empty((size, 2), np.int64)
    table[:, 1] = NO_ROW
    for row in range(len(numbers)):
        slot = _row_slot(table, numbers[row])
        table[slot, 0], table[slot, 1] = numbers[row], row
    rows = np.empty(len(entries), np.int64)
    for posting in range(len(entries)):
        rows[posting] = table[_row_slot(table, entries[posting]), 1]
    return rows


@kernel
def _row_slot(table: I64, number: np.uint64) -> int:
    """Return the slot of a number in an open-addressing table, or the free one where it belongs."""
    last = len(table) - 1
    slot = number_slot(number, last)
    while table[slot, 1] != NO_ROW and table[slot, 0] != np.int64(number):
        slot = (slot + 1) & last
    return slot


def rows_of(features: Features, fingerprints: U64, times: I64, flags: U8, scopes: U64) -> Rows:
    """Return the rows of a batch."""
    sketches = features.sketches
    return Rows(
        fingerprints,
        sketches.content,
        times,
        sketches.values,
        sketches.lengths,
        sketches.sizes,
        *features.numbers,
        *features.places,
        flags,
        scopes,
    )
