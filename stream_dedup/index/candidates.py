"""The multi-index: a batch of articles in, their candidates out, and the writes that add entries to it.

Knows all three families of keys and how articles of a batch meet; knows nothing of thresholds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.fingerprint.features import Features, landmark_rule
from stream_dedup.hashing import I64, U64
from stream_dedup.index.entries import BARE, COMPARABLE, RESERVE, WEIGHED, Entries, EntryFormat, Rows, rows_of_entries
from stream_dedup.index.keys import BatchKeys, interleaved, masked
from stream_dedup.index.ledger import Progress
from stream_dedup.index.plan import TablePlan
from stream_dedup.index.postings import PostingFamily, PostingLists, Postings, read_lists
from stream_dedup.index.probing import TABLE_KEYS, Occupancies, probe_keys, table_keys
from stream_dedup.index.records import generation_prefix, keys_of
from stream_dedup.index.sharing import sharing_of, size_classes
from stream_dedup.index.store import Family, Puts, Store
from stream_dedup.index.wanted import LookedUp, sharing_enough, within_distance
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
        names: name of the article of each stored row, as UTF-8, m of them.
        numbers: entry number of each stored row, shape (m,).
        clusters: cluster of each stored row, shape (m,).
        fingerprints: of the batch, shape (n,).
        keyed: which rows stand under which keys.
        lists: the posting lists as stored, a family each.
    """

    rows: Rows
    names: list[bytes]
    numbers: U64
    clusters: U64
    fingerprints: U64
    keyed: KeyedRows
    lists: tuple[PostingLists, ...]


