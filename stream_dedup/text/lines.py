"""The lines at both ends of an article: as numbers to be counted, and taken out where they are known to be its site's.

Knows how lines are cut and hashed; knows nothing of counts or of when a line is a site's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import EMPTY, I64, U32, U64, code_points, empty_table, find_slot, hash_span, mix64
from stream_dedup.scope import SEPARATOR
from stream_dedup.text.content import Content, content_of
from stream_dedup.text.normal import word_table
from stream_dedup.text.sentences import ends_sentence, sentence_marks

Bool = NDArray[np.bool_]

NO_SITE = 0
NOTHING_LEARNT: U64 = empty_table(1)
_NO_KEYS: U64 = np.empty(0, np.uint64)
_OWN = 3  # lines looked at from either end beyond those that are learnt
_MOST = 16  # lines looked at from either end with those
_SHORTEST = 6  # word characters: what is shorter may be what fills the hole of a template, as a number or a name
_UPPER, _LOWER = np.uint64(0xFFFFFFFF00000000), np.uint64(0x00000000FFFFFFFF)
_SITES_KEPT = 1 << 14  # numbers of sites that came lately


@dataclass(frozen=True, slots=True)
class EndLines:
    """The lines at the ends of n articles.

    Attributes:
        offsets: those of article i at keys[offsets[i]:offsets[i + 1]], shape (n + 1,).
        keys: of an article with lines the number of its site, then its lines' numbers, each once: the upper half of
            its site's number, and 32 bits of a hash of the line's word characters; shape (m,).
        taken: whether lines were taken out of the article, shape (n,).
    """

    offsets: I64
    keys: U64
    taken: Bool

    @classmethod
    def none(cls, articles: int) -> "EndLines":
        """Return those of articles without any."""
        return cls(np.zeros(articles + 1, np.int64), _NO_KEYS, np.zeros(articles, np.bool_))

    @classmethod
    def joined(cls, peeled: Sequence["Peeled"]) -> "EndLines":
        """Return those of articles given one by one."""
        offsets = np.zeros(len(peeled) + 1, np.int64)
        np.cumsum([len(one.keys) for one in peeled], out=offsets[1:])
        keys = np.concatenate([_NO_KEYS, *(one.keys for one in peeled)])
        return cls(offsets, keys, np.array([one.taken for one in peeled], np.bool_))

    @classmethod
    def of_batches(cls, parts: Sequence["EndLines"]) -> "EndLines":
        """Return those of several batches, at least one, as those of one."""
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.taken for part in parts]),
        )

    def of(self, article: int) -> U64:
        """Return the numbers of one article's site and lines."""
        return self.keys[self.offsets[article] : self.offsets[article + 1]]

    def part(self, start: int, stop: int) -> "EndLines":
        """Return those of the articles from `start` up to, not including, `stop`."""
        first, last = self.offsets[start], self.offsets[stop]
        return EndLines(self.offsets[start : stop + 1] - first, self.keys[first:last], self.taken[start:stop])


class Peeled(NamedTuple):
    """A content without its site's lines.

    Attributes:
        content: the very one that it was where it has none.
        keys: numbers of its site and its lines, see `EndLines`.
        taken: whether it had any.
    """

    content: Content
    keys: U64
    taken: bool


@lru_cache(_SITES_KEPT)
def site_number(name: str, scope: str = "") -> int:
    """Return the number of a site within a scope: 32 bits of a hash, and 32 made of these; `NO_SITE` for no name."""
    if not name:
        return NO_SITE
    points = code_points(f"{scope}{SEPARATOR}{name}")
    return int(site_of(np.uint64(hash_span(points, 0, len(points)))))


@kernel
def site_of(key: np.uint64) -> np.uint64:
    """Return the number of the site that a line's number belongs to; a site's own number is that of itself."""
    upper = key & _UPPER
    return upper | (mix64(upper) & _LOWER)


def peel(content: Content, site: int, learnt: U64) -> Peeled:
    """Return a content without the lines of its site, and what there is to be counted of it.

    Looked at are the sentences of 6 word characters or more from both ends inwards, until on either side three have
    come that are not learnt.

    Args:
        content: of an article.
        site: number of its site.
        learnt: open-addressing table of the lines that are sites'.
    """
    if site == NO_SITE:
        return Peeled(content, _NO_KEYS, taken=False)
    points = content.text.points
    keys, kept = _peel(points, sentence_marks(), word_table(), np.uint64(site), learnt)
    if len(kept) == len(points):
        return Peeled(content, keys, taken=False)
    return Peeled(content_of(kept), keys, taken=True)


@kernel
def _peel(points: U32, marks: NDArray[np.uint8], is_word: Bool, site: np.uint64, learnt: U64) -> tuple[U64, U32]:
    keys, used = np.empty(1 + 2 * _MOST, np.uint64), 1
    keys[0] = site
    spans, taken = np.empty((2 * _MOST, 2), np.int64), 0
    head, tail = 0, len(points)
    for side in range(2):
        own, looked = 0, 0
        while head < tail and own < _OWN and looked < _MOST:
            start, stop = head, tail
            if side == 0:
                head = stop = _sentence_stop(points, head, marks)
            else:
                tail = start = _sentence_start(points, head, tail, marks)
            key = _line_number(points[start:stop], is_word, site)
            if key == EMPTY:
                continue
            looked += 1
            if learnt[find_slot(learnt, key)] == key:
                spans[taken] = start, stop
                taken += 1
            else:
                own += 1
            used = _noted(keys, used, key)
    return keys[: used if used > 1 else 0], _without(points, spans[:taken])


@kernel
def _sentence_stop(points: U32, start: int, marks: NDArray[np.uint8]) -> int:
    """Return where the sentence that begins at `start` ends."""
    stop = start
    while not ends_sentence(points, stop, marks):
        stop += 1
    return stop + 1


@kernel
def _sentence_start(points: U32, first: int, stop: int, marks: NDArray[np.uint8]) -> int:
    """Return where the sentence that ends at `stop` begins, not before `first`."""
    start = stop - 1
    while start > first and not ends_sentence(points, start - 1, marks):
        start -= 1
    return start


@kernel
def _line_number(sentence: U32, is_word: Bool, site: np.uint64) -> np.uint64:
    """Return the number of a line of a site, `EMPTY` where the sentence is too short."""
    characters, used = np.empty(len(sentence), np.uint32), 0
    for point in sentence:
        if is_word[point]:
            characters[used] = point
            used += 1
    if used < _SHORTEST:
        return EMPTY
    return (site & _UPPER) | (hash_span(characters, 0, used) & _LOWER)


@kernel
def _noted(keys: U64, used: int, key: np.uint64) -> int:
    """Put a number behind others unless it is among them; return how many there are."""
    for i in range(used):
        if keys[i] == key:
            return used
    keys[used] = key
    return used + 1


@kernel
def _without(points: U32, spans: I64) -> U32:
    """Return a text without some spans; the text itself where there are none."""
    if len(spans) == 0:
        return points
    kept = np.ones(len(points), np.bool_)
    for start, stop in spans:
        kept[start:stop] = False
    return points[kept]
