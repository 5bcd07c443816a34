"""Hits of several sources are combined key by key, the oldest source first."""

from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.runs.hits import Hits, lists_of, no_hits, with_room
from tests.unit.runs.plain import u64

_KEYS = 5
_SOURCES = st.lists(
    st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=4), min_size=_KEYS, max_size=_KEYS), min_size=1, max_size=5
)


def _hits(sources: list[list[list[int]]]) -> Hits:
    """Return the hits of sources, the newest first, added one by one as a look-up does."""
    hits = no_hits(0)
    for source in reversed(sources):
        finds = [(place, u64(entries)) for place, entries in enumerate(source) if entries]
        hits = with_room(hits, len(finds), sum(len(entries) for _, entries in finds))
        for place, entries in finds:
            find, to = hits.used.tolist()
            hits.places[find], hits.counts[find] = place, len(entries)
            hits.entries[to : to + len(entries)], hits.details[to : to + len(entries)] = entries, ~entries
            hits.used[:] = find + 1, to + len(entries)
    return hits


@given(_SOURCES)
def test_lists_are_those_of_the_sources_one_behind_the_other(sources: list[list[list[int]]]) -> None:
    """Each key's list is the first source's, then the second's and so on, with the details of postings."""
    offsets, entries, details = lists_of(_hits(sources), _KEYS)
    expected = [[entry for source in sources for entry in source[key]] for key in range(_KEYS)]
    assert [entries[offsets[key] : offsets[key + 1]].tolist() for key in range(_KEYS)] == expected
    assert (details == ~entries).all()
    assert offsets[0] == 0
    assert offsets[-1] == len(entries)


def test_no_keys_have_no_lists() -> None:
    """Without keys there are no lists."""
    offsets, entries, details = lists_of(no_hits(0), 0)
    assert (offsets.tolist(), len(entries), len(details)) == ([0], 0, 0)