class MultiIndex:
    """The content, landmark and SimHash indexes.

    Args:
        store: where they are kept, read once to see which keys of the tables are occupied.
        settings: of the tables, the landmarks and the sketches.
        progress: of the state.
    """

    def __init__(self, store: Store, settings: EngineSettings, progress: Progress) -> None:
        self._settings = settings
        sketch = settings.sketch
        self.format = EntryFormat(sketch.size, sketch.numbers, sketch.places, landmark_rule(settings))
        self.plan = TablePlan(settings.simhash.tables, settings.simhash.prefix_bits)
        self.families = (
            PostingFamily(Family.CONTENTS, cap=1),
            PostingFamily(Family.LANDMARKS, settings.landmarks.cap, "size"),
            PostingFamily(Family.TABLES, settings.simhash.bucket_cap, "fingerprint"),
        )
        self.sharing = sharing_of(settings)
        self._occupancies = Occupancies(self.plan)
        if settings.simhash.enabled:
            for generation in progress.live:
                self._occupancies.mark_keys(generation, _stored_keys(store, generation))

    def caps(self) -> I64:
        """Return how many postings are visible under a key of each family, shape (3,)."""
        return np.array([kind.cap for kind in self.families], np.int64)

    def look_up(
        self,
        store: Store,
        features: Features,
        fingerprints: U64,
        sums: I64,
        times: I64,
        scopes: U64,
        live: Sequence[int],
    ) -> Candidates:
        """Return the candidates of a batch of n articles.

        Args:
            store: the state.
            features: of the batch.
            fingerprints: shape (n,).
            sums: bit sums, shape (n, 64).
            times: window times, shape (n,).
            scopes: number of the scope, 0 for none, shape (n,).
            live: generations that have not expired, the newest last.
        """
        flags = self._flags(features, sums)
        keys = self._keys(features, fingerprints, sums, flags, scopes)
        lists = tuple(
            read_lists(store, kind, family.distinct(), live) for kind, family in zip(self.families, keys, strict=True)
        )
        wanted = self._wanted(lists, keys, features.sketches.sizes, fingerprints)
        postings = np.concatenate([family.postings.entries for family in lists])
        values, numbers = _read_entries(store, np.unique(postings[wanted]))
        places = np.searchsorted(numbers, postings)
        there = places < len(numbers)
        found = np.zeros(len(postings), np.bool_)
        found[there] = numbers[places[there]] == postings[there]
        firsts = np.cumsum([0, *(len(family.keys) for family in lists)])
        numbered = [family.numbered(kind.keys, first) for family, kind, first in zip(keys, lists, firsts, strict=False)]
        look_up_offsets, look_up_keys = interleaved([family.offsets for family in keys], [n[1] for n in numbered])
        entries, names = self.format.unpack(values)
        return Candidates(
            rows_of_entries(entries).followed_by(rows_of(features, fingerprints, times, flags, scopes)),
            names,
            numbers,
            entries["cluster"].copy(),
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

    def insertions(
        self,
        store: Store,
        entries: Entries,
        numbers: U64,
        generation: int,
        lists: tuple[PostingLists, ...] | None = None,
    ) -> Iterator[Puts]:
        """Yield the writes that add entries to the posting lists.

        Args:
            store: the state.
            entries: their fixed parts, shape (n,); those in reserve are left out.
            numbers: their numbers, shape (n,).
            generation: that is written to.
            lists: the posting lists of all their keys, where they were read already.
        """
        active = (entries["flags"] & RESERVE) == 0
        entries, numbers = entries[active], numbers[active]
        details = {
            "none": np.zeros(len(entries), np.uint64),
            "size": size_classes(entries["size"].astype(np.int64)).astype(np.uint64),
            "fingerprint": entries["fingerprint"],
        }
        for place, (kind, (own, used)) in enumerate(zip(self.families, self._own_keys(entries), strict=True)):
            row, _ = np.nonzero(used)
            if not len(row):
                continue
            keys = own[used]
            family = lists[place] if lists else read_lists(store, kind, np.unique(keys), [generation])
            yield family.with_new(keys, Postings(numbers[row], details[kind.detail][row]))

    def occupy(self, entries: Entries, generation: int) -> None:
        """Note that entries are in the tables of a generation now."""
        weighed = entries[(entries["flags"] & (WEIGHED | RESERVE)) == WEIGHED]
        self._occupancies.mark(generation, self.plan.prefixes(weighed["fingerprint"].copy()))

    def keep_generations(self, live: Sequence[int]) -> None:
        """Forget what generations occupied that have expired."""
        self._occupancies.keep(live)

    def own_keys(self, entries: Entries) -> dict[Family, tuple[U64, NDArray[np.bool_]]]:
        """Return the keys under which each entry stands in each family, and which of them are used.

        Args:
            entries: fixed parts, shape (n,).
        """
        return dict(zip((kind.family for kind in self.families), self._own_keys(entries), strict=True))

    def _own_keys(self, entries: Entries) -> tuple[tuple[U64, NDArray[np.bool_]], ...]:
        landmarks = self.format.landmark_keys(entries)
        of_content, of_landmark, of_table = scope_masks(entries["scope"])
        comparable = (entries["flags"] & COMPARABLE) != 0
        weighed = (entries["flags"] & WEIGHED) != 0
        return (
            (masked(entries["content"][:, np.newaxis], of_content), (entries["flags"] & BARE == 0)[:, np.newaxis]),
            (masked(landmarks, of_landmark), comparable[:, np.newaxis] & (landmarks != 0)),
            (
                masked(table_keys(self.plan.prefixes(entries["fingerprint"].copy())), of_table),
                np.repeat(weighed[:, np.newaxis], self.plan.tables, axis=1),
            ),
        )

    def _flags(self, features: Features, sums: I64) -> NDArray[np.uint8]:
        comparable = features.sketches.sizes >= self._settings.verify.min_grams
        # A text of stop words alone has no sums, and its fingerprint says nothing.
        weighed = comparable & sums.any(axis=1) & self._settings.simhash.enabled
        marked = comparable & self._settings.landmarks.enabled
        return np.asarray(COMPARABLE * marked + WEIGHED * weighed + BARE * features.bare, np.uint8)

    def _keys(
        self, features: Features, fingerprints: U64, sums: I64, flags: NDArray[np.uint8], scopes: U64
    ) -> tuple[BatchKeys, ...]:
        sketches = features.sketches
        marks = sketches.landmarks
        use_marks = ((flags & COMPARABLE) != 0)[:, np.newaxis] & (marks != 0)
        keys = (
            BatchKeys.same(sketches.content[:, np.newaxis], (flags & BARE == 0)[:, np.newaxis]),
            BatchKeys.same(marks, use_marks),
            self._table_keys(fingerprints, sums, (flags & WEIGHED) != 0),
        )
        return tuple(family.masked(masks) for family, masks in zip(keys, scope_masks(scopes), strict=True))

    def _table_keys(self, fingerprints: U64, sums: I64, weighed: NDArray[np.bool_]) -> BatchKeys:
        prefixes = self.plan.prefixes(fingerprints)
        with self._occupancies.all.including(prefixes[weighed]):
            counts, looked_up = probe_keys(
                self.plan,
                fingerprints[weighed],
                sums[weighed],
                self._settings.simhash.probes,
                self._occupancies.all,
            )
        per_article = np.zeros(len(fingerprints), np.int64)
        per_article[weighed] = counts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_article)])
        used = np.repeat(weighed[:, np.newaxis], self.plan.tables, axis=1)
        return BatchKeys(table_keys(prefixes), used, offsets, looked_up)

    def _wanted(
        self, lists: Sequence[PostingLists], keys: Sequence[BatchKeys], sizes: I64, fingerprints: U64
    ) -> NDArray[np.bool_]:
        """Return which postings need their entries: those that share enough landmarks, or are within the distance."""
        contents, landmarks, tables = lists
        most = self._settings.simhash.max_distance
        return np.concatenate(
            [
                np.ones(len(contents.postings.entries), np.bool_),
                sharing_enough(_looked_up(keys[LANDMARK], landmarks), sizes, *landmarks.postings, self.sharing),
                within_distance(_looked_up(keys[SIMHASH], tables), fingerprints, tables.postings.details, most),
            ]
        )


def _looked_up(keys: BatchKeys, lists: PostingLists) -> LookedUp:
    return LookedUp(keys.offsets, np.searchsorted(lists.keys, keys.looked_up), lists.offsets)


def scope_masks(scopes: U64) -> tuple[U64, U64, U64]:
    """Return what the keys of each family are XORed with, so that those of other scopes are other keys.

    The lower 37 bits of the tables' keys stay as they are: the bitmaps of occupied keys, which know no scopes, are read
    back from them. Two scopes that agree in the other 27 share the tables' lists, and the judge tells them apart.

    Args:
        scopes: number of each article's scope, 0 for none, shape (n,).
    """
    return scopes, scopes, scopes & ~TABLE_KEYS


def rows_of(features: Features, fingerprints: U64, times: I64, flags: NDArray[np.uint8], scopes: U64) -> Rows:
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


def _stored_keys(store: Store, generation: int) -> Iterator[bytes]:
    prefix = generation_prefix(generation)
    return (key[len(prefix) :] for key, _ in store.items(Family.TABLES, prefix))


def _read_entries(store: Store, numbers: U64) -> tuple[list[bytes], U64]:
    """Return the entries that are there, and their numbers."""
    values = store.get_many(Family.ENTRIES, keys_of(numbers))
    there = np.array([value is not None for value in values], np.bool_)
    return [value for value in values if value is not None], numbers[there]


def _joined_offsets(offsets: Sequence[I64]) -> I64:
    counts = np.concatenate([np.diff(family) for family in offsets])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
