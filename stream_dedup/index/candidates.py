"""The multi-index: a batch of articles in, their candidates out, and the writes that add articles to it.

Knows all three families of keys and how articles of a batch meet; knows nothing of thresholds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.fingerprint.features import Features
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.hashing import I64, U64
from stream_dedup.index.keys import BatchKeys, interleaved
from stream_dedup.index.plan import TablePlan
from stream_dedup.index.postings import PostingFamily, PostingLists, read_lists
from stream_dedup.index.probing import Occupancy, probe_keys, table_keys
from stream_dedup.index.records import EntryFormat, EntryNames, Rows, keys_of
from stream_dedup.index.store import Family, Put, Store
from stream_dedup.settings import EngineSettings

NO_ROW = -1
CONTENT, LANDMARK, SIMHASH = 0, 1, 2  # the families, in the order of their key numbers


class KeyedRows(NamedTuple):
    """Which rows stand under which keys, for a batch of n articles; keys are numbered over all families.

    Attributes:
        look_up_offsets: article i looks up look_up_keys[look_up_offsets[i]:look_up_offsets[i + 1]].
        look_up_keys: key numbers.
        own_keys: key numbers under which each article is indexed, `NO_KEY` where unused, shape (n, keys).
        key_families: `CONTENT`, `LANDMARK` or `SIMHASH` of each key number.
        list_offsets: postings of key i at list_offsets[i]:list_offsets[i + 1].
        list_rows: row of each posting, oldest first, `NO_ROW` where no article needs it.
    """

    look_up_offsets: I64
    look_up_keys: I64
    own_keys: I64
    key_families: NDArray[np.uint8]
    list_offsets: I64
    list_rows: I64


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a batch of n articles may match: m stored entries, and the keys under which its own articles meet.

    Attributes:
        rows: of both: rows 0 to m - 1 are stored entries, rows m to m + n - 1 the articles of the batch.
        names: ids of each stored row, m of them.
        fingerprints: of the batch, shape (n,).
        keyed: which rows stand under which keys.
        lists: the posting lists as stored, a family each.
    """

    rows: Rows
    names: list[EntryNames]
    fingerprints: U64
    keyed: KeyedRows
    lists: tuple[PostingLists, ...]


