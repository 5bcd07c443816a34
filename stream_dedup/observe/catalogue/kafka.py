"""Metrics of the Kafka clients.

Knows connections and queues; knows nothing of where values come from.
"""

from stream_dedup.observe.metric import Label, counter, gauge

_CLIENT = Label("client", ("consumer", "producer", "changelog"))


class KafkaClient:
    """Kafka clients: librdkafka's connection statistics, every `kafka.statistics.interval.ms` (10 s; 0: off)."""

    kafka_connected_brokers = gauge(
        "brokers",
        "Brokers to which a client is connected.",
        "0: the cluster is unreachable. Fewer than the cluster has is normal: a client connects only to those it "
        "needs.",
        _CLIENT,
    )
    kafka_round_trip_seconds = gauge(
        "seconds",
        "Time from a request to its response, since the last statistics; absent for a client that sent no request. A "
        "consumer with nothing to read waits at the broker for up to `fetch.wait.max.ms`, which is included.",
        "Grows for the producer: the broker is slow, distant or busy; `commit_seconds` grows with it.",
        _CLIENT,
        Label("stat", ("mean", "p99")),
    )
    kafka_request_timeouts = counter(
        "requests",
        "Requests that timed out.",
        "Grows: a broker is overloaded or down, or the network drops packets.",
        _CLIENT,
    )
    kafka_transmission_errors = counter(
        "errors",
        "Requests that could not be sent, and responses that could not be received.",
        "Grows: connections break; `kafka_client` in the log has librdkafka's words.",
        _CLIENT,
    )
    kafka_received_bytes = counter(
        "bytes",
        "Bytes of brokers' responses, as compressed on the wire.",
        "For the consumer: the input's traffic. For the changelog: how fast a state is restored.",
        _CLIENT,
    )
    kafka_sent_bytes = counter(
        "bytes",
        "Bytes of requests to brokers, as compressed on the wire.",
        "For the producer: outputs and changelog.",
        _CLIENT,
    )
    kafka_producer_queue_messages = gauge(
        "messages",
        "Producer messages that no broker has confirmed yet.",
        "Stays high: the broker accepts less than is sent, and reading slows down with it.",
    )
    kafka_producer_queue_bytes = gauge(
        "bytes",
        "Bytes of producer messages that no broker has confirmed yet.",
        "At `kafka.producer.queue.buffering.max.kbytes`: as for `kafka_producer_queue_messages`.",
    )
    kafka_fetch_queue_messages = gauge(
        "messages",
        "Messages that the consumer has fetched and the service has not read yet, including a few events.",
        "0 while the lag grows: the network or the broker is the limit. High: the service is.",
    )
