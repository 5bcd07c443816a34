"""Finds the place names in a text: like numbers, they distinguish two bulletins written from the same template.

Knows the names in jieba's dictionary, a list of others and one of exceptions; knows nothing of geography, or of words.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from stream_dedup.arrays import U8, U32, U64
from stream_dedup.compiled.hashing import (
    HASH_OF_NONE,
    code_points,
    empty_table,
    find_slot,
    hash_end,
    hash_spans,
    hash_step,
    place_all,
    upper_half,
)
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.dictionary import jieba_dictionary
from stream_dedup.text.lexicon import read_words
from stream_dedup.text.pair_filter import may_be_first_pair, pair_filter
from stream_dedup.text.texts import offsets_of

_SHORTEST, _LONGEST = 2, 4  # characters of a name: longer names begin with a shorter one
_TAG = "ns"
_FILTER_BYTES = 1 << 17


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """The known place names.

    Attributes:
        names: open-addressing table of their hashes.
        begins: filter on their first two characters, see `pair_filter`.
    """

    names: U64
    begins: U8


@lru_cache(maxsize=1)
def gazetteer() -> Gazetteer:
    """Return the `place_names`, as they are looked for in a text."""
    known = place_names()
    points, offsets = code_points("".join(known)).copy(), offsets_of([*map(len, known)])
    names = empty_table(len(known))
    place_all(names, hash_spans(points, offsets[1:]))
    return Gazetteer(names, pair_filter(points, offsets[:-1], _FILTER_BYTES))


def place_names() -> list[str]:
    """Return the place names of 2 to 4 characters, simplified.

    They are those of jieba's dictionary without those of `no_places.txt`, and those of `place_names.txt`.
    """
    exceptions, others = (read_words(Path(__file__).with_name(name)) for name in ("no_places.txt", "place_names.txt"))
    return sorted(_names_in_dictionary().difference(exceptions).union(others))


def _names_in_dictionary() -> set[str]:
    words = jieba_dictionary()
    lengths = np.diff(words.stops, prepend=0)
    chosen = (words.tag_of == words.tags.index(_TAG)) & (lengths >= _SHORTEST) & (lengths <= _LONGEST)
    ends = zip((words.stops - lengths)[chosen].tolist(), words.stops[chosen].tolist(), strict=True)
    return {"".join(map(chr, words.points[begin:end].tolist())) for begin, end in ends}


@kernel
def place_hashes(points: U32, names: U64, begins: U8) -> U32:
    """Return the 32-bit hashes of the place names in a normalised text, in order: the longest name at each position.

    Args:
        points: code points of the text, without blanks.
        names: the `Gazetteer`'s.
        begins: the `Gazetteer`'s.
    """
    hashes = np.empty(len(points), np.uint32)
    used, i = 0, 0
    while i < len(points):
        length = 0
        if i + 1 < len(points) and may_be_first_pair(points[i], points[i + 1], begins):
            name = hash_step(HASH_OF_NONE, points[i])
            for longer in range(_SHORTEST, min(_LONGEST, len(points) - i) + 1):
                name = hash_step(name, points[i + longer - 1])
                value = hash_end(name)
                if names[find_slot(names, value)] == value:
                    hashes[used], length = upper_half(value), longer
            used += length > 0
        i += max(length, 1)
    return hashes[:used]
