"""Postings are ordered or merged by key, keeping the newest of each key, whatever the keys are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.runs.order import in_order, merged
from tests.unit.runs.plain import flat_of, lists_of_rows, newest, rows_of, sorted_rows

_KEYS = st.integers(0, 8) | st.integers(0, 2**64 - 1) | st.sampled_from([2**64 - 1, 2**63, 2**40])


@given(st.lists(st.tuples(_KEYS, st.integers(0, 3)), max_size=80), st.sampled_from([1, 2, 3, 64]), st.integers(0, 120))
def test_postings_are_those_of_a_dictionary(drawn: list[tuple[int, int]], cap: int, floor: int) -> None:
    """Each key keeps its newest unexpired postings, up to the cap; an entry may occur twice under a key."""
    entries = np.cumsum([further for _, further in drawn]).tolist()
    rows = [(key, entry, entry * 7) for (key, _), entry in zip(drawn, entries, strict=True)]
    lists = lists_of_rows(rows)
    expected = {key: newest(lists, key, cap, floor) for key in lists}
    assert rows_of(in_order(flat_of(rows), cap, floor)) == sorted_rows(expected)


@pytest.mark.parametrize("bits", [64, 40, 12, 1])
def test_order_is_that_of_a_stable_sort(bits: int) -> None:
    """Twenty thousand postings with wide or narrow keys come out as from Python's stable sort by key."""
    keys = np.random.default_rng(bits).integers(0, 2**bits, 20_000, np.uint64, endpoint=False).tolist()
    rows = [(key, entry, entry % 251) for entry, key in enumerate(keys)]
    assert rows_of(in_order(flat_of(rows), len(rows), 0)) == sorted(rows, key=lambda row: row[0])


@given(
    st.lists(st.lists(st.tuples(_KEYS, st.integers(0, 3)), max_size=30), min_size=1, max_size=6),
    st.sampled_from([1, 2, 3, 64]),
    st.integers(0, 120),
)
def test_merged_parts_are_those_of_a_dictionary(drawn: list[list[tuple[int, int]]], cap: int, floor: int) -> None:
    """The same holds for the postings of several parts, each in order, with older entries in earlier ones."""
    entry, parts, rows = 0, [], []
    for part in drawn:
        entries = (entry + np.cumsum([further for _, further in part], dtype=int)).tolist()
        entry = entries[-1] if entries else entry
        of_part = [(key, number, number * 7) for (key, _), number in zip(part, entries, strict=True)]
        parts.append(flat_of(sorted(of_part, key=lambda row: row[0])))
        rows += of_part
    lists = lists_of_rows(rows)
    expected = {key: newest(lists, key, cap, floor) for key in lists}
    assert rows_of(merged(parts, cap, floor)) == sorted_rows(expected)
