"""The particulars of a text as small sketches: its numbers and its places.

Knows bottom-k sketches of their hashes; knows nothing of what counts as one.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.fingerprint.numbers import number_hashes
from stream_dedup.fingerprint.places import gazetteer, place_hashes
from stream_dedup.fingerprint.sketch import PAD, distinct
from stream_dedup.hashing import I64, U32
from stream_dedup.text.normal import word_table

PARTICULAR_BITS = 32  # of a value: two numbers must not be taken for one
_BLANK = np.uint32(ord(" "))


class SmallSketches(NamedTuple):
    """Bottom-k sketches of n sets of 32-bit hashes.

    Attributes:
        values: ascending, padded by `PAD`, shape (n, k).
        lengths: how many are used, shape (n,).
        sizes: members of each set, shape (n,).
    """

    values: U32
    lengths: I64
    sizes: I64

    def part(self, start: int, stop: int) -> "SmallSketches":
        """Return those from `start` up to, not including, `stop`."""
        return SmallSketches(self.values[start:stop], self.lengths[start:stop], self.sizes[start:stop])


def small_sketches(sets: list[U32], k: int) -> SmallSketches:
    """Return the sketches of hashes, each of which may stand there more than once; they are sorted in place.

    Args:
        sets: n of them.
        k: sketch size.
    """
    values = np.full((len(sets), k), PAD, np.uint32)
    lengths, sizes = np.zeros(len(sets), np.int64), np.zeros(len(sets), np.int64)
    for i, hashes in enumerate(sets):
        members = distinct(hashes)
        lengths[i], sizes[i] = min(k, len(members)), len(members)
        values[i, : lengths[i]] = members[:k]
    return SmallSketches(values, lengths, sizes)


def particulars(texts: list[U32], numbers: int, places: int) -> tuple[SmallSketches, SmallSketches]:
    """Return the sketches of the numbers and of the places of normal texts.

    Blanks are left out first: who escapes filters puts them between any two characters.

    Args:
        texts: code points.
        numbers: size of a sketch of numbers.
        places: size of a sketch of places.
    """
    dense = [points[points != _BLANK] for points in texts]
    is_word, names = word_table(), gazetteer()
    return (
        small_sketches([number_hashes(points, is_word) for points in dense], numbers),
        small_sketches([place_hashes(points, names.names, names.begins) for points in dense], places),
    )
