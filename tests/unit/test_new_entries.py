"""Entries added by a batch are numbered in order, and visible at once."""

import numpy as np

from stream_dedup.fingerprint.sketch import LandmarkRule
from stream_dedup.index.entries.entries import COMPARABLE, RESERVE, SEALED, Entries, EntryFormat
from stream_dedup.index.entries.new_entries import NewEntries

_FORMAT = EntryFormat(16, 4, 4, LandmarkRule(2, 24, 4))


def _texts(contents: list[int]) -> Entries:
    texts = np.zeros(len(contents), _FORMAT.layout)
    texts["content"], texts["flags"] = contents, COMPARABLE
    return texts


def _seen(entries: Entries) -> list[tuple[int, int, int]]:
    return [(int(one["content"]), int(one["cluster"]), int(one["flags"])) for one in entries]


def test_entries_are_numbered_in_the_order_in_which_they_come() -> None:
    """By hand: texts of the batch, one of them in reserve, and between them an entry that is indexed again."""
    entries = NewEntries(_FORMAT, 7, _texts([11, 12, 13]))
    anew = _texts([5])
    anew["cluster"], anew["flags"] = 3, SEALED
    assert entries.add(0, b"a", 7, reserve=False) == 7
    assert entries.add_again(anew, b"b") == 8
    assert entries.add(2, b"c", 7, reserve=True) == 9
    assert entries.next == 10
    fixed, names = entries.all()
    assert names == [b"a", b"b", b"c"]
    assert _seen(fixed) == [(11, 7, COMPARABLE), (5, 3, SEALED), (13, 7, COMPARABLE | RESERVE)]


def test_entry_is_seen_as_soon_as_it_is_added() -> None:
    """An entry read by its number is the one that is finally written; other numbers are not found."""
    entries = NewEntries(_FORMAT, 7, _texts([11, 12]))
    entries.add(1, b"a", 4, reserve=True)
    anew = entries.get(7)
    assert anew is not None
    assert _seen(anew) == [(12, 4, COMPARABLE | RESERVE)]
    assert (entries.get(6), entries.get(8)) == (None, None)
    anew["flags"] = SEALED
    entries.add_again(anew, b"a")
    assert _seen(entries.all()[0]) == [(12, 4, COMPARABLE | RESERVE), (12, 4, SEALED)]


def test_times_are_those_of_the_entries() -> None:
    """Whether they are texts of the batch or come from before it."""
    texts = _texts([11, 12, 13])
    texts["window_ms"] = [100, 200, 300]
    entries = NewEntries(_FORMAT, 7, texts)
    again = _texts([5, 6])
    again["window_ms"] = [40, 50]
    entries.add(2, b"a", 7, reserve=False)
    entries.add_again(again[:1], b"b")
    entries.add(0, b"c", 7, reserve=True)
    entries.add_again(again[1:], b"d")
    assert [entries.time(number) for number in range(7, 11)] == [300, 40, 100, 50]


def test_run_without_entries_adds_none() -> None:
    """With neither texts nor entries, nothing is written, and the next number does not change."""
    entries = NewEntries(_FORMAT, 7)
    fixed, names = entries.all()
    assert (len(fixed), names, entries.next) == (0, [], 7)
