"""The multi-index: the keys of articles and entries, and the posting lists under them.

Knows all three kinds of keys; knows nothing of candidates or thresholds.
"""

import numpy as np

from stream_dedup.arrays import I64, U8, U64, Bool
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.features import Features, landmark_rule
from stream_dedup.fingerprint.sketch import LANDMARK_BITS
from stream_dedup.index.entries.entries import BARE, COMPARABLE, IN_TABLES, RESERVE, Entries, EntryFormat
from stream_dedup.index.lookup.keys import BatchKeys, masked, spread
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import TABLE_KEY_BITS, probe_keys, table_keys
from stream_dedup.index.lookup.sharing import sharing_of, size_classes
from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.records.records import keys_of
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.postings import PostingKind
from stream_dedup.index.runs.shelf import Shelf, Young, load_removed
from stream_dedup.index.stores.store import Family, FileStore
from stream_dedup.settings import EngineSettings
from stream_dedup.text.texts import offsets_of

_CHUNK = 4_096  # entries read at once
# A story has at most so many entries within a window, each an eighth of it newer than the last. One that was withdrawn
# or edited is listed until it expires; short texts have no other key under which the others are found.
_CONTENT_CAP = 8


def posting_kinds(settings: EngineSettings) -> tuple[PostingKind, ...]:
    """Return the kinds of posting lists: of contents, of landmarks and of the tables."""
    return (
        PostingKind("contents", _CONTENT_CAP),
        PostingKind("landmarks", settings.landmarks.cap, "size"),
        PostingKind("tables", settings.simhash.bucket_cap, "fingerprint"),
    )


def key_flags(features: Features, settings: EngineSettings) -> U8:
    """Return which keys articles have, except those of the tables: `COMPARABLE` and `BARE`, shape (n,)."""
    comparable = features.sketches.sizes >= settings.verify.min_grams
    marked = comparable & settings.landmarks.enabled
    return np.asarray(COMPARABLE * marked + BARE * features.only_boilerplate, np.uint8)


def in_tables(features: Features, sums: I64, settings: EngineSettings) -> Bool:
    """Tell which articles are in the tables, shape (n,).

    A text of nothing but stop words has no bit sums, and its fingerprint is meaningless.
    """
    comparable = features.sketches.sizes >= settings.verify.min_grams
    return np.asarray(comparable & sums.any(axis=1) & settings.simhash.enabled)


# Keys of one kind that n articles are indexed under, and which of them are used, both of shape (n, k).
OwnKeys = tuple[U64, Bool]


def _content_keys(contents: U64, flags: U8, scopes: U64) -> OwnKeys:
    return masked(contents[:, np.newaxis], scopes), (flags & BARE == 0)[:, np.newaxis]


def _landmark_keys(landmarks: U64, flags: U8, scopes: U64) -> OwnKeys:
    comparable = (flags & COMPARABLE) != 0
    return masked(spread(landmarks, LANDMARK_BITS), scopes), comparable[:, np.newaxis] & (landmarks != 0)


@kernel
def _postings(own: U64, used: Bool, count: int, numbers: U64, details: U64) -> tuple[U64, U64, U64]:
    """Return the `count` keys that are used, row by row, and for each of them the number and the detail of its row."""
    keys, entries, carried = np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint64)
    to = 0
    for row in range(len(own)):
        for place in range(own.shape[1]):
            if used[row, place]:
                keys[to], entries[to], carried[to] = own[row, place], numbers[row], details[row]
                to += 1
    return keys, entries, carried


class Pending:
    """Entries of a batch that its later articles need to find before they are in the index.

    Args:
        index: makes their posting lists.
    """

    def __init__(self, index: "MultiIndex") -> None:
        self._index = index
        self._waiting: list[tuple[Entries, U64]] = []
        self._young: Young | None = None

    def add(self, entries: Entries, numbers: U64) -> None:
        """Add entries, shape (n,), and their numbers, shape (n,). Most are never looked up."""
        if len(entries):
            self._waiting.append((entries, numbers))

    @property
    def young(self) -> Young | None:
        """The posting lists of all entries added, None if there are none."""
        for entries, numbers in self._waiting:
            self._young = self._young or Young(self._index.kinds)
            self._young.add(self._index.keyed_postings(entries, numbers))
        self._waiting.clear()
        return self._young


