"""What /metrics shows, parsed by Prometheus' client library.

Knows samples and labels; knows nothing of the service that shows them.
"""

from prometheus_client.parser import text_string_to_metric_families

_PREFIX = "stream_dedup_"


class Metrics:
    """The samples of a scrape, as parsed by Prometheus' client library."""

    def __init__(self, text: str) -> None:
        self.samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the sums of a metric by some of its labels, without zeros."""
        sums: dict[tuple[str, ...], float] = {}
        for sample in self.samples:
            if sample.name == _PREFIX + name and sample.value:
                key = tuple(sample.labels[label] for label in labels)
                sums[key] = sums.get(key, 0.0) + sample.value
        return sums

    def series(self, name: str) -> list[float]:
        """Return the values of all series of a metric."""
        return [sample.value for sample in self.samples if sample.name == _PREFIX + name]
