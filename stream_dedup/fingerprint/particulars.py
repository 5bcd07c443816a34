"""Sketches the particulars of a text: its numbers and its place names.

Knows bottom-k sketches of their hashes; knows nothing of what counts as a number or a place name.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U8, U32, U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.numbers import number_hashes, number_kinds
from stream_dedup.fingerprint.places import gazetteer, place_hashes
from stream_dedup.fingerprint.sketch import PAD, distinct
from stream_dedup.text.texts import Texts, followed

PARTICULAR_BITS = 32  # bits of a value: two numbers must not be mistaken for one
_BLANK = np.uint32(ord(" "))


class SmallSketches(NamedTuple):
    """Bottom-k sketches of n sets of 32-bit hashes.

    Attributes:
        values: ascending, padded with `PAD`, shape (n, k).
        lengths: how many of the k are used, shape (n,).
        sizes: how many members each set has, shape (n,).
    """

    values: U32
    lengths: I64
    sizes: I64

    def part(self, start: int, stop: int) -> "SmallSketches":
        """Return the sketches from `start` up to, but not including, `stop`."""
        return SmallSketches(self.values[start:stop], self.lengths[start:stop], self.sizes[start:stop])


def small_sketches(hashes: U32, stops: I64, k: int) -> SmallSketches:
    """Return the sketches of n sets of hashes, which may contain repetitions; the hashes are sorted in place.

    Args:
        hashes: hashes of the n sets, concatenated.
        stops: where each set ends, shape (n,).
        k: sketch size.
    """
    sketches = SmallSketches(np.full((len(stops), k), PAD, np.uint32), *np.zeros((2, len(stops)), np.int64))
    _sketch_all(hashes, stops, sketches)
    return sketches


@kernel
def _sketch_all(hashes: U32, stops: I64, sketches: SmallSketches) -> None:
    start, k = np.int64(0), sketches.values.shape[1]
    for i in range(len(stops)):
        members = distinct(hashes[start : stops[i]])
        start = stops[i]
        sketches.sizes[i], sketches.lengths[i] = len(members), min(k, len(members))
        sketches.values[i, : sketches.lengths[i]] = members[:k]


def particulars(texts: Texts, numbers: int, places: int) -> tuple[SmallSketches, SmallSketches]:
    """Return the sketches of the numbers and of the place names in normalised texts.

    Blanks are removed first, because people who evade filters insert them between any two characters.

    Args:
        texts: n texts.
        numbers: size of a sketch of numbers.
        places: size of a sketch of place names.
    """
    names = gazetteer()
    of_numbers, of_places = _hashes_of(texts.points, texts.offsets, number_kinds(), names.names, names.begins)
    return small_sketches(*of_numbers, numbers), small_sketches(*of_places, places)


_Hashes = tuple[U32, I64]  # those of all texts, concatenated, and where each text's end


@kernel
def _hashes_of(points: U32, offsets: I64, kinds: U8, names: U64, begins: U8) -> tuple[_Hashes, _Hashes]:
    """Return the hashes of the numbers in all texts, and of the place names."""
    texts = len(offsets) - 1
    numbers, places = np.empty(len(points), np.uint32), np.empty(len(points), np.uint32)
    number_stops, place_stops = np.empty(texts, np.int64), np.empty(texts, np.int64)
    of_numbers = of_places = 0
    for i in range(texts):
        dense = _dense(points[offsets[i] : offsets[i + 1]])
        of_numbers = followed(numbers, of_numbers, number_hashes(dense, kinds))
        of_places = followed(places, of_places, place_hashes(dense, names, begins))
        number_stops[i], place_stops[i] = of_numbers, of_places
    return (numbers[:of_numbers], number_stops), (places[:of_places], place_stops)


@kernel
def _dense(points: U32) -> U32:
    """Return a text without blanks; the text itself if it has none."""
    blanks = 0
    for i in range(len(points)):  # by index, so that the compiler can vectorise it
        blanks += points[i] == _BLANK
    if blanks == 0:
        return points
    kept, used = np.empty(len(points), np.uint32), 0
    for point in points:
        kept[used] = point
        used += point != _BLANK
    return kept[:used]
