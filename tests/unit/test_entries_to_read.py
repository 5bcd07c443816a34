"""Which entries are read for a batch, against counting with Python's own collections."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.lookup.entries_to_read import (
    LookedUp,
    Marks,
    near_enough,
    sharing_enough,
    sharing_first_landmarks,
)
from stream_dedup.index.lookup.sharing import least_shared, least_shared_of_class, sharing_of, size_classes
from stream_dedup.settings import EngineSettings

_CAP, _MOST, _KEYS = 3, 2, 5
_SHARING = sharing_of(EngineSettings())
_SIZES = st.integers(20, 3000)
_LISTS = st.lists(st.lists(st.integers(0, 6), max_size=_CAP, unique=True), min_size=_KEYS, max_size=_KEYS)
_ASKED = st.lists(st.lists(st.integers(0, _KEYS - 1), max_size=_KEYS, unique=True), min_size=3, max_size=3)
_AHEAD = st.lists(st.integers(0, 2), min_size=_KEYS, max_size=_KEYS)


def _looked_up(asked: Sequence[Sequence[int]], lists: Sequence[Sequence[int]]) -> LookedUp:
    offsets = np.cumsum([0, *map(len, asked)])
    stops = np.cumsum([len(entries) for entries in lists])
    begins = stops - [len(entries) for entries in lists]
    return LookedUp(offsets, np.array([key for keys in asked for key in keys], np.int64), begins, stops)


_MARK_LISTS = st.lists(st.lists(st.integers(0, 20), max_size=9, unique=True), min_size=9, max_size=9)
_MARKS_ASKED = st.lists(st.lists(st.integers(0, 8), max_size=9, unique=True), max_size=4)


@given(lists=_MARK_LISTS, asked=_MARKS_ASKED, data=st.data())
def test_entries_are_read_that_share_as_many_landmarks_as_a_copy(
    lists: list[list[int]], asked: list[list[int]], data: st.DataObject
) -> None:
    """Four of the first ones are enough for any entry; of all, how many depends on the sizes of both texts."""
    sizes = data.draw(st.lists(_SIZES, min_size=len(asked), max_size=len(asked)))
    classes = size_classes(np.array(data.draw(st.lists(_SIZES, min_size=21, max_size=21)))).tolist()
    places = [(key, entry) for key, entries in enumerate(lists) for entry in entries]
    looked_up, entries = _looked_up(asked, lists), np.array([entry for _, entry in places], np.uint64)
    listed = np.array([classes[entry] for _, entry in places], np.uint64)
    first, every = set[tuple[int, int]](), set[tuple[int, int]]()
    for size, keys in zip(sizes, asked, strict=True):
        shared = Counter(entry for key in keys for entry in lists[key])
        for key in keys:
            first |= {(key, entry) for entry in lists[key] if shared[entry] >= 4}
            every |= {
                (key, entry)
                for entry in lists[key]
                if shared[entry] >= least_shared_of_class(size, classes[entry], _SHARING)
            }
    wanted = sharing_first_landmarks(looked_up, entries)
    assert {place for place, taken in zip(places, wanted, strict=True) if taken} == first
    wanted = sharing_enough(looked_up, np.array(sizes, np.int64), entries, listed, _SHARING)
    assert {place for place, taken in zip(places, wanted, strict=True) if taken} == every


@given(
    marks=_LISTS,
    tables=_LISTS,
    asked_marks=_ASKED,
    asked_tables=_ASKED,
    ahead=_AHEAD,
    sizes=st.tuples(_SIZES, _SIZES, _SIZES),
    fingerprints=st.lists(st.integers(0, 15), min_size=10, max_size=10),
)
def test_near_entries_are_read_if_landmarks_do_not_rule_them_out(
    marks: list[list[int]],
    tables: list[list[int]],
    asked_marks: list[list[int]],
    asked_tables: list[list[int]],
    ahead: list[int],
    sizes: tuple[int, int, int],
    fingerprints: list[int],
) -> None:
    """Those near to an article that has no landmarks, or that share enough, each full list counting as shared."""
    stored = [entry for entries in tables for entry in entries]
    looked_up = _looked_up(asked_marks, marks)
    listed = np.array([entry for entries in marks for entry in entries], np.uint64)
    found = near_enough(
        _looked_up(asked_tables, tables),
        np.array(fingerprints[7:], np.uint64),
        np.array(stored, np.uint64),
        np.array([fingerprints[entry] for entry in stored], np.uint64),
        _MOST,
        Marks(looked_up, listed, np.array(ahead), _CAP, np.array(sizes), _SHARING),
    )
    wanted = set()
    for article, (own, keys) in enumerate(zip(asked_marks, asked_tables, strict=True)):
        shared = Counter(entry for key in own for entry in marks[key])
        full = sum(len(marks[key]) + ahead[key] >= _CAP for key in own)
        least = least_shared(sizes[article], sizes[article], _SHARING)
        for key in keys:
            for entry in tables[key]:
                near = (fingerprints[7 + article] ^ fingerprints[entry]).bit_count() <= _MOST
                if near and (not own or shared[entry] + full >= least):
                    wanted.add((key, entry))
    places = [(key, entry) for key, entries in enumerate(tables) for entry in entries]
    assert {place for place, taken in zip(places, found, strict=True) if taken} == wanted