class MultiIndex:
    """The content, landmark and SimHash indexes.

    Args:
        store: where they are kept; read once for the posting lists that no run holds.
        settings: settings of the tables, the landmarks and the sketches.
        progress: progress of the state.
        shared: whether runs use memory that other processes share; see `open_run`.

    Raises:
        StoreDamagedError: a run is missing or damaged.
    """

    def __init__(self, store: FileStore, settings: EngineSettings, progress: Progress, *, shared: bool = False) -> None:
        self.settings = settings
        sketch = settings.sketch
        self.format = EntryFormat(sketch.size, sketch.numbers, sketch.places, landmark_rule(settings))
        self.plan = TablePlan(settings.simhash.tables, settings.simhash.prefix_bits)
        self.kinds = posting_kinds(settings)
        self.sharing = sharing_of(settings)
        self.shelf = Shelf(store, self.kinds, shared=shared)
        try:
            self.load_young(store, progress)
        except BaseException:
            self.shelf.close()
            raise

    def caps(self) -> I64:
        """Return how many postings are visible under a key of each kind, shape (3,)."""
        return np.array([kind.cap for kind in self.kinds], np.int64)

    def add(self, entries: Entries, numbers: U64, stop: int) -> None:
        """Add entries to the posting lists.

        Args:
            entries: their fixed parts, shape (n,); those in reserve are left out.
            numbers: their numbers, shape (n,).
            stop: number of the next entry.
        """
        self.shelf.add(self.keyed_postings(entries, numbers), stop)

    def keyed_postings(self, entries: Entries, numbers: U64) -> list[KeyedPostings]:
        """Return the postings of entries, kind by kind; entries in reserve have none."""
        active = np.flatnonzero((entries["flags"] & RESERVE) == 0)
        if len(active) < len(entries):
            entries, numbers = self.format.only(entries, active), numbers[active]
        details = {
            "none": np.zeros(len(entries), np.uint64),
            "size": size_classes(entries["size"].astype(np.int64)).astype(np.uint64),
            "fingerprint": entries["fingerprint"],
        }
        own_keys = self.own_keys(entries)
        return [
            KeyedPostings(*_postings(own, used, int(np.count_nonzero(used)), numbers, details[kind.detail]))
            for kind, (own, used) in zip(self.kinds, own_keys, strict=True)
        ]

    def close(self) -> None:
        """Release the runs."""
        self.shelf.close()

    def load_young(self, store: FileStore, progress: Progress, most: int | None = None) -> None:
        """Add the entries that the posting lists do not hold yet, including those that were removed in the meantime.

        Args:
            store: where they are kept.
            progress: progress of the state.
            most: how many to add at most; None for all.
        """
        first = max(self.shelf.young_stop, progress.floor)
        last = progress.entries if most is None else min(progress.entries, first + most)
        removed = load_removed(store) if first < last else {}
        for start in range(first, last, _CHUNK):
            numbers = np.arange(start, min(start + _CHUNK, last), dtype=np.uint64)
            values = store.get_many(Family.ENTRIES, keys_of(numbers))
            there = {
                number: value if value is not None else removed[number]
                for number, value in zip(numbers.tolist(), values, strict=True)
                if value is not None or number in removed
            }
            fixed = self.format.fixed([*there.values()])
            self.add(fixed, np.array([*there], np.uint64), int(numbers[-1]) + 1)

    def own_keys(self, entries: Entries) -> tuple[OwnKeys, OwnKeys, OwnKeys]:
        """Return the keys under which each entry is indexed, kind by kind.

        Args:
            entries: fixed parts, shape (n,).
        """
        flags, scopes = entries["flags"], entries["scope"]
        own, used = self._own_table_keys(entries["fingerprint"].copy(), (flags & IN_TABLES) != 0)
        return (
            _content_keys(entries["content"], flags, scopes),
            _landmark_keys(self.format.landmark_keys(entries), flags, scopes),
            (masked(own, scopes), used),
        )

    def text_keys(self, features: Features, flags: U8, scopes: U64) -> tuple[BatchKeys, BatchKeys]:
        """Return the keys for which texts need not be segmented into words: those of contents and of landmarks.

        Args:
            features: features of the n articles.
            flags: see `key_flags`, shape (n,).
            scopes: number of the scope of each, 0 for none, shape (n,).
        """
        sketches = features.sketches
        return (
            BatchKeys.same(*_content_keys(sketches.content, flags, scopes)),
            BatchKeys.same(*_landmark_keys(sketches.landmarks, flags, scopes)),
        )

    def table_keys(self, fingerprints: U64, sums: I64, weighed: Bool, asking: Bool) -> BatchKeys:
        """Return the keys of the tables.

        Args:
            fingerprints: shape (n,).
            sums: bit sums, shape (n, 64).
            weighed: which articles are in the tables, shape (n,).
            asking: which of them look up the tables, shape (n,).
        """
        probes = probe_keys(self.plan, fingerprints[asking], sums[asking], self.settings.simhash.probes)
        offsets = offsets_of(asking * probes.shape[1])
        own, used = self._own_table_keys(fingerprints, weighed)
        return BatchKeys(own, used, offsets, spread(probes.ravel(), TABLE_KEY_BITS))

    def _own_table_keys(self, fingerprints: U64, weighed: Bool) -> OwnKeys:
        keys = spread(table_keys(self.plan.prefixes(fingerprints)), TABLE_KEY_BITS)
        return keys, np.repeat(weighed[:, np.newaxis], self.plan.tables, axis=1)
