"""Promises of the input on a real broker: what was committed is never read again, whatever the group does meanwhile.

Knows the group and offsets; knows nothing of decisions.
"""

import threading
import time
from contextlib import closing

import pytest

from stream_dedup.settings import load_settings
from stream_dedup.stream import source as input_
from stream_dedup.stream.source import Haul, Source
from tests.stream.harness import Incoming, create_topic, named_topics, produce, wait_until

_POLL_MS = 6_000  # without a sign of life, after which the group goes on without a member
_FLAGS = (
    f"kafka.consumer.max.poll.interval.ms={_POLL_MS}",
    f"kafka.consumer.session.timeout.ms={_POLL_MS}",
    "commit.articles=10",
)


def _read(source: Source, haul: Haul, count: int) -> list[int]:
    """Return the offsets of a haul that has so many messages."""

    def full() -> bool:
        source.take(haul, threading.Event())
        return len(haul.messages) >= count

    wait_until(full, f"{count} messages")
    return [int(message.offset() or 0) for message in haul.messages]


def test_partition_that_is_given_anew_amid_a_commit_is_read_on_behind_it(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group has gone on without the process and takes it back while the broker is waited for."""
    monkeypatch.setattr(input_, "_KEEP_ALIVE_SECONDS", 0.0)
    topics = named_topics()
    create_topic(bootstrap, topics.input)
    produce(bootstrap, topics.input, [Incoming(b"%d" % number) for number in range(20)])
    flags = [f"kafka.bootstrap.servers={bootstrap}", f"input.topics={topics.input}", f"input.group={topics.group}"]
    with closing(Source(load_settings(flags=[*flags, *_FLAGS]), {})) as source:
        first = source.haul()
        assert _read(source, first, 10) == list(range(10))
        assert source.holds(first)
        time.sleep(1.5 * _POLL_MS / 1000)

        def given_anew() -> bool:
            source.keep_alive()
            return source.rebalances >= 3  # given, lost, given

        wait_until(given_anew, "the partition is lost and given anew")
        assert (first.moved, source.assigned) == (True, {(topics.input, 0)})
        source.advance(first, first.positions())
        assert _read(source, source.haul(), 10) == list(range(10, 20))
