"""The content of a normal text: without links and without the lines that sites put around articles.

Knows the phrases that identify such lines; knows nothing of words or of other articles.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I32, I64, U8, U32, Bool
from stream_dedup.compiled.hashing import code_points
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.links import LINK_MARKS, may_link, without_links
from stream_dedup.text.normal import Normaliser, word_table
from stream_dedup.text.pair_filter import may_be_first_pair, pair_filter
from stream_dedup.text.sentences import ENDS, ends_sentence, sentence_marks
from stream_dedup.text.texts import Texts, followed, offsets_of

_LONGEST_LINE = 160  # characters: a longer sentence has content of its own
# The same in a text that has no other sentence: a post is often a single one, with its source or a hint at the end.
_LONGEST_ALONE = 60
# Roles of a character besides ending a sentence: it begins a phrase, is a phrase, may belong to the start of a link,
# opens a bracket, closes one.
_BEGINS, _IS, _LINKS, _OPENS, _CLOSES = (np.uint8(1 << bit) for bit in range(1, 6))
_OPENING, _CLOSING = "([【", ")]】"
_NO_LINKS = np.uint8(0)
_NOWHERE = -1
_MAY_LINK = -1
_FILTER_BYTES = 1 << 11


class Contents(NamedTuple):
    """The contents of n texts.

    Attributes:
        texts: what is left of them.
        only_boilerplate: whether lines of a site were removed and no word is left: only the frame of an article
            arrived. Shape (n,).
    """

    texts: Texts
    only_boilerplate: Bool


class _Phrases(NamedTuple):
    """Phrases, sorted by their first characters.

    Attributes:
        points: code points of all phrases, concatenated.
        offsets: phrase i is points[offsets[i]:offsets[i + 1]].
        first: number of the first phrase that begins with each code point, shape (0x110000,).
        kinds: flags `ENDS` and `_BEGINS` to `_CLOSES` of each code point, shape (0x110000,).
        begins: filter of the phrases of two characters or more, see `pair_filter`.
    """

    points: U32
    offsets: I64
    first: I32
    kinds: U8
    begins: U8


class ContentFilter:
    """Removes links and the sites' own lines from normal texts.

    Args:
        phrases: a sentence of up to 160 characters that contains one of these is a site's line, or, if the phrase is in
            brackets, these with what they enclose; in a text of nothing else, up to 60. Need not be normal.
        normal: converts the phrases to normal form.
    """

    def __init__(self, phrases: tuple[str, ...], normal: Normaliser) -> None:
        self._phrases = _phrases_of(sorted({text for phrase in phrases if (text := normal(phrase))}))

    def __call__(self, texts: Texts) -> Contents:
        """Return the contents of normal texts."""
        points, offsets, taken = _contents(texts.points, texts.offsets, self._phrases, word_table())
        return contents_of(Texts(points, offsets), taken)


def contents_of(texts: Texts, taken: Bool) -> Contents:
    """Return the contents of texts after sites' lines were removed from some of them.

    Args:
        texts: what is left of n texts.
        taken: whether lines were removed from each text, shape (n,).
    """
    return Contents(texts, taken & ~texts.with_any(word_table()))


def _phrases_of(ordered: list[str]) -> _Phrases:
    kinds = sentence_marks().copy()
    for marks, role in ((LINK_MARKS, _LINKS), (_OPENING, _OPENS), (_CLOSING, _CLOSES)):
        kinds[code_points(marks)] |= role
    first = np.zeros(len(kinds), np.int32)
    for number in range(len(ordered) - 1, -1, -1):
        point = ord(ordered[number][0])
        first[point] = number
        kinds[point] |= _BEGINS if len(ordered[number]) > 1 else _IS
    points, offsets = code_points("".join(ordered)).copy(), offsets_of([*map(len, ordered)])
    begins = pair_filter(points, offsets[:-1][np.diff(offsets) > 1], _FILTER_BYTES)
    return _Phrases(points, offsets, first, kinds, begins)


@kernel
def _contents(points: U32, offsets: I64, phrases: _Phrases, words: Bool) -> tuple[U32, I64, Bool]:
    """Return texts without links and sites' lines, and which texts had such lines, shape (n,).

    `words` tells for each code point whether it is a word character.
    """
    kept, stops, taken = np.empty_like(points), np.zeros_like(offsets), np.zeros(len(offsets) - 1, np.bool_)
    for text in range(len(taken)):
        own, room = points[offsets[text] : offsets[text + 1]], kept[stops[text] :]
        length, taken[text] = _without_either(own, phrases, room, _LONGEST_LINE)
        if taken[text] and not words[room[:length]].any():
            length, taken[text] = _without_either(own, phrases, room, _LONGEST_ALONE)
        stops[text + 1] = stops[text] + length
    return kept[: stops[-1]], stops, taken


@kernel
def _without_either(points: U32, phrases: _Phrases, kept: U32, longest: int) -> tuple[int, bool]:
    """Write a text to `kept` without links and a site's lines; return its length, and whether it had such lines."""
    length, taken = _without_lines(points, phrases, kept, _LINKS, longest)
    if length == _MAY_LINK:
        length, taken = _without_lines(without_links(points), phrases, kept, _NO_LINKS, longest)
    return length, taken


