"""For which postings the entries must be read: those that may match some article that looks them up.

Knows counts of shared landmarks and distances of fingerprints; knows nothing of where postings come from.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.compiled.hashing import number_slot, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import prefetch
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.index.lookup.sharing import FIRST_SHARED, Sharing, least_shared_nearby, least_shared_of_class

_CLASSES = 256  # of size


class LookedUp(NamedTuple):
    """Which posting lists of one kind n articles look up.

    Attributes:
        offsets: article i looks up keys[offsets[i]:offsets[i + 1]], shape (n + 1,).
        keys: numbers of keys.
        begins: postings of key k are at begins[k]:stops[k].
        stops: see `begins`.
    """

    offsets: I64
    keys: I64
    begins: I64
    stops: I64


class Marks(NamedTuple):
    """The landmarks of n articles, all of which have been looked up.

    Attributes:
        looked_up: their lists.
        entries: entry of each posting in these, shape (m,).
        ahead: how many articles of the batch may come before each list, shape (keys,).
        cap: postings visible under a landmark.
        sizes: number of n-grams of each article, shape (n,).
        sharing: determines how many landmarks copies share.
    """

    looked_up: LookedUp
    entries: U64
    ahead: I64
    cap: int
    sizes: I64
    sharing: Sharing


class _Shared(NamedTuple):
    """How many of the lists that an article looks up contain each entry; reused for one article after another.

    Attributes:
        numbers: an open-addressing table of entry numbers, large enough for the article with the most postings.
        counts: count in each slot, 0 where it is free.
        postings: postings in all lists of the article, shape (most postings of an article,).
        slots: slot of each posting's entry, shape of `postings`.
    """

    numbers: U64
    counts: I64
    postings: I64
    slots: I64


@kernel
def sharing_enough(looked_up: LookedUp, sizes: I64, entries: U64, classes: U64, sharing: Sharing) -> Bool:
    """Return for each posting whether some article shares at least as many landmarks with its entry as a copy would.

    Args:
        looked_up: lists of landmarks.
        sizes: number of n-grams of each article, shape (n,).
        entries: entry of each posting, shape (m,).
        classes: size class of each entry, shape (m,).
        sharing: determines how many landmarks those are.
    """
    wanted = np.zeros(len(entries), np.bool_)
    least, shared = np.empty(_CLASSES, np.int64), _room_for(looked_up)
    for i in range(len(sizes)):
        _ask_for(i + 1, looked_up, entries, classes)
        least[:] = 0
        count = _count(i, looked_up, entries, shared)
        for place in range(count):
            posting = shared.postings[place]
            known = int(classes[posting])
            if least[known] == 0:
                least[known] = least_shared_of_class(sizes[i], known, sharing)
            if shared.counts[shared.slots[place]] >= least[known]:
                wanted[posting] = True
        _clear(shared, count)
    return wanted


@kernel
def sharing_first_landmarks(looked_up: LookedUp, entries: U64) -> Bool:
    """Return for each posting whether some article shares at least `FIRST_SHARED` first landmarks with its entry.

    Args:
        looked_up: lists of the first landmarks.
        entries: entry of each posting, shape (m,).
    """
    wanted = np.zeros(len(entries), np.bool_)
    shared = _room_for(looked_up)
    for i in range(len(looked_up.offsets) - 1):
        count = _count(i, looked_up, entries, shared)
        for place in range(count):
            if shared.counts[shared.slots[place]] >= FIRST_SHARED:
                wanted[shared.postings[place]] = True
        _clear(shared, count)
    return wanted


@kernel
def _room_for(looked_up: LookedUp) -> _Shared:
    """Return room for the postings of any one article."""
    most = _most_postings(looked_up)
    size = table_size(most)
    return _Shared(
        np.empty(size, np.uint64), np.zeros(size, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    )


@kernel
def _most_postings(looked_up: LookedUp) -> int:
    """Return how many postings are in the lists that an article looks up, at most."""
    most = 0
    for i in range(len(looked_up.offsets) - 1):
        most = max(most, _postings(i, looked_up))
    return most


@kernel
def _ask_for(i: int, looked_up: LookedUp, entries: U64, classes: U64) -> None:
    """Prefetch the beginnings of the lists that article i looks up, if there is one: most lists are short."""
    if i + 1 < len(looked_up.offsets):
        for key in looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]:
            prefetch(entries, looked_up.begins[key])
            prefetch(classes, looked_up.begins[key])


@kernel
def _postings(i: int, looked_up: LookedUp) -> int:
    """Return how many postings are in the lists that article i looks up."""
    total = 0
    for key in looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]:
        total += looked_up.stops[key] - looked_up.begins[key]
    return total


@kernel
def _count(i: int, looked_up: LookedUp, entries: U64, shared: _Shared) -> int:
    """Count how many of the lists that article i looks up contain each entry; return how many postings they have."""
    # Use only as much of the table as is needed, so that it stays in the processor's cache.
    last, place = table_size(_postings(i, looked_up)) - 1, 0
    for key in looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]:
        for posting in range(looked_up.begins[key], looked_up.stops[key]):
            slot = number_slot(entries[posting], last)
            while shared.counts[slot] > 0 and shared.numbers[slot] != entries[posting]:
                slot = (slot + 1) & last
            shared.numbers[slot] = entries[posting]
            shared.counts[slot] += 1
            shared.postings[place], shared.slots[place] = posting, slot
            place += 1
    return place


@kernel
def _clear(shared: _Shared, postings: int) -> None:
    for place in range(postings):
        shared.counts[shared.slots[place]] = 0


@kernel
def near_enough(
    looked_up: LookedUp, fingerprints: U64, entries: U64, stored: U64, max_distance: int, marks: Marks
) -> Bool:
    """Return for each posting whether its entry is near some article, which may also share landmarks with it.

    Args:
        looked_up: lists of the tables.
        fingerprints: fingerprints of the articles, shape (n,).
        entries: entry of each posting, shape (m,).
        stored: fingerprint of each entry, shape (m,).
        max_distance: largest Hamming distance, in bits.
        marks: landmarks of the articles.
    """
    wanted = np.zeros(len(stored), np.bool_)
    near = np.empty(_most_postings(looked_up), np.int64)
    sharing = np.empty(_most_postings(marks.looked_up), np.uint64)
    for i in range(len(fingerprints)):
        count = _near(i, looked_up, fingerprints, stored, max_distance, near)
        if count:
            least, listed = _least_to_find(i, marks), _listed(i, marks, sharing)
            for posting in near[:count]:
                wanted[posting] |= _occurrences(sharing[:listed], entries[posting]) >= least
    return wanted


@kernel
def _near(i: int, looked_up: LookedUp, fingerprints: U64, stored: U64, max_distance: int, near: I64) -> int:
    """List the postings in the lists that article i looks up whose entries are near it; return how many there are."""
    count = 0
    for key in looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]:
        for posting in range(looked_up.begins[key], looked_up.stops[key]):
            near[count] = posting
            count += popcount(fingerprints[i] ^ stored[posting]) <= max_distance
    return count


@kernel
def _least_to_find(i: int, marks: Marks) -> int:
    """Return in how many landmark lists of article i an entry must be found to be worth reading: 0 if it has none.

    It is the number that copies of its size share, but each list that is full counts as shared: it may hide the entry.
    """
    lists = marks.looked_up
    keys = lists.keys[lists.offsets[i] : lists.offsets[i + 1]]
    least = least_shared_nearby(marks.sizes[i], marks.sharing) if len(keys) else 0
    for key in keys:
        least -= lists.stops[key] - lists.begins[key] + marks.ahead[key] >= marks.cap
    return least


@kernel
def _listed(i: int, marks: Marks, sharing: U64) -> int:
    """List the entries that share landmarks with article i, once for each of these; return how many that makes."""
    lists, count = marks.looked_up, 0
    for key in lists.keys[lists.offsets[i] : lists.offsets[i + 1]]:
        for posting in range(lists.begins[key], lists.stops[key]):
            sharing[count] = marks.entries[posting]
            count += 1
    return count


@kernel
def _occurrences(numbers: U64, number: np.uint64) -> int:
    count = 0
    for other in numbers:
        # Without a branch, so that several are compared at once.
        count += other == number
    return count
