"""What the service reports about itself on /metrics.

Knows the exposition format and how a quantile is read from a histogram; knows nothing of the demonstration.
"""

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from prometheus_client.parser import text_string_to_metric_families


class Measures:
    """One scrape.

    Args:
        text: the answer of /metrics.
    """

    def __init__(self, text: str) -> None:
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples[sample.name].append((sample.labels, sample.value))

    def total(self, name: str) -> float:
        """Return the sum over all labels."""
        return sum(value for _, value in self._samples[name])

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return the sums by the values of one label, the largest first; zeros are left out."""
        sums: dict[str, float] = defaultdict(float)
        for labels, value in self._samples[name]:
            sums[labels[label]] += value
        return {key: value for key, value in sorted(sums.items(), key=lambda item: -item[1]) if value}

    def quantile(self, histogram: str, share: float) -> float:
        """Estimate a quantile as Prometheus' `histogram_quantile` does: evenly within a bucket.

        Args:
            histogram: name of the metric.
            share: 0 to 1.

        Returns:
            The estimate; the last bound if it lies beyond, nan if nothing was observed.
        """
        buckets = sorted((float(labels["le"]), count) for labels, count in self._samples[f"{histogram}_bucket"])
        rank = share * buckets[-1][1] if buckets else 0.0
        below, lower = 0.0, 0.0
        for upper, count in buckets:
            if count >= rank > 0:
                return lower if upper == inf else lower + (upper - lower) * (rank - below) / (count - below)
            below, lower = count, upper
        return float("nan")
