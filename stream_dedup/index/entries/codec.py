"""Entries as bytes: each as long as it needs to be, packed and unpacked a batch at a time.

Knows the order and widths of an entry's fields; knows nothing of what they are for, of RocksDB or of Kafka.

An entry is, bit by bit: its flags (8 bits); its fingerprint and content hash (64 bits each); its other `FIGURES` as
numbers of variable length, the window time with its sign as the lowest bit; the length of its name in bytes, likewise;
the gaps of the number sketch, of the place sketch and of the sketch; for each landmark, the bits that the sketch does
not hold; then, from the next byte on, the name. `bits.py` describes how numbers and gaps are written.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.arrays import U8, U32, U64, Bytes
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.particulars import PARTICULAR_BITS
from stream_dedup.fingerprint.sketch import LANDMARK_BITS, PAD, VALUE_BITS, LandmarkRule, landmark_count
from stream_dedup.index.entries.bits import (
    LONGEST_NUMBER,
    MARGIN_BITS,
    ascending_bits,
    get,
    get_ascending,
    get_number,
    low_bits,
    put,
    put_ascending,
    put_number,
)

FIGURES = (
    "fingerprint",
    "content",
    "window_ms",
    "cluster",
    "scope",
    "epoch",
    "number_size",
    "number_length",
    "place_size",
    "place_length",
    "size",
    "length",
)
_HASHES = 2  # the first figures are hashes, written with a fixed width
_TIME, _NUMBER_SIZE, _PLACE_SIZE, _SIZE = 2, 6, 8, 10  # indices in `FIGURES`; each size is followed by its length
MARK_BITS = LANDMARK_BITS - VALUE_BITS  # bits of a landmark that the sketch does not hold
_HASH, _VALUE, _MARK = np.uint64(PARTICULAR_BITS), np.uint64(VALUE_BITS), np.uint64(MARK_BITS)  # bits
_BYTE, _WORD, _WORD_BYTES = np.uint64(8), np.uint64(64), 8
_FIXED = np.uint64(8 + (len(FIGURES) + 1) * LONGEST_NUMBER)
_LARGEST = np.uint64((1 << 63) - 1)  # limit for the size, which may be anything in a damaged entry
_0, _1, _7, _63 = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(63)
SOUND = -1


class Columns(NamedTuple):
    """The fields of n entries, one array per field. There may be more rows than entries.

    Attributes:
        flags: shape (n,).
        figures: the `FIGURES`, the window time modulo 2^64, shape (n, len(FIGURES)).
        numbers: number sketch, ascending, padded with `PAD`, shape (n, j).
        places: place sketch, likewise, shape (n, p).
        sketch: bottom-k sketch, likewise, shape (n, k).
        landmarks: the lower `MARK_BITS` bits of each, padded with 0, shape (n, rule.most).
    """

    flags: U8
    figures: U64
    numbers: U32
    places: U32
    sketch: U32
    landmarks: NDArray[Any]


@kernel
def encode(columns: Columns, names: Bytes, name_stops: U64, rule: LandmarkRule) -> tuple[U64, U64]:
    """Return n entries as bytes, concatenated and eight to a word, and the end of each in bytes, shape (n,).

    Args:
        columns: the n entries.
        names: names of their articles, as UTF-8, concatenated.
        name_stops: end of each name in `names`, shape (n,).
        rule: how many landmarks a text has.
    """
    words = np.zeros(
        (_most_bits(columns, len(name_stops), rule) + _BYTE * np.uint64(len(names))) // _WORD + _BYTE, np.uint64
    )
    packed, stops = words.view(np.uint8), np.empty_like(name_stops)
    at, name = _0, _0
    for i in range(len(stops)):
        at = _put_figures(words, at, columns.flags[i], columns.figures[i])
        at = put_number(words, at, name_stops[i] - name)
        at = _put_sketches(words, at, i, columns, rule)
        stop = (at + _7) // _BYTE
        while name < name_stops[i]:
            packed[stop] = names[name]
            name, stop = name + _1, stop + _1
        stops[i], at = stop, stop * _BYTE
    return words, stops


def padded(packed: bytes) -> U64:
    """Return bytes as words, with the margin that `decode` needs."""
    margin = MARGIN_BITS // 8 + -len(packed) % _WORD_BYTES
    return np.frombuffer(bytearray().join((packed, bytes(margin))), np.uint64)


@kernel
def decode(words: U64, stops: U64, columns: Columns, rule: LandmarkRule) -> tuple[U64, int]:
    """Read n concatenated entries.

    Args:
        words: their bytes; see `padded`.
        stops: end of each in bytes, shape (n,).
        columns: filled with the n entries; the landmarks must be 0 before.
        rule: how many landmarks a text has.

    Returns:
        The length of each name in bytes, shape (n,), and the index of the first damaged entry, `SOUND` if none is.
    """
    names = np.zeros_like(stops)
    at = _0
    for i in range(len(stops)):
        stop = stops[i] * _BYTE
        at = _get_figures(words, at, stop, i, columns)
        if at <= stop:
            names[i], at = get_number(words, at)
        if at <= stop:
            at = _get_sketches(words, at, stop, i, columns, rule)
        # First by itself: the length of a name may be so large that the sum starts again from 0.
        if at > stop or (at + _7) // _BYTE + names[i] != stops[i]:
            return names, i
        at = stop
    return names, SOUND


@kernel
def _marks(size: np.uint64, length: np.uint64, rule: LandmarkRule) -> np.uint64:
    """Return how many landmarks an entry holds: no more than its sketch has values, whatever size it states."""
    return min(np.uint64(landmark_count(int(min(size, _LARGEST)), rule)), length)


@kernel
def _most_bits(columns: Columns, count: int, rule: LandmarkRule) -> np.uint64:
    """Return the most bits that the first `count` entries may take, without their names."""
    bits = _0
    for i in range(count):
        numbers, places, sketch = _sketches(columns.figures[i])
        bits += _FIXED + _7 + _MARK * _marks(columns.figures[i, _SIZE], sketch[0], rule)
        bits += ascending_bits(columns.numbers[i], *numbers)
        bits += ascending_bits(columns.places[i], *places)
        bits += ascending_bits(columns.sketch[i], *sketch)
    return bits


_Coding = tuple[np.uint64, np.uint64]  # length and low bits


@kernel
def _sketches(figures: U64) -> tuple[_Coding, _Coding, _Coding]:
    """Return how an entry's number sketch, place sketch and sketch are written."""
    return (
        (figures[_NUMBER_SIZE + 1], low_bits(_HASH, figures[_NUMBER_SIZE])),
        (figures[_PLACE_SIZE + 1], low_bits(_HASH, figures[_PLACE_SIZE])),
        (figures[_SIZE + 1], low_bits(_VALUE, figures[_SIZE])),
    )


