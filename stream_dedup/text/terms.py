"""Words to terms: the distinct words of each article with how often they occur, stop words left out.

Knows the lexicon; knows nothing of document counts or weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I32, I64, U8, U32, U64, Bool
from stream_dedup.compiled.hashing import EMPTY, find_slot, hash_span, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import prefetch
from stream_dedup.text.lexicon import MARKER, STOP, Lexicon, Markers, contains_marker
from stream_dedup.text.normal import word_table
from stream_dedup.text.texts import offsets_of
from stream_dedup.text.words import Vocabulary, Words


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a batch of n articles, m in total; those of article i are at offsets[i]:offsets[i + 1].

    Attributes:
        offsets: int64, shape (n + 1,).
        hashes: word hashes, uint64, shape (m,), in order of first occurrence.
        counts: occurrences of the term in its article, int64, shape (m,).
        lengths: characters of the term, int64, shape (m,).
        entries: the term's entry in the lexicon, -1 if the lexicon lacks it, int64, shape (m,).
        markers: whether the term is, or contains, a marker word, bool, shape (m,).
    """

    offsets: I64
    hashes: U64
    counts: I64
    lengths: I64
    entries: I64
    markers: Bool

    @classmethod
    def none(cls, articles: int) -> "Terms":
        """Return the terms of the given number of articles that have none."""
        nothing: I64 = np.empty(0, np.int64)
        offsets = np.zeros(articles + 1, np.int64)
        return cls(offsets, nothing.astype(np.uint64), nothing, nothing, nothing, nothing.astype(np.bool_))

    def of(self, article: int) -> slice:
        """Return where the terms of one article are."""
        return slice(int(self.offsets[article]), int(self.offsets[article + 1]))

    def part(self, start: int, stop: int) -> "Terms":
        """Return the terms of the articles from `start` up to, not including, `stop`."""
        first, last = self.offsets[start], self.offsets[stop]
        return self._at(slice(first, last), self.offsets[start : stop + 1] - first)

    def only(self, articles: I64) -> "Terms":
        """Return a copy of the terms of some articles, in the given order."""
        sizes = np.diff(self.offsets)[articles]
        offsets = offsets_of(sizes)
        return self._at(np.repeat(self.offsets[articles] - offsets[:-1], sizes) + np.arange(offsets[-1]), offsets)

    def mixed(self, kept: Bool, others: "Terms") -> "Terms":
        """Return these terms for the articles in `kept`, shape (n,), and the other terms for the rest."""
        articles = np.arange(len(kept))
        return joined_terms([self, others]).only(articles + len(kept) * ~kept) if kept.any() else others

    def _at(self, at: I64 | slice, offsets: I64) -> "Terms":
        return Terms(offsets, self.hashes[at], self.counts[at], self.lengths[at], self.entries[at], self.markers[at])


def joined_terms(parts: Sequence[Terms]) -> Terms:
    """Return the terms of one or more batches as those of a single batch."""
    return Terms(
        offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.markers for part in parts]),
    )


def extract_terms(words: Words, lexicon: Lexicon) -> Terms:
    """Return the terms of each article.

    Args:
        words: the words of the articles, in normal form, as the segmenter returns them.
        lexicon: knows the stop words, marker words and dictionary words.
    """
    known, table = _known(words.vocabulary, lexicon), _table_of(lexicon)
    return Terms(*_extract(words.points, words.stops, words.offsets, words.numbers, known, word_table(), table))


class _Table(NamedTuple):
    """The parts of a lexicon that decide which terms there are; see `Lexicon`."""

    keys: U64
    entries: I32
    flags: U8
    markers: Markers


class _Found(NamedTuple):
    """What the lexicon says about the words of a vocabulary, by number.

    Attributes:
        entries: their entries in it, `_NOT_KNOWN` or `_LEFT_OUT`.
        hashes: of the words.
        markers: whether they are marker words.
    """

    entries: I32
    hashes: U64
    markers: Bool


_NOT_KNOWN, _LEFT_OUT = np.int32(-1), np.int32(-2)


@lru_cache(maxsize=8)
def _known(vocabulary: Vocabulary, lexicon: Lexicon) -> _Found:
    return _find_all(vocabulary.hashes, _table_of(lexicon))


def _table_of(lexicon: Lexicon) -> _Table:
    return _Table(lexicon.keys, lexicon.entries, lexicon.flags, lexicon.markers)


@kernel
def _find_all(hashes: U64, lexicon: _Table) -> _Found:
    found = _Found(np.full(len(hashes), _NOT_KNOWN), hashes, np.zeros(len(hashes), np.bool_))
    for i in range(len(hashes)):
        if hashes[i] != EMPTY:
            found.entries[i], found.markers[i] = _find(hashes[i], lexicon)
    return found


@kernel
def _find(value: np.uint64, lexicon: _Table) -> tuple[np.int32, bool]:
    """Return a word's entry in the lexicon, `_NOT_KNOWN` or `_LEFT_OUT`, and whether it is a marker word."""
    slot = find_slot(lexicon.keys, value)
    if lexicon.keys[slot] == EMPTY:
        return _NOT_KNOWN, False
    entry = lexicon.entries[slot]
    return _LEFT_OUT if lexicon.flags[entry] & STOP else entry, (lexicon.flags[entry] & MARKER) != 0


