"""The names of places in a text: they, too, tell two bulletins of one template apart.

Knows the names in jieba's dictionary; knows nothing of where they lie, nor of words.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import (
    I64,
    U32,
    U64,
    empty_table,
    find_slot,
    hash_span,
    hash_spans,
    place_all,
    upper_half,
)
from stream_dedup.text.dictionary import jieba_dictionary

_SHORTEST, _LONGEST = 2, 4  # characters of a name: longer ones begin with a shorter one
_TAG = "ns"
_PAIRS = 1 << 20
_SPREAD = 7919  # a prime


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """Names of places.

    Attributes:
        names: open-addressing table of their hashes.
        begins: whether a name may begin with two characters, by `_pair` of them, shape (2^20,): saves most look-ups.
    """

    names: U64
    begins: NDArray[np.bool_]


@lru_cache(maxsize=1)
def gazetteer() -> Gazetteer:
    """Return the names of places of 2 to 4 characters in jieba's dictionary, which is in simplified characters."""
    words = jieba_dictionary()
    lengths = np.diff(words.stops, prepend=0)
    chosen = (words.tag_of == words.tags.index(_TAG)) & (lengths >= _SHORTEST) & (lengths <= _LONGEST)
    names = empty_table(int(chosen.sum()))
    place_all(names, hash_spans(words.points, words.stops)[chosen])
    begins = np.zeros(_PAIRS, np.bool_)
    _mark_pairs(words.points, (words.stops - lengths)[chosen], begins)
    return Gazetteer(names, begins)


@kernel
def _pair(one: np.uint32, other: np.uint32) -> int:
    return (int(one) * _SPREAD + int(other)) % _PAIRS


@kernel
def _mark_pairs(points: U32, starts: I64, begins: NDArray[np.bool_]) -> None:
    for start in starts:
        begins[_pair(points[start], points[start + 1])] = True


@kernel
def place_hashes(points: U32, names: U64, begins: NDArray[np.bool_]) -> U32:
    """Return the 32-bit hashes of the names of places in a normal text, in order: at each place the longest.

    Args:
        points: of the text, without blanks.
        names: of a `Gazetteer`.
        begins: of a `Gazetteer`.
    """
    hashes = np.empty(len(points), np.uint32)
    used, i = 0, 0
    while i < len(points):
        length = 0
        if i + 1 < len(points) and begins[_pair(points[i], points[i + 1])]:
            for longer in range(min(_LONGEST, len(points) - i), _SHORTEST - 1, -1):
                value = hash_span(points, i, i + longer)
                if names[find_slot(names, value)] == value:
                    hashes[used] = upper_half(value)
                    used, length = used + 1, longer
                    break
        i += max(length, 1)
    return hashes[:used]
