"""What of a normal text is content: not links, nor the lines that sites put around articles.

Knows phrases by which such lines are told; knows nothing of words or of other articles.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U32, code_points
from stream_dedup.text.normal import Normaliser, NormalText
from stream_dedup.text.sentences import ends_sentence, sentence_marks

_LONGEST_LINE = 160  # characters: what is longer has something to say besides
_BEGINS = np.uint8(2)  # what a character may do beside ending a sentence: begin a phrase
_LINK = re.compile(r"(?:https?://|www\.)[!-~]+")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a text.

    Attributes:
        text: what is left of it.
        bare: whether nothing is left but there were lines of a site: an article of which only the shell came.
    """

    text: NormalText
    bare: bool


class _Phrases(NamedTuple):
    """Phrases in the order of their first characters.

    Attributes:
        points: all of them, one behind the other.
        offsets: phrase i at points[offsets[i]:offsets[i + 1]].
        first: number of the first phrase that begins with each code point, shape (0x110000,).
        kinds: `_BEGINS` and `ENDS` of each code point, shape (0x110000,).
    """

    points: U32
    offsets: I64
    first: NDArray[np.int32]
    kinds: NDArray[np.uint8]


class ContentFilter:
    """Takes links and the sites' own lines out of normal texts.

    Args:
        phrases: a sentence of up to 160 characters with one of these is a site's line; in any form.
        normal: brings them into the form of the texts.
    """

    def __init__(self, phrases: tuple[str, ...], normal: Normaliser) -> None:
        self._phrases = _phrases_of(sorted({normal(phrase).text for phrase in phrases}))

    def __call__(self, text: NormalText) -> Content:
        """Return the content of a normal text."""
        kept = _without_links(text)
        points = _without_lines(kept.points, *self._phrases)
        return Content(kept, bare=False) if len(points) == len(kept.points) else content_of(points)


def content_of(points: U32) -> Content:
    """Return the content of a text out of which lines were taken: what is left of it."""
    text = points.tobytes().decode("utf-32-le")
    return Content(NormalText(text, points), bare=not any(map(str.isalnum, text)))


def _phrases_of(ordered: list[str]) -> _Phrases:
    kinds = sentence_marks().copy()
    first = np.zeros(len(kinds), np.int32)
    for number in range(len(ordered) - 1, -1, -1):
        first[ord(ordered[number][0])] = number
        kinds[ord(ordered[number][0])] |= _BEGINS
    offsets = np.cumsum([0, *map(len, ordered)], dtype=np.int64)
    return _Phrases(code_points("".join(ordered)).copy(), offsets, first, kinds)


def _without_links(text: NormalText) -> NormalText:
    if "://" not in text.text and "www." not in text.text:
        return text
    kept = _LINK.sub(" ", text.text)
    return NormalText(kept, code_points(kept).copy())


@kernel
def _without_lines(points: U32, phrases: U32, offsets: I64, first: NDArray[np.int32], kinds: NDArray[np.uint8]) -> U32:
    """Return a text without the sentences that are lines of a site; the text itself where there are none."""
    kept = points
    used, start, is_line = 0, 0, False
    for i in range(len(points)):
        kind = kinds[points[i]]
        if kind & _BEGINS and not is_line:
            is_line = _begins_phrase(points, i, phrases, offsets, first)
        if not ends_sentence(points, i, kinds):
            continue
        if is_line and i + 1 - start <= _LONGEST_LINE:
            if kept is points:
                kept = points.copy()
                used = start
        elif kept is not points:
            kept[used : used + i + 1 - start] = points[start : i + 1]
            used += i + 1 - start
        start, is_line = i + 1, False
    return kept if kept is points else kept[:used]


@kernel
def _begins_phrase(points: U32, i: int, phrases: U32, offsets: I64, first: NDArray[np.int32]) -> bool:
    number = first[points[i]]
    while number < len(offsets) - 1 and phrases[offsets[number]] == points[i]:
        place, last = offsets[number] + 1, offsets[number + 1]
        at = i + 1
        while place < last and at < len(points) and phrases[place] == points[at]:
            place, at = place + 1, at + 1
        if place == last:
            return True
        number += 1
    return False
