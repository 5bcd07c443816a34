"""Promises of hits: what several sources found is put together key by key, the oldest source first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.runs.hits import Hits, lists_of
from tests.unit.runs.plain import u64

_KEYS = 5
_SOURCES = st.lists(
    st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=4), min_size=_KEYS, max_size=_KEYS), min_size=1, max_size=5
)


def _hits(source: list[list[int]]) -> Hits:
    rows = [(place, entry) for place, entries in enumerate(source) for entry in entries]
    entries = u64(entry for _, entry in rows)
    return Hits(np.array([place for place, _ in rows], np.int64), entries, ~entries)


@given(_SOURCES)
def test_lists_are_those_of_the_sources_one_behind_the_other(sources: list[list[list[int]]]) -> None:
    """Each key's list is what the first source has of it, then the second, and so on, with what postings carry."""
    offsets, entries, details = lists_of([_hits(source) for source in sources], _KEYS)
    expected = [[entry for source in sources for entry in source[key]] for key in range(_KEYS)]
    assert [entries[offsets[key] : offsets[key + 1]].tolist() for key in range(_KEYS)] == expected
    assert (details == ~entries).all()
    assert offsets[0] == 0
    assert offsets[-1] == len(entries)


def test_no_keys_have_no_lists() -> None:
    """Where nothing was asked there is nothing."""
    nothing = Hits(np.empty(0, np.int64), u64([]), u64([]))
    offsets, entries, details = lists_of([nothing, nothing], 0)
    assert (offsets.tolist(), len(entries), len(details)) == ([0], 0, 0)
