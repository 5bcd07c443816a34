"""The order in which partitions of a real broker are read, and what becomes of messages that are held back for it.

Knows timestamps and offsets; knows nothing of decisions.
"""

import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Message, TopicPartition
from confluent_kafka.admin import AdminClient

from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.input import time_order
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.places import offset_of, place_of
from tests.stream.messages import Incoming, produce
from tests.stream.sources import (
    SHORT_TURNS,
    await_partitions,
    await_shared,
    held,
    is_paused,
    read,
    read_until,
    read_until_held,
)
from tests.stream.topics import ADMIN_SECONDS, Topics, fresh_topics

_DAY_MS = 86_400_000


def _settings(bootstrap: str, topics: Topics) -> Settings:
    return load_settings(
        flags=[
            f"kafka.bootstrap.servers={bootstrap}",
            f"input.topics={topics.input}",
            f"input.group={topics.group}",
            "commit.articles=4096",
            "kafka.consumer.session.timeout.ms=60000",  # longer than a busy machine pauses
            *SHORT_TURNS,
        ]
    )


def _now_ms() -> int:
    return round(time.time() * 1000)


def _aged(ages_ms: Iterable[int], partition: int, size: int = 1) -> list[Incoming]:
    now = _now_ms()
    return [Incoming(bytes(size), partition=partition, timestamp_ms=now - age) for age in ages_ms]


@contextmanager
def _holding(settings: Settings, count: int) -> Iterator[tuple[Source, MessageBatch]]:
    """Fill partition 1 with old messages and partition 0 with newer ones; read until some of these are held back."""
    bootstrap, (topic,) = str(settings.kafka["bootstrap.servers"]), settings.input.topics
    produce(bootstrap, topic, [*_aged([2 * _DAY_MS] * count, 1, 900), *_aged([_DAY_MS] * count, 0, 900)])
    with closing(Source(settings, {})) as source:
        batch = source.batch()
        read_until_held(source, batch, (topic, 0))
        yield source, batch


def _offsets(messages: Sequence[Message]) -> dict[int, list[int]]:
    """Return the offsets by partition, as they were read."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for message in messages:
        offsets[place_of(message)[1]].append(offset_of(message))
    return offsets


def test_backlog_is_read_in_the_order_of_its_timestamps(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the volumes of its partitions, even if those with less have to be paused."""
    monkeypatch.setattr(time_order, "_HELD_BYTES", 0)
    monkeypatch.setattr(time_order, "_LEAST_SHARE_BYTES", 150_000)
    paused: list[int] = []
    keep_pace = time_order.TimeOrder.keep_pace

    def watched(order: time_order.TimeOrder) -> None:
        keep_pace(order)
        paused.append(len(order.paused))

    monkeypatch.setattr(time_order.TimeOrder, "keep_pace", watched)
    topics, chance, count = fresh_topics(bootstrap, partitions=3), random.Random(5), 3_000
    partitions = chance.choices(range(3), [20, 4, 1], k=count)
    now = _now_ms()
    produce(
        bootstrap,
        topics.input,
        [
            Incoming(bytes(chance.randrange(4_000)), partition=partition, timestamp_ms=now - _DAY_MS + at)
            for at, partition in enumerate(partitions)
        ],
    )
    settings = _settings(bootstrap, topics)
    with closing(Source(settings, {})) as source:
        batch = source.batch()
        read(source, batch, count)
    assert [message.timestamp()[1] for message in batch.messages] == [now - _DAY_MS + at for at in range(count)]
    assert max(paused) > 0


def test_archive_does_not_delay_what_is_live(bootstrap: str) -> None:
    """A topic with days to read may be added to a stream that is decided within a second."""
    topics, archive = fresh_topics(bootstrap, partitions=2), 4_000
    produce(bootstrap, topics.input, _aged(range(5 * _DAY_MS, 5 * _DAY_MS - archive, -1), 1, size=2_000))
    with closing(Source(_settings(bootstrap, topics), {})) as source:
        batch = source.batch()
        read(source, batch, 1)
        produce(bootstrap, topics.input, _aged([0], 0))
        read(source, batch, archive + 1)
    (live,) = [at for at, message in enumerate(batch.messages) if place_of(message)[1] == 0]
    assert live < archive - 1_000


