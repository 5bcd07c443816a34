"""Postings found under keys, source by source, and how posting lists are assembled from them.

Knows places of keys and postings; knows nothing of where postings come from.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.compiled.kernel import kernel

_POSTINGS = 8  # per key: the average and a little more


class Hits(NamedTuple):
    """Postings found under some keys in several sources, the newest source first.

    Attributes:
        places: index of each find's key among the keys looked up, shape (room for finds,).
        counts: how many postings each find has, shape of `places`.
        entries: entries of the postings, find by find, ascending within each, shape (room for postings,).
        details: details of the postings, shape of `entries`.
        used: how many finds and how many postings there are, shape (2,).
    """

    places: I64
    counts: I64
    entries: U64
    details: U64
    used: I64


def no_hits(keys: int) -> Hits:
    """Return empty hits with room for the finds of a number of keys."""
    places, counts = np.empty((2, keys + 1), np.int64)
    entries, details = np.empty((2, _POSTINGS * (keys + 1)), np.uint64)
    return Hits(places, counts, entries, details, np.zeros(2, np.int64))


@kernel
def with_room(hits: Hits, finds: int, postings: int) -> Hits:
    """Return hits with room for that many more finds and postings."""
    found, used = hits.used[0], hits.used[1]
    places, counts, entries, details = hits.places, hits.counts, hits.entries, hits.details
    if found + finds > len(places):
        size = 2 * len(places) + finds
        places, counts = np.empty(size, np.int64), np.empty(size, np.int64)
        places[:found], counts[:found] = hits.places[:found], hits.counts[:found]
    if used + postings > len(entries):
        size = 2 * len(entries) + postings
        entries, details = np.empty(size, np.uint64), np.empty(size, np.uint64)
        entries[:used], details[:used] = hits.entries[:used], hits.details[:used]
    return Hits(places, counts, entries, details, hits.used)


@kernel
def lists_of(hits: Hits, keys: int) -> tuple[I64, U64, U64]:
    """Assemble posting lists from what was found in several sources.

    Args:
        hits: what was found.
        keys: how many keys were looked up.

    Returns:
        Offsets of the lists, shape (keys + 1,), the entries of their postings, oldest first, and the details of these.
    """
    offsets = np.zeros(keys + 1, np.int64)
    for find in range(hits.used[0]):
        offsets[hits.places[find] + 1] += hits.counts[find]
    for key in range(keys):
        offsets[key + 1] += offsets[key]
    entries, details = np.empty(offsets[keys], np.uint64), np.empty(offsets[keys], np.uint64)
    begins, posting = offsets[1:].copy(), 0
    for find in range(hits.used[0]):
        place, count = hits.places[find], hits.counts[find]
        begins[place] -= count
        for to in range(begins[place], begins[place] + count):
            entries[to], details[to] = hits.entries[posting], hits.details[posting]
            posting += 1
    return offsets, entries, details
