"""Which entries are read for a batch, and which articles looked up, against counting with Python's collections."""

from collections import Counter
from collections.abc import Sequence
from itertools import compress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.lookup.entries_to_read import (
    LookedUp,
    MarkLists,
    Marks,
    near_enough,
    sharing_enough,
    sharing_first_landmarks,
)
from stream_dedup.index.lookup.sharing import (
    least_shared,
    least_shared_of_class,
    most_shared_of_class,
    sharing_of,
    size_classes,
)
from stream_dedup.settings import EngineSettings

_CAP, _MOST, _KEYS = 3, 2, 5
_SHARING = sharing_of(EngineSettings())
_SIZES = st.integers(20, 3000)
_LISTS = st.lists(st.lists(st.integers(0, 6), max_size=_CAP, unique=True), min_size=_KEYS, max_size=_KEYS)
_ASKED = st.lists(st.lists(st.integers(0, _KEYS - 1), max_size=_KEYS, unique=True), min_size=3, max_size=3)


def _looked_up(asked: Sequence[Sequence[int]], lists: Sequence[Sequence[int]]) -> LookedUp:
    offsets = np.cumsum([0, *map(len, asked)])
    stops = np.cumsum([len(entries) for entries in lists])
    begins = stops - [len(entries) for entries in lists]
    return LookedUp(offsets, np.array([key for keys in asked for key in keys], np.int64), begins, stops)


def _marks(
    asked: Sequence[Sequence[int]],
    stored: Sequence[Sequence[int]],
    sizes: Sequence[int],
    classes: Sequence[int],
) -> Marks:
    """Return the landmarks of articles.

    Args:
        asked: keys of each article.
        stored: entries under each key.
        sizes: size of each article.
        classes: size class of each entry.
    """
    batch = _batch_lists(asked, len(stored))
    return Marks(
        _mark_lists(asked, stored, classes),
        _mark_lists(asked, batch, _classes(sizes)),
        np.array([len(articles) > 1 for articles in batch]),
        np.array([len(entries) + len(articles) - 1 >= _CAP for entries, articles in zip(stored, batch, strict=True)]),
        np.array(sizes, np.int64),
        _SHARING,
    )


def _mark_lists(asked: Sequence[Sequence[int]], listed: Sequence[Sequence[int]], classes: Sequence[int]) -> MarkLists:
    entries = [entry for some in listed for entry in some]
    of_entries = np.array([classes[entry] for entry in entries], np.uint64)
    return MarkLists(_looked_up(asked, listed), np.array(entries, np.uint64), of_entries)


def _classes(sizes: Sequence[int]) -> list[int]:
    return list(map(int, size_classes(np.array(sizes, np.int64))))


