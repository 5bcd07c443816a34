"""Words to terms: the distinct words of each article with how often they occur, stop words left out.

Knows the lexicon; knows nothing of document counts or weights.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import EMPTY, I64, U32, U64, code_points, find_slot, hash_span, table_size
from stream_dedup.text.lexicon import MARKER, STOP, Lexicon, contains_marker
from stream_dedup.text.normal import SEPARATOR, word_table

Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a batch of n articles, m in total, those of article i at offsets[i]:offsets[i + 1].

    Attributes:
        offsets: int64, shape (n + 1,).
        hashes: word hashes, uint64, shape (m,), in order of first occurrence.
        counts: occurrences of the term in its article, int64, shape (m,).
        lengths: characters of the term, int64, shape (m,).
        slots: the term's slot in the lexicon, -1 where the lexicon lacks it, int64, shape (m,).
        markers: whether the term is, or contains, a marker word, bool, shape (m,).
    """

    offsets: I64
    hashes: U64
    counts: I64
    lengths: I64
    slots: I64
    markers: Bool

    def of(self, article: int) -> slice:
        """Return where the terms of one article stand."""
        return slice(int(self.offsets[article]), int(self.offsets[article + 1]))

    def part(self, start: int, stop: int) -> "Terms":
        """Return the terms of the articles from `start` up to, not including, `stop`."""
        at = slice(int(self.offsets[start]), int(self.offsets[stop]))
        return Terms(
            self.offsets[start : stop + 1] - self.offsets[start],
            self.hashes[at],
            self.counts[at],
            self.lengths[at],
            self.slots[at],
            self.markers[at],
        )

    def only(self, articles: I64) -> "Terms":
        """Return a copy of the terms of some articles, in the order in which these are named."""
        sizes = np.diff(self.offsets)[articles]
        offsets = _offsets(sizes)
        at = np.repeat(self.offsets[articles] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Terms(offsets, self.hashes[at], self.counts[at], self.lengths[at], self.slots[at], self.markers[at])


def joined_terms(parts: Sequence[Terms]) -> Terms:
    """Return the terms of several batches, at least one, as those of one."""
    return Terms(
        _offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.slots for part in parts]),
        np.concatenate([part.markers for part in parts]),
    )


def _offsets(sizes: I64) -> I64:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def extract_terms(words: Iterable[list[str]], lexicon: Lexicon) -> Terms:
    """Return the terms of each article.

    Args:
        words: the words of each article, in normal form, as the segmenter returns them. A generator is best: words
            that are dropped at once leave their memory, still in the processor's cache, to the next article's.
        lexicon: tells stop words, marker words and known words.
    """
    # A separator behind each word: cheaper than the words' lengths, which Python would have to count one by one.
    texts = [code_points(SEPARATOR.join([*article, ""])) for article in words]
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=starts[1:])
    return Terms(
        *_extract(
            np.concatenate([np.empty(0, np.uint32), *texts]),
            starts,
            np.uint32(ord(SEPARATOR)),
            word_table(),
            lexicon.keys,
            lexicon.flags,
            lexicon.markers,
            lexicon.marker_lengths,
        )
    )


@kernel
def _extract(
    points: U32,
    starts: I64,
    separator: np.uint32,
    is_word: Bool,
    lexicon_keys: U64,
    lexicon_flags: NDArray[np.uint8],
    markers: U64,
    marker_lengths: I64,
) -> tuple[I64, U64, I64, I64, I64, Bool]:
    words, most = _count_words(points, starts, separator)
    offsets = np.zeros(len(starts), np.int64)
    hashes = np.empty(words, np.uint64)
    counts = np.zeros(words, np.int64)
    lengths = np.empty(words, np.int64)
    slots = np.empty(words, np.int64)
    marker = np.zeros(words, np.bool_)
    largest = table_size(most)
    seen_by_any = np.empty(largest, np.uint64)
    place = np.empty(largest, np.int64)
    used = 0
    for article in range(len(starts) - 1):
        # No longer than this article asks for: one giant must not slow the small ones of its batch.
        seen = seen_by_any[: min(largest, table_size(starts[article + 1] - starts[article]))]
        seen[:] = EMPTY
        start = starts[article]
        for stop in range(start, starts[article + 1]):
            if points[stop] != separator:
                continue
            if _has_word_character(points, start, stop, is_word):
                value = hash_span(points, start, stop)
                slot = find_slot(seen, value)
                if seen[slot] == EMPTY:
                    seen[slot] = value
                    known, flags = _known(value, lexicon_keys, lexicon_flags)
                    place[slot] = -1 if flags & STOP else used
                    if not flags & STOP:
                        hashes[used], lengths[used], slots[used] = value, stop - start, known
                        marker[used] = (flags & MARKER) != 0 or (
                            known < 0 and contains_marker(points, start, stop, markers, marker_lengths)
                        )
                        used += 1
                if place[slot] >= 0:
                    counts[place[slot]] += 1
            start = stop + 1
        offsets[article + 1] = used
    return offsets, hashes[:used], counts[:used], lengths[:used], slots[:used], marker[:used]


@kernel
def _count_words(points: U32, starts: I64, separator: np.uint32) -> tuple[int, int]:
    """Return how many words there are, and how many the longest article has."""
    words, most = 0, 0
    for article in range(len(starts) - 1):
        count = 0
        for i in range(starts[article], starts[article + 1]):
            count += points[i] == separator
        words, most = words + count, max(most, count)
    return words, most


@kernel
def _known(value: np.uint64, keys: U64, flags: NDArray[np.uint8]) -> tuple[int, np.uint8]:
    """Return a word's slot in the lexicon and its flags; -1 and none where the lexicon lacks it."""
    slot = find_slot(keys, value)
    return (-1, np.uint8(0)) if keys[slot] == EMPTY else (slot, flags[slot])


@kernel
def _has_word_character(points: U32, start: int, stop: int, is_word: Bool) -> bool:
    for i in range(start, stop):  # noqa: SIM110  # compiled code has no generators
        if is_word[points[i]]:
            return True
    return False
