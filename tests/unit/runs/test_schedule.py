"""Runs are merged as in the k-binomial transform, and no schedule that leaves so few merges less."""

from itertools import pairwise
from math import comb

import numpy as np
import pytest

from stream_dedup.index.runs.schedule import LARGEST_ENTRIES, MOST_RUNS, due_of_closed, due_of_open, sizes_after

_UNIT = 1 << 14


class Generation:
    """The runs of a generation, merged as soon as that is due.

    Attributes:
        sizes: entries of its runs.
        merged: entries of all runs that were merged.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.merged = 0

    def freeze(self, *sizes: int) -> None:
        """Add runs that were frozen while nothing was merged, then merge what is due."""
        self.sizes += sizes
        while some := self.sizes[due := due_of_open(self.sizes, _UNIT)]:
            self.merged += sum(some)
            self.sizes[due] = [sum(some)]


def _terms(number: int) -> list[int]:
    """Return the only terms C(c4, 4) > ... > C(c1, 1) that add up to a number, found by trying all."""
    [found] = [
        [comb(c, chosen) for c, chosen in zip(places, range(MOST_RUNS, 0, -1), strict=True)]
        for places in _descending(MOST_RUNS, 13)
        if sum(comb(c, chosen) for c, chosen in zip(places, range(MOST_RUNS, 0, -1), strict=True)) == number
    ]
    return [term for term in found if term]


def _descending(count: int, below: int) -> list[tuple[int, ...]]:
    """Return all descending sequences of so many numbers below a bound."""
    if count == 0:
        return [()]
    return [(first, *rest) for first in range(below) for rest in _descending(count - 1, first)]


def test_sizes_are_terms_of_the_binomial_transform() -> None:
    """After each of the first 384 runs, those that are left have the sizes of the number's terms."""
    generation = Generation()
    for number in range(1, LARGEST_ENTRIES // _UNIT + 1):
        generation.freeze(_UNIT)
        assert [size // _UNIT for size in generation.sizes] == sizes_after(number)
        if number % 10 == 0 or number < 40:
            assert sizes_after(number) == _terms(number)


def _least_merged(units: int) -> int:
    """Return how many units at least are merged so that at most four runs are left each time: by trying all ways."""
    costs: dict[tuple[int, ...], int] = {(): 0}
    for _ in range(units):
        cheapest: dict[tuple[int, ...], int] = {}
        for sizes, cost in costs.items():
            added = (*sizes, 1)
            for first in range(len(added)):
                last = sum(added[first:])
                left = (*added[:first], last)
                total = cost + last * (first < len(added) - 1)
                if len(left) <= MOST_RUNS:
                    cheapest[left] = min(total, cheapest.get(left, total))
        costs = cheapest
    return min(costs.values())


@pytest.mark.parametrize("chosen", [5, 6, 7])
def test_no_other_schedule_merges_less(chosen: int) -> None:
    """Just before all runs become one, as little has been merged as is possible with at most four left each time."""
    generation, units = Generation(), comb(chosen, MOST_RUNS) - 1
    for _ in range(units):
        generation.freeze(_UNIT)
    assert len(generation.sizes) == MOST_RUNS
    assert generation.merged == _least_merged(units) * _UNIT
    generation.freeze(_UNIT)
    assert generation.sizes == [(units + 1) * _UNIT]


@pytest.mark.parametrize("most_behind", [1, 12])
def test_few_are_left_of_runs_of_any_size(most_behind: int) -> None:
    """If each is frozen up to 6% late, and up to eleven wait for a merge, at most four are left besides full ones.

    These are no larger than allowed, and so many that on average each is at least three fifths of that.
    """
    chance, generation = np.random.default_rng(most_behind), Generation()
    frozen = 0
    while frozen < 4 * LARGEST_ENTRIES:
        count = int(chance.integers(1, most_behind, endpoint=True))
        sizes = chance.integers(_UNIT, _UNIT + _UNIT // 16, size=count).tolist()
        generation.freeze(*sizes)
        frozen += sum(sizes)
        full = sum(sum(pair) > LARGEST_ENTRIES for pair in pairwise(generation.sizes))
        assert len(generation.sizes) - full <= MOST_RUNS
        assert full <= frozen / (0.6 * LARGEST_ENTRIES)
        assert sum(generation.sizes) == frozen
        assert max(generation.sizes) <= LARGEST_ENTRIES
    assert generation.merged < 8 * frozen


def test_a_completed_generation_becomes_as_few_as_fit() -> None:
    """The first that fit in one are merged, at least two; then the next, until none do."""
    third = LARGEST_ENTRIES // 3
    assert due_of_closed([third, third, third, third, third]) == slice(0, 3)
    assert due_of_closed([3 * third, third, third]) == slice(1, 3)
    assert due_of_closed([3 * third, 2 * third]) == slice(0)
    assert due_of_closed([third]) == slice(0)
    assert due_of_closed([]) == slice(0)