def test_what_is_held_back_is_neither_lost_nor_doubled_by_a_rewind(bootstrap: str) -> None:
    """As after an aborted transaction."""
    topics, count = fresh_topics(bootstrap, partitions=2), 1_000
    with _holding(_settings(bootstrap, topics), count) as (source, first):
        assert 0 < len(first.messages) < count
        assert source.lag()[topics.input, 0].messages == count
        assert source.lag()[topics.input, 0].since_ms == pytest.approx(_now_ms() - _DAY_MS, abs=60_000)
        assert source.rewind()
        again = source.batch()
        read(source, again, 2 * count)
    assert _offsets(again.messages) == {0: list(range(count)), 1: list(range(count))}


@contextmanager
def _paused(bootstrap: str, monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[tuple[Source, MessageBatch]]:
    """Read until partition 0, of which only the first message precedes those of partition 1, is paused."""
    monkeypatch.setattr(time_order, "_HELD_BYTES", 0)
    monkeypatch.setattr(time_order, "_LEAST_SHARE_BYTES", 0)
    topics = fresh_topics(bootstrap, partitions=2)
    ages = [3 * _DAY_MS, *[_DAY_MS] * (count - 1)]
    produce(bootstrap, topics.input, [*_aged([2 * _DAY_MS] * count, 1, 900), *_aged(ages, 0, 900)])
    place = topics.input, 0
    with closing(Source(_settings(bootstrap, topics), {})) as source:
        batch = source.batch()
        read_until(source, batch, lambda: place in batch.newest and is_paused(source, place), 0.02)
        yield source, batch


def test_partition_that_was_paused_is_read_on_after_a_rewind(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client would stay paused in it, and nobody would know."""
    count = 300
    with _paused(bootstrap, monkeypatch, count) as (source, _):
        assert source.rewind()
        again = source.batch()
        read(source, again, 2 * count)
    assert _offsets(again.messages) == {0: list(range(count)), 1: list(range(count))}


@pytest.mark.usefixtures("looks_in")
def test_partition_that_is_paused_stays_so_during_a_commit(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on when the group's news is heard; else what is held of it had no bound."""
    count = 3_000
    with _paused(bootstrap, monkeypatch, count) as (source, batch):
        (place,) = [place for place in source.assigned if place[1] == 0]
        before, read_so_far = held(source, place), len(batch.messages)
        source.keep_alive()
        read(source, batch, read_so_far + count // 3)
        assert held(source, place) == before


@pytest.mark.usefixtures("looks_in")
def test_what_is_held_back_is_neither_lost_nor_doubled_by_a_rebalance(bootstrap: str) -> None:
    """Whichever partition the other member is given, and gives back."""
    count, settings = 1_000, _settings(bootstrap, fresh_topics(bootstrap, partitions=2))
    with _holding(settings, count) as (source, first):
        early = len(first.messages)
        source.advance(first, first.positions())
        with closing(Source(settings, {})) as other:
            await_shared(source, other)
        await_partitions(source, 2)
        rest = source.batch()
        read(source, rest, 2 * count - early)
        assert source.holds(rest)
    assert _offsets([*first.messages, *rest.messages]) == {0: list(range(count)), 1: list(range(count))}


def test_what_is_held_back_outlives_the_broker_deleting_it(bootstrap: str) -> None:
    """Reading goes on where the partition begins now; what had arrived by then is not lost."""
    topics, older, count, begin = fresh_topics(bootstrap, partitions=2), 3_000, 1_000, 900
    last = {(topics.input, 0): count - 1, (topics.input, 1): older - 1}
    produce(bootstrap, topics.input, _aged([2 * _DAY_MS] * older, 1, 900))
    with closing(Source(_settings(bootstrap, topics), {})) as source:
        batch = source.batch()
        read(source, batch, 1)
        for _ in range(count // 50):  # each is a batch of the broker's, which is fetched whole
            produce(bootstrap, topics.input, _aged([_DAY_MS] * 50, 0, 900))
        early = read_until_held(source, batch, (topics.input, 0))
        deleted = TopicPartition(topics.input, 0, begin)
        admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: a client that is freed drops its requests
        admin.delete_records([deleted])[deleted].result(ADMIN_SECONDS)
        read_until(source, batch, lambda: batch.newest == last)
    offsets = _offsets(batch.messages)
    assert offsets[1] == list(range(older))
    arrived = offsets[0].index(begin)
    assert early <= arrived < begin
    assert offsets[0] == [*range(arrived), *range(begin, count)]
