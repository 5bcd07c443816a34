"""Predictions of copies: right in the usual cases, and bounded in memory."""

from dataclasses import replace

import numpy as np

from stream_dedup.engine.copy_predictor import CopyPredictor
from stream_dedup.fingerprint.features import Fingerprinter
from tests.engine.samples import articles


def test_copies_are_foreseen(fingerprinter: Fingerprinter) -> None:
    """Repeated articles are predicted to be copies, even with a line added; the very first article is not."""
    some = [one for one in articles() if len(one.body) > 100][:100]
    again = [replace(one, id=f"again {one.id}", body=f"{one.body}\n今天又有一行新的话。") for one in some]
    first, second, changed = (fingerprinter.features(those).sketches.landmarks for those in (some[:1], some, again))
    copy_predictor = CopyPredictor()
    assert not copy_predictor.copies(first).any()
    copy_predictor.copies(second)
    assert copy_predictor.copies(second).all()
    assert copy_predictor.copies(changed).mean() > 0.9


def test_half_of_the_first_landmarks_are_enough() -> None:
    """Four of eight are enough, three are not; in a short text with fewer landmarks, half of them are."""
    marks = np.arange(1, 17, dtype=np.uint64)
    copy_predictor = CopyPredictor()
    copy_predictor.copies(marks[np.newaxis, :8])
    three, four = np.concatenate([marks[:3], marks[8:13]]), np.concatenate([marks[4:8], marks[8:12] + np.uint64(100)])
    assert copy_predictor.copies(three[np.newaxis]).tolist() == [False]
    assert copy_predictor.copies(four[np.newaxis]).tolist() == [True]
    # Those behind the first eight do not count, in a longer text.
    longer = np.concatenate([marks[:4], marks[4:16] + np.uint64(200)])
    assert copy_predictor.copies(longer[np.newaxis]).tolist() == [True]
    short = np.array([[1, 99, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]], np.uint64)
    assert copy_predictor.copies(short).tolist() == [True, False]


def test_what_needs_the_same_slot_displaces_what_was_there() -> None:
    """Memory is bounded: of two landmarks with the same lowest bits, only the later one is remembered."""
    copy_predictor = CopyPredictor()
    slots = np.uint64(1 << 40)
    one, other = np.array([[5]], np.uint64), np.array([[5]], np.uint64) + slots
    assert [bool(copy_predictor.copies(marks)[0]) for marks in (one, one, other, one, one)] == [
        False,
        True,
        False,
        False,
        True,
    ]
