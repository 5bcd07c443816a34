"""Words to terms: the distinct words of each article with how often they occur, stop words left out.

Knows the lexicon; knows nothing of document counts or weights.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import EMPTY, I64, U32, U64, code_points, find_slot, hash_span
from stream_dedup.text.lexicon import MARKER, STOP, Lexicon
from stream_dedup.text.normal import word_table

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


def extract_terms(words: Iterable[list[str]], lexicon: Lexicon, texts: list[U32] | None = None) -> Terms:
    """Return the terms of each article.

    Args:
        words: the words of each article, as the segmenter returns them. A generator is best: words that are dropped
            at once leave their memory, still in the processor's cache, to the next article's.
        lexicon: tells stop words, marker words and known words.
        texts: code points of the texts that were cut, where at hand: spares joining the words again.
    """
    points: list[U32] = []
    lengths: list[I64] = []
    for i, article in enumerate(words):
        lengths.append(np.fromiter(map(len, article), np.int64, len(article)))
        # A segmenter that drops characters, spaces for instance, gives less than the text.
        whole = texts is not None and len(texts[i]) == int(lengths[i].sum())
        points.append(texts[i] if texts is not None and whole else code_points("".join(article)))
    return Terms(
        *_extract(
            np.concatenate([np.empty(0, np.uint32), *points]),
            np.concatenate([np.empty(0, np.int64), *lengths]),
            np.array([len(article) for article in lengths], np.int64),
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
    word_lengths: I64,
    per_article: I64,
    is_word: Bool,
    lexicon_keys: U64,
    lexicon_flags: NDArray[np.uint8],
    markers: U64,
    marker_lengths: I64,
) -> tuple[I64, U64, I64, I64, I64, Bool]:
    total = len(word_lengths)
    offsets = np.zeros(len(per_article) + 1, np.int64)
    hashes = np.empty(total, np.uint64)
    counts = np.zeros(total, np.int64)
    lengths = np.empty(total, np.int64)
    slots = np.empty(total, np.int64)
    marker = np.zeros(total, np.bool_)
    most = per_article.max() if len(per_article) else 0
    room = 16
    while room < 2 * most:
        room *= 2
    seen = np.zeros(room, np.uint64)
    place = np.empty(room, np.int64)
    word, start, used = 0, 0, 0
    for article in range(len(per_article)):
        first = used
        for _ in range(per_article[article]):
            stop = start + word_lengths[word]
            word += 1
            if _has_word_character(points, start, stop, is_word):
                value = hash_span(points, start, stop)
                slot = find_slot(seen, value)
                if seen[slot] == EMPTY:
                    seen[slot] = value
                    known = find_slot(lexicon_keys, value)
                    flags = lexicon_flags[known]
                    if lexicon_keys[known] == EMPTY:
                        known, flags = -1, np.uint8(0)
                    if flags & STOP:
                        place[slot] = -1
                    else:
                        place[slot] = used
                        hashes[used], lengths[used], slots[used] = value, stop - start, known
                        marker[used] = (flags & MARKER) != 0 or _contains_marker(
                            points, start, stop, markers, marker_lengths
                        )
                        used += 1
                if place[slot] >= 0:
                    counts[place[slot]] += 1
            start = stop
        offsets[article + 1] = used
        if used > first or per_article[article] > 0:
            seen[:] = EMPTY
    return offsets, hashes[:used], counts[:used], lengths[:used], slots[:used], marker[:used]


@kernel
def _has_word_character(points: U32, start: int, stop: int, is_word: Bool) -> bool:
    for i in range(start, stop):  # noqa: SIM110  # compiled code has no generators
        if is_word[points[i]]:
            return True
    return False


@kernel
def _contains_marker(points: U32, start: int, stop: int, markers: U64, lengths: I64) -> bool:
    for length in range(lengths[0], min(lengths[1], stop - start) + 1):
        # A marker of one character (但, 却) counts only as a word of its own: inside words it is something else.
        if length == 1 and stop - start > 1:
            continue
        for first in range(start, stop - length + 1):
            value = hash_span(points, first, first + length)
            if markers[find_slot(markers, value)] == value:
                return True
    return False
