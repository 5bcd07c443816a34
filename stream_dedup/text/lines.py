"""The lines at both ends of an article: numbered so they can be counted, and removed if known to be the site's.

Knows how lines are cut and hashed; knows nothing of counts or of when a line is a site's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U8, U32, U64, Bool
from stream_dedup.compiled.hashing import EMPTY, code_points, empty_table, find_slot, hash_marked, hash_span, mix64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.scope import SEPARATOR
from stream_dedup.text.content import Contents, contents_of
from stream_dedup.text.normal import word_table
from stream_dedup.text.sentences import ENDS, ends_sentence, sentence_marks
from stream_dedup.text.texts import Texts, followed, offsets_of

NO_SITE = 0
NOTHING_LEARNT: U64 = empty_table(1)
_NO_KEYS: U64 = np.empty(0, np.uint64)
_OWN = 3  # lines looked at from either end that are not learnt
_MOST = 16  # lines looked at from either end, learnt ones included
_SHORTEST = 6  # word characters: anything shorter may fill a slot of a template, such as a number or a name
_UPPER, _LOWER = np.uint64(0xFFFFFFFF00000000), np.uint64(0x00000000FFFFFFFF)
_SITES_KEPT = 1 << 14  # numbers of recent sites


@dataclass(frozen=True, slots=True)
class EndLines:
    """The lines at the ends of n articles.

    Attributes:
        offsets: those of article i are keys[offsets[i]:offsets[i + 1]], shape (n + 1,).
        keys: for an article with lines, the number of its site, then its lines' numbers without repeats: the upper
            half of the site's number and 32 bits of a hash of the line's word characters; shape (m,).
        taken: whether lines were removed from the article, shape (n,).
    """

    offsets: I64
    keys: U64
    taken: Bool

    @classmethod
    def none(cls, articles: int) -> "EndLines":
        """Return the end lines of the given number of articles that have none."""
        return cls(np.zeros(articles + 1, np.int64), _NO_KEYS, np.zeros(articles, np.bool_))

    @classmethod
    def of_batches(cls, parts: Sequence["EndLines"]) -> "EndLines":
        """Return the end lines of one or more batches as those of a single batch."""
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            offsets_of(sizes),
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.taken for part in parts]),
        )

    def of(self, article: int) -> U64:
        """Return the numbers of an article's site and lines."""
        return self.keys[self.offsets[article] : self.offsets[article + 1]]

    def affected_by(self, learnt: U64, since: U64) -> Bool:
        """Return for which articles a newer set of learnt lines means removing other lines, shape (n,).

        Args:
            learnt: the lines learnt when these were found, see `remove_site_lines`.
            since: the lines learnt now.
        """
        # A walk from either end stays the same as long as each line on it is still learnt, or still is not.
        if np.array_equal(learnt, since):
            return np.zeros(len(self.taken), np.bool_)
        return _affected_by(self.offsets, self.keys, learnt, since)

    def part(self, start: int, stop: int) -> "EndLines":
        """Return the end lines of the articles from `start` up to, not including, `stop`."""
        first, last = self.offsets[start], self.offsets[stop]
        return EndLines(self.offsets[start : stop + 1] - first, self.keys[first:last], self.taken[start:stop])


class WithoutSiteLines(NamedTuple):
    """Contents without their sites' lines.

    Attributes:
        contents: what is left.
        lines: at their ends, including those that were removed.
    """

    contents: Contents
    lines: EndLines


@lru_cache(_SITES_KEPT)
def site_number(name: str, scope: str = "") -> int:
    """Return the number of a site within a scope: 32 bits of a hash, and 32 derived from them; `NO_SITE` if unnamed."""
    if not name:
        return NO_SITE
    points = code_points(f"{scope}{SEPARATOR}{name}")
    return int(site_of(np.uint64(hash_span(points, 0, len(points)))))


@kernel
def site_of(key: np.uint64) -> np.uint64:
    """Return the number of the site that a line's number belongs to; for a site's own number, that number."""
    upper = key & _UPPER
    return upper | (mix64(upper) & _LOWER)


def remove_site_lines(contents: Contents, sites: U64, learnt: U64) -> WithoutSiteLines:
    """Return contents without the lines of their sites, and the lines to be counted.

    Sentences of 6 word characters or more are looked at from each end inwards, until three of them are not learnt or
    there were 16 in all.

    Args:
        contents: of n articles.
        sites: numbers of their sites, shape (n,).
        learnt: open-addressing table of the lines known to be sites'.
    """
    texts = contents.texts
    points, offsets, key_offsets, keys, taken = _remove_site_lines(
        texts.points, texts.offsets, sites, learnt, sentence_marks(), word_table()
    )
    left = contents_of(Texts(points, offsets), taken)
    bare = left.only_boilerplate | contents.only_boilerplate & ~taken
    return WithoutSiteLines(Contents(left.texts, bare), EndLines(key_offsets, keys, taken))


