"""Edits that write the same characters in another way: script, width, marks, invisible characters.

Knows Unicode's variants; the reader sees the same words.
"""

import textwrap
from dataclasses import replace
from functools import cache
from random import Random

from opencc import OpenCC

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import phrases
from stream_dedup.evaluate.operators.scatter import insert_after_random, replace_all
from stream_dedup.evaluate.operators.text import Text, is_chinese

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"  # zero-width space, joiners and marks; the soft hyphen
_BLANKS = " \u3000\u00a0"
_ASCII = range(0x21, 0x7F)
_FULL_WIDTH_OFFSET = 0xFEE0
_OTHER_WIDTH = {
    **{code: code + _FULL_WIDTH_OFFSET for code in _ASCII},
    **{code + _FULL_WIDTH_OFFSET: code for code in _ASCII},
}


def traditional(text: Text, _rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Write simplified characters as traditional ones."""
    return _converted(text, "s2t")


def taiwan(text: Text, _rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Write traditional characters, with Taiwan's vocabulary (軟體 for 软件)."""
    return _converted(text, "s2twp")


def width(text: Text, _rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Write half-width letters, digits and marks in full width, and full-width ones in half width."""
    return _changed(text, Text(text.title.translate(_OTHER_WIDTH), text.body.translate(_OTHER_WIDTH)))


def punct(text: Text, rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Change the punctuation marks to another house style."""
    styles = phrases().punctuation
    copies = (_changed(text, _in_style(text, style)) for style in rng.sample(styles, len(styles)))
    return next((copy for copy in copies if copy), None)


def zero_width(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Scatter zero-width characters and soft hyphens through the body."""
    body = insert_after_random(text.body, lambda: rng.choice(_INVISIBLE), share, rng)
    return _changed(text, replace(text, body=body))


def spaces(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Put blanks between characters, as in scanned text or to evade filters."""
    body = insert_after_random(text.body, lambda: rng.choice(_BLANKS), share, rng)
    return _changed(text, replace(text, body=body))


def wrap(text: Text, _rng: Random, _donor: Text, columns: float) -> Text | None:
    """Break lines at a fixed width and discard the paragraphs, as forums and mail do."""
    flowing, size = " ".join(text.body.split("\n")), round(columns)
    if is_chinese(text):
        lines = [flowing[start : start + size] for start in range(0, len(flowing), size)]
    else:
        lines = textwrap.wrap(flowing, size, break_long_words=False, break_on_hyphens=False)
    return _changed(text, replace(text, body="\n".join(lines)))


def _converted(text: Text, scheme: str) -> Text | None:
    convert = _converter(scheme).convert
    return _changed(text, Text(convert(text.title), convert(text.body)))


@cache
def _converter(scheme: str) -> OpenCC:
    return OpenCC(scheme)


def _in_style(text: Text, style: dict[str, str]) -> Text:
    # The longest mark first, so that an ellipsis is not taken for two other marks.
    marks = sorted(style, key=len, reverse=True)
    return Text(replace_all(text.title, marks, style), replace_all(text.body, marks, style))


def _changed(text: Text, copy: Text) -> Text | None:
    return copy if copy.body != text.body and copy.body.strip() else None


_SHARE = "share of the characters followed by one"

OPERATORS = (
    Operator("traditional", traditional),
    Operator("taiwan", taiwan),
    Operator("width", width),
    Operator("punct", punct),
    Operator("zero-width", zero_width, _SHARE, (0.05, 0.2, 1.0)),
    Operator("spaces", spaces, _SHARE, (0.1, 0.3, 1.0)),
    Operator("wrap", wrap, "characters per line", (60, 30), least=9, most=1000, whole=True, posts=False),
)