def _sizes(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(_SIZES, min_size=count, max_size=count)


def _batch_lists(asked: Sequence[Sequence[int]], keys: int) -> list[list[int]]:
    return [[article for article, own in enumerate(asked) if key in own] for key in range(keys)]


_MARK_LISTS = st.lists(st.lists(st.integers(0, 20), max_size=9, unique=True), min_size=9, max_size=9)
_MARKS_ASKED = st.lists(st.lists(st.integers(0, 8), max_size=9, unique=True), max_size=4)


@given(lists=_MARK_LISTS, asked=_MARKS_ASKED)
def test_entries_are_read_that_share_four_of_the_first_landmarks(
    lists: list[list[int]], asked: list[list[int]]
) -> None:
    """Whatever their sizes."""
    marks, expected = _marks(asked, lists, [600] * len(asked), [0] * 21), set[tuple[int, int]]()
    for keys in asked:
        shared = Counter(entry for key in keys for entry in lists[key])
        expected |= {(key, entry) for key in keys for entry in lists[key] if shared[entry] >= 4}
    places = [(key, entry) for key, entries in enumerate(lists) for entry in entries]
    assert set(compress(places, sharing_first_landmarks(marks.stored))) == expected


@given(lists=_MARK_LISTS, asked=_MARKS_ASKED, data=st.data())
def test_entries_are_read_that_share_as_many_landmarks_as_a_copy(
    lists: list[list[int]], asked: list[list[int]], data: st.DataObject
) -> None:
    """How many that is depends on the sizes of both texts."""
    sizes, classes = data.draw(_sizes(len(asked))), _classes(data.draw(_sizes(21)))
    expected = set[tuple[int, int]]()
    for size, keys in zip(sizes, asked, strict=True):
        shared = Counter(entry for key in keys for entry in lists[key])
        expected |= {
            (key, entry)
            for key in keys
            for entry in lists[key]
            if shared[entry] >= least_shared_of_class(size, classes[entry], _SHARING)
        }
    places = [(key, entry) for key, entries in enumerate(lists) for entry in entries]
    wanted, _ = sharing_enough(_marks(asked, lists, sizes, classes))
    assert set(compress(places, wanted)) == expected


@given(lists=_MARK_LISTS, asked=_MARKS_ASKED, data=st.data())
def test_landmarks_leave_open_what_may_be_near_but_no_candidate(
    lists: list[list[int]], asked: list[list[int]], data: st.DataObject
) -> None:
    """That is an entry, or an article of the batch, in enough lists for the tables and perhaps in too few without."""
    sizes, classes = data.draw(_sizes(len(asked))), _classes(data.draw(_sizes(21)))
    capped, batch = [entries[:_CAP] for entries in lists], _batch_lists(asked, len(lists))
    kinds, expected = ((capped, classes), (batch, _classes(sizes))), []
    for size, own in zip(sizes, asked, strict=True):
        full = sum(len(capped[key]) + len(batch[key]) - 1 >= _CAP for key in own)
        least = least_shared(size, size, _SHARING) - full
        shared = [
            (count, most_shared_of_class(size, known[other], _SHARING))
            for listed, known in kinds
            for other, count in Counter(other for key in own for other in listed[key]).items()
        ]
        between = any(least <= count < most + full for count, most in shared)
        expected.append(not own or least <= 0 or between)
    assert sharing_enough(_marks(asked, capped, sizes, classes))[1].tolist() == expected


@pytest.mark.parametrize("shared", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stored", [True, False])
def test_both_entries_and_articles_of_the_batch_leave_something_open(*, shared: int, stored: bool) -> None:
    """Texts of 600 n-grams that only just are copies share 12.4 of 25 landmarks on average: a quarter of that is 3."""
    keys = list(range(25))
    asked = [keys] if stored else [keys, [*keys[:shared], *range(25, 50 - shared)]]
    lists = [[0] if stored and key < shared else [] for key in range(50)]
    marks = _marks(asked, lists, [600] * len(asked), _classes([600]))
    assert sharing_enough(marks)[1].tolist() == [shared == 3] * len(asked)


@given(
    marks=_LISTS,
    tables=_LISTS,
    asked_marks=_ASKED,
    asked_tables=_ASKED,
    sizes=st.tuples(_SIZES, _SIZES, _SIZES),
    fingerprints=st.lists(st.integers(0, 15), min_size=10, max_size=10),
)
def test_near_entries_are_read_if_landmarks_do_not_rule_them_out(
    marks: list[list[int]],
    tables: list[list[int]],
    asked_marks: list[list[int]],
    asked_tables: list[list[int]],
    sizes: tuple[int, int, int],
    fingerprints: list[int],
) -> None:
    """Those near to an article that has no landmarks, or that share enough, each full list counting as shared."""
    stored = [entry for entries in tables for entry in entries]
    batch = _batch_lists(asked_marks, _KEYS)
    found = near_enough(
        _looked_up(asked_tables, tables),
        np.array(fingerprints[7:], np.uint64),
        np.array(stored, np.uint64),
        np.array([fingerprints[entry] for entry in stored], np.uint64),
        _MOST,
        _marks(asked_marks, marks, sizes, [0] * 7),
    )
    wanted = set()
    for article, (own, keys) in enumerate(zip(asked_marks, asked_tables, strict=True)):
        shared = Counter(entry for key in own for entry in marks[key])
        full = sum(len(marks[key]) + len(batch[key]) - 1 >= _CAP for key in own)
        least = least_shared(sizes[article], sizes[article], _SHARING)
        for key in keys:
            for entry in tables[key]:
                near = (fingerprints[7 + article] ^ fingerprints[entry]).bit_count() <= _MOST
                if near and (not own or shared[entry] + full >= least):
                    wanted.add((key, entry))
    places = [(key, entry) for key, entries in enumerate(tables) for entry in entries]
    assert {place for place, taken in zip(places, found, strict=True) if taken} == wanted
