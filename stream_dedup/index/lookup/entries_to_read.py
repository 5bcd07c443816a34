"""Which entries must be read, and which articles looked up in the tables: whatever may bring up a match.

Knows counts of shared landmarks and distances of fingerprints; knows nothing of where postings come from.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.compiled.hashing import number_slot, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import prefetch
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.index.lookup.sharing import (
    FIRST_SHARED,
    Sharing,
    least_shared_nearby,
    least_shared_of_class,
    most_shared_of_class,
)

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


class MarkLists(NamedTuple):
    """The posting lists of landmarks that n articles look up.

    Attributes:
        looked_up: which ones.
        entries: entry of each posting, shape (m,).
        classes: size class of each of these entries, shape (m,).
    """

    looked_up: LookedUp
    entries: U64
    classes: U64


class Marks(NamedTuple):
    """The landmarks of n articles, all of which have been looked up.

    Attributes:
        stored: their lists in the index.
        batch: which of the n articles are listed under the same keys, that article included; numbered from 0.
        common: which keys several articles of the batch have, shape (keys,).
        full: which lists may be full when an article is judged, articles of the batch coming first, shape (keys,).
        sizes: number of n-grams of each article, shape (n,).
        sharing: determines how many landmarks copies share.
    """

    stored: MarkLists
    batch: MarkLists
    common: Bool
    full: Bool
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
def sharing_enough(marks: Marks) -> tuple[Bool, Bool]:
    """Compare how many landmarks articles share with entries, and with each other, with how many copies would share.

    What the tables show counts only if it is found in some landmark lists as well, see `_least_to_find`. Nearly always,
    whatever is found in so many is in enough of them to be a candidate without the tables.

    Args:
        marks: landmarks of the articles.

    Returns:
        For each posting in the index, whether some article shares at least as many landmarks with its entry as a copy
        would, shape (m,); for each article, whether the tables may show what its landmarks do not, shape (n,).
    """
    wanted, left_open = np.zeros(len(marks.stored.entries), np.bool_), np.empty(len(marks.sizes), np.bool_)
    of_stored, of_batch = _room_for(marks.stored.looked_up), _room_for(marks.batch.looked_up)
    enough = np.empty(_CLASSES, np.int64)
    for i in range(len(marks.sizes)):
        _ask_for(i + 1, marks.stored)
        own, size = _keys_of(i, marks.stored.looked_up), marks.sizes[i]
        full = _how_many(own, marks.full)
        least = _least_to_find(own, size, full, marks.sharing)
        count = _count(i, marks.stored, of_stored)
        _mark_sharing_enough(count, size, marks.stored.classes, of_stored, marks.sharing, enough, wanted)
        left_open[i] = least <= 0 or _is_any_between(
            count, size, marks.stored.classes, of_stored, marks.sharing, least, full
        )
        _clear(of_stored, count)
        if not left_open[i] and _how_many(own, marks.common) >= least:
            count = _count(i, marks.batch, of_batch)
            left_open[i] = _is_any_between(count, size, marks.batch.classes, of_batch, marks.sharing, least, full)
            _clear(of_batch, count)
    return wanted, left_open


@kernel
def _keys_of(i: int, looked_up: LookedUp) -> I64:
    """Return the numbers of the keys that article i looks up."""
    return looked_up.keys[looked_up.offsets[i] : looked_up.offsets[i + 1]]


@kernel
def _how_many(own: I64, marked: Bool) -> int:
    """Return how many of an article's keys are marked."""
    count = 0
    for key in own:
        count += marked[key]
    return count


@kernel
def _mark_sharing_enough(
    count: int, size: int, classes: U64, shared: _Shared, sharing: Sharing, enough: I64, wanted: Bool
) -> None:
    """Mark the postings whose entries share enough landmarks with an article; `enough` is reused."""
    enough[:] = 0
    for place in range(count):
        posting = shared.postings[place]
        known = int(classes[posting])
        if enough[known] == 0:
            enough[known] = least_shared_of_class(size, known, sharing)
        if shared.counts[shared.slots[place]] >= enough[known]:
            wanted[posting] = True


