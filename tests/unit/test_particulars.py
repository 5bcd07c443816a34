"""Particulars: places by the dictionary, unaffected by spaces, and sketches of numbers and places."""

import numpy as np
import pytest

from stream_dedup.arrays import U32
from stream_dedup.compiled.hashing import code_points, hash_words
from stream_dedup.fingerprint.particulars import particulars, small_sketches
from stream_dedup.fingerprint.places import gazetteer, place_hashes
from stream_dedup.fingerprint.sketch import PAD
from stream_dedup.text.texts import Texts


def _points(text: str) -> U32:
    return code_points(text).copy()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("没有地名", []),
        ("北京和上海", ["北京", "上海"]),
        ("黑龙江省气象台", ["黑龙江省"]),
        ("从武汉市到武汉", ["武汉市", "武汉"]),
        ("在澳大利亚", ["澳大利亚"]),
        ("京", []),
    ],
)
def test_places_are_the_longest_names_of_the_dictionary(text: str, names: list[str]) -> None:
    """At each position the longest name of two to four characters counts, and reading resumes after it."""
    known = gazetteer()
    assert (
        place_hashes(_points(text), known.names, known.begins).tolist() == (hash_words(names) >> np.uint64(32)).tolist()
    )


def test_sketch_of_a_set_keeps_the_smallest() -> None:
    """The sketch holds the k smallest distinct hashes in ascending order; lengths and sizes give their numbers."""
    made = small_sketches(np.array([7, 3, 3, 9, 1], np.uint32), np.array([5, 5]), 3)
    assert made.values.tolist() == [[1, 3, 7], [int(PAD)] * 3]
    assert made.lengths.tolist() == [3, 0]
    assert made.sizes.tolist() == [4, 0]
    part = made.part(1, 2)
    assert (part.values.tolist(), part.lengths.tolist(), part.sizes.tolist()) == ([[int(PAD)] * 3], [0], [0])


def test_blanks_part_nothing() -> None:
    """Spaces between any characters change neither numbers nor places."""
    text = "2026年11月9日，北京市气象台第3次发布，十二日到上海"
    plain, spaced = particulars(Texts.of_strings([text, " ".join(text)]), 16, 8)
    for sketches, count in ((plain, 5), (spaced, 2)):
        assert sketches.sizes.tolist() == [count, count]
        assert sketches.values[0].tolist() == sketches.values[1].tolist()
