"""The past of the input on a real broker: what is lost of it while it is read.

Knows topics and offsets; what the client is told in a test is in tests/unit/test_history.py.
"""

import time
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.input import history as history_
from stream_dedup.stream.input import time_order
from stream_dedup.stream.input.history import History
from tests.stream.messages import Incoming, produce
from tests.stream.topics import Topics, create_topic, delete_records, named_topics

_MESSAGES, _MESSAGE_BYTES = 400, 10_000
# A fortieth of all: what is read at once, and what the client reads ahead.
_AT_ONCE, _AHEAD_KB = 10, 100


def _settings(bootstrap: str, topics: Topics, *more: str) -> Settings:
    """Return settings with which little is read at once, and little ahead."""
    sizes = ("queued.max.messages.kbytes", "fetch.message.max.bytes", "fetch.max.bytes")
    return load_settings(
        flags=(
            f"kafka.bootstrap.servers={bootstrap}",
            f"input.topics={topics.input}",
            f"input.group={topics.group}",
            "kafka.consumer.message.max.bytes=50000",
            *(f"kafka.consumer.{name}={_AHEAD_KB * (1 if 'kbytes' in name else 1_000)}" for name in sizes),
            f"commit.articles={_AT_ONCE}",
            *more,
        )
    )


def _decide(bootstrap: str, topics: Topics, partitions: int) -> None:
    """Let the group have decided all that each partition holds."""
    places = [TopicPartition(topics.input, partition, _MESSAGES) for partition in range(partitions)]
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as consumer:
        consumer.commit(offsets=places, asynchronous=False)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_messages_that_are_deleted_while_it_is_read_do_not_end_it(
    bootstrap: str, reset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left up to the group's offset is read, wherever a new group would begin: else it came out again."""
    monkeypatch.setattr(history_, "_READ_MESSAGES", _AT_ONCE)
    topics = named_topics()
    create_topic(bootstrap, topics.input)
    produce(bootstrap, topics.input, [Incoming(b"x" * _MESSAGE_BYTES)] * _MESSAGES)
    settings = _settings(bootstrap, topics, f"kafka.consumer.auto.offset.reset={reset}")
    _decide(bootstrap, topics, 1)
    read: list[int | None] = []
    with closing(History(settings, {})) as history, capture_logs() as logged:
        assert history.total == _MESSAGES
        for batch in history.batches():
            if batch and not read:
                delete_records(bootstrap, topics.input, _MESSAGES // 2)
                produce(bootstrap, topics.input, [Incoming(b"undecided")])
            read += [message.offset() for message in batch]
    (lost,) = [event for event in logged if event["event"] == "input_lost"]
    assert lost["read_to"] < lost["goes_on"] == _MESSAGES // 2
    assert read == [*range(lost["read_to"]), *range(_MESSAGES // 2, _MESSAGES)]


def test_partition_that_runs_ahead_is_paused(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the older messages of another one, however many there are: few of it are held meanwhile."""
    monkeypatch.setattr(history_, "_READ_MESSAGES", _AT_ONCE)
    monkeypatch.setattr(time_order, "_HELD_BYTES", 0)
    monkeypatch.setattr(time_order, "_LEAST_SHARE_BYTES", 30 * _MESSAGE_BYTES)
    topics, now = named_topics(), round(time.time() * 1000)
    create_topic(bootstrap, topics.input, 2)
    for partition, age in enumerate((1_000, 2_000)):
        old = Incoming(b"x" * _MESSAGE_BYTES, partition=partition, timestamp_ms=now - age * 1_000)
        produce(bootstrap, topics.input, [old] * _MESSAGES)
    _decide(bootstrap, topics, 2)
    read, most = list[int | None](), 0
    with closing(History(_settings(bootstrap, topics), {})) as history:
        for batch in history.batches():
            read += [message.partition() for message in batch]
            newer = history._order.held((topics.input, 0))  # noqa: SLF001  # nothing tells it from outside
            most = max(most, newer.messages if newer else 0)
    assert read == [1] * _MESSAGES + [0] * _MESSAGES
    assert 0 < most < _MESSAGES // 4
