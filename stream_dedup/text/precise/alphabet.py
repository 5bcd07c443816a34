"""Characters as small numbers, those of frequent words first, so that what is often looked up is stored together.

Knows which characters jieba looks up in its dictionary at all; knows nothing of words.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U16, U32
from stream_dedup.compiled.hashing import CODE_POINTS
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.dictionary import Dictionary

OUTSIDE, UNKNOWN = 0, 1  # codes of characters outside blocks, and of those within one that no word has
_MOST = 1 << 16
# What a block consists of: Unicode's Han characters, and letters, digits and some signs of ASCII.
_HAN = (
    range(0x4E00, 0xA000),
    range(0x3400, 0x4DC0),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2EBF0),
    range(0x2F800, 0x2FA20),
)
_ASCII = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+#&._%-"


class Alphabet(NamedTuple):
    """The characters of a dictionary.

    Attributes:
        codes: of each code point in a text: `OUTSIDE`, `UNKNOWN`, or the number of a character, shape (0x110000,).
        inner: of each code point in a dictionary word, where characters outside blocks have numbers too; same shape.
        size: how many codes there are.
    """

    codes: U16
    inner: U16
    size: int


def alphabet_of(dictionary: Dictionary, more: U32) -> Alphabet:
    """Return the alphabet of a dictionary and of some additional characters.

    Raises:
        ValueError: there are more than 65,534 different characters.
    """
    use = _uses(dictionary.points, dictionary.stops, dictionary.frequencies)
    use[more] += 1
    known = np.flatnonzero(use)
    if len(known) > _MOST - 2:
        raise ValueError(
            f"the dictionaries have {len(known):,} different characters: at most {_MOST - 2:,} are allowed. Remove "
            "words with rare characters from text.user_dictionary"
        )
    inner = np.zeros(CODE_POINTS, np.uint16)
    inner[known[np.argsort(-use[known], kind="stable")]] = np.arange(2, len(known) + 2)
    codes = np.zeros(CODE_POINTS, np.uint16)
    for block in (*_HAN, *(range(point, point + 1) for point in map(ord, _ASCII))):
        at = slice(block.start, block.stop)
        codes[at] = np.maximum(inner[at], UNKNOWN)
    return Alphabet(codes, inner, len(known) + 2)


@kernel
def _uses(points: U32, stops: I64, frequencies: I64) -> I64:
    """Return how often words with each code point occur, shape (0x110000,)."""
    use = np.zeros(CODE_POINTS, np.int64)
    start = 0
    for word in range(len(stops)):
        for i in range(start, stops[word]):
            use[points[i]] += frequencies[word] + 1
        start = stops[word]
    return use
