"""Synthetic texts as the index sees them: sketches, copies, and landmarks that recur as often as those of real news.

Knows the fitted model of landmarks; knows nothing of fingerprints or of the index.

The more articles there are, the more of a new one's landmarks are already known, because phrases recur. On 18,000
labelled articles, after t landmarks the next is new with a probability of (1 + t / 32,000)^-0.065, within 0.5% for t
from 19,000 to 450,000. Otherwise it equals an earlier one, number t v^2.6 with v uniform, which puts about as many
articles under a landmark as in that set. Each landmark follows from its number alone, so that nothing needs to be
stored for millions of them.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import U32, U64
from stream_dedup.compiled.hashing import mix64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.sketch import LANDMARK_BITS, VALUE_BITS
from stream_dedup.planner.lists import NEW_DECAY, NEW_SCALE, TYPICAL_GRAMS

GRAMS = TYPICAL_GRAMS
VALUES = 256  # in a sketch
_SCALE, _DECAY, _AGE = NEW_SCALE, NEW_DECAY, 2.6
_KEPT = 0.87  # share of the original's n-grams in a copy: a Jaccard of 0.77
_DROPPED = LANDMARK_BITS - VALUE_BITS
_UNIT = 1.0 / 2**53
_NEW, _OLD, _VALUE, _COPY = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # purposes of random numbers
_11, _BY = np.uint64(11), np.uint64(8)


class Texts(NamedTuple):
    """Some texts.

    Attributes:
        landmarks: ascending, shape (n, marks).
        sketches: ascending, the first values being the upper bits of the landmarks, shape (n, VALUES).
    """

    landmarks: U64
    sketches: U32


@kernel
def texts(first: int, count: int, marks: int) -> Texts:
    """Return texts by their numbers.

    Args:
        first: number of the first text.
        count: how many texts.
        marks: landmarks per text.
    """
    made = Texts(np.empty((count, marks), np.uint64), np.empty((count, VALUES), np.uint32))
    for text in range(count):
        number = first + text
        for place in range(marks):
            made.landmarks[text, place] = _landmark(number * marks + place, marks)
        made.landmarks[text].sort()
        _fill_sketch(made, text, number, marks)
    return made


@kernel
def copies(numbers: U64, marks: int, salt: int) -> Texts:
    """Return copies of texts, given by their numbers, shape (n,); a different salt gives different copies."""
    made = Texts(np.empty((len(numbers), marks), np.uint64), np.empty((len(numbers), VALUES), np.uint32))
    for text in range(len(numbers)):
        original = texts(int(numbers[text]), 1, marks)
        for place in range(marks):
            landmark = original.landmarks[0, place]
            changed = _uniform(landmark + np.uint64(salt), _COPY) >= _KEPT
            made.landmarks[text, place] = landmark + np.uint64(3 << _DROPPED) * np.uint64(changed)
        made.landmarks[text].sort()
        _fill_sketch(made, text, int(numbers[text]), marks)
        for place in range(marks, VALUES):
            value = made.sketches[text, place]
            made.sketches[text, place] += np.uint32(_uniform(np.uint64(value) + np.uint64(salt), _COPY) >= _KEPT)
    return made


@kernel
def _landmark(number: int, marks: int) -> np.uint64:
    while _uniform(np.uint64(number), _NEW) >= (1.0 + number / _SCALE) ** -_DECAY:
        number = int(number * _uniform(np.uint64(number), _OLD) ** _AGE)
    # The smallest hashes of a text are uniform below about marks / GRAMS.
    return np.uint64(1 + _uniform(np.uint64(number), _VALUE) * 2.0**LANDMARK_BITS * marks / GRAMS)


@kernel
def _fill_sketch(made: Texts, text: int, number: int, marks: int) -> None:
    for place in range(marks):
        made.sketches[text, place] = np.uint32(made.landmarks[text, place] >> np.uint64(_DROPPED))
    value = 2.0**VALUE_BITS * marks / GRAMS
    for place in range(marks, VALUES):
        value += 2.0 + _uniform(np.uint64(number * VALUES + place), _VALUE) * 2.0 * (2.0**VALUE_BITS / GRAMS - 2.0)
        made.sketches[text, place] = np.uint32(value)


@kernel
def _uniform(number: np.uint64, drawn_for: np.uint64) -> float:
    return float(mix64(number * _BY + drawn_for) >> _11) * _UNIT