@kernel
def _put_figures(words: U64, at: np.uint64, flags: np.uint8, figures: U64) -> np.uint64:
    at = put(words, at, np.uint64(flags), _BYTE)
    for place in range(len(figures)):
        if place < _HASHES:
            at = put(words, at, figures[place], _WORD)
        else:
            at = put_number(words, at, _unsigned(figures[place]) if place == _TIME else figures[place])
    return at


@kernel
def _get_figures(words: U64, at: np.uint64, stop: np.uint64, i: int, columns: Columns) -> np.uint64:
    columns.flags[i] = get(words, at, _BYTE)
    at += _BYTE
    for place in range(len(FIGURES)):
        if at > stop:
            break
        if place < _HASHES:
            columns.figures[i, place], at = get(words, at, _WORD), at + _WORD
        else:
            columns.figures[i, place], at = get_number(words, at)
    columns.figures[i, _TIME] = _signed(columns.figures[i, _TIME])
    return at


@kernel
def _unsigned(number: np.uint64) -> np.uint64:
    """Return a number with its sign as the lowest bit, so that negative numbers stay short too."""
    return np.uint64((number << _1) ^ (_0 - (number >> _63)))


@kernel
def _signed(number: np.uint64) -> np.uint64:
    """Undo `_unsigned`."""
    return np.uint64((number >> _1) ^ (_0 - (number & _1)))


@kernel
def _put_sketches(words: U64, at: np.uint64, i: int, columns: Columns, rule: LandmarkRule) -> np.uint64:
    numbers, places, sketch = _sketches(columns.figures[i])
    at = put_ascending(words, at, columns.numbers[i], *numbers)
    at = put_ascending(words, at, columns.places[i], *places)
    at = put_ascending(words, at, columns.sketch[i], *sketch)
    for mark in range(_marks(columns.figures[i, _SIZE], sketch[0], rule)):
        at = put(words, at, np.uint64(columns.landmarks[i, mark]), _MARK)
    return at


@kernel
def _get_sketches(
    words: U64, at: np.uint64, stop: np.uint64, i: int, columns: Columns, rule: LandmarkRule
) -> np.uint64:
    numbers, places, sketch = _sketches(columns.figures[i])
    at = _get_sketch(words, at, stop, columns.numbers[i], numbers)
    at = _get_sketch(words, at, stop, columns.places[i], places)
    at = _get_sketch(words, at, stop, columns.sketch[i], sketch)
    marks = _marks(columns.figures[i, _SIZE], sketch[0], rule)
    if at + _MARK * marks > stop:
        return stop + _1
    for mark in range(marks):
        columns.landmarks[i, mark] = get(words, at, _MARK)
        at += _MARK
    return at


@kernel
def _get_sketch(words: U64, at: np.uint64, stop: np.uint64, values: U32, coding: _Coding) -> np.uint64:
    length, low = coding
    if length > np.uint64(len(values)) or at + length * (low + _1) > stop:
        return stop + _1
    for place in range(length, len(values)):
        values[place] = PAD
    return get_ascending(words, at, stop, values, length, low)


@kernel
def landmark_keys(columns: Columns, count: int, rule: LandmarkRule) -> U64:
    """Return the landmarks of the first `count` entries, 0 where a text has fewer, shape (count, rule.most)."""
    keys = np.zeros((count, rule.most), np.uint64)
    for i in range(count):
        for mark in range(_marks(columns.figures[i, _SIZE], columns.figures[i, _SIZE + 1], rule)):
            keys[i, mark] = np.uint64(columns.sketch[i, mark]) << _MARK | np.uint64(columns.landmarks[i, mark])
    return keys