@kernel
def _without_lines(points: U32, phrases: _Phrases, kept: U32, links: np.uint8, longest: int) -> tuple[int, bool]:
    """Write a text to `kept` without the sentences and brackets that are a site's lines; return its length, and if any.

    Those are at most `longest` characters long. If `links` is set and the text may contain links, the length returned
    is `_MAY_LINK`.
    """
    kinds, begins, marks = phrases.kinds, phrases.begins, ENDS | _IS | _OPENS | _CLOSES | links
    used, copied, start, last = 0, 0, 0, len(points) - 1
    before = 0, 0  # used and copied when the sentence began
    opened, stop = _NOWHERE, 0  # the bracket that is open, and where the last phrase in it ends
    taken = is_line = False
    for i in range(len(points)):
        kind = kinds[points[i]]
        # A single branch: only about one character in 25 gets past it.
        if i < last and not (kind & marks != 0) | may_be_first_pair(points[i], points[i + 1], begins):
            continue
        if kind & links and may_link(points, i):
            return _MAY_LINK, False
        if kind & _OPENS and stop == 0:
            opened = i
        end = _end_of_phrase(points, i, phrases) if kind & (_IS | _BEGINS) else i
        is_line |= end > i and opened == _NOWHERE
        stop = max(stop, end) if end > i and opened != _NOWHERE else stop
        if kind & _CLOSES and opened != _NOWHERE:
            is_line |= stop > i + 1  # the phrase goes on after the bracket
            if 0 < stop <= i + 1 and i + 1 - opened <= longest:
                used = followed(kept, used, points[copied:opened])
                copied, taken = i + 1, True
            opened, stop = _NOWHERE, 0
        if ends_sentence(points, i, kinds):
            if (is_line or stop > 0) and i + 1 - start <= longest:
                used = followed(kept, before[0], points[before[1] : start])
                copied, taken = i + 1, True
            start, before, is_line = i + 1, (used, copied), False
            opened, stop = _NOWHERE, 0
    return followed(kept, used, points[copied:]), taken


@kernel
def _end_of_phrase(points: U32, i: int, phrases: _Phrases) -> int:
    """Return where the longest phrase at character i ends, i itself if none is there; some phrase begins like that."""
    end, number = i, phrases.first[points[i]]
    while number < len(phrases.offsets) - 1 and phrases.points[phrases.offsets[number]] == points[i]:
        phrase = phrases.points[phrases.offsets[number] : phrases.offsets[number + 1]]
        if i + len(phrase) > end and _is_at(points, i, phrase):
            end = i + len(phrase)
        number += 1
    return end


@kernel
def _is_at(points: U32, i: int, phrase: U32) -> bool:
    """Tell whether a phrase is at character i, which is its first."""
    if i + len(phrase) > len(points):
        return False
    for place in range(1, len(phrase)):  # noqa: SIM110  # compiled code has no generators
        if points[i + place] != phrase[place]:
            return False
    return True