@kernel
def _remove_site_lines(
    points: U32, offsets: I64, sites: U64, learnt: U64, marks: U8, is_word: Bool
) -> tuple[U32, I64, I64, U64, Bool]:
    """Return what is left of texts, as points and offsets, then the fields of `EndLines`."""
    kept, kept_offsets = np.empty(len(points), np.uint32), np.zeros(len(offsets), np.int64)
    keys, key_offsets = np.empty(len(sites) * (1 + 2 * _MOST), np.uint64), np.zeros(len(offsets), np.int64)
    taken, spans = np.zeros(len(sites), np.bool_), np.empty((2 * _MOST, 2), np.int64)
    for text in range(len(sites)):
        own = points[offsets[text] : offsets[text + 1]]
        count, found = 0, 0
        if sites[text] != NO_SITE:
            count, found = _end_lines(own, sites[text], learnt, marks, is_word, keys[key_offsets[text] :], spans)
        key_offsets[text + 1] = key_offsets[text] + count
        taken[text] = found > 0
        kept_offsets[text + 1] = kept_offsets[text] + _without(own, spans[:found], kept[kept_offsets[text] :])
    return kept[: kept_offsets[-1]], kept_offsets, key_offsets, keys[: key_offsets[-1]], taken


@kernel
def _end_lines(
    points: U32, site: np.uint64, learnt: U64, marks: U8, is_word: Bool, keys: U64, spans: I64
) -> tuple[int, int]:
    """Write the numbers of a text's site and lines, and the spans of the learnt lines; return how many of each."""
    keys[0] = site
    used, taken, head, tail = 1, 0, 0, len(points)
    for side in range(2):
        own, looked, before = 0, 0, taken
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
                spans[taken, 0], spans[taken, 1] = start, stop
                taken += 1
            else:
                own += 1
            used = _noted(keys, used, key)
        if side == 1:
            _reverse(spans, before, taken)
    return (used if used > 1 else 0), taken


@kernel
def _affected_by(offsets: I64, keys: U64, learnt: U64, since: U64) -> Bool:
    otherwise = np.zeros(len(offsets) - 1, np.bool_)
    for article in range(len(otherwise)):
        for key in keys[offsets[article] + 1 : offsets[article + 1]]:  # after the site's own number
            was, is_now = learnt[find_slot(learnt, key)] == key, since[find_slot(since, key)] == key
            otherwise[article] |= was != is_now
    return otherwise


@kernel
def _sentence_stop(points: U32, start: int, marks: U8) -> int:
    """Return where the sentence that begins at `start` ends."""
    stop = start
    # Marks are tested inline: a call costs more than a character.
    while stop + 1 < len(points) and not (marks[points[stop]] & ENDS and ends_sentence(points, stop, marks)):
        stop += 1
    return stop + 1


@kernel
def _sentence_start(points: U32, first: int, stop: int, marks: U8) -> int:
    """Return where the sentence that ends at `stop` begins, not before `first`."""
    start = stop - 1
    while start > first and not (marks[points[start - 1]] & ENDS and ends_sentence(points, start - 1, marks)):
        start -= 1
    return start


@kernel
def _line_number(sentence: U32, is_word: Bool, site: np.uint64) -> np.uint64:
    """Return the number of a line of a site, `EMPTY` if the sentence is too short."""
    value, characters = hash_marked(sentence, is_word)
    return (site & _UPPER) | (value & _LOWER) if characters >= _SHORTEST else EMPTY


@kernel
def _noted(keys: U64, used: int, key: np.uint64) -> int:
    """Append a number to others unless it is among them; return how many there are."""
    for i in range(used):
        if keys[i] == key:
            return used
    keys[used] = key
    return used + 1


@kernel
def _reverse(spans: I64, first: int, stop: int) -> None:
    """Reverse the order of spans: those at the end of a text were found from the end backwards."""
    last = stop - 1
    while first < last:
        for side in range(2):
            spans[first, side], spans[last, side] = spans[last, side], spans[first, side]
        first, last = first + 1, last - 1


@kernel
def _without(points: U32, spans: I64, kept: U32) -> int:
    """Write what is left of a text without some ascending spans; return its length."""
    used = copied = 0
    for place in range(len(spans)):
        used = followed(kept, used, points[copied : spans[place, 0]])
        copied = spans[place, 1]
    return followed(kept, used, points[copied:])
