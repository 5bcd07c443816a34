"""Posting lists in plain Python, for the tests of runs.

Knows dictionaries of lists; does not know blocks, files or filters.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.hits import Hits

Posting = tuple[int, int]  # an entry, and the detail its posting carries
Lists = Mapping[int, Sequence[Posting]]


def u64(numbers: Iterable[int]) -> U64:
    """Return numbers as an array."""
    return np.array([*numbers], np.uint64)


def flat_of(rows: Iterable[tuple[int, int, int]]) -> KeyedPostings:
    """Return postings from rows of key, entry and detail."""
    listed = [*rows]
    return KeyedPostings(*(u64(row[column] for row in listed) for column in range(3)))


def rows_of(keyed: KeyedPostings) -> list[tuple[int, int, int]]:
    """Return postings as rows of key, entry and detail."""
    return list(zip(keyed.keys.tolist(), keyed.entries.tolist(), keyed.details.tolist(), strict=True))


def sorted_rows(lists: Lists) -> list[tuple[int, int, int]]:
    """Return the rows of the lists in ascending order of keys."""
    return [(key, *posting) for key in sorted(lists) for posting in lists[key]]


def lists_of_rows(rows: Iterable[tuple[int, int, int]]) -> dict[int, list[Posting]]:
    """Return the lists that the rows make up."""
    lists: dict[int, list[Posting]] = {}
    for key, entry, detail in rows:
        lists.setdefault(key, []).append((entry, detail))
    return lists


def newest(lists: Lists, key: int, room: int, floor: int) -> list[Posting]:
    """Return the newest unexpired postings of a key, oldest first."""
    live = [posting for posting in lists.get(key, []) if posting[0] >= floor]
    return live[max(0, len(live) - room) :]


def hits_of(hits: Hits, keys: int) -> list[list[Posting]]:
    """Return what one source found of each key, after checking that the places of keys ascend."""
    finds, postings = hits.used.tolist()
    places, counts = hits.places[:finds].tolist(), hits.counts[:finds].tolist()
    assert places == sorted(set(places))
    assert sum(counts) == postings
    each = iter(zip(hits.entries[:postings].tolist(), hits.details[:postings].tolist(), strict=True))
    found: list[list[Posting]] = [[] for _ in range(keys)]
    for place, count in zip(places, counts, strict=True):
        found[place] = list(islice(each, count))
    return found


def rooms(*numbers: int) -> I64:
    """Return the number of postings wanted of each key as an array."""
    return np.array(numbers, np.int64)