class _Kept(NamedTuple):
    """The words of an article without stop words and punctuation, with room for all of its words.

    Attributes:
        entries: in the lexicon; see `_Found`.
        hashes: of the words.
        markers: whether they are marker words.
        starts: where each begins.
        lengths: in characters.
        unknown: indices of those that the vocabulary lacks.
    """

    entries: I32
    hashes: U64
    markers: Bool
    starts: I64
    lengths: I64
    unknown: I32


@kernel
def _extract(
    points: U32, stops: I64, articles: I64, numbers: I32, known: _Found, is_word: Bool, lexicon: _Table
) -> tuple[I64, U64, I64, I64, I64, Bool]:
    most = np.diff(articles).max() if len(articles) > 1 else 0
    kept = _room_for(most)
    offsets = np.zeros(len(articles), np.int64)
    hashes, entries = np.empty(len(stops), np.uint64), np.empty(len(stops), np.int64)
    counts, lengths = np.zeros_like(stops), np.empty_like(stops)
    markers = np.empty(len(stops), np.bool_)
    keys, terms = np.empty(table_size(most), np.uint64), np.empty(table_size(most), np.int32)
    for article in range(len(articles) - 1):
        words, unknown = _keep(points, stops, articles[article], articles[article + 1], numbers, known, is_word, kept)
        _find_unknown(points, kept.unknown[:unknown], is_word, lexicon, kept)
        used = offsets[article]
        # No larger than this article needs: one giant must not slow down the small ones in its batch.
        slots = table_size(words)
        mask = np.uint64(slots - 1)
        keys[:slots] = EMPTY
        for word in range(words):
            if kept.entries[word] == _LEFT_OUT:
                continue
            value = kept.hashes[word]
            place = value & mask
            while (keys[place] != value) & (keys[place] != EMPTY):
                place = (place + np.uint64(1)) & mask
            # Written whether it is new or not: a branch could not be predicted.
            is_new = keys[place] == EMPTY
            term = used if is_new else np.int64(terms[place])
            keys[place], terms[place] = value, term
            hashes[term], entries[term] = value, kept.entries[word]
            markers[term], lengths[term] = kept.markers[word], kept.lengths[word]
            counts[term] += 1
            used += is_new
        offsets[article + 1] = used
    total = offsets[-1]
    return offsets, hashes[:total], counts[:total], lengths[:total], entries[:total], markers[:total]


@kernel
def _room_for(words: int) -> _Kept:
    return _Kept(
        np.empty(words, np.int32),
        np.empty(words, np.uint64),
        np.empty(words, np.bool_),
        np.empty(words, np.int64),
        np.empty(words, np.int64),
        np.empty(words, np.int32),
    )


@kernel
def _keep(
    points: U32, stops: I64, first: int, last: int, numbers: I32, known: _Found, is_word: Bool, kept: _Kept
) -> tuple[int, int]:
    """Keep an article's words without stop words and punctuation; return how many, and how many of them are unknown.

    Free of branches, since they could not be predicted.
    """
    words, unknown, start = 0, 0, stops[first - 1] if first else np.int64(0)
    for word in range(first, last):
        number = np.uint32(numbers[word])
        entry, length = known.entries[number], stops[word] - start
        kept.entries[words], kept.hashes[words], kept.markers[words] = (
            entry,
            known.hashes[number],
            known.markers[number],
        )
        kept.starts[words], kept.lengths[words], kept.unknown[unknown] = start, length, words
        is_unknown = entry == _NOT_KNOWN
        is_mark = is_unknown & (length == 1) & (not is_word[points[start]])
        unknown += is_unknown & (not is_mark)
        words += (entry != _LEFT_OUT) & (not is_mark)
        start += length
    return words, unknown


@kernel
def _find_unknown(points: U32, unknown: I32, is_word: Bool, lexicon: _Table, kept: _Kept) -> None:
    """Look up in the lexicon the words that the vocabulary lacks; those without a word character are left out."""
    mask = np.uint64(len(lexicon.keys) - 1)
    for word in unknown:
        start = kept.starts[word]
        kept.hashes[word] = hash_span(points, start, start + kept.lengths[word])
        prefetch(lexicon.keys, kept.hashes[word] & mask)
    for word in unknown:
        start, stop = kept.starts[word], kept.starts[word] + kept.lengths[word]
        entry, marker = _LEFT_OUT, False
        if _has_word_character(points, start, stop, is_word):
            entry, marker = _find(kept.hashes[word], lexicon)
            if entry == _NOT_KNOWN:
                marker = contains_marker(points, start, stop, lexicon.markers)
        kept.entries[word], kept.markers[word] = entry, marker


@kernel
def _has_word_character(points: U32, start: int, stop: int, is_word: Bool) -> bool:
    for i in range(start, stop):  # noqa: SIM110  # compiled code has no generators
        if is_word[points[i]]:
            return True
    return False
