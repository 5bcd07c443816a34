"""Promises of the input on a real broker: what was committed is never read again, whatever the group does meanwhile.

Knows the group and offsets; knows nothing of decisions.
"""

import threading
import time
from contextlib import closing

import pytest

from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream import source as input_
from stream_dedup.stream.source import Haul, Source
from tests.stream.harness import Incoming, Topics, create_topic, named_topics, produce, wait_until

_POLL_MS = 6_000  # without a sign of life, after which the group goes on without a member
_PIECE = 10  # messages of a commit


def _settings(bootstrap: str, topics: Topics) -> Settings:
    flags = (
        f"kafka.bootstrap.servers={bootstrap}",
        f"input.topics={topics.input}",
        f"input.group={topics.group}",
        f"kafka.consumer.max.poll.interval.ms={_POLL_MS}",
        f"kafka.consumer.session.timeout.ms={_POLL_MS}",
        f"commit.articles={_PIECE}",
    )
    return load_settings(flags=flags)


def _numbered(count: int, partition: int = 0) -> list[Incoming]:
    return [Incoming(b"%d" % number, partition=partition) for number in range(count)]


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
    produce(bootstrap, topics.input, _numbered(2 * _PIECE))
    with closing(Source(_settings(bootstrap, topics), {})) as source:
        first = source.haul()
        assert _read(source, first, _PIECE) == list(range(_PIECE))
        assert source.holds(first)
        time.sleep(1.5 * _POLL_MS / 1000)

        def given_anew() -> bool:
            source.keep_alive()
            return source.rebalances >= 3  # given, lost, given

        wait_until(given_anew, "the partition is lost and given anew")
        assert (first.moved, source.assigned) == (True, {(topics.input, 0)})
        source.advance(first, first.positions())
        assert _read(source, source.haul(), _PIECE) == list(range(_PIECE, 2 * _PIECE))


def test_what_was_read_ahead_is_not_read_again_where_another_partition_has_moved(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amid a commit of two partitions one goes to another member and comes back; of the other more is read."""
    monkeypatch.setattr(input_, "_KEEP_ALIVE_SECONDS", 0.0)
    topics = named_topics()
    create_topic(bootstrap, topics.input, partitions=2)
    produce(bootstrap, topics.input, [*_numbered(_PIECE // 2, 0), *_numbered(_PIECE // 2, 1)])
    settings = _settings(bootstrap, topics)
    with closing(Source(settings, {})) as source:
        first, second = source.haul(), source.haul()
        _read(source, first, _PIECE)
        with closing(Source(settings, {})) as other:

            def shared() -> bool:
                source.keep_alive()
                other.keep_alive()
                return len(source.assigned) == len(other.assigned) == 1

            wait_until(shared, "the other member has one of the partitions")
            stays = next(partition for _, partition in source.assigned)
            produce(bootstrap, topics.input, _numbered(2 * _PIECE, stays))
            ahead = _read(source, second, _PIECE)

        def given_back() -> bool:
            source.keep_alive()
            return len(source.assigned) == 2

        wait_until(given_back, "the partition is given back")
        assert (first.moved, second.moved) == (True, False)
        source.advance(first, first.positions())
        assert _read(source, source.haul(), _PIECE) == [offset + _PIECE for offset in ahead]
