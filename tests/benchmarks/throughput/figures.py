"""Computes figures from timings: the steady rate, medians of rounds, ratios and their goals, latencies.

Knows only arithmetic; knows nothing of Kafka or of what is printed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import F64

_START = 20  # the first twentieth of the outputs is left out: the start
_LOOKED_THROUGH = 4_096  # outputs, two full batches: enough to contain a pause between batches


def steady_rate(stamps_ms: Sequence[int]) -> float:
    """Return outputs per second, without the start.

    Outputs come in batches. The clock starts with the last output of a batch and stops with the last of all, so that
    the work on every counted output lies in between. It starts at the longest pause among the outputs that follow the
    first twentieth.

    Args:
        stamps_ms: when each was written, milliseconds, in any order; at least two different times.

    Raises:
        ValueError: there are fewer, or all are equal.
    """
    stamps = np.sort(np.asarray(stamps_ms, np.int64))
    if len(stamps) < 2 or stamps[0] == stamps[-1]:
        raise ValueError(f"{len(stamps)} outputs with the same timestamp have no rate")
    start = len(stamps) // _START
    looked_through = stamps[start : min(start + _LOOKED_THROUGH, max(start + 2, len(stamps) // 2))]
    first = start + int(np.argmax(np.diff(looked_through)))
    return float(1000 * (len(stamps) - 1 - first) / (stamps[-1] - stamps[first]))


@dataclass(frozen=True, slots=True)
class Ratio:
    """A comparison of two rates.

    Attributes:
        of: name of what should be fast.
        to: name of what it is compared with.
        goal: smallest acceptable ratio; None if there is no goal.
    """

    of: str
    to: str
    goal: float | None = None

    def value(self, rates: Mapping[str, Sequence[float]]) -> float | None:
        """Return the ratio of the medians; None if one of them was not timed.

        Args:
            rates: rates by name, one per round.
        """
        of, to = rates.get(self.of), rates.get(self.to)
        return median(of) / median(to) if of and to else None


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency from producing an article until a read_committed reader has its decision.

    Attributes:
        rate: articles produced per second.
        articles: number of articles counted.
        median_ms: median latency, milliseconds.
        p99_ms: 99th percentile, milliseconds.
    """

    rate: float
    articles: int
    median_ms: float
    p99_ms: float


class Latencies(NamedTuple):
    """The latency under a constant load.

    Attributes:
        settling: of its first seconds, while the broker still takes more CPU for it.
        settled: from then on.
    """

    settling: Latency
    settled: Latency


def latency_of(rate: float, latencies_ms: Sequence[float] | F64) -> Latency:
    """Return the percentiles of latencies, interpolated linearly between neighbours."""
    middle, late = np.percentile(latencies_ms, [50, 99]).tolist()
    return Latency(rate, len(latencies_ms), middle, late)
