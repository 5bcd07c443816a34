"""Clients' statistics, measured with librdkafka's mock brokers."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from structlog.testing import capture_logs

from stream_dedup.observe.metrics import Metrics
from stream_dedup.stream.kafka.statistics import client_statistics

_SIZE, _COUNT = 1_000, 500
_OFTEN: dict[str, str | int] = {"statistics.interval.ms": 50, "log_level": 0}


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_dedup_kafka_{name}", labels)


def _received(metrics: Metrics) -> float:
    return _value(metrics, "received_bytes_total", client="consumer") or 0


def _polled(poll: Callable[[float], object], condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        poll(0.05)


@pytest.fixture
def brokers() -> Iterator[str]:
    """Return the addresses of three brokers, with messages in a topic."""
    producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 3, "log_level": 0})
    for _ in range(_COUNT):
        producer.produce("t", bytes(_SIZE))
    assert producer.flush(60) == 0
    known = producer.list_topics("t", timeout=60).brokers.values()
    yield ",".join(f"{one.host}:{one.port}" for one in known)
    producer.purge()


@pytest.mark.slow
def test_consumer_tells_what_it_has_received_and_how_long_brokers_take(brokers: str) -> None:
    """It received more bytes than those of the messages, is connected, and gets answers within seconds."""
    metrics = Metrics()
    with client_statistics(metrics, "consumer") as told:
        properties = {"bootstrap.servers": brokers, "group.id": "g", "auto.offset.reset": "earliest", **_OFTEN}
        with closing(Consumer({**properties, "stats_cb": told})) as consumer:
            consumer.subscribe(["t"])
            _polled(consumer.poll, lambda: _received(metrics) > _COUNT * _SIZE)
            _polled(consumer.poll, lambda: _value(metrics, "round_trip_seconds", client="consumer", stat="p99"))
            received = _received(metrics)
            assert _COUNT * _SIZE < received < 3 * _COUNT * _SIZE
            assert 1 <= (_value(metrics, "connected_brokers", client="consumer") or 0) <= 3
            mean, p99 = (_value(metrics, "round_trip_seconds", client="consumer", stat=one) for one in ("mean", "p99"))
            assert 0 < (mean or 0) <= (p99 or 0) < 30
    assert _value(metrics, "connected_brokers", client="consumer") is None
    assert _value(metrics, "round_trip_seconds", client="consumer", stat="mean") is None
    assert _received(metrics) == received


@pytest.mark.slow
def test_fetched_messages_are_counted_until_they_are_read(brokers: str) -> None:
    """What a consumer has fetched and nobody has read yet is in its queue."""
    metrics = Metrics()
    with client_statistics(metrics, "consumer") as told:
        properties = {"bootstrap.servers": brokers, "group.id": "g", "auto.offset.reset": "earliest", **_OFTEN}
        with closing(Consumer({**properties, "stats_cb": told})) as consumer:
            consumer.subscribe(["t"])
            read: list[object] = []

            def read_slowly(seconds: float) -> None:
                """Read one message at a time, so that the others arrive before most of them are read."""
                read.extend(consumer.consume(1, seconds))
                time.sleep(0.02)

            _polled(read_slowly, lambda: (_value(metrics, "fetch_queue_messages") or 0) > _COUNT / 2)
            assert (_value(metrics, "fetch_queue_messages") or 0) < 2 * _COUNT
            _polled(lambda seconds: read.extend(consumer.consume(10, seconds)), lambda: len(read) >= _COUNT)
            _polled(consumer.poll, lambda: _value(metrics, "fetch_queue_messages") == 0)


def test_producer_tells_what_waits_to_be_sent() -> None:
    """Messages for unreachable brokers stay in the queue with their bytes, and no broker is connected."""
    metrics = Metrics()
    with client_statistics(metrics, "producer") as told:
        producer = Producer({"bootstrap.servers": "127.0.0.1:1", **_OFTEN, "stats_cb": told})
        for _ in range(3):
            producer.produce("t", bytes(_SIZE))
        _polled(producer.poll, lambda: _value(metrics, "producer_queue_messages"))
        assert _value(metrics, "producer_queue_messages") == 3
        assert _value(metrics, "producer_queue_bytes") == 3 * _SIZE
        assert _value(metrics, "connected_brokers", client="producer") == 0
        assert _value(metrics, "round_trip_seconds", client="producer", stat="p99") is None
        producer.purge()
    assert _value(metrics, "producer_queue_messages") == 0


def test_a_client_after_another_adds_to_the_same_totals(brokers: str) -> None:
    """Each client counts from 0, but the totals of the label continue."""
    metrics = Metrics()
    totals: list[float] = []
    for _ in range(2):
        with client_statistics(metrics, "producer") as told:
            producer = Producer({"bootstrap.servers": brokers, **_OFTEN, "stats_cb": told})
            producer.produce("t", bytes(_SIZE))
            assert producer.flush(60) == 0
            before = sum(totals[-1:])
            _polled(
                producer.poll,
                lambda: (_value(metrics, "sent_bytes_total", client="producer") or 0) > before + _SIZE,  # noqa: B023  # called at once
            )
            totals.append(_value(metrics, "sent_bytes_total", client="producer") or 0)
    assert totals[1] > totals[0] + _SIZE


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"brokers": {"one": {}}, "rx_bytes": 1, "tx_bytes": "?"}'])
def test_statistics_of_another_form_do_no_harm(text: str) -> None:
    """They are logged now and then, and nothing else happens."""
    metrics = Metrics()
    with client_statistics(metrics, "producer") as told, capture_logs() as lines:
        told(text)
        told(text)
    assert [line["event"] for line in lines] == ["kafka_statistics_not_read"]


# --------------------------------------------------------------------------- several brokers, as STATISTICS.md has them


def _broker(number: int, *, rtt: tuple[int, int, int] = (0, 0, 0), **figures: object) -> dict[str, Any]:
    """Return what is told of a broker; of round trips how many there were, and their sum and p99 in microseconds."""
    trips = dict(zip(("cnt", "sum", "p99"), rtt, strict=True))
    return {"nodeid": number, "state": "UP", "req_timeouts": 0, "txerrs": 0, "rxerrs": 0, "rtt": trips, **figures}


def _told(*brokers: dict[str, Any]) -> str:
    named = {f"broker:{place}": one for place, one in enumerate(brokers)}
    return json.dumps({"brokers": named, "rx_bytes": 0, "tx_bytes": 0, "msg_cnt": 0, "msg_size": 0})


def test_each_broker_is_counted_once_while_it_is_connected() -> None:
    """A bootstrap address is none of its own, and a coordinator is listed a second time."""
    metrics = Metrics()
    with client_statistics(metrics, "producer") as tell:
        tell(_told(_broker(-1), _broker(1), _broker(2), _broker(3, state="DOWN"), _broker(-1, state="INIT")))
        assert _value(metrics, "connected_brokers", client="producer") == 2


def test_faults_of_all_brokers_add_up() -> None:
    """What was counted of a broker that is no longer listed stays counted, and is not counted again."""
    metrics = Metrics()
    with client_statistics(metrics, "producer") as tell:
        gone = _broker(2, req_timeouts=4, txerrs=2, rxerrs=3)
        for brokers in ([_broker(1, req_timeouts=1), gone], [_broker(1, req_timeouts=2)], [_broker(1, req_timeouts=5)]):
            tell(_told(*brokers))
    assert _value(metrics, "request_timeouts_total", client="producer") == 1 + 4 + 3
    assert _value(metrics, "transmission_errors_total", client="producer") == 2 + 3


def test_round_trips_are_those_of_all_brokers_and_the_slowest() -> None:
    """The mean is of all requests, however they are distributed; brokers without any say nothing."""
    metrics = Metrics()
    with client_statistics(metrics, "producer") as tell:
        tell(_told(_broker(1, rtt=(9, 9_000, 4_000)), _broker(2, rtt=(1, 11_000, 11_000)), _broker(3)))
        told = [_value(metrics, "round_trip_seconds", client="producer", stat=stat) for stat in ("mean", "p99")]
        assert told == pytest.approx([0.002, 0.011])
