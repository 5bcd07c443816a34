"""Hashes what whole texts say, so that equal texts are recognised.

Knows which characters tell two texts apart; knows nothing of n-grams, or of which parts of a text are its content.
"""

from collections.abc import Sequence

import numpy as np

from stream_dedup.arrays import I64, U32, U64, Bool
from stream_dedup.compiled.hashing import HASH_OF_NONE, code_points, hash_end, hash_span, hash_step
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.numbers import is_digit, is_inner
from stream_dedup.text.normal import word_table
from stream_dedup.text.texts import Texts

_BLANK, _BREAK = np.uint32(ord(" ")), np.uint32(ord("-"))


def content_hashes(bodies: Texts, raw: Sequence[str]) -> U64:
    """Return the content hashes of n texts, shape (n,).

    A hash covers the word characters in order, and what is between two digits: 3.14, 31.4 and 3-14 are three texts,
    3-14 and 3~14 are one. A text without word characters is known by its emoji and punctuation; if there are none
    either, as in empty markup around a picture, by its raw form.

    Args:
        bodies: the normalised texts.
        raw: the texts as they arrived.
    """
    hashes = _hash_all(bodies.points, bodies.offsets, word_table())
    for place in np.flatnonzero(~bodies.with_any(word_table())).tolist():
        symbols = code_points("".join(bodies.text(place).split()) or raw[place])
        hashes[place] = hash_span(symbols, 0, len(symbols))
    return hashes


@kernel
def _hash_all(points: U32, offsets: I64, is_word: Bool) -> U64:
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for text in range(len(hashes)):
        hashes[text] = _hash(points[offsets[text] : offsets[text + 1]], is_word)
    return hashes


@kernel
def _hash(points: U32, is_word: Bool) -> np.uint64:
    value, after_digit, between = HASH_OF_NONE, False, _BLANK
    for point in points:
        if is_word[point]:
            digit = is_digit(point)
            if digit and after_digit and between != _BLANK:
                value = hash_step(value, between)
            value = hash_step(value, point)
            after_digit, between = digit, _BLANK
        elif point != _BLANK:
            between = point if between == _BLANK and is_inner(point) else _BREAK
    return hash_end(value)