class MultiIndex:
    """The content, landmark and SimHash indexes over a store.

    Args:
        store: where they are kept.
        settings: of the tables, the landmarks and the sketches.
    """

    def __init__(self, store: Store, settings: EngineSettings) -> None:
        self._store = store
        self._settings = settings
        self.format = EntryFormat(settings.sketch.size, settings.sketch.numbers)
        self.plan = TablePlan(settings.simhash.tables, settings.simhash.prefix_bits)
        self._families = (
            PostingFamily(Family.CONTENTS, cap=1),
            PostingFamily(Family.LANDMARKS, settings.landmarks.cap),
            PostingFamily(Family.TABLES, settings.simhash.bucket_cap, fingerprints=True),
        )
        self._occupancy = Occupancy(self.plan)
        if settings.simhash.enabled:
            self._occupancy.mark_keys(_stored_keys(store, Family.TABLES))

    def caps(self) -> I64:
        """Return how many postings are visible under a key of each family, shape (3,)."""
        return np.array([kind.cap for kind in self._families], np.int64)

    def look_up(self, features: Features, fingerprints: U64, sums: I64) -> Candidates:
        """Return the candidates of a batch of n articles.

        Args:
            features: of the batch.
            fingerprints: shape (n,).
            sums: bit sums, shape (n, 64).
        """
        keys = self._keys(features, fingerprints, sums)
        lists = tuple(
            read_lists(self._store, kind, family.distinct()) for kind, family in zip(self._families, keys, strict=True)
        )
        wanted = self._wanted(lists, keys[SIMHASH], fingerprints)
        postings = np.concatenate([family.postings["entry"] for family in lists])
        stored, names, entries = self._read_entries(np.unique(postings[wanted]))
        places = np.searchsorted(entries, postings)
        there = places < len(entries)
        found = np.zeros(len(postings), np.bool_)
        found[there] = entries[places[there]] == postings[there]
        firsts = np.cumsum([0, *(len(family.keys) for family in lists)])
        numbered = [family.numbered(kind.keys, first) for family, kind, first in zip(keys, lists, firsts, strict=False)]
        look_up_offsets, look_up_keys = interleaved([family.offsets for family in keys], [n[1] for n in numbered])
        return Candidates(
            stored.followed_by(rows_of(features, fingerprints)),
            names,
            fingerprints,
            KeyedRows(
                look_up_offsets,
                look_up_keys,
                np.concatenate([own for own, _ in numbered], axis=1),
                np.repeat(np.arange(len(lists), dtype=np.uint8), np.diff(firsts)),
                _joined_offsets([family.offsets for family in lists]),
                np.where(found & wanted, places, NO_ROW),
            ),
            lists,
        )

    def insertions(self, candidates: Candidates, articles: I64, entries: U64) -> Iterator[Put]:
        """Yield the writes that add articles of a batch to the posting lists.

        Args:
            candidates: of the batch.
            articles: places in the batch of those to add, in order.
            entries: their entry numbers.
        """
        first = 0
        for family in candidates.lists:
            last = first + len(family.keys)
            own = candidates.keyed.own_keys[articles]
            row, column = np.nonzero((own >= first) & (own < last))
            postings = np.empty(len(row), family.kind.layout)
            postings["entry"] = entries[row]
            if family.kind.fingerprints:
                postings["fingerprint"] = candidates.fingerprints[articles[row]]
            yield from family.with_new(own[row, column] - first, postings)
            first = last

    def occupy(self, fingerprints: U64) -> None:
        """Note that articles of these fingerprints are in the tables now."""
        self._occupancy.mark(self.plan.prefixes(fingerprints))

    def _keys(self, features: Features, fingerprints: U64, sums: I64) -> tuple[BatchKeys, ...]:
        sketches = features.sketches
        comparable = sketches.sizes >= self._settings.verify.min_grams
        marks = sketches.landmarks
        use_marks = comparable[:, np.newaxis] & (marks != 0) & self._settings.landmarks.enabled
        # A text of stop words alone has no sums, and its fingerprint says nothing.
        weighed = comparable & sums.any(axis=1) & self._settings.simhash.enabled
        return (
            BatchKeys.same(sketches.content[:, np.newaxis], np.ones((len(marks), 1), np.bool_)),
            BatchKeys.same(marks, use_marks),
            self._table_keys(fingerprints, sums, weighed),
        )

    def _table_keys(self, fingerprints: U64, sums: I64, weighed: NDArray[np.bool_]) -> BatchKeys:
        prefixes = self.plan.prefixes(fingerprints)
        with self._occupancy.including(prefixes[weighed]):
            counts, looked_up = probe_keys(
                self.plan,
                fingerprints[weighed],
                sums[weighed],
                self._settings.simhash.probes,
                self._occupancy,
            )
        per_article = np.zeros(len(fingerprints), np.int64)
        per_article[weighed] = counts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_article)])
        used = np.repeat(weighed[:, np.newaxis], self.plan.tables, axis=1)
        return BatchKeys(table_keys(prefixes), used, offsets, looked_up)

    def _wanted(self, lists: Sequence[PostingLists], tables: BatchKeys, fingerprints: U64) -> NDArray[np.bool_]:
        """Return which postings need their entries: in the tables only those within the largest distance."""
        near = _within_distance(
            tables.offsets,
            np.searchsorted(lists[SIMHASH].keys, tables.looked_up),
            fingerprints,
            lists[SIMHASH].offsets,
            lists[SIMHASH].postings["fingerprint"].copy(),
            self._settings.simhash.max_distance,
        )
        others = sum(len(family.postings) for family in lists[:SIMHASH])
        return np.concatenate([np.ones(others, np.bool_), near])

    def _read_entries(self, entries: U64) -> tuple[Rows, list[EntryNames], U64]:
        values = self._store.get_many(Family.ENTRIES, keys_of(entries))
        there = np.array([value is not None for value in values], np.bool_)
        found = [value for value in values if value is not None]
        return self.format.unpack(found), [self.format.names(value) for value in found], entries[there]


def rows_of(features: Features, fingerprints: U64) -> Rows:
    """Return the rows of a batch."""
    sketches = features.sketches
    return Rows(
        fingerprints,
        sketches.content,
        sketches.values,
        sketches.lengths,
        sketches.sizes,
        features.numbers,
        features.number_lengths,
        features.number_sizes,
    )


def _stored_keys(store: Store, family: Family) -> Iterator[bytes]:
    return (key for key, _ in store.items(family))


def _joined_offsets(offsets: Sequence[I64]) -> I64:
    counts = np.concatenate([np.diff(family) for family in offsets])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


@kernel
def _within_distance(
    look_up_offsets: I64,
    look_up_keys: I64,
    fingerprints: U64,
    list_offsets: I64,
    list_fingerprints: U64,
    max_distance: int,
) -> NDArray[np.bool_]:
    wanted = np.zeros(len(list_fingerprints), np.bool_)
    for i in range(len(fingerprints)):
        for place in range(look_up_offsets[i], look_up_offsets[i + 1]):
            key = look_up_keys[place]
            for posting in range(list_offsets[key], list_offsets[key + 1]):
                if popcount(fingerprints[i] ^ list_fingerprints[posting]) <= max_distance:
                    wanted[posting] = True
    return wanted
