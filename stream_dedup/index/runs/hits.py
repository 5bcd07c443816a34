"""What is found under keys, source by source, put together to posting lists.

Knows places of keys and postings; knows nothing of where postings come from.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64


class Hits(NamedTuple):
    """Postings found under some keys.

    Attributes:
        places: of the key of each posting among those that were asked for, ascending, shape (n,).
        entries: their entries, under one key ascending, shape (n,).
        details: what they carry, shape (n,).
    """

    places: I64
    entries: U64
    details: U64


def lists_of(parts: Sequence[Hits], keys: int) -> tuple[I64, U64, U64]:
    """Put what several sources hold of some keys together.

    Args:
        parts: the oldest source first.
        keys: how many were asked for.

    Returns:
        Offsets of the lists, shape (keys + 1,), their entries, oldest first, and what these postings carry.
    """
    if len(parts) == 1:
        return _lists_of(parts[0], keys)
    return _lists_of(Hits(*(np.concatenate(column) for column in zip(*parts, strict=True))), keys)


@kernel
def _lists_of(hits: Hits, keys: int) -> tuple[I64, U64, U64]:
    offsets = np.zeros(keys + 1, np.int64)
    for place in hits.places:
        offsets[place + 1] += 1
    for key in range(keys):
        offsets[key + 1] += offsets[key]
    entries, details = np.empty(offsets[keys], np.uint64), np.empty(offsets[keys], np.uint64)
    used = offsets[:-1].copy()
    for hit in range(len(hits.places)):
        place = used[hits.places[hit]]
        entries[place], details[place] = hits.entries[hit], hits.details[hit]
        used[hits.places[hit]] += 1
    return offsets, entries, details
