"""Raw text to normal text: one table look-up a code point.

Knows Unicode and the left-overs of HTML; knows nothing of words or fingerprints.
"""

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from opencc import OpenCC

from stream_dedup.hashing import U32, code_points

_DELETE = np.uint32(0xFFFFFFFF)
_EXPAND = np.uint32(0xFFFFFFFE)
_CODE_POINTS = 0x110000
# Whatever NFKC, lower case or deletion touches lies in these blocks: Han, Hangul and private use stay as they are.
_TOUCHED = (
    range(0x3400),
    range(0xA000, 0xAC00),
    range(0xF900, 0x20000),
    range(0x2F800, 0x2FA20),
    range(0xE0000, 0xE1000),
)
_HAN = (range(0x3400, 0xA000), range(0x20000, 0x2A6E0))
_TAG = re.compile(
    r"<(script|style)\b[^<>]{0,500}>.{0,5000}?</\1>"
    r"|</?[a-z][a-z0-9]{0,15}(?:\s[^<>]{0,500})?/?>"
    r"|<!--.{0,5000}?-->",
    re.DOTALL | re.IGNORECASE,
)
_BREAKING_TAG = re.compile(r"</?(?:p|br|div|li|tr|h[1-6])\b", re.IGNORECASE)


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
        self._table = _normal_table(simplify=simplify)
        self._strip_html = strip_html

    def __call__(self, text: str) -> NormalText:
        """Return the normal form of a text; the text itself is left alone."""
        if self._strip_html and ("<" in text or "&" in text):
            text = strip_html(text)
        points = self._table[code_points(text)]
        if (points == _EXPAND).any():
            points = self._table[code_points(unicodedata.normalize("NFKC", text).lower())]
        # What is marked still is a combining mark that composes with nothing.
        points = points[points < _EXPAND]
        return NormalText(points.tobytes().decode("utf-32-le"), points)


def strip_html(text: str) -> str:
    """Undo entities and replace tags: block tags by a line break, others by nothing."""
    text = _TAG.sub(_tag_replacement, html.unescape(text) if "&" in text else text)
    return text.replace("\u2028", "\n")


def _tag_replacement(match: re.Match[str]) -> str:
    return "\n" if _BREAKING_TAG.match(match.group()) else ""


@cache
def word_table() -> NDArray[np.bool_]:
    """Return for each code point whether it is part of words (letters, digits, Han), shape (0x110000,)."""
    table = np.zeros(_CODE_POINTS, np.bool_)
    table[[point for point in range(_CODE_POINTS) if chr(point).isalnum()]] = True
    return table


@cache
def _normal_table(*, simplify: bool) -> U32:
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    table[0xD800:0xE000] = _DELETE  # a lone surrogate is half of a cut emoji: no text
    for block in _TOUCHED:
        for point in block:
            table[point] = _normal_point(chr(point))
    # NFKC turns an ellipsis into three full stops. Either way it is punctuation, and it is nine tenths of
    # all that expands, so it stays one character and the text keeps the fast path.
    table[ord("…")] = ord("…")
    return _simplified(table) if simplify else table


def _normal_point(character: str) -> np.uint32:
    if unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f":
        return _DELETE
    normal = unicodedata.normalize("NFKC", character)
    lowered = normal.lower()
    if len(lowered) > 1 or (unicodedata.combining(character) and normal == character):
        return _EXPAND
    return np.uint32(ord(lowered)) if lowered else _DELETE


def _simplified(table: U32) -> U32:
    """Follow the table by OpenCC's map of single characters from traditional to simplified."""
    han = [chr(point) for block in _HAN for point in block]
    # A line each: within a line OpenCC would convert phrases instead of characters.
    simple = OpenCC("t2s").convert("\n".join(han)).split("\n")
    to_simple = np.arange(_CODE_POINTS, dtype=np.uint32)
    for before, after in zip(han, simple, strict=True):
        if len(after) == 1:
            to_simple[ord(before)] = ord(after)
    ordinary = table < _EXPAND
    table[ordinary] = to_simple[table[ordinary]]
    return table
