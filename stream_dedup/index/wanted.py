"""Which postings need their entries: those that may be of a match of some article that looks them up.

Knows counts of shared landmarks and distances of fingerprints; knows nothing of where postings come from.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.hashing import EMPTY, I64, U64, find_slot, table_size
from stream_dedup.index.sharing import FIRST_SHARED, Sharing, least_shared_of_class

_ONE = np.uint64(1)  # added to an entry's number, of which `EMPTY` is one


class LookedUp(NamedTuple):
    """Which posting lists of one family n articles look up.

    Attributes:
        offsets: article i looks up keys[offsets[i]:offsets[i + 1]], shape (n + 1,).
        keys: numbers of keys.
        list_offsets: postings of key k at list_offsets[k]:list_offsets[k + 1].
    """

    offsets: I64
    keys: I64
    list_offsets: I64


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
    for i in range(len(sizes)):
        keys = looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]
        numbers, shared = _shared(keys, looked_up.list_offsets, entries)
        for key in keys:
            for posting in range(looked_up.list_offsets[key], looked_up.list_offsets[key + 1]):
                count = shared[find_slot(numbers, entries[posting] + _ONE)]
                if count >= least_shared_of_class(sizes[i], classes[posting], sharing):
                    wanted[posting] = True
    return wanted


@kernel
def sharing_many(looked_up: LookedUp, entries: U64, classes: U64) -> NDArray[np.bool_]:
    """Return for each posting whether an article shares at least `FIRST_SHARED` of its first landmarks with its entry.

    Args:
        looked_up: lists of the first landmarks.
        entries: of the postings, shape (m,).
        classes: of the entries' sizes, which do not matter, shape (m,).
    """
    wanted = np.zeros(len(classes), np.bool_)
    for i in range(len(looked_up.offsets) - 1):
        keys = looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]
        numbers, shared = _shared(keys, looked_up.list_offsets, entries)
        for key in keys:
            for posting in range(looked_up.list_offsets[key], looked_up.list_offsets[key + 1]):
                if shared[find_slot(numbers, entries[posting] + _ONE)] >= FIRST_SHARED:
                    wanted[posting] = True
    return wanted


@kernel
def _shared(keys: I64, list_offsets: I64, entries: U64) -> tuple[U64, I64]:
    """Return in how many of some lists each entry is: an open-addressing table of their numbers plus 1, and counts."""
    postings = 0
    for key in keys:
        postings += list_offsets[key + 1] - list_offsets[key]
    numbers = np.full(table_size(postings), EMPTY)
    shared = np.zeros(len(numbers), np.int64)
    for key in keys:
        for posting in range(list_offsets[key], list_offsets[key + 1]):
            slot = find_slot(numbers, entries[posting] + _ONE)
            numbers[slot] = entries[posting] + _ONE
            shared[slot] += 1
    return numbers, shared


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
            for posting in range(looked_up.list_offsets[key], looked_up.list_offsets[key + 1]):
                if popcount(fingerprints[i] ^ stored[posting]) <= max_distance:
                    wanted[posting] = True
    return wanted
