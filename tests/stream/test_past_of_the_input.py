"""The past of the input on a real broker: what is lost of it while it is read.

Knows topics and offsets; what the client is told in a test is in tests/unit/test_history.py.
"""

from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import load_settings
from stream_dedup.stream.input import history as history_
from stream_dedup.stream.input.history import History
from tests.stream.messages import Incoming, produce
from tests.stream.topics import create_topic, delete_records, named_topics

_MESSAGES, _MESSAGE_BYTES = 400, 10_000
# A fortieth of all: what is read at once, and what the client reads ahead.
_AT_ONCE, _AHEAD_KB = 10, 100


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_messages_that_are_deleted_while_it_is_read_do_not_end_it(
    bootstrap: str, reset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left up to the group's offset is read, wherever a new group would begin: else it came out again."""
    monkeypatch.setattr(history_, "_READ_MESSAGES", _AT_ONCE)
    topics = named_topics()
    create_topic(bootstrap, topics.input)
    produce(bootstrap, topics.input, [Incoming(b"x" * _MESSAGE_BYTES)] * _MESSAGES)
    sizes = ("queued.max.messages.kbytes", "fetch.message.max.bytes", "fetch.max.bytes")
    settings = load_settings(
        flags=(
            f"kafka.bootstrap.servers={bootstrap}",
            f"input.topics={topics.input}",
            f"input.group={topics.group}",
            f"kafka.consumer.auto.offset.reset={reset}",
            "kafka.consumer.message.max.bytes=50000",
            *(f"kafka.consumer.{name}={_AHEAD_KB * (1 if 'kbytes' in name else 1_000)}" for name in sizes),
            f"commit.articles={_AT_ONCE}",
        )
    )
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as consumer:
        consumer.commit(offsets=[TopicPartition(topics.input, 0, _MESSAGES)], asynchronous=False)
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
