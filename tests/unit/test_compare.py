"""How two texts compare at each threshold of the settings, with n-grams, numbers and places as small exact sets."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest

from stream_dedup.arrays import I64, U32
from stream_dedup.engine.compare import CONTAINED, CONTAINS, NEAR, NONE, compare, limits_of
from stream_dedup.fingerprint.sketch import PAD
from stream_dedup.index.entries.entries import Rows
from stream_dedup.settings import EngineSettings

_ROOM = 200
_OTHERS = 1000  # what the second text does not share with the first begins here


class _Shares(NamedTuple):
    """What two texts have of one kind, and how many of that in common."""

    one: int
    other: int
    both: int

    def sketches(self) -> tuple[U32, I64, I64]:
        """Return both sets as sketches that hold them whole, with lengths and sizes."""
        sets: Iterable[list[int]] = (
            [*range(self.one)],
            [*range(self.both), *range(_OTHERS, _OTHERS + self.other - self.both)],
        )
        values = np.full((2, _ROOM), PAD, np.uint32)
        for row, members in zip(values, sets, strict=True):
            row[: len(members)] = members
        return values, np.array(self[:2]), np.array(self[:2])


_NONE = _Shares(0, 0, 0)


def _relation(grams: _Shares, numbers: _Shares = _NONE, places: _Shares = _NONE, **verify: float) -> int:
    """Return the relation of the first text to the second."""
    rows = Rows(
        np.zeros(2, np.uint64),
        np.arange(2, dtype=np.uint64),
        np.zeros(2, np.int64),
        *grams.sketches(),
        *numbers.sketches(),
        *places.sketches(),
        np.zeros(2, np.uint8),
        np.zeros(2, np.uint64),
    )
    limits = limits_of(EngineSettings.model_validate({"verify": verify}))
    return int(compare(rows, 0, 1, limits).relation)


@pytest.mark.parametrize(
    ("grams", "relation"),
    [
        (_Shares(15, 15, 10), NEAR),  # Jaccard 10 / 20
        (_Shares(15, 16, 10), CONTAINED),  # 10 / 21; containment 10 / 15
        (_Shares(16, 15, 10), CONTAINS),
        (_Shares(10, 40, 6), CONTAINED),  # containment 6 / 10
        (_Shares(10, 10, 6), CONTAINED),  # Jaccard 6 / 14
        (_Shares(40, 10, 6), CONTAINS),
        (_Shares(10, 40, 5), NONE),
        (_Shares(10, 20, 9), CONTAINED),
        (_Shares(10, 16, 9), CONTAINED),  # containment 9 / 10, and Jaccard 9 / 17
        (_Shares(20, 24, 17), NEAR),  # 17 / 20, and 17 / 27
        (_Shares(12, 16, 12), NEAR),  # Jaccard 12 / 16
        (_Shares(11, 16, 11), CONTAINED),
        (_Shares(16, 11, 11), CONTAINS),
        (_Shares(10, 10, 10), NEAR),
        (_Shares(9, 10, 9), NONE),  # fewer than 10
    ],
)
def test_thresholds_count_as_reached(grams: _Shares, relation: int) -> None:
    """By hand, with Jaccard 0.5 for near copies, containment 0.6 for parts, 0.9 and Jaccard 0.75 for cut copies."""
    assert _relation(grams, near_jaccard=0.5) == relation


_ALIKE = _Shares(100, 100, 90)  # 10 n-grams of each are not in the other


@pytest.mark.parametrize(
    ("numbers", "places", "relation"),
    [
        (_Shares(4, 4, 2), _NONE, NEAR),  # half of them
        (_Shares(4, 6, 2), _NONE, NEAR),  # of the fewer
        (_Shares(4, 4, 1), _NONE, NONE),
        (_Shares(3, 3, 1), _NONE, NONE),
        (_Shares(2, 9, 0), _NONE, NEAR),  # fewer than 3
        (_NONE, _Shares(2, 2, 1), NONE),  # no more than half of them
        (_NONE, _Shares(3, 3, 2), NEAR),
        (_NONE, _Shares(1, 1, 0), NONE),
        (_NONE, _Shares(1, 2, 1), NEAR),
        (_Shares(4, 4, 4), _Shares(1, 1, 0), NONE),
        (_Shares(2, 2, 0), _Shares(1, 1, 1), NONE),  # 1 of 3 together
        (_Shares(2, 2, 0), _Shares(2, 2, 2), NEAR),  # 2 of 4 together
    ],
)
def test_copy_keeps_half_of_the_numbers_and_more_than_half_of_the_places(
    numbers: _Shares, places: _Shares, relation: int
) -> None:
    """By hand, as the settings say: half of 3 numbers or more, more than half of any places, half of 3 of both."""
    assert _relation(_ALIKE, numbers, places) == relation


@pytest.mark.parametrize(
    ("places_min", "places", "relation"),
    [(2, _Shares(1, 2, 0), NEAR), (2, _Shares(2, 2, 0), NONE), (3, _Shares(2, 2, 0), NEAR)],
)
def test_places_are_compared_if_both_texts_name_enough(places_min: int, places: _Shares, relation: int) -> None:
    """`places_min` counts as reached."""
    assert _relation(_ALIKE, places=places, places_min=places_min) == relation


def test_with_an_overlap_of_1_all_are_kept_and_with_0_none_is_compared() -> None:
    """A lost number or place is then another bulletin, or nothing at all."""
    for kept, overlap, relation in ((4, 1, NEAR), (3, 1, NONE), (0, 0, NEAR)):
        for numbers, places in ((_Shares(4, 4, kept), _NONE), (_NONE, _Shares(4, 4, kept))):
            assert _relation(_ALIKE, numbers, places, numbers_overlap=overlap) == relation


@pytest.mark.parametrize(("changed", "relation"), [(12, NONE), (13, NEAR)])
def test_one_differing_place_explains_as_many_changed_grams_as_the_settings_say(changed: int, relation: int) -> None:
    """`numbers_grams` of either text, 12 by default; if more were changed, the text was edited."""
    assert _relation(_Shares(128, 128, 128 - changed), places=_Shares(1, 1, 0)) == relation


@pytest.mark.parametrize(("shared", "relation"), [(18, NONE), (19, NEAR)])
def test_other_numbers_in_texts_that_agree_otherwise_are_misprints(shared: int, relation: int) -> None:
    """19 of 20 n-grams are the Jaccard similarity of 0.95 from which on they are; 18 of 20 are less."""
    assert _relation(_Shares(shared, 20, shared), _Shares(4, 4, 0)) == relation
