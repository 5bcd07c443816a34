"""A histogram that observes many values at once.

Knows Prometheus' client, whose own observes one at a time; knows no metric.
"""

import numpy as np
import prometheus_client

from stream_dedup.arrays import F64


class Histogram(prometheus_client.Histogram):
    """Prometheus' histogram, also for all values of a commit at once: one by one they would take 3 ms per commit."""

    def observe_all(self, values: F64) -> None:
        """Observe several values; see `observe`.

        Args:
            values: in the metric's unit, shape (n,).
        """
        places = np.searchsorted(self._upper_bounds, values)
        for place, count in enumerate(np.bincount(places, minlength=len(self._buckets)).tolist()):
            if count:
                self._buckets[place].inc(count)
        self._sum.inc(float(values.sum()))
