"""From what was timed to figures: the steady rate, the median of rounds, ratios beside their goals, latencies.

Knows arithmetic alone; knows nothing of Kafka or of what is printed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

_START = 20  # a twentieth of the outputs is left out: the start
_LOOKED_THROUGH = 4_096  # outputs, two full batches: a pause between batches is among them


def steady_rate(stamps_ms: Sequence[int]) -> float:
    """Return outputs a second, without the start.

    Outputs come in batches. The clock starts with the last output of a batch and stops with the last of all, so that
    the work on every output that is counted lies in between: where it starts is the longest pause among the
    outputs after the first twentieth.

    Args:
        stamps_ms: when each was written, milliseconds, in any order; two or more that differ.

    Raises:
        ValueError: they are fewer, or all of one moment.
    """
    stamps = np.sort(np.asarray(stamps_ms, np.int64))
    if len(stamps) < 2 or stamps[0] == stamps[-1]:
        raise ValueError(f"{len(stamps)} outputs of one moment have no rate")
    start = len(stamps) // _START
    looked_through = stamps[start : min(start + _LOOKED_THROUGH, max(start + 2, len(stamps) // 2))]
    first = start + int(np.argmax(np.diff(looked_through)))
    return float(1000 * (len(stamps) - 1 - first) / (stamps[-1] - stamps[first]))


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two rates that are compared.

    Attributes:
        of: the name of what is to be fast.
        to: the name of what it is compared with.
        goal: least ratio; None where there is none.
    """

    of: str
    to: str
    goal: float | None = None

    def value(self, rates: Mapping[str, Sequence[float]]) -> float | None:
        """Return the ratio of the medians; None where one of both was not timed.

        Args:
            rates: by name, one a round.
        """
        of, to = rates.get(self.of), rates.get(self.to)
        return median(of) / median(to) if of and to else None


@dataclass(frozen=True, slots=True)
class Latency:
    """From producing an article to a decision that a read_committed reader has.

    Attributes:
        rate: articles a second that were produced.
        articles: that were counted.
        median_ms: of the latencies, milliseconds.
        p99_ms: their 99th percentile.
    """

    rate: float
    articles: int
    median_ms: float
    p99_ms: float


def latency_of(rate: float, latencies_ms: Sequence[float]) -> Latency:
    """Return the percentiles of latencies, interpolated linearly between neighbours."""
    middle, late = np.percentile(latencies_ms, [50, 99]).tolist()
    return Latency(rate, len(latencies_ms), middle, late)
