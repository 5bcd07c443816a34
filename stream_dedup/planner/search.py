"""Finds the cheapest settings that reach a recall within limits.

Knows which settings are tried; knows nothing of how recall and costs are computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from stream_dedup.picklable import PicklableError
from stream_dedup.planner.costs import Space, space_of
from stream_dedup.planner.expect import Expectation, Model, Shape, expectation_of, recalls
from stream_dedup.planner.found import FARTHEST

_TABLES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
_PREFIX_BITS = range(16, 29)  # with shorter keys, each would lead to a noticeable share of all articles
_PROBES = sorted({*(2**power for power in range(13)), *(3 * 2**power for power in range(11))})


@dataclass(frozen=True, slots=True)
class Limits:
    """The space that a plan may take.

    Attributes:
        memory: memory of the process, bytes.
        disk: disk space of the state, bytes.
    """

    memory: float = inf
    disk: float = inf


class UnreachableError(PicklableError, ValueError):
    """No settings, or none within the limits, reach the recall.

    Args:
        recall: the target recall.
        limits: limits of memory and disk.
        best: the expectation closest to the target; None if no settings stay within the limits.
        least: the least memory and disk that any settings take.
    """

    def __init__(self, recall: float, limits: Limits, best: Expectation | None, least: Limits) -> None:
        within, of = (" within the limits", "within them") if limits != Limits() else ("", "of all settings")
        if best:
            attained = f"the best {of} is {best.recall:.4f}"
        else:
            smallest = f"{_gigabytes(least.memory)} of memory and {_gigabytes(least.disk)} of disk"
            attained = f"no settings at all stay within them: the smallest take {smallest}"
        super().__init__(f"a recall of {recall:g} cannot be reached{within}: {attained}")
        self.best = best


def cheapest(recall: float, model: Model, limits: Limits) -> Expectation:
    """Return what to expect of the cheapest settings that reach a recall.

    Args:
        recall: target recall of the SimHash tables.
        model: what the expectations depend on.
        limits: limits of memory and disk.

    Raises:
        UnreachableError: no settings, or none within the limits, reach it.
    """
    best: Expectation | None = None
    nearest: tuple[float, Shape] | None = None
    for tables, prefix_bits in _within(model, limits):
        for probes in _PROBES:
            attained = recalls(tables, prefix_bits, probes, model)
            if attained[-1] < recall:
                if nearest is None or attained[-1] > nearest[0]:
                    nearest = float(attained[-1]), Shape(tables, prefix_bits, probes, FARTHEST)
                continue
            shape = Shape(tables, prefix_bits, probes, int(np.argmax(attained >= recall)))
            one = expectation_of(shape, model)
            if best is None or one.cost < best.cost:
                best = one
    if best is None:
        raise UnreachableError(recall, limits, expectation_of(nearest[1], model) if nearest else None, _least(model))
    return best


def _within(model: Model, limits: Limits) -> Iterator[tuple[int, int]]:
    """Yield the numbers of tables and prefix bits that stay within the limits."""
    for tables, prefix_bits, space in _spaces(model):
        if space.memory <= limits.memory and space.disk <= limits.disk:
            yield tables, prefix_bits


def _least(model: Model) -> Limits:
    """Return the least memory and disk that any settings take."""
    spaces = [space for _, _, space in _spaces(model)]
    return Limits(min(space.memory for space in spaces), min(space.disk for space in spaces))


def _spaces(model: Model) -> Iterator[tuple[int, int, Space]]:
    """Yield all numbers of tables and prefix bits that are tried, with the space that they take."""
    for prefix_bits in _PREFIX_BITS:
        for tables in _TABLES:
            yield tables, prefix_bits, space_of(Shape(tables, prefix_bits, 1, 0).plan, model.traffic, model.settings)


def _gigabytes(size: float) -> str:
    """Return a size, rounded up, so that what is shown is enough."""
    return f"{ceil(size / 1e7) / 100:,g} GB"
