"""Which runs of a generation to merge, so that few are left and each entry is merged few times.

Knows how many entries runs have; knows nothing of files, or of when merges are made.

This is the k-binomial transform (Bentley and Saxe 1980, "Decomposable searching problems I"): after n runs of one
unit, the sizes of those that are left are the terms of n = C(c4, 4) + C(c3, 3) + C(c2, 2) + C(c1, 1) with
c4 > c3 > c2 > c1 >= 0. Each time before all are merged into one, no other schedule that leaves so few has merged less.
In a generation of three million entries, each is merged 4.5 times. Merging four runs of one size at a time, as most
stores do, would merge each 2.9 times, but leave 5.5 runs on average and up to 11, instead of 3.4 and 4.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import comb

MOST_RUNS = 4  # of a generation that is being written to, besides full ones and those that wait to be merged
LARGEST_ENTRIES = 6 << 20  # of a run, which keeps merges short: room for C(11, 4) units of 1 << 14, each frozen late


def sizes_after(units: int, most: int = MOST_RUNS) -> list[int]:
    """Return how many units each run has once this many were frozen and all is merged, the oldest and largest first."""
    if units == 0:
        return []
    largest = comb(_rank(units, most), most)
    return [largest, *sizes_after(units - largest, most - 1)]


def due_of_open(sizes: Sequence[int], unit: int) -> slice:
    """Return which runs of the generation that is being written to are to be merged; an empty slice if none are.

    Args:
        sizes: entries of its runs, the oldest first.
        unit: entries of a run that was just frozen, or slightly fewer.
    """
    full = 0
    while full < len(sizes) - 1 and sizes[full] + sizes[full + 1] > LARGEST_ENTRIES:
        full += 1
    return _fitting(sizes, full + _first_due([size / unit for size in sizes[full:]]))


def due_of_closed(sizes: Sequence[int]) -> slice:
    """Return which runs of a completed generation are to be merged; an empty slice if none are."""
    return _fitting(sizes, 0)


def _fitting(sizes: Sequence[int], least: int) -> slice:
    """Return the first runs from `least` on, at least two, that fit in one; an empty slice if there are none."""
    for first in range(least, len(sizes)):
        fitting = sum(size <= LARGEST_ENTRIES for size in accumulate(sizes[first:]))
        if fitting > 1:
            return slice(first, first + fitting)
    return slice(0)


def _first_due(units: Sequence[float]) -> int:
    """Return the first run that is to be merged with all after it; `len(units)` if none are."""
    if len(units) <= MOST_RUNS:
        return len(units)
    first = MOST_RUNS - 1
    while first > 0 and _rank(sum(units[first:]), MOST_RUNS - first) >= _rank(units[first - 1], MOST_RUNS - first + 1):
        first -= 1
    return first


def _rank(units: float, chosen: int) -> int:
    """Return the largest c with C(c, chosen) <= `units`."""
    rank = chosen - 1
    while comb(rank + 1, chosen) <= units:
        rank += 1
    return rank
