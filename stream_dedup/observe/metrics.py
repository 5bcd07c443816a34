"""The metrics of the catalogue, created for a process.

Knows how they are registered and when they are refreshed; knows nothing of where values come from.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from stream_dedup.observe.catalogue import Detection, Errors, Index, KafkaClient, Lag, Process, Rate, RocksDb
from stream_dedup.observe.metric import metrics_of


class Metrics(Rate, Lag, Errors, Detection, Index, RocksDb, KafkaClient, Process):
    """The metrics of the catalogue, and the registry that `/metrics` shows. Create one per process."""

    def __init__(self) -> None:
        # Prometheus 2 has no use for the creation time of a series, which would double the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        for theme in THEMES:
            for name, metric in metrics_of(theme):
                setattr(self, name, metric.make(name, self.registry))
        self._refreshers: list[Callable[[], None]] = []
        self._refreshing = threading.Lock()

    def show_role(self, role: str) -> None:
        """Show a role: restoring, standby or active."""
        (roles,) = Process.role.labels
        for known in roles.values:
            self.role.labels(known).set(known == role)

    def show_topic(self, topic: str) -> None:
        """Show a topic's article counters from 0 on, so that Prometheus sees their first increase after a takeover."""
        _, *known = Rate.articles.labels
        for values in product(*(label.values for label in known)):
            self.articles.labels(topic, *values)

    @contextmanager
    def refreshed_by(self, refresh: Callable[[], None]) -> Iterator[None]:
        """Call a function before each scrape, in the scrape's thread, while the context is active.

        No call is still running once the context is left.
        """
        with self._refreshing:
            self._refreshers.append(refresh)
        try:
            yield
        finally:
            with self._refreshing:
                self._refreshers.remove(refresh)

    def refresh(self) -> None:
        """Refresh the metrics that are not updated as things happen. May be called from any thread."""
        with self._refreshing:
            for refresh in self._refreshers:
                refresh()


THEMES = Metrics.__bases__
