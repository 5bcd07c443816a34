"""What of a normal text is content: not links, nor the lines that sites put around articles.

Knows phrases by which such lines are told; knows nothing of words or of other articles.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled.hashing import I64, U8, U32, code_points
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.beginnings import beginnings, may_begin
from stream_dedup.text.links import LINK_MARKS, may_link, without_links
from stream_dedup.text.normal import Normaliser, word_table
from stream_dedup.text.sentences import ENDS, ends_sentence, sentence_marks
from stream_dedup.text.texts import Texts, followed

Bool = NDArray[np.bool_]

_LONGEST_LINE = 160  # characters: what is longer has something to say besides
# What a character may do beside ending a sentence: begin a phrase, be one, begin a link.
_BEGINS, _IS, _LINKS = np.uint8(2), np.uint8(4), np.uint8(8)
_NO_LINKS = np.uint8(0)
_MAY_LINK = -1
_FILTER_BYTES = 1 << 11


class Contents(NamedTuple):
    """The contents of n texts.

    Attributes:
        texts: what is left of them.
        bare: whether nothing is left but there were lines of a site: an article of which only the shell came. Shape
            (n,).
    """

    texts: Texts
    bare: Bool


class _Phrases(NamedTuple):
    """Phrases in the order of their first characters.

    Attributes:
        points: all of them, one behind the other.
        offsets: phrase i at points[offsets[i]:offsets[i + 1]].
        first: number of the first phrase that begins with each code point, shape (0x110000,).
        kinds: `_BEGINS`, `_LINKS` and `ENDS` of each code point, shape (0x110000,).
        begins: filter of those of two characters or more, see `beginnings`.
    """

    points: U32
    offsets: I64
    first: NDArray[np.int32]
    kinds: U8
    begins: U8


class ContentFilter:
    """Takes links and the sites' own lines out of normal texts.

    Args:
        phrases: a sentence of up to 160 characters with one of these is a site's line; in any form.
        normal: brings them into the form of the texts.
    """

    def __init__(self, phrases: tuple[str, ...], normal: Normaliser) -> None:
        self._phrases = _phrases_of(sorted({text for phrase in phrases if (text := normal(phrase).text)}))

    def __call__(self, texts: Texts) -> Contents:
        """Return the contents of normal texts."""
        points, offsets, taken = _contents(texts.points, texts.offsets, self._phrases)
        return contents_of(Texts(points, offsets), taken)


def contents_of(texts: Texts, taken: Bool) -> Contents:
    """Return the contents of texts out of some of which lines were taken.

    Args:
        texts: what is left of them, n.
        taken: whether something was taken out of each, shape (n,).
    """
    return Contents(texts, taken & ~texts.with_any(word_table()))


def _phrases_of(ordered: list[str]) -> _Phrases:
    kinds = sentence_marks().copy()
    kinds[code_points(LINK_MARKS)] |= _LINKS
    first = np.zeros(len(kinds), np.int32)
    for number in range(len(ordered) - 1, -1, -1):
        point = ord(ordered[number][0])
        first[point] = number
        kinds[point] |= _BEGINS if len(ordered[number]) > 1 else _IS
    points, offsets = code_points("".join(ordered)).copy(), np.cumsum([0, *map(len, ordered)], dtype=np.int64)
    begins = beginnings(points, offsets[:-1][np.diff(offsets) > 1], _FILTER_BYTES)
    return _Phrases(points, offsets, first, kinds, begins)


@kernel
def _contents(points: U32, offsets: I64, phrases: _Phrases) -> tuple[U32, I64, Bool]:
    """Return texts without links and without the sentences that are lines of a site, and which ones had such lines."""
    kept, stops, taken = np.empty_like(points), np.zeros_like(offsets), np.zeros(len(offsets) - 1, np.bool_)
    for text in range(len(taken)):
        own, room = points[offsets[text] : offsets[text + 1]], kept[stops[text] :]
        length, taken[text] = _without_lines(own, phrases, room, _LINKS)
        if length == _MAY_LINK:
            length, taken[text] = _without_lines(without_links(own), phrases, room, _NO_LINKS)
        stops[text + 1] = stops[text] + length
    return kept[: stops[-1]], stops, taken


@kernel
def _without_lines(points: U32, phrases: _Phrases, kept: U32, links: np.uint8) -> tuple[int, bool]:
    """Write a text without the sentences that are lines of a site; return its length and whether there were any.

    Where it may have links, and these matter, its length is `_MAY_LINK`.
    """
    kinds, begins, marks = phrases.kinds, phrases.begins, ENDS | _IS | links
    used, copied, start, last = 0, 0, 0, len(points) - 1
    taken = is_line = False
    for i in range(len(points)):
        kind = kinds[points[i]]
        # One branch, which is taken at one of 25 characters.
        if i < last and not (kind & marks != 0) | may_begin(points[i], points[i + 1], begins):
            continue
        if kind & links and may_link(points, i):
            return _MAY_LINK, False
        is_line |= kind & _IS != 0 or (not is_line and kind & _BEGINS and _begins_phrase(points, i, phrases))
        if ends_sentence(points, i, kinds):
            if is_line and i + 1 - start <= _LONGEST_LINE:
                used = followed(kept, used, points[copied:start])
                copied, taken = i + 1, True
            start, is_line = i + 1, False
    return followed(kept, used, points[copied:]), taken


@kernel
def _begins_phrase(points: U32, i: int, phrases: _Phrases) -> bool:
    number = phrases.first[points[i]]
    while number < len(phrases.offsets) - 1 and phrases.points[phrases.offsets[number]] == points[i]:
        place, last = phrases.offsets[number] + 1, phrases.offsets[number + 1]
        at = i + 1
        while place < last and at < len(points) and phrases.points[place] == points[at]:
            place, at = place + 1, at + 1
        if place == last:
            return True
        number += 1
    return False
