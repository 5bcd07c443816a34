"""What a measure is: bags in, blocks of similarities out.

Knows the contract; knows no measure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stream_dedup.arrays import F32
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.feature import Kind


@dataclass(frozen=True, slots=True)
class Measure:
    """A similarity of two bags, from 0 to 1; it is 0 if either bag is empty.

    Attributes:
        name: as in `--similarities` and in reports.
        family: what a report groups by; see `Algorithm`.
        source: paper and equation.
        threshold: similarity at or above which two texts count as copies.
        takes: the kinds of bags that it accepts.
        prepare: turns n bags into what `compare` takes; all of it can be pickled.
        compare: returns the similarities of some texts to all, shape (rows, n).
    """

    name: str
    family: str
    source: str
    threshold: float
    takes: Kind
    prepare: Callable[[Bags], Any]
    compare: Callable[[Any, slice], F32]
