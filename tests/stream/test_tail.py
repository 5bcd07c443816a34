"""Following topics on a real broker while these change: partitions are added, topics are deleted.

Knows topics and partitions; knows nothing of the contents of messages.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from stream_dedup.settings import load_settings
from stream_dedup.stream.kafka import tail as tail_
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.tail import Tail
from tests.stream.messages import Incoming, produce
from tests.stream.topics import add_partitions, create_topic, delete_topic, named_topics


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A topic with one message."""
    name = named_topics().input
    create_topic(bootstrap, name)
    produce(bootstrap, name, [Incoming(b"first")])
    return name


@pytest.fixture
def tail(bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tail]:
    """Follow the topic, and look often at which partitions there are."""
    monkeypatch.setattr(tail_, "_LOOK_SECONDS", 0.2)
    with Tail(load_settings(flags=[f"kafka.bootstrap.servers={bootstrap}"]), [topic]) as tail:
        yield tail


def test_added_partition_is_read_from_its_beginning(bootstrap: str, topic: str, tail: Tail) -> None:
    """What was written to it before it was noticed is not missed; neither is what follows in the others."""
    told = tail.messages(None, endless=True)
    assert next(told).value() == b"first"
    add_partitions(bootstrap, topic, 3)
    produce(bootstrap, topic, [Incoming(b"added 1", partition=1), Incoming(b"added 2", partition=2)])
    assert {next(told).value(), next(told).value()} == {b"added 1", b"added 2"}
    produce(bootstrap, topic, [Incoming(b"more", partition=part) for part in range(3)])
    assert [next(told).value() for _ in range(3)] == [b"more"] * 3


def test_deleted_topic_ends_it_with_an_error(bootstrap: str, topic: str, tail: Tail) -> None:
    """Otherwise it would stay silent, as if there were no decisions."""
    told = tail.messages(None, endless=True)
    assert next(told).value() == b"first"
    delete_topic(bootstrap, topic)
    with pytest.raises(BrokerError, match=f"no topic {topic}"):
        next(told)


def test_topic_that_a_broker_does_not_know_for_a_moment_is_followed_on(
    bootstrap: str, topic: str, tail: Tail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it has just started. One that cannot be asked is as harmless."""
    told = tail.messages(None, endless=True)
    assert next(told).value() == b"first"
    looks: list[list[int] | BrokerError] = [[], [0], [], BrokerError("no answer"), [0], []]

    def partitions_of(_consumer: Consumer, _topic: str) -> list[int]:
        if not looks:
            produce(bootstrap, topic, [Incoming(b"second")])
            return [0]
        look = looks.pop(0)
        if isinstance(look, BrokerError):
            raise look
        return look

    monkeypatch.setattr(tail_, "partitions_of", partitions_of)
    assert next(told).value() == b"second"
