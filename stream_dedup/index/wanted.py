"""Which postings need their entries: those that may be of a match of some article that looks them up.

Knows counts of shared landmarks and distances of fingerprints; knows nothing of where postings come from.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.hashing import EMPTY, I64, U64, find_slot, mix64, table_size
from stream_dedup.index.sharing import FIRST_SHARED, Sharing, least_shared_of_class

_CLASSES = 256  # of sizes
_ONE = np.uint64(1)  # added to an entry's number: what is hashed is then never `EMPTY`


class LookedUp(NamedTuple):
    """Which posting lists of one family n articles look up.

    Attributes:
        offsets: article i looks up keys[offsets[i]:offsets[i + 1]], shape (n + 1,).
        keys: numbers of keys.
        begins: postings of key k at begins[k]:stops[k].
        stops: see `begins`.
    """

    offsets: I64
    keys: I64
    begins: I64
    stops: I64


class _Shared(NamedTuple):
    """The postings of all lists that an article looks up, and in how many of these their entries are.

    Attributes:
        postings: their places, shape (p,).
        slots: of the entry of each, shape (p,).
        counts: by slots.
    """

    postings: I64
    slots: I64
    counts: I64


@kernel
def sharing_enough(looked_up: LookedUp, sizes: I64, entries: U64, classes: U64, sharing: Sharing) -> NDArray[np.bool_]:
    """Return for each posting whether an article shares as many landmarks with its entry as a copy would at least.

    Args:
        looked_up: lists of landmarks.
        sizes: n-grams of the articles, shape (n,).
        entries: of the postings, shape (m,).
        classes: of the entries' sizes, shape (m,).
        sharing: tells how many they are.
    """
    wanted = np.zeros(len(entries), np.bool_)
    least = np.empty(_CLASSES, np.int64)
    for i in range(len(sizes)):
        shared = _shared(i, looked_up, entries)
        least[:] = 0
        for place in range(len(shared.postings)):
            posting = shared.postings[place]
            known = int(classes[posting])
            if least[known] == 0:
                least[known] = least_shared_of_class(sizes[i], known, sharing)
            if shared.counts[shared.slots[place]] >= least[known]:
                wanted[posting] = True
    return wanted


@kernel
def sharing_many(looked_up: LookedUp, entries: U64) -> NDArray[np.bool_]:
    """Return for each posting whether an article shares at least `FIRST_SHARED` of its first landmarks with its entry.

    Args:
        looked_up: lists of the first landmarks.
        entries: of the postings, shape (m,).
    """
    wanted = np.zeros(len(entries), np.bool_)
    for i in range(len(looked_up.offsets) - 1):
        shared = _shared(i, looked_up, entries)
        for place in range(len(shared.postings)):
            if shared.counts[shared.slots[place]] >= FIRST_SHARED:
                wanted[shared.postings[place]] = True
    return wanted


@kernel
def _shared(i: int, looked_up: LookedUp, entries: U64) -> _Shared:
    """Count in how many of the lists that article i looks up each entry is."""
    keys = looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]
    total = 0
    for key in keys:
        total += looked_up.stops[key] - looked_up.begins[key]
    numbers = np.full(table_size(total), EMPTY)
    shared = _Shared(np.empty(total, np.int64), np.empty(total, np.int64), np.zeros(len(numbers), np.int64))
    place = 0
    for key in keys:
        for posting in range(looked_up.begins[key], looked_up.stops[key]):
            hashed = mix64(entries[posting] + _ONE)
            slot = find_slot(numbers, hashed)
            numbers[slot] = hashed
            shared.counts[slot] += 1
            shared.postings[place], shared.slots[place] = posting, slot
            place += 1
    return shared


@kernel
def within_distance(looked_up: LookedUp, fingerprints: U64, stored: U64, max_distance: int) -> NDArray[np.bool_]:
    """Return for each posting whether its fingerprint is within a Hamming distance of that of an article.

    Args:
        looked_up: lists of the tables.
        fingerprints: of the articles, shape (n,).
        stored: those of the postings, shape (m,).
        max_distance: in bits.
    """
    wanted = np.zeros(len(stored), np.bool_)
    for i in range(len(fingerprints)):
        for key in looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]:
            for posting in range(looked_up.begins[key], looked_up.stops[key]):
                if popcount(fingerprints[i] ^ stored[posting]) <= max_distance:
                    wanted[posting] = True
    return wanted
