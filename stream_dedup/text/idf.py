"""Document counts that grow with the stream, and the numbered frozen epochs that weights are taken from.

Knows how many articles contain a word; knows nothing of how counts are stored.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stream_dedup.arrays import I64, U32, U64
from stream_dedup.compiled.hashing import EMPTY, empty_table, find_slot, table_size
from stream_dedup.compiled.kernel import kernel

COUNT_DTYPE = np.dtype([("word", "<u8"), ("documents", "<u4")])
_MOST_DOCUMENTS = np.uint64(0xFFFFFFFF)  # that a count has room for
Counts = NDArray[np.void]  # of COUNT_DTYPE


@dataclass(frozen=True, slots=True, eq=False)
class Epoch:
    """Frozen document counts: the same weights for every article fingerprinted with the same number.

    Attributes:
        number: 0 for the dictionary alone, then 1, 2, ...
        documents: N, the articles counted so far.
        keys: open-addressing table of word hashes, shape (m,).
        counts: df, the articles that contain the word, shape (m,).
    """

    number: int = 0
    documents: int = 0
    keys: U64 = field(default_factory=lambda: empty_table(1))
    counts: U32 = field(default_factory=lambda: np.zeros(len(empty_table(1)), np.uint32))

    @classmethod
    def restored(cls, number: int, documents: int, pairs: Counts) -> "Epoch":
        """Return an epoch from its packed pairs."""
        keys = empty_table(len(pairs) + 1)
        counts = np.zeros(len(keys), np.uint32)
        _added(keys, counts, 0, len(pairs), pairs)
        return cls(number, documents, keys, counts)

    def packed(self) -> Counts:
        """Return the counts as packed pairs, in the table's order, shape (words,)."""
        return _packed(self.keys, self.counts, 1)


