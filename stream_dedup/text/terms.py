"""Words to terms: the distinct words of each article with how often they occur, stop words left out.

Knows the lexicon; knows nothing of document counts or weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import EMPTY, I64, U32, U64, find_slot, hash_span, table_size
from stream_dedup.text.lexicon import MARKER, STOP, Lexicon, contains_marker
from stream_dedup.text.normal import word_table
from stream_dedup.text.words import Words

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

    @classmethod
    def none(cls, articles: int) -> "Terms":
        """Return those of articles without any."""
        nothing: I64 = np.empty(0, np.int64)
        offsets = np.zeros(articles + 1, np.int64)
        return cls(offsets, nothing.astype(np.uint64), nothing, nothing, nothing, nothing.astype(np.bool_))

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


def extract_terms(words: Words, lexicon: Lexicon) -> Terms:
    """Return the terms of each article.

    Args:
        words: the words of the articles, in normal form, as the segmenter returns them.
        lexicon: tells stop words, marker words and known words.
    """
    return Terms(
        *_extract(
            words.points,
            words.stops,
            words.offsets,
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
    stops: I64,
    articles: I64,
    is_word: Bool,
    lexicon_keys: U64,
    lexicon_flags: NDArray[np.uint8],
    markers: U64,
    marker_lengths: I64,
) -> tuple[I64, U64, I64, I64, I64, Bool]:
    offsets = np.zeros(len(articles), np.int64)
    hashes, slots = np.empty(len(stops), np.uint64), np.empty(len(stops), np.int64)
    counts, starts, lengths = np.empty_like(stops), np.empty_like(stops), np.empty_like(stops)
    marker = np.empty(len(stops), np.bool_)
    largest = table_size(np.diff(articles).max() if len(articles) > 1 else 0)
    seen, places = np.empty(largest, np.uint64), np.empty(largest, np.int64)
    for article in range(len(articles) - 1):
        words = articles[article + 1] - articles[article]
        # No longer than this article asks for: one giant must not slow the small ones of its batch.
        own = seen[: table_size(words)]
        own[:] = EMPTY
        used = kept = offsets[article]
        start = stops[articles[article] - 1] if articles[article] else 0
        for stop in stops[articles[article] : articles[article + 1]]:
            if _has_word_character(points, start, stop, is_word):
                value = hash_span(points, start, stop)
                slot = find_slot(own, value)
                if own[slot] == EMPTY:
                    own[slot], places[slot] = value, used
                    hashes[used], counts[used], starts[used], lengths[used] = value, 0, start, stop - start
                    used += 1
                counts[places[slot]] += 1
            start = stop
        # All distinct words by themselves: the processor fetches several of them from the large lexicon at a time.
        for term in range(kept, used):
            known, flags = _known(hashes[term], lexicon_keys, lexicon_flags)
            if flags & STOP:
                continue
            hashes[kept], counts[kept], lengths[kept], slots[kept] = hashes[term], counts[term], lengths[term], known
            marker[kept] = (flags & MARKER) != 0 or (
                known < 0
                and contains_marker(points, starts[term], starts[term] + lengths[kept], markers, marker_lengths)
            )
            kept += 1
        offsets[article + 1] = kept
    total = offsets[-1]
    return offsets, hashes[:total], counts[:total], lengths[:total], slots[:total], marker[:total]


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