@kernel
def _is_any_between(
    count: int, size: int, classes: U64, shared: _Shared, sharing: Sharing, least: int, full: int
) -> bool:
    """Tell whether an entry is in as many lists as the tables require, but maybe in too few without them.

    If later articles hide it in the lists that may be full, it is in fewer when the article is judged.
    """
    for place in range(count):
        common = shared.counts[shared.slots[place]]
        if common >= least:
            known = int(classes[shared.postings[place]])
            if common - full < most_shared_of_class(size, known, sharing):
                return True
    return False


@kernel
def sharing_first_landmarks(lists: MarkLists) -> Bool:
    """Return for each posting whether some article shares at least `FIRST_SHARED` first landmarks with its entry.

    Args:
        lists: lists of the first landmarks.
    """
    wanted = np.zeros(len(lists.entries), np.bool_)
    shared = _room_for(lists.looked_up)
    for i in range(len(lists.looked_up.offsets) - 1):
        count = _count(i, lists, shared)
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
def _ask_for(i: int, lists: MarkLists) -> None:
    """Prefetch the beginnings of the lists that article i looks up, if there is one: most lists are short."""
    looked_up = lists.looked_up
    if i + 1 < len(looked_up.offsets):
        for key in _keys_of(i, looked_up):
            prefetch(lists.entries, looked_up.begins[key])
            prefetch(lists.classes, looked_up.begins[key])


@kernel
def _postings(i: int, looked_up: LookedUp) -> int:
    """Return how many postings are in the lists that article i looks up."""
    total = 0
    for key in _keys_of(i, looked_up):
        total += looked_up.stops[key] - looked_up.begins[key]
    return total


@kernel
def _count(i: int, lists: MarkLists, shared: _Shared) -> int:
    """Count how many of the lists that article i looks up contain each entry; return how many postings they have."""
    looked_up = lists.looked_up
    # Use only as much of the table as is needed, so that it stays in the processor's cache.
    last, place = table_size(_postings(i, looked_up)) - 1, 0
    for key in _keys_of(i, looked_up):
        for posting in range(looked_up.begins[key], looked_up.stops[key]):
            entry = lists.entries[posting]
            slot = number_slot(entry, last)
            while shared.counts[slot] > 0 and shared.numbers[slot] != entry:
                slot = (slot + 1) & last
            shared.numbers[slot] = entry
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
    sharing = np.empty(_most_postings(marks.stored.looked_up), np.uint64)
    for i in range(len(fingerprints)):
        count = _near(i, looked_up, fingerprints, stored, max_distance, near)
        if count:
            own = _keys_of(i, marks.stored.looked_up)
            least = _least_to_find(own, marks.sizes[i], _how_many(own, marks.full), marks.sharing)
            listed = _listed(i, marks, sharing)
            for posting in near[:count]:
                wanted[posting] |= _occurrences(sharing[:listed], entries[posting]) >= least
    return wanted


@kernel
def _near(i: int, looked_up: LookedUp, fingerprints: U64, stored: U64, max_distance: int, near: I64) -> int:
    """List the postings in the lists that article i looks up whose entries are near it; return how many there are."""
    count = 0
    for key in _keys_of(i, looked_up):
        for posting in range(looked_up.begins[key], looked_up.stops[key]):
            near[count] = posting
            count += popcount(fingerprints[i] ^ stored[posting]) <= max_distance
    return count


@kernel
def _least_to_find(own: I64, size: int, full: int, sharing: Sharing) -> int:
    """Return in how many landmark lists of an article an entry must be found to be worth reading: 0 if it has none.

    It is the number that copies of its size share, but each list that is full counts as shared: it may hide the entry.
    """
    return least_shared_nearby(size, sharing) - full if len(own) else 0


@kernel
def _listed(i: int, marks: Marks, sharing: U64) -> int:
    """List the entries that share landmarks with article i, once for each of these; return how many that makes."""
    lists, count = marks.stored.looked_up, 0
    for key in _keys_of(i, lists):
        for posting in range(lists.begins[key], lists.stops[key]):
            sharing[count] = marks.stored.entries[posting]
            count += 1
    return count


@kernel
def _occurrences(numbers: U64, number: np.uint64) -> int:
    count = 0
    for other in numbers:
        # Without a branch, so that several are compared at once.
        count += other == number
    return count
