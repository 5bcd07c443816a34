"""Raw texts to normal texts: one table look-up per code point.

Knows which texts need more than that; knows nothing of words or fingerprints.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U32, Bool
from stream_dedup.compiled.hashing import CODE_POINTS
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.forms import COMPOSE, DELETE, MARKUP, expands_to_phrase, forms_of
from stream_dedup.text.markup import strip_html
from stream_dedup.text.texts import Texts

_LONGEST_MARKS = 30  # combining marks in a row: limit of the Stream-Safe Text Format, UAX #15
_APART = 16  # characters: what is closer together is composed as one span
_ELLIPSIS = "…"  # NFKC would expand it, but it is not worth composing a text for: all texts keep it


class Normaliser:
    """Turns raw text into normal text: NFKC, lower case, simplified Han, no invisible characters, no HTML.

    Args:
        simplify: map traditional Han characters to simplified ones.
        strip_html: decode entities and remove tags.
    """

    def __init__(self, *, simplify: bool = True, strip_html: bool = True) -> None:
        self._fast, self._settled = forms_of(simplify=simplify)
        self._strip_html = strip_html

    def __call__(self, text: str) -> str:
        """Return the normal form of a text."""
        return self.all([text]).text(0)

    def all(self, texts: Sequence[str]) -> Texts:
        """Return the normal forms of texts; one compiled pass over all of them is enough for most."""
        normal, slow = _looked_up(texts, self._fast, markup=self._strip_html)
        return normal.replaced(slow, self._slow([texts[place] for place in np.flatnonzero(slow).tolist()]))

    def _slow(self, texts: list[str]) -> Texts:
        """Return the normal forms of texts that may contain HTML or have to be composed."""
        if not texts:
            return Texts.none(0)
        raw = Texts.of_strings([strip_html(text) if self._strip_html else text for text in texts])
        spans = _spans(raw.points, raw.offsets, self._fast, self._settled, expands_to_phrase())
        # Decoded all at once: every array operation that releases the GIL has to wait to get it back.
        whole = spans.points.tobytes().decode("utf-32-le", "surrogatepass")
        own = [whole[start:stop] for start, stop in pairwise(spans.offsets.tolist())]
        forms = Texts.of_strings([_form(span) for span in own])
        return Texts(*_composed(raw.points, raw.offsets, self._fast, spans, forms.points, forms.offsets, self._settled))


def _form(span: str) -> str:
    return _ELLIPSIS.join(unicodedata.normalize("NFKC", part) for part in span.split(_ELLIPSIS)).lower()


class _Spans(NamedTuple):
    """The parts of texts that have to be composed: s spans, none of which joins with the text before or after it.

    Attributes:
        starts: where each begins in the texts, ascending, shape (s,).
        stops: where each ends, shape (s,).
        points: all spans without their excess (see `_without_excess`), concatenated.
        offsets: span i is points[offsets[i]:offsets[i + 1]], shape (s + 1,).
    """

    starts: I64
    stops: I64
    points: U32
    offsets: I64


@kernel
def _spans(raw: U32, offsets: I64, table: U32, settled: U32, expands: Bool) -> _Spans:
    """Return the parts of texts that have to be composed: special characters, each with the one before it.

    No other character joins with the one before it, so a table look-up suffices for the rest of the text.

    Args:
        raw: code points of the texts.
        offsets: of each text.
        table: for a raw text, see `forms_of`.
        settled: for a text in NFKC, likewise.
        expands: see `expands_to_phrase`.
    """
    starts, stops = np.empty(len(raw), np.int64), np.empty(len(raw), np.int64)
    found = 0
    for text in range(len(offsets) - 1):
        first, last = offsets[text], offsets[text + 1]
        if not _has(raw[first:last], table, COMPOSE):
            continue
        before = found
        for i in range(first, last):
            if table[raw[i]] != COMPOSE:
                continue
            if found == before or i - stops[found - 1] >= _APART:
                starts[found] = max(i - 1, first)
                found += 1
            stops[found - 1] = i + 1
    points, kept = np.empty((stops[:found] - starts[:found]).sum(), np.uint32), np.zeros(found + 1, np.int64)
    for span in range(found):
        kept[span + 1] = kept[span] + _without_excess(
            raw[starts[span] : stops[span]], settled, expands, points[kept[span] :]
        )
    return _Spans(starts[:found], stops[:found], points[: kept[found]], kept)


@kernel
def _has(raw: U32, table: U32, what: np.uint32) -> bool:
    for point in raw:  # noqa: SIM110  # compiled code has no generators
        if table[point] == what:
            return True
    return False


@kernel
def _without_excess(raw: U32, settled: U32, expands: Bool, kept: U32) -> int:
    """Write a text to `kept` without characters that expand to phrases and excess combining marks; return its length.

    Sorting combining marks takes quadratic time.
    """
    used = marks = 0
    for point in raw:
        marks = marks + 1 if settled[point] == DELETE else 0
        kept[used] = point
        used += (marks <= _LONGEST_MARKS) & (not expands[point])
    return used


@kernel
def _composed(
    raw: U32, offsets: I64, table: U32, spans: _Spans, forms: U32, form_offsets: I64, settled: U32
) -> tuple[U32, I64]:
    """Return the normal forms of texts, given their spans in NFKC and lower case.

    Args:
        raw: code points of the texts.
        offsets: of each text.
        table: for a raw text, see `forms_of`.
        spans: the parts that were composed.
        forms: code points of the composed spans, concatenated.
        form_offsets: of each span in `forms`.
        settled: table for a text in NFKC.
    """
    points, stops = np.empty(len(raw) + len(forms), np.uint32), np.zeros(len(offsets), np.int64)
    used = span = 0
    for text in range(len(offsets) - 1):
        done, last = offsets[text], offsets[text + 1]
        while span < len(spans.starts) and spans.starts[span] < last:
            used = _settled(raw[done : spans.starts[span]], table, points, used)
            used = _settled(forms[form_offsets[span] : form_offsets[span + 1]], settled, points, used)
            done = spans.stops[span]
            span += 1
        used = _settled(raw[done:last], table, points, used)
        stops[text + 1] = used
    return points[:used], stops


@kernel
def _settled(raw: U32, table: U32, points: U32, used: int) -> int:
    """Append what a table makes of code points to the first `used` ones of an array; return the new count."""
    for code_point in raw:
        point = table[code_point]
        points[used] = code_point if point == MARKUP else point
        used += point != DELETE
    return used


@cache
def word_table() -> Bool:
    """Return whether each code point is a word character (letter, digit, Han), shape (0x110000,)."""
    return np.strings.isalnum(np.arange(CODE_POINTS, dtype=np.uint32).view("<U1"))


def _looked_up(texts: Sequence[str], table: U32, *, markup: bool) -> tuple[Texts, Bool]:
    """Return what a table makes of texts, and for which texts a table is not enough, shape (n,).

    Args:
        texts: n strings.
        table: see `forms_of`.
        markup: whether a character that may begin a tag or an entity makes a text one of these.
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
