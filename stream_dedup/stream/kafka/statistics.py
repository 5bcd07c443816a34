"""What librdkafka's clients report about themselves, as metrics.

Knows the JSON of librdkafka's statistics (its STATISTICS.md); knows nothing of who the clients are.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson

from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.stream.kafka.clients import OnStatistics

_CONNECTED = "UP"
_MICROSECOND = 1e-6


@contextmanager
def client_statistics(metrics: Metrics, client: str) -> Iterator[OnStatistics]:
    """Yield what a client calls with its statistics; at the end only its totals are still shown.

    Args:
        metrics: the metrics to update.
        client: label of the client: consumer, producer or changelog.
    """
    try:
        yield ClientMeter(metrics, client)
    finally:
        _forget(metrics, client)


class ClientMeter:
    """Updates the metrics of one client: call it with its statistics. It never raises.

    Args:
        metrics: the metrics to update.
        client: label of the client.
    """

    def __init__(self, metrics: Metrics, client: str) -> None:
        self._metrics = metrics
        self._client = client
        self._counted: dict[str, int] = {}
        self._recurring_faults = RecurringFaults()

    def __call__(self, statistics: str) -> None:
        """Take the statistics, as JSON."""
        try:
            self._show(orjson.loads(statistics))
        except (LookupError, TypeError, ValueError) as error:  # another librdkafka's format is no reason to end
            kind = type(error).__name__
            self._recurring_faults.warning(
                "kafka_statistics_not_read", error=kind, client=self._client, detail=str(error)
            )

    def _show(self, statistics: Mapping[str, Any]) -> None:
        metrics, client, brokers = self._metrics, self._client, [*statistics["brokers"].values()]
        metrics.kafka_received_bytes.labels(client).inc(self._more("rx", statistics["rx_bytes"]))
        metrics.kafka_sent_bytes.labels(client).inc(self._more("tx", statistics["tx_bytes"]))
        timeouts = sum(broker["req_timeouts"] for broker in brokers)
        metrics.kafka_request_timeouts.labels(client).inc(self._more("timeouts", timeouts))
        errors = sum(broker["txerrs"] + broker["rxerrs"] for broker in brokers)
        metrics.kafka_transmission_errors.labels(client).inc(self._more("errors", errors))
        metrics.kafka_connected_brokers.labels(client).set(len(_connected(brokers)))
        self._show_round_trips([broker["rtt"] for broker in brokers if broker["rtt"]["cnt"]])
        if client == "producer":
            metrics.kafka_producer_queue_messages.set(statistics["msg_cnt"])
            metrics.kafka_producer_queue_bytes.set(statistics["msg_size"])
        elif client == "consumer":
            metrics.kafka_fetch_queue_messages.set(_fetched(statistics["topics"]))

    def _more(self, name: str, total: int) -> int:
        """Return by how much a total of the client has grown; a total shrinks when a broker is no longer listed."""
        before = self._counted.get(name, 0)
        self._counted[name] = total
        return max(0, total - before)

    def _show_round_trips(self, windows: Sequence[Mapping[str, int]]) -> None:
        gauge, client = self._metrics.kafka_round_trip_seconds, self._client
        if not windows:
            _forget_round_trips(self._metrics, client)
            return
        mean = sum(window["sum"] for window in windows) / sum(window["cnt"] for window in windows)
        gauge.labels(client, "mean").set(mean * _MICROSECOND)
        # Of several brokers, the slowest: quantiles cannot be added up.
        gauge.labels(client, "p99").set(max(window["p99"] for window in windows) * _MICROSECOND)


def _connected(brokers: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the numbers of the brokers that are connected."""
    # Bootstrap addresses have -1, and so do coordinators, which are listed a second time.
    return {broker["nodeid"] for broker in brokers if broker["state"] == _CONNECTED and broker["nodeid"] >= 0}


def _fetched(topics: Mapping[str, Any]) -> int:
    """Return how many messages wait to be read."""
    partitions = [partition for topic in topics.values() for partition in topic["partitions"].values()]
    # Each partition reports the length of the queue that all of them share.
    return max((partition["fetchq_cnt"] for partition in partitions), default=0)


def _forget(metrics: Metrics, client: str) -> None:
    """Show nothing of a client any more but its totals."""
    metrics.kafka_connected_brokers.remove(client)
    _forget_round_trips(metrics, client)
    if client == "producer":
        metrics.kafka_producer_queue_messages.set(0)
        metrics.kafka_producer_queue_bytes.set(0)
    elif client == "consumer":
        metrics.kafka_fetch_queue_messages.set(0)


def _forget_round_trips(metrics: Metrics, client: str) -> None:
    for stat in ("mean", "p99"):
        metrics.kafka_round_trip_seconds.remove(client, stat)
