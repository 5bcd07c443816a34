"""Raw texts to normal texts: one table look-up a code point.

Knows which texts need more than that; knows nothing of words or fingerprints.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U32, code_points
from stream_dedup.text.forms import COMPOSE, DELETE, MARKUP, forms_of, sprawling
from stream_dedup.text.markup import strip_html
from stream_dedup.text.texts import Texts

Bool = NDArray[np.bool_]

_LONGEST_MARKS = 30  # combining marks in a row: the Stream-Safe Text Format of UAX #15
_APART = 16  # characters: what is nearer together is composed together
_ELLIPSIS = np.uint32(ord("…"))  # NFKC expands it as well, but no text is composed because of it
_CODE_POINTS = 0x110000


@dataclass(frozen=True, slots=True)
class NormalText:
    """A normal text twice: as a string and as its code points, shape (len(text),), uint32."""

    text: str
    points: U32


class Normaliser:
    """Turns raw text into normal text: NFKC, lower case, simplified Han, no invisible characters, no HTML.

    Args:
        simplify: map traditional Han characters to simplified ones.
        strip_html: undo entities and remove tags.
    """

    def __init__(self, *, simplify: bool = True, strip_html: bool = True) -> None:
        self._fast, self._settled = forms_of(simplify=simplify)
        self._strip_html = strip_html

    def __call__(self, text: str) -> NormalText:
        """Return the normal form of a text; the text itself is left alone."""
        normal = self.all([text])
        return NormalText(normal.text(0), normal.points)

    def all(self, texts: Sequence[str]) -> Texts:
        """Return the normal forms of texts; most of them need one pass of compiled code together."""
        normal, slow = _looked_up(texts, self._fast, markup=self._strip_html)
        return normal.replaced(slow, self._slow([texts[place] for place in np.flatnonzero(slow).tolist()]))

    def _slow(self, texts: list[str]) -> Texts:
        """Return the normal forms of texts that may hold HTML or have to be composed."""
        if not texts:
            return Texts.none(0)
        plain = [strip_html(text) if self._strip_html else text for text in texts]
        normal, slow = _looked_up(plain, self._fast, markup=False)
        composed = [self._composed(plain[place]) for place in np.flatnonzero(slow).tolist()]
        return normal.replaced(slow, Texts.joined(composed))

    def _composed(self, text: str) -> U32:
        """Return the normal form of a text of which characters expand, or may join with those before them."""
        raw = code_points(text)
        points: U32 = np.where(self._fast[raw] == MARKUP, raw, self._fast[raw])
        pieces, done = list[U32](), 0
        for start, stop in _spans(np.flatnonzero((points == COMPOSE) | (raw == _ELLIPSIS)).tolist()):
            own = _without_excess(raw[start:stop], self._settled).tobytes().decode("utf-32-le", "surrogatepass")
            pieces += [points[done:start], self._settled[code_points(unicodedata.normalize("NFKC", own).lower())]]
            done = stop
        joined = np.concatenate([*pieces, points[done:]])
        left: U32 = joined[joined != DELETE]
        return left


def _spans(special: list[int]) -> list[tuple[int, int]]:
    """Return where what has to be composed begins and ends: at special characters, with the one before them.

    The others join with none before them, so the rest of the text needs only be looked up.

    Args:
        special: places of special characters, ascending.
    """
    spans: list[tuple[int, int]] = []
    for place in special:
        if spans and place - spans[-1][1] < _APART:
            spans[-1] = spans[-1][0], place + 1
        else:
            spans.append((max(place - 1, 0), place + 1))
    return spans


def _without_excess(raw: U32, settled: U32) -> U32:
    """Return a text without combining marks in excess, since sorting them is quadratic, and without whole phrases."""
    kept = ~sprawling()[raw]
    if len(raw) > _LONGEST_MARKS:
        place = np.arange(len(raw))
        kept &= place - np.maximum.accumulate(np.where(settled[raw] == DELETE, -1, place)) <= _LONGEST_MARKS
    left: U32 = raw[kept]
    return left


@cache
def word_table() -> Bool:
    """Return for each code point whether it is part of words (letters, digits, Han), shape (0x110000,)."""
    return np.strings.isalnum(np.arange(_CODE_POINTS, dtype=np.uint32).view("<U1"))


def _looked_up(texts: Sequence[str], table: U32, *, markup: bool) -> tuple[Texts, Bool]:
    """Return what a table makes of texts, and of which texts it does not tell, shape (n,).

    Args:
        texts: n strings.
        table: of `forms_of`.
        markup: whether it does not tell of texts with what tags and entities begin with.
    """
    raw = Texts.of_strings(texts)
    points, offsets, slow = _look_up(raw.points, raw.offsets, table, markup)
    return Texts(points, offsets), slow


@kernel
def _look_up(raw: U32, offsets: I64, table: U32, markup: bool) -> tuple[U32, I64, Bool]:  # noqa: FBT001  # compiled code has no keyword-only arguments
    points = np.empty(len(raw), np.uint32)
    stops, slow = np.zeros(len(offsets), np.int64), np.zeros(len(offsets) - 1, np.bool_)
    used = 0
    for text in range(len(slow)):
        for i in range(offsets[text], offsets[text + 1]):
            point = table[raw[i]]
            if point >= MARKUP:
                slow[text] |= point == COMPOSE or (markup and point == MARKUP)
                if point == DELETE:
                    continue
                point = raw[i]
            points[used] = point
            used += 1
        stops[text + 1] = used
    return points[:used], stops, slow
