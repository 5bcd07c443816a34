"""Edits that change characters and names: misprints, pinyin, numerals, places.

Knows letters, Han characters and their readings.
"""

import re
import string
from dataclasses import replace
from random import Random

from pypinyin import lazy_pinyin

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import book, phrases
from stream_dedup.evaluate.operators.scatter import replace_all, replace_at
from stream_dedup.evaluate.operators.text import HAN, Text, part

_WORD_CHARACTER = re.compile(r"[A-Za-z\u3400-\u9fff]")
_DIGITS = str.maketrans("0123456789０１２３４５６７８９", "〇一二三四五六七八九" * 2)


def misprint(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Replace Han characters with other common ones, and letters with other letters, at random."""
    places = _some(_WORD_CHARACTER, text.body, share, rng)
    return replace(text, body=replace_at(text.body, places, lambda old: _another(old, rng))) if places else None


def pinyin(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Write Han characters as pinyin without tones, as people do to evade filters."""
    places = _some(HAN, text.body, share, rng)
    return replace(text, body=replace_at(text.body, places, lambda old: lazy_pinyin(old)[0])) if places else None


def numerals(text: Text, _rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Write Arabic digits as Chinese numerals, one by one."""
    body = text.body.translate(_DIGITS)
    return replace(text, body=body) if body != text.body else None


def places(text: Text, rng: Random, _donor: Text, count: float) -> Text | None:
    """Change place names: some of them become others, each wherever it occurs."""
    names = book(text).places
    held = [name for name in names if name in text.body]
    left = [name for name in names if name not in held]
    if min(len(held), len(left)) < count:
        return None
    others = rng.sample(left, round(count))
    swapped = dict(zip(rng.sample(held, round(count)), others, strict=True))
    wanted = sorted(swapped, key=len, reverse=True)
    return Text(replace_all(text.title, wanted, swapped), replace_all(text.body, wanted, swapped))


def _some(pattern: re.Pattern[str], body: str, share: float, rng: Random) -> list[int]:
    candidates = [found.start() for found in pattern.finditer(body)]
    return rng.sample(candidates, part(share, len(candidates)))


def _another(character: str, rng: Random) -> str:
    choices = string.ascii_lowercase if character.isascii() else phrases().han
    other = rng.choice(choices)
    while other == character.lower():
        other = rng.choice(choices)
    return other


_SHARE = "share of the characters"
_MOST_PLACES = 10.0

OPERATORS = (
    Operator("misprint", misprint, _SHARE, (0.02, 0.05, 0.1)),
    Operator("pinyin", pinyin, "share of the Han characters", (0.02, 0.05, 0.1)),
    Operator("numerals", numerals),
    Operator("places", places, "names changed", (1, 2, 4), most=_MOST_PLACES, whole=True),
)
