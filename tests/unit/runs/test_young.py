"""Young lists behave like a dictionary of lists, however large their table grows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.runs.hits import no_hits
from stream_dedup.index.runs.young import YoungLists
from tests.unit.runs.plain import Posting, flat_of, hits_of, lists_of_rows, newest, rooms, rows_of, sorted_rows, u64

_KEYS = st.integers(0, 12) | st.sampled_from([2**64 - 1, 2**63, 2**32])
_BATCHES = st.lists(st.lists(st.tuples(_KEYS, st.integers(0, 2)), max_size=30), max_size=5)
_ASKED = st.lists(st.tuples(_KEYS, st.integers(0, 6)), max_size=12, unique_by=lambda pair: pair[0])


def _rows(batches: list[list[tuple[int, int]]]) -> list[list[tuple[int, int, int]]]:
    """Return batches of keys and distances to the next entry as rows; an entry may have several postings."""
    entry = 5
    rows: list[list[tuple[int, int, int]]] = []
    for batch in batches:
        rows.append([])
        for key, further in batch:
            entry += further
            rows[-1].append((key, entry, entry * 3))
    return rows


def _filled(batches: list[list[tuple[int, int, int]]]) -> tuple[YoungLists, dict[int, list[Posting]]]:
    young = YoungLists()
    for batch in batches:
        young.add(flat_of(batch))
    return young, lists_of_rows(row for batch in batches for row in batch)


@given(_BATCHES, _ASKED, st.integers(0, 40))
def test_lists_are_those_of_a_dictionary(
    batches: list[list[tuple[int, int]]], asked: list[tuple[int, int]], floor: int
) -> None:
    """The newest postings of each key are found, up to its room, and none of entries below the floor."""
    young, lists = _filled(_rows(batches))
    keys, room = [key for key, _ in asked], rooms(*(room for _, room in asked))
    expected = [newest(lists, key, room, floor) for key, room in asked]
    assert hits_of(young.find(u64(keys), room, floor, no_hits(len(keys))), len(keys)) == expected
    assert room.tolist() == [room - len(found) for (_, room), found in zip(asked, expected, strict=True)]
    may_be = np.zeros(len(keys), np.bool_)
    young.mark(u64(keys), may_be)
    assert may_be.tolist() == [key in lists for key in keys]


@given(_BATCHES, st.sampled_from([1, 2, 64]))
def test_sorted_postings_are_the_newest_of_each_key(batches: list[list[tuple[int, int]]], cap: int) -> None:
    """Keys and entries ascend, and each key has its newest postings, up to the cap."""
    young, lists = _filled(_rows(batches))
    assert rows_of(young.sorted(cap)) == sorted_rows({key: found[-cap:] for key, found in lists.items()})


@pytest.mark.parametrize("size", [7, 400, 5000])
def test_the_table_grows_and_loses_nothing(size: int) -> None:
    """Of five thousand keys, each added twice in batches of any size, all are found, and no others."""
    rng = np.random.default_rng(size)
    keys = np.unique(rng.integers(0, 2**64, 2500, np.uint64, endpoint=False))
    rows = [(key, entry, 1) for entry, key in enumerate(rng.permutation(np.repeat(keys, 2)).tolist())]
    young, lists = _filled([rows[start : start + size] for start in range(0, len(rows), size)])
    found = hits_of(young.find(keys, np.full(len(keys), 9), 0, no_hits(len(keys))), len(keys))
    assert found == [lists[key] for key in keys.tolist()]
    may_be = np.zeros(len(keys), np.bool_)
    young.mark(np.setdiff1d(keys + np.uint64(1), keys), may_be)
    assert not may_be.any()


def test_lists_of_the_last_slot_go_on_in_the_first() -> None:
    """The largest keys share the last slot; they are found even after the table has grown."""
    largest = [2**64 - 1 - place for place in range(5)]
    young, lists = _filled([[(key, 0, 1) for key in largest], [(place << 53, 1, 1) for place in range(600)]])
    found = hits_of(young.find(u64(largest), rooms(*[9] * 5), 0, no_hits(5)), 5)
    assert found == [lists[key] for key in largest]


@pytest.mark.parametrize("count", [1024, 1025])
def test_no_posting_is_lost_where_the_room_ends(count: int) -> None:
    """There is room for 1,024 at first."""
    rows = [(1, entry, 0) for entry in range(count)]
    assert rows_of(_filled([rows])[0].sorted(count)) == rows


def test_what_is_marked_stays_marked() -> None:
    """A key marked by another list stays marked even if this one does not have it."""
    young, _ = _filled([[(1, 1, 0)]])
    may_be = np.array([True, False])
    young.mark(u64([7, 8]), may_be)
    assert may_be.tolist() == [True, False]
