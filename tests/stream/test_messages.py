"""Single messages on a real broker: the newest of a topic are found, whatever is written meanwhile.

Knows topics, partitions and times; knows nothing of the contents of messages.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka import Message, Producer

from stream_dedup.article import Origin
from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.kafka import tail as tail_
from stream_dedup.stream.kafka.messages import Messages
from stream_dedup.stream.kafka.places import timestamp_of
from stream_dedup.stream.kafka.tail import Tail
from tests.stream.messages import Incoming, article, produce
from tests.stream.topics import ADMIN_SECONDS, create_topic, named_topics

_LATER_MS = 1_800_000  # how far ahead the newest messages are dated; brokers accept an hour at most
_TIMES = 30
_HELD = 20  # in each partition


def _settings(bootstrap: str) -> Settings:
    return load_settings(flags=[f"kafka.bootstrap.servers={bootstrap}"])


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A topic of two partitions; the newest messages are in the second."""
    name = named_topics().input
    create_topic(bootstrap, name, 2)
    producer, later = Producer({"bootstrap.servers": bootstrap}), time.time_ns() // 1_000_000 + _LATER_MS
    for number in range(_HELD):
        producer.produce(name, b"old %d" % number, partition=0)
        producer.produce(name, b"new %d" % number, partition=1, timestamp=later + number)
    assert producer.flush(ADMIN_SECONDS) == 0
    return name


@contextmanager
def _growing(bootstrap: str, topic: str) -> Iterator[None]:
    """Write single messages to the first partition while the context is open."""
    ends = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def write() -> None:
        while not ends.wait(0.001):
            producer.produce(topic, b"more", partition=0)
            producer.poll(0)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        yield
    finally:
        ends.set()
        writing.join()
        producer.flush(ADMIN_SECONDS)


def _values(messages: Messages, topic: str, count: int) -> list[bytes | None]:
    return [message.value() for message in messages.newest(topic, count)]


def test_newest_messages_are_found_while_a_topic_grows(bootstrap: str, topic: str) -> None:
    """A partition that is being written to reaches its end repeatedly, which must not end the search in the other."""
    with closing(Messages(_settings(bootstrap))) as messages, _growing(bootstrap, topic):
        for _ in range(_TIMES):
            assert _values(messages, topic, 3) == [b"new %d" % number for number in range(_HELD - 3, _HELD)]


def test_all_are_found_where_there_are_fewer(bootstrap: str, topic: str) -> None:
    """In order of time; none of a topic that does not exist."""
    with closing(Messages(_settings(bootstrap))) as messages:
        assert sorted(_values(messages, topic, 100), key=str) == sorted(
            (b"%s %d" % (age, number) for age in (b"old", b"new") for number in range(_HELD)), key=str
        )
        assert _values(messages, f"{topic}-none", 3) == []


def test_newest_are_the_last_of_their_partition_after_the_clock_stepped_back(bootstrap: str, topic: str) -> None:
    """What follows is no older than what precedes it, whatever its timestamp; so also for `tail`."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        producer.produce(topic, b"latest %d" % number, partition=1)
    assert producer.flush(ADMIN_SECONDS) == 0
    expected = [b"latest %d" % number for number in range(3)]
    settings = _settings(bootstrap)
    with closing(Messages(settings)) as messages, Tail(settings, [topic]) as tail:
        assert _values(messages, topic, 3) == expected
        assert [message.value() for message in tail.messages(3, endless=False)] == expected


def test_reader_that_takes_its_time_is_not_told_that_the_broker_is_silent(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is how long nothing arrives, not how long all of it takes."""
    read, skipped = list[Message](), 0.0
    monkeypatch.setattr(tail_, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + skipped))
    monkeypatch.setattr(tail_, "_AT_ONCE", _HELD)
    with Tail(_settings(bootstrap), [topic]) as tail:
        for message in tail.messages(None, endless=False):
            skipped += 1.0
            read.append(message)
    assert len(read) == 2 * _HELD


def test_message_at_an_offset(bootstrap: str, topic: str) -> None:
    """None after the end."""
    with closing(Messages(_settings(bootstrap))) as messages:
        found = messages.at(Origin(topic, 1, 7, 0))
        assert found is not None
        assert found.value() == b"new 7"
        assert messages.at(Origin(topic, 1, _HELD, 0)) is None


def test_marker_of_a_transaction_is_no_message(bootstrap: str) -> None:
    """The offset after it has another one: who asks for a text must not be shown that of another article."""
    name = named_topics().input
    create_topic(bootstrap, name)
    offsets = [produce(bootstrap, name, [article(one, one)], transaction=True) for one in "ab"]
    assert offsets == [[0], [2]]
    with closing(Messages(_settings(bootstrap))) as messages:
        found = [messages.at(Origin(name, 0, offset)) for offset in range(4)]
    assert [message and message.offset() for message in found] == [0, None, 2, None]


@pytest.mark.parametrize("count", [1, 3])
def test_newest_are_found_where_each_has_a_transaction_of_its_own(bootstrap: str, count: int) -> None:
    """Each is followed by a marker, which takes up an offset; so also for `tail`."""
    name = named_topics().input
    create_topic(bootstrap, name)
    for number in range(5):
        produce(bootstrap, name, [Incoming(b"%d" % number)], transaction=True)
    expected = [b"%d" % number for number in range(5 - count, 5)]
    settings = _settings(bootstrap)
    with closing(Messages(settings)) as messages, Tail(settings, [name]) as tail:
        assert _values(messages, name, count) == expected
        assert [message.value() for message in tail.messages(count, endless=False)] == expected


def test_message_that_came_without_a_timestamp_has_none(bootstrap: str, topic: str) -> None:
    """In the topic it has -1, which is no moment of 1969: its articles would be decades old, and the lag as long."""
    offsets = produce(bootstrap, topic, [replace(article("a", "b"), timestamp_ms=-1), article("c", "d")])
    with closing(Messages(_settings(bootstrap))) as messages:
        dated = [messages.at(Origin(topic, 0, offset)) for offset in offsets]
        assert [timestamp_of(message) is None for message in dated if message is not None] == [True, False]