class DocumentCounts:
    """The live counts. Bounded: once the table is full, new words are not counted until the next epoch.

    Args:
        max_words: maximum number of words kept.
    """

    def __init__(self, max_words: int) -> None:
        self.max_words = max_words
        self.documents = 0
        self.words = 0
        self._keys = empty_table(1024)
        self._counts = np.zeros(len(self._keys), np.uint32)

    def add(self, documents: int, counts: Counts) -> None:
        """Add the counts of `documents` more articles: pairs of a word's hash and how many of them contain it."""
        self._reserve(self.words + len(counts))
        self.documents += documents
        self.words = _added(self._keys, self._counts, self.words, self.max_words, counts)

    def freeze(self, number: int) -> Epoch:
        """Return the counts as the epoch `number`, after `make_room`."""
        self.make_room()
        return Epoch(number, self.documents, self._keys.copy(), self._counts.copy())

    def make_room(self) -> None:
        """Forget the rarest words if the table is full."""
        if self.words >= self.max_words:
            self._forget_rarest()

    def copy(self) -> "DocumentCounts":
        """Return an independent copy of the counts."""
        same = DocumentCounts(self.max_words)
        same.documents, same.words = self.documents, self.words
        same._keys, same._counts = self._keys.copy(), self._counts.copy()
        return same

    def look_up(self, words: U64) -> I64:
        """Return the count of each word hash, 0 where it is unknown, shape of `words`."""
        return look_up(self._keys, self._counts, words)

    def packed(self, least: int = 1) -> Counts:
        """Return the counts as packed pairs, those of at least `least`, in the table's order."""
        return _packed(self._keys, self._counts, least)

    def _reserve(self, words: int) -> None:
        if 2 * min(words, self.max_words) > len(self._keys):
            self._rebuild(self.packed(), words)

    def _forget_rarest(self) -> None:
        """Keep the more frequent half: words by descending count, ties by hash so that a replay forgets the same."""
        pairs = self.packed()
        order = np.lexsort((pairs["word"], -pairs["documents"].astype(np.int64)))
        self._rebuild(pairs[order[: self.max_words // 2]], self.max_words)

    def _rebuild(self, pairs: Counts, room: int) -> None:
        self._keys = empty_table(min(room, self.max_words) + 1)
        self._counts = np.zeros(len(self._keys), np.uint32)
        self.words = _added(self._keys, self._counts, 0, self.max_words, pairs)


def document_delta(hashes: U64) -> Counts:
    """Return how often each word hash occurs, as packed pairs in order of first occurrence; see `delta_of`.

    Args:
        hashes: the distinct words of each counted article, one after the other.
    """
    return delta_of(np.array([0, len(hashes)]), hashes, np.zeros(1, np.int64))


def delta_of(offsets: I64, hashes: U64, articles: I64) -> Counts:
    """Return how many of some articles contain each word, as packed pairs in order of first occurrence.

    The order decides which words still fit into a full table, so it must not depend on how articles are batched.

    Args:
        offsets: the distinct words of article i are hashes[offsets[i]:offsets[i + 1]], shape (n + 1,).
        hashes: of words.
        articles: indices of those to count, in order.
    """
    words, documents = _counted(offsets, hashes, articles)
    delta = np.empty(len(words), COUNT_DTYPE)
    delta["word"], delta["documents"] = words, documents
    return delta


@kernel
def _counted(offsets: I64, hashes: U64, articles: I64) -> tuple[U64, U32]:
    most = 0
    for article in articles:
        most += offsets[article + 1] - offsets[article]
    words, documents, used = np.empty(most, np.uint64), np.zeros(most, np.uint32), 0
    # The table holds indices, from 1 on, rather than words, so that it and the words compared stay in the cache.
    places = np.zeros(table_size(most), np.uint32)
    mask = np.uint64(len(places) - 1)
    for article in articles:
        for word in hashes[offsets[article] : offsets[article + 1]]:
            slot = word & mask
            while places[slot] and words[places[slot] - 1] != word:
                slot = (slot + np.uint64(1)) & mask
            if places[slot] == 0:
                words[used] = word
                used += 1
                places[slot] = used
            documents[places[slot] - 1] += 1
    return words[:used], documents[:used]


def _packed(keys: U64, counts: U32, least: int) -> Counts:
    words, documents = _taken(keys, counts, least)
    pairs = np.empty(len(words), COUNT_DTYPE)
    pairs["word"], pairs["documents"] = words, documents
    return pairs


@kernel
def _taken(keys: U64, counts: U32, least: int) -> tuple[U64, U32]:
    """Return the words with a count of at least `least`, at least 1, in the table's order, and their counts."""
    room = 1
    for slot in range(len(keys)):
        room += counts[slot] >= least
    words, documents, used = np.empty(room, np.uint64), np.empty(room, np.uint32), 0
    for slot in range(len(keys)):
        # Without a branch, which the processor would have to predict.
        words[used], documents[used] = keys[slot], counts[slot]
        used += counts[slot] >= least
    return words[:used], documents[:used]


def _added(keys: U64, counts: U32, words: int, max_words: int, pairs: Counts) -> int:
    """Add pairs to a table of `words` words, new ones up to `max_words`; return how many words it has then."""
    return _add_counts(keys, counts, words, max_words, pairs["word"].copy(), pairs["documents"].copy())


@kernel
def _add_counts(keys: U64, counts: U32, words: int, max_words: int, new: U64, more: U32) -> int:
    for i in range(len(new)):
        slot = find_slot(keys, new[i])
        if keys[slot] == EMPTY:
            if words >= max_words:
                continue
            keys[slot] = new[i]
            words += 1
        # A word of billions of articles stays as common as can be told.
        counts[slot] = min(np.uint64(counts[slot]) + np.uint64(more[i]), _MOST_DOCUMENTS)
    return words


@kernel
def look_up(keys: U64, counts: U32, words: U64) -> I64:
    """Return the count of each word hash, 0 where it is unknown, shape of `words`."""
    found = np.empty(len(words), np.int64)
    for i in range(len(words)):
        found[i] = counts[find_slot(keys, words[i])]
    return found
