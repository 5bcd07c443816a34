"""The input on a real broker: what was committed is never read again, whatever the group does meanwhile.

Knows the group and offsets; knows nothing of decisions.
"""

import math
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from deploy.broker import KafkaBroker
from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.input import losses, time_order
from stream_dedup.stream.input import source as input_
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place, epoch_at, in_input, place_of
from stream_dedup.stream.kafka.topics import Topics as AdminTopics
from tests.stream.losing import lose_end
from tests.stream.messages import Incoming, produce
from tests.stream.sources import SHORT_TURNS, await_partitions, await_shared, held, is_paused, read, read_until
from tests.stream.topics import ADMIN_SECONDS, Topics, add_partitions, create_topic, delete_topic, named_topics
from tests.stream.waiting import wait_until
from tests.unit.arrived import ArrivedMessage

_SOON_MS = 4_000  # without a poll, after which the group drops a member
_PIECE = 10  # messages per commit
_DAY_MS = 86_400_000
_TURN_SECONDS = 0.02  # between two reads, so that other partitions deliver as well


def _settings(bootstrap: str, topics: Topics, *more: str) -> Settings:
    flags = (
        f"kafka.bootstrap.servers={bootstrap}",
        f"input.topics={topics.input}",
        f"input.group={topics.group}",
        f"commit.articles={_PIECE}",
        "kafka.consumer.session.timeout.ms=60000",  # longer than a busy machine pauses
        *more,
    )
    return load_settings(flags=flags)


@pytest.fixture(autouse=True)
def _answers_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a busy broker: a service that has to go on with the stream waits for two seconds, and asks again."""
    for name in (
        "kafka.topics._IDENTITY_SECONDS",
        "input.source._ANSWER_SECONDS",
        "input.subscription._ANSWER_SECONDS",
    ):
        monkeypatch.setattr(f"stream_dedup.stream.{name}", 60.0)


@pytest.fixture(scope="module")
def hasty() -> Iterator[KafkaBroker]:
    """A broker for this module alone, which lets a group drop a silent member after a short time."""
    with KafkaBroker({"group.min.session.timeout.ms": "500"}) as broker:
        yield broker


def _hasty_settings(broker: KafkaBroker, topics: Topics, *more: str) -> Settings:
    soon = (f"kafka.consumer.{name}={_SOON_MS}" for name in ("max.poll.interval.ms", "session.timeout.ms"))
    return _settings(broker.bootstrap, topics, *soon, "kafka.consumer.heartbeat.interval.ms=500", *more)


def _numbered(count: int, partition: int = 0) -> list[Incoming]:
    return [Incoming(b"%d" % number, partition=partition) for number in range(count)]


def _read(source: Source, batch: MessageBatch, count: int) -> list[int]:
    """Return the offsets of a batch once it has at least this many messages."""
    read(source, batch, count)
    return [int(message.offset() or 0) for message in batch.messages]


def _await_rebalances(source: Source, count: int) -> None:
    """Wait as a slow commit does, until partitions have been given or taken this many times from now on."""
    wanted = source.rebalances + count

    def rebalanced() -> bool:
        source.keep_alive()
        return source.rebalances >= wanted

    wait_until(rebalanced, f"{count} rebalances")


@pytest.mark.usefixtures("looks_in")
def test_partition_that_is_given_anew_amid_a_commit_is_read_on_behind_it(hasty: KafkaBroker) -> None:
    """While the broker keeps the process waiting, the group drops it and takes it back."""
    topics = named_topics()
    create_topic(hasty.bootstrap, topics.input)
    produce(hasty.bootstrap, topics.input, _numbered(2 * _PIECE))
    with closing(Source(_hasty_settings(hasty, topics), {})) as source:
        first = source.batch()
        assert _read(source, first, _PIECE) == list(range(_PIECE))
        assert source.holds(first)
        time.sleep(1.5 * _SOON_MS / 1000)
        _await_rebalances(source, 2)  # lost, given
        assert (first.moved, source.assigned) == (True, {(topics.input, 0)})
        source.advance(first, first.positions())
        assert _read(source, source.batch(), _PIECE) == list(range(_PIECE, 2 * _PIECE))


@pytest.mark.parametrize("looked_in", [False, True])
def test_partition_that_was_paused_when_the_group_took_it_is_read_on(
    hasty: KafkaBroker, monkeypatch: pytest.MonkeyPatch, *, looked_in: bool
) -> None:
    """It ran ahead of another one, or nothing was to be read during a commit, when the group dropped the process."""
    monkeypatch.setattr(time_order, "_HELD_BYTES", 0)
    monkeypatch.setattr(time_order, "_LEAST_SHARE_BYTES", 0)
    topics, count, now = named_topics(), 300, round(time.time() * 1000)
    create_topic(hasty.bootstrap, topics.input, partitions=2)
    for partition, age in ((1, 2 * _DAY_MS), (0, _DAY_MS)):
        old = [Incoming(bytes(900), partition=partition, timestamp_ms=now - age) for _ in range(count)]
        produce(hasty.bootstrap, topics.input, old)
    settings = _hasty_settings(hasty, topics, f"commit.articles={2 * count}", *SHORT_TURNS)
    with closing(Source(settings, {})) as source:
        first = source.batch()
        read_until(source, first, lambda: bool(first.messages) and is_paused(source, (topics.input, 0)), _TURN_SECONDS)
        source.advance(first, first.positions())
        time.sleep(1.5 * _SOON_MS / 1000)
        if looked_in:
            monkeypatch.setattr(input_, "_KEEP_ALIVE_SECONDS", 0.0)
            _await_rebalances(source, 1)
        rest = source.batch()
        assert len(_read(source, rest, 2 * count - len(first.messages))) == 2 * count - len(first.messages)


@pytest.mark.usefixtures("looks_in")
def test_what_was_read_ahead_is_not_read_again_where_another_partition_has_moved(bootstrap: str) -> None:
    """During a commit of two partitions, one goes to another member and comes back; more is read from the other."""
    topics = named_topics()
    create_topic(bootstrap, topics.input, partitions=2)
    produce(bootstrap, topics.input, [*_numbered(_PIECE // 2, 0), *_numbered(_PIECE // 2, 1)])
    settings = _settings(bootstrap, topics)
    with closing(Source(settings, {})) as source:
        first, second = source.batch(), source.batch()
        _read(source, first, _PIECE)
        with closing(Source(settings, {})) as other:
            await_shared(source, other)
            stays = next(partition for _, partition in source.assigned)
            produce(bootstrap, topics.input, _numbered(2 * _PIECE, stays))
            ahead = _read(source, second, _PIECE)

        await_partitions(source, 2)
        assert (first.moved, second.moved) == (True, False)
        source.advance(first, first.positions())
        assert _read(source, source.batch(), _PIECE) == [offset + _PIECE for offset in ahead]


def _anew(bootstrap: str, topic: str, partitions: int = 1) -> None:
    delete_topic(bootstrap, topic)
    create_topic(bootstrap, topic, partitions)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_topic_that_was_made_anew_is_read_from_its_beginning(bootstrap: str, reset: str) -> None:
    """All of its partitions, including new ones, whatever their positions were; and only once."""
    topics = named_topics()
    settings = _settings(bootstrap, topics, f"kafka.consumer.auto.offset.reset={reset}")
    create_topic(bootstrap, topics.input, 2)
    identify, positions = AdminTopics(settings).identities, dict[Place, int]()
    positions |= {(topics.input, 0): 0, (topics.input, 1): 0}
    produce(bootstrap, topics.input, [*_numbered(4, 0), *_numbered(4, 1)])
    with closing(Source(settings, positions, identify)) as source:
        batch = source.batch()
        _read(source, batch, 8)
        positions = source.positions_after(batch)
    assert in_input(positions) == {(topics.input, 0): 4, (topics.input, 1): 4}
    _anew(bootstrap, topics.input, 3)
    produce(bootstrap, topics.input, [*_numbered(6, 0), *_numbered(1, 2)])
    with closing(Source(settings, positions, identify)) as source:
        batch = source.batch()
        assert sorted(_read(source, batch, 7)) == [0, 0, 1, 2, 3, 4, 5]
        behind = source.positions_after(batch)
        source.advance(batch, behind)
        assert source.positions_after(source.batch()) == {}
    assert in_input(behind) == {(topics.input, 0): 6, (topics.input, 1): 0, (topics.input, 2): 1}
    assert behind[topics.input, IDENTITY] != positions[topics.input, IDENTITY]
    produce(bootstrap, topics.input, _numbered(2, 1))
    with closing(Source(settings, positions | behind, identify)) as source:
        assert _read(source, source.batch(), 2) == [0, 1]


@pytest.mark.usefixtures("looks_in")
@pytest.mark.parametrize("end", ["latest", "largest", "end"])
def test_partition_without_messages_is_read_from_where_it_was_first_assigned(bootstrap: str, end: str) -> None:
    """With `auto.offset.reset=latest` too, whatever it is called: what arrives while no process runs is not skipped."""
    topics, positions = named_topics(), dict[Place, int]()
    settings = _settings(bootstrap, topics, f"kafka.consumer.auto.offset.reset={end}")
    create_topic(bootstrap, topics.input, 2)
    admin = AdminTopics(settings)
    produce(bootstrap, topics.input, [*_numbered(4, 0), *_numbered(3, 1)])
    with closing(Source(settings, positions, admin.identities)) as source:
        await_partitions(source, 2)
        # A state that knows of nothing yet would judge all that the group has as decided.
        assert _committed(bootstrap, topics, 2) == [OFFSET_INVALID, OFFSET_INVALID]
        produce(bootstrap, topics.input, _numbered(1, 0))
        batch = source.batch()
        assert _read(source, batch, 1) == [4]
        positions |= source.positions_after(batch)
        source.advance(batch, positions)
        assert source.unrecorded() == {}
    assert in_input(positions) == {(topics.input, 0): 5, (topics.input, 1): 3}
    produce(bootstrap, topics.input, _numbered(2, 1))
    with closing(Source(settings, positions, admin.identities)) as source:
        assert _read(source, source.batch(), 2) == [3, 4]


@pytest.mark.usefixtures("looks_in")
@pytest.mark.parametrize("running", [True, False])
def test_added_partitions_are_read_from_their_beginning(bootstrap: str, *, running: bool) -> None:
    """With `auto.offset.reset=latest` too: all that is in them is new, whenever they are found."""
    topics, positions = named_topics(), dict[Place, int]()
    flags = "kafka.consumer.auto.offset.reset=latest", "kafka.topic.metadata.refresh.interval.ms=200"
    settings = _settings(bootstrap, topics, *flags)
    create_topic(bootstrap, topics.input, 2)
    admin = AdminTopics(settings)
    produce(bootstrap, topics.input, [*_numbered(4, 0), *_numbered(3, 1)])

    def add() -> None:
        add_partitions(bootstrap, topics.input, 3)
        produce(bootstrap, topics.input, _numbered(5, 2))

    with closing(Source(settings, positions, admin.identities)) as source:
        await_partitions(source, 2)
        if running:
            add()
            assert _read(source, source.batch(), 5) == [0, 1, 2, 3, 4]
            return
        positions |= source.positions_after(source.batch())
    add()
    with closing(Source(settings, positions, admin.identities)) as source:
        assert _read(source, source.batch(), 5) == [0, 1, 2, 3, 4]


def test_topic_that_is_made_anew_while_it_is_read_ends_the_reading(bootstrap: str) -> None:
    """Under the offsets that were already read, it now holds something else."""
    topics = named_topics()
    settings = _settings(bootstrap, topics, "kafka.topic.metadata.refresh.interval.ms=100")
    create_topic(bootstrap, topics.input)
    produce(bootstrap, topics.input, _numbered(4))
    with closing(Source(settings, {}, AdminTopics(settings).identities)) as source:
        batch = source.batch()
        _read(source, batch, 4)
        source.advance(batch, source.positions_after(batch))
        _anew(bootstrap, topics.input)
        with pytest.raises(BrokerError, match=f"{topics.input} was deleted and recreated"):
            _read(source, source.batch(), 1)


def test_group_knows_where_the_state_stands(bootstrap: str) -> None:
    """Even of partitions in which nothing has arrived since the group took over."""
    topics = named_topics()
    settings = _settings(bootstrap, topics)
    create_topic(bootstrap, topics.input, 2)
    produce(bootstrap, topics.input, [*_numbered(4, 0), *_numbered(5, 1)])
    with closing(Source(settings, {(topics.input, 0): 4, (topics.input, 1): 2})) as source:
        _read(source, source.batch(), 3)
        wait_until(lambda: _committed(bootstrap, topics, 2) == [4, 2], "the group is told")


@pytest.mark.usefixtures("looks_in")
def test_another_reader_of_the_group_is_told(bootstrap: str) -> None:
    """Two indexes with one group would each see some of the articles, and take copies of the others for new."""
    topics = named_topics()
    settings = _settings(bootstrap, topics, "kafka.topic.metadata.refresh.interval.ms=100")
    create_topic(bootstrap, topics.input, 2)

    def told() -> list[MutableMapping[str, Any]]:
        return [event for event in logged if event["event"] == "partitions_elsewhere"]

    with capture_logs() as logged, closing(Source(settings, {})) as source:
        batch, stopping = source.batch(), threading.Event()
        await_partitions(source, 2)
        for _ in range(5):
            time.sleep(0.15)
            source.take(batch, stopping)
        assert not told()
        with closing(Source(_settings(bootstrap, topics), {})) as other:
            await_shared(source, other)

            def look() -> bool:
                source.take(batch, stopping)
                other.keep_alive()
                return bool(told())

            wait_until(look, "the warning")
            (place,) = other.assigned
    (event,) = told()
    assert (event["partitions"], event["first"]) == (1, f"{place[0]}/{place[1]}")


def test_reader_of_another_kind_in_the_group_is_named_as_the_cause(bootstrap: str) -> None:
    """The broker's words for it, an inconsistent group protocol, name neither the cause nor the remedy."""
    topics = named_topics()
    create_topic(bootstrap, topics.input)
    other = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topics.group, "partition.assignment.strategy": "roundrobin"}
    )
    with closing(other):
        other.subscribe([topics.input])
        wait_until(lambda: other.poll(0.1) is None and bool(other.assignment()), "the other one has the partition")
        # Only now: whichever of the two joins first is the one that the broker keeps.
        with closing(Source(_settings(bootstrap, topics), {})) as source:
            batch = source.batch()

            def refused() -> bool:
                other.poll(0)
                source.take(batch, threading.Event())
                return False

            with pytest.raises(
                BrokerError, match=r"the group that input\.group names has a member that is not this service"
            ):
                wait_until(refused, "the refusal")


def test_batch_is_bounded_by_its_bytes(bootstrap: str) -> None:
    """A batch is full once its values have `commit.bytes`, however few they are: the bound on the memory it takes."""
    topics = named_topics()
    settings = _settings(
        bootstrap, topics, "commit.articles=1000", f"commit.bytes={1 << 20}", "commit.interval_ms=10000"
    )
    create_topic(bootstrap, topics.input, 1)
    produce(bootstrap, topics.input, [Incoming(b"%04d" % number * 5_000) for number in range(200)])
    with closing(Source(settings, {})) as source:
        batch, stopping = source.batch(), threading.Event()
        read_until(source, batch, lambda: batch.size >= 1 << 20)
        assert not source.take(batch, stopping), "it takes no more"
        source.take_at_once(batch)
        assert sum(len(message) for message in batch.messages) < 3 << 20, "the last piece of 64 is taken whole"


def _committed(bootstrap: str, topics: Topics, partitions: int) -> list[int]:
    places = [TopicPartition(topics.input, partition) for partition in range(partitions)]
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as consumer:
        return [place.offset for place in consumer.committed(places, timeout=ADMIN_SECONDS)]


def test_expressions_are_pythons_and_take_in_none_of_the_indexs_topics(bootstrap: str) -> None:
    """Neither the index's own topics nor Kafka's, whether they exist already or are created later."""
    group = named_topics().group
    settings = load_settings(
        flags=[
            f"kafka.bootstrap.servers={bootstrap}",
            rf"input.topics=^{group}\.(?!beta)\w+,^__.*",
            f"input.group={group}",
            "kafka.topic.metadata.refresh.interval.ms=100",
        ]
    )
    for name in ("beta", "owner", "changelog.00112233", "changelog.44556677", "alpha"):
        create_topic(bootstrap, f"{group}.{name}")
        produce(bootstrap, f"{group}.{name}", _numbered(1))
    with closing(Source(settings, {})) as source:
        batch = source.batch()
        _read(source, batch, 1)
        create_topic(bootstrap, f"{group}.owners")
        produce(bootstrap, f"{group}.owners", _numbered(1))
        _read(source, batch, 2)
        assert {place for place, _ in source.assigned} == {f"{group}.alpha", f"{group}.owners"}


def test_topic_that_is_missing_among_others_is_known_until_it_is_there(bootstrap: str) -> None:
    """Nothing else would show it: the others are read, and there is no lag."""
    topics = named_topics()
    named = f"input.topics={topics.input},{topics.input}.more,^{topics.input}.expected"
    settings = _settings(bootstrap, topics, named, "kafka.topic.metadata.refresh.interval.ms=100")
    create_topic(bootstrap, topics.input)
    with closing(Source(settings, {})) as source:
        assert not source.unread_topics
        await_partitions(source, 1)
        assert source.unread_topics == {f"{topics.input}.more"}
        create_topic(bootstrap, f"{topics.input}.more")
        await_partitions(source, 2)
        assert not source.unread_topics


def test_nothing_is_read_where_no_topic_is_taken_in(bootstrap: str) -> None:
    """An expression may wait for its first topic; that is told, since it may also be wrong."""
    group = named_topics().group
    settings = load_settings(
        flags=[
            f"kafka.bootstrap.servers={bootstrap}",
            rf"input.topics=^{group}\.in",
            f"input.group={group}",
            "kafka.topic.metadata.refresh.interval.ms=100",
        ]
    )
    with capture_logs() as logged:
        source = Source(settings, {})
    (waits,) = logged
    assert (waits["event"], waits["error"]) == ("input_waits", "UNKNOWN_TOPIC_OR_PART")
    assert waits["detail"] == rf"no topic matches ^{group}\.in"
    with closing(source):
        batch = source.batch()
        assert not source.take(batch, threading.Event())
        source.keep_alive()
        assert source.lag() == {}
        create_topic(bootstrap, f"{group}.in")
        produce(bootstrap, f"{group}.in", _numbered(1))
        assert _read(source, batch, 1) == [0]
        # At full load messages are only ever read ahead.
        create_topic(bootstrap, f"{group}.in.too")
        produce(bootstrap, f"{group}.in.too", _numbered(1))

        def both() -> bool:
            source.take_at_once(batch)
            return len(batch.messages) == 2

        wait_until(both, "the message of the second topic")


def test_identity_that_is_told_late_is_known_from_then_on(bootstrap: str) -> None:
    """A broker that does not answer at first is asked again; the state learns it without waiting for a message."""
    topics, identities = named_topics(), dict[str, int]()
    create_topic(bootstrap, topics.input)
    settings = _settings(bootstrap, topics, "kafka.topic.metadata.refresh.interval.ms=100")
    with closing(Source(settings, {}, lambda _: identities)) as source:
        batch = source.batch()
        wait_until(lambda: not source.take(batch, threading.Event()) and bool(source.assigned), "the partition")
        assert source.unrecorded() == {}
        identities[topics.input] = 7
        wait_until(lambda: not source.take(batch, threading.Event()) and bool(source.unrecorded()), "the identity")
        assert source.unrecorded() == {(topics.input, IDENTITY): 7}
        source.mark_recorded(source.unrecorded())
        assert source.unrecorded() == {}
        identities[topics.input] = 8
        with pytest.raises(BrokerError, match="recreated"):
            _read(source, batch, 1)


@pytest.mark.usefixtures("looks_in")
def test_topic_that_is_made_anew_amid_a_commit_stands_at_its_beginning(bootstrap: str) -> None:
    """The commit was of the old topic; the state learns of the new one with the next commit, the group at once."""
    topics = named_topics()
    soon, told = "kafka.topic.metadata.refresh.interval.ms=100", "commit.guarantee=at_least_once"
    settings = _settings(bootstrap, topics, soon, told)
    create_topic(bootstrap, topics.input)
    produce(bootstrap, topics.input, _numbered(4))
    with closing(Source(settings, {}, AdminTopics(settings).identities)) as source:
        batch = source.batch()
        _read(source, batch, 4)
        behind = source.positions_after(batch)
        delete_topic(bootstrap, topics.input)
        _await_rebalances(source, 1)  # taken
        create_topic(bootstrap, topics.input)
        produce(bootstrap, topics.input, _numbered(7))
        _await_rebalances(source, 1)  # given
        source.advance(batch, behind)
        noted = source.unrecorded()
        assert in_input(noted) == {(topics.input, 0): 0}
        assert noted[topics.input, IDENTITY] != behind[topics.input, IDENTITY]
        assert _read(source, source.batch(), 7) == list(range(7))
        wait_until(lambda: _committed(bootstrap, topics, 1) == [0], "the group is told")


@pytest.mark.usefixtures("looks_in")
def test_group_is_not_set_back_behind_what_is_being_committed(
    hasty: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group may already know a position for a partition that is reassigned during a commit."""
    told: list[dict[Place, int]] = []
    topics = named_topics()
    create_topic(hasty.bootstrap, topics.input, 2)
    produce(hasty.bootstrap, topics.input, _numbered(_PIECE))
    with closing(Source(_hasty_settings(hasty, topics), {(topics.input, 0): 2, (topics.input, 1): 0})) as source:
        monkeypatch.setattr(source, "_tell_group", lambda positions: told.append(dict(positions)))
        batch = source.batch()
        _read(source, batch, _PIECE - 2)
        time.sleep(1.5 * _SOON_MS / 1000)
        _await_rebalances(source, 2)  # lost, given
    assert told == [{(topics.input, 0): 2, (topics.input, 1): 0}, {(topics.input, 1): 0}]


@pytest.mark.usefixtures("looks_in")
def test_identity_that_is_told_amid_a_commit_puts_nothing_back(hasty: KafkaBroker) -> None:
    """The commit is of the same topic, of which only the name was known when it began."""
    topics, identities = named_topics(), dict[str, int]()
    create_topic(hasty.bootstrap, topics.input)
    produce(hasty.bootstrap, topics.input, _numbered(_PIECE + 3))
    with closing(Source(_hasty_settings(hasty, topics), {}, lambda _: identities)) as source:
        batch = source.batch()
        _read(source, batch, _PIECE)
        behind = source.positions_after(batch)
        identities[topics.input] = 7
        time.sleep(1.5 * _SOON_MS / 1000)
        _await_rebalances(source, 2)  # lost, given
        source.advance(batch, behind)
        assert source.unrecorded() == {(topics.input, IDENTITY): 7}
        assert _read(source, source.batch(), 3) == [_PIECE, _PIECE + 1, _PIECE + 2]


def _losses(logged: list[MutableMapping[str, Any]]) -> list[tuple[int, int]]:
    return [(event["read_to"], event["goes_on"]) for event in logged if event["event"] == "input_lost"]


def test_partition_that_lost_its_end_is_read_on_there(hasty: KafkaBroker) -> None:
    """Nothing that is left is read again, at a start or while reading, when new messages reuse the old offsets."""
    topics = named_topics()
    settings = _settings(hasty.bootstrap, topics)
    create_topic(hasty.bootstrap, topics.input)
    for _ in range(4):
        produce(hasty.bootstrap, topics.input, _numbered(_PIECE // 2))
    behind_end, end = {(topics.input, 0): 2 * _PIECE}, 3 * _PIECE // 2
    lose_end(hasty, topics.input, end)
    with closing(Source(settings, behind_end)) as source, capture_logs() as logged:
        batch = source.batch()

        def found() -> bool:
            source.take(batch, threading.Event())
            return bool(_losses(logged))

        wait_until(found, "the loss")
        produce(hasty.bootstrap, topics.input, _numbered(_PIECE))
        assert _read(source, batch, _PIECE) == list(range(end, end + _PIECE))
        assert _losses(logged) == [(2 * _PIECE, end)]
        assert source.lost == 2 * _PIECE - end
        source.advance(batch, batch.positions())
        # Messages that were read ahead are lost; by the time that shows, others have taken their place.
        produce(hasty.bootstrap, topics.input, _numbered(_PIECE))
        ahead, after = source.batch(), source.batch()
        _read(source, ahead, _PIECE)
        lose_end(hasty, topics.input, end + _PIECE)
        produce(hasty.bootstrap, topics.input, _numbered(2 * _PIECE))
        assert _read(source, after, _PIECE) == list(range(end + _PIECE, end + 2 * _PIECE))
        assert _losses(logged)[1:] == [(end + 2 * _PIECE, end + _PIECE)]
        assert source.lost == 3 * _PIECE - end
        assert not source.holds(ahead)


class _Client:
    """A client that does something else once, as none does at will; otherwise what a real one does."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._consumer, name)


class _Deaf(_Client):
    """It does not learn which offsets a partition has, the first time it asks."""

    def get_watermark_offsets(self, place: TopicPartition, **how: Any) -> tuple[int, int]:  # noqa: ANN401  # the client's
        if not how.get("cached"):
            self.asked += 1
            if self.asked == 1:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
        return self._consumer.get_watermark_offsets(place, **how)


def test_partition_that_lost_its_end_waits_until_the_broker_tells_where_that_is(
    hasty: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader is often away just then; the process goes on, and the partition with it."""
    monkeypatch.setattr(losses, "_PAUSE_SECONDS", 0.0)
    topics, end = named_topics(), _PIECE // 2
    create_topic(hasty.bootstrap, topics.input)
    for _ in range(2):
        produce(hasty.bootstrap, topics.input, _numbered(_PIECE // 2))
    lose_end(hasty, topics.input, end)
    with closing(Source(_settings(hasty.bootstrap, topics), {(topics.input, 0): _PIECE})) as source:
        source._consumer = client = _Deaf(source._consumer)  # type: ignore[assignment]  # noqa: SLF001  # as far as it is used
        batch = source.batch()
        with capture_logs() as logged:
            read_until(source, batch, lambda: bool(_losses(logged)), _TURN_SECONDS)
        assert client.asked == 2
        produce(hasty.bootstrap, topics.input, _numbered(_PIECE))
        assert _read(source, batch, _PIECE) == list(range(end, end + _PIECE))


def _decided(broker: KafkaBroker, topics: Topics) -> dict[Place, int]:
    """Return the positions behind two commits of all that a new topic holds."""
    create_topic(broker.bootstrap, topics.input)
    for _ in range(4):
        produce(broker.bootstrap, topics.input, _numbered(_PIECE // 2))
    with closing(Source(_settings(broker.bootstrap, topics), {})) as source:
        for _ in range(2):
            batch = source.batch()
            _read(source, batch, _PIECE)
            positions = source.positions_after(batch)
            source.advance(batch, positions)
    return positions


@pytest.mark.parametrize("grows", ["before the start", "while the loss is told"])
def test_log_that_has_lost_its_end_and_grown_past_the_position_is_read_from_that_end(
    hasty: KafkaBroker, monkeypatch: pytest.MonkeyPatch, grows: str
) -> None:
    """What is now before the position was decided by nobody: only its leader epoch tells."""
    topics, end = named_topics(), 3 * _PIECE // 2
    positions = _decided(hasty, topics)
    lose_end(hasty, topics.input, end)

    def grow() -> None:
        produce(hasty.bootstrap, topics.input, _numbered(2 * _PIECE))

    if grows == "before the start":
        grow()
    with closing(Source(_settings(hasty.bootstrap, topics), positions)) as source, capture_logs() as logged:
        if grows != "before the start":
            told = source._resume_after_loss  # noqa: SLF001  # what the client tells first

            def grow_first(*loss: Any) -> None:  # noqa: ANN401  # whatever is told
                monkeypatch.setattr(source, "_resume_after_loss", told)
                grow()
                told(*loss)

            monkeypatch.setattr(source, "_resume_after_loss", grow_first)
        assert _read(source, source.batch(), _PIECE) == list(range(end, end + _PIECE))
        assert _losses(logged)[-1] == (2 * _PIECE, end)


class _Hesitant(_Client):
    """It refuses to seek the first time."""

    def seek(self, place: TopicPartition) -> None:
        self.asked += 1
        if self.asked == 1:
            raise KafkaException(KafkaError(KafkaError._STATE))  # noqa: SLF001  # librdkafka's name
        self._consumer.seek(place)


@pytest.mark.parametrize("refuses", [False, True])
def test_log_of_a_new_leader_that_has_lost_nothing_is_read_on(hasty: KafkaBroker, *, refuses: bool) -> None:
    """Each message once, although the first is delivered twice; whether or not the client is ready to be asked."""
    topics = named_topics()
    positions = _decided(hasty, topics)
    hasty.kill()
    hasty.restart()
    produce(hasty.bootstrap, topics.input, _numbered(2 * _PIECE))
    with closing(Source(_settings(hasty.bootstrap, topics), positions)) as source, capture_logs() as logged:
        client = _Hesitant(source._consumer)  # noqa: SLF001  # no client refuses at will
        if refuses:
            source._consumer = client  # type: ignore[assignment]  # noqa: SLF001  # as far as it is used
        batch, after = source.batch(), source.batch()
        assert _read(source, batch, _PIECE) == list(range(2 * _PIECE, 3 * _PIECE))
        assert _read(source, after, _PIECE) == list(range(3 * _PIECE, 4 * _PIECE))
        assert (_losses(logged), client.asked > 0) == ([], refuses)


def test_message_of_a_later_leader_whose_partition_has_just_been_revoked_is_dropped(bootstrap: str) -> None:
    """The client hands out both in one call: there is nothing left to ask the broker about."""
    topics = named_topics()
    create_topic(bootstrap, topics.input)
    place, partition = (topics.input, 0), TopicPartition(topics.input, 0)
    with closing(Source(_settings(bootstrap, topics), {place: 5, epoch_at(place): 0})) as source:
        source._assigned(source._consumer, [partition])  # noqa: SLF001  # as the client calls it
        source._revoked(source._consumer, [partition])  # noqa: SLF001  # the same
        source._consumer.incremental_unassign([partition])  # noqa: SLF001  # as the client does next
        late = ArrivedMessage(b"", offset=7, partition=0, topic=topics.input, epoch=3)
        source._hold([late])  # type: ignore[list-item]  # noqa: SLF001  # as far as is asked
        assert held(source, place) == 0


class _Loss(NamedTuple):
    source: Source
    place: Place
    ahead: MessageBatch  # under way
    behind: dict[Place, int]  # the positions after it
    logged: list[MutableMapping[str, Any]]


@contextmanager
def _losing(hasty: KafkaBroker, end: int, more: int) -> Iterator[_Loss]:
    """Commit the first messages, lose the end of the topic while the others are under way, and let more come."""
    topics = named_topics()
    create_topic(hasty.bootstrap, topics.input)
    for _ in range(4):
        produce(hasty.bootstrap, topics.input, _numbered(_PIECE // 2))
    place = (topics.input, 0)
    with closing(Source(_settings(hasty.bootstrap, topics), {place: 0})) as source, capture_logs() as logged:
        first, ahead, after = source.batch(), source.batch(), source.batch()
        _read(source, first, _PIECE)
        source.advance(first, source.positions_after(first))
        _read(source, ahead, _PIECE)
        behind = source.positions_after(ahead)
        lose_end(hasty, topics.input, end)
        produce(hasty.bootstrap, topics.input, _numbered(more))
        read_until(source, after, lambda: bool(_losses(logged)), _TURN_SECONDS)
        assert _losses(logged) == [(2 * _PIECE, end)]
        assert not source.holds(ahead)
        yield _Loss(source, place, ahead, behind, logged)


@pytest.mark.parametrize("committed", [False, True])
def test_loss_of_what_is_committed_is_not_forgotten(hasty: KafkaBroker, *, committed: bool) -> None:
    """The end is lost to before the state's position, while messages are under way, or amid their commit."""
    half = _PIECE // 2
    with _losing(hasty, half, 3 * _PIECE) as (source, place, ahead, behind, logged):
        # A new leader makes the client look once more: what was read before the loss does not tell how far it is now.
        source._resume_after_loss(place, 0, "a new leader")  # noqa: SLF001  # as when the client tells it
        assert _losses(logged)[1:] == [(half, half)]
        if committed:
            source.advance(ahead, behind)
        assert source.unrecorded() == {place: half}
        assert source.rewind()
        again = source.batch()
        assert _read(source, again, _PIECE) == list(range(half, half + _PIECE))
        assert source.holds(again)
        source.advance(again, source.positions_after(again))
        assert source.unrecorded() == {}
        assert source.positions_after(source.batch()) == {}


@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_left_of_messages_under_way_is_read_again(hasty: KafkaBroker, *, recorded: bool) -> None:
    """A batch has lost its last messages before its commit: the others are still there, and nobody has decided them."""
    with _losing(hasty, 3 * _PIECE // 2, _PIECE) as (source, place, *_):
        assert source.unrecorded() == {place: _PIECE}
        if recorded:
            source.mark_recorded(source.unrecorded())
            assert source.unrecorded() == {}
        assert source.rewind()
        assert source.unrecorded() == {place: _PIECE}
        again = source.batch()
        assert _read(source, again, _PIECE) == list(range(_PIECE, 2 * _PIECE))
        source.advance(again, source.positions_after(again))
        assert source.unrecorded() == {}


def test_partitions_that_are_just_being_started_are_rewound(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit has failed, and the group's news is a loss. The client often refuses to seek where it starts."""
    topics, partitions = named_topics(), _PIECE
    create_topic(bootstrap, topics.input, partitions=partitions)
    produce(bootstrap, topics.input, [Incoming(b"", partition=at) for at in range(partitions)])
    starts = {(topics.input, at): 0 for at in range(partitions)}
    with closing(Source(_settings(bootstrap, topics), starts)) as source:
        batch = source.batch()
        _read(source, batch, partitions)
        monkeypatch.setattr(source, "_look_in", lambda: source._read_from(starts, keep=True))  # noqa: SLF001
        for _ in range(20):
            source.batch().add(batch.messages)  # as if they were read again, which takes a second
            assert source.rewind()
            time.sleep(0.05)  # the client's threads come to rest
        assert len(_read(source, source.batch(), partitions)) == partitions


def test_topic_that_was_made_anew_with_more_partitions_ends_the_reading(bootstrap: str) -> None:
    """Those that stay would be read on at the old topic's offsets, under the new one's identity."""
    topics, identities = named_topics(), dict[str, int]()
    create_topic(bootstrap, topics.input)
    produce(bootstrap, topics.input, _numbered(1))
    identities[topics.input] = 7
    settings = _settings(bootstrap, topics, "kafka.topic.metadata.refresh.interval.ms=100")
    with closing(Source(settings, {}, lambda _: identities)) as source:
        batch = source.batch()
        _read(source, batch, 1)
        source._subscription._look_at = math.inf  # noqa: SLF001  # the group hands out the new partition before the next look
        identities[topics.input] = 8
        add_partitions(bootstrap, topics.input, 2)
        with pytest.raises(BrokerError, match="deleted and recreated"):
            _read(source, batch, 2)
        assert source.unrecorded() == {(topics.input, IDENTITY): 7}


def test_what_is_held_back_is_read_again_as_far_as_it_is_left(hasty: KafkaBroker) -> None:
    """It waits for older messages of another partition while its own partition loses its end and grows again."""
    topics, older = named_topics(), 3_000
    settings = _settings(
        hasty.bootstrap,
        topics,
        "kafka.consumer.queued.max.messages.kbytes=40",
        "kafka.consumer.fetch.queue.backoff.ms=1",
        "commit.articles=4096",
    )
    create_topic(hasty.bootstrap, topics.input, partitions=2)
    now = round(time.time() * 1000)
    for at in range(older // 60):
        old = Incoming(bytes(900), partition=1, timestamp_ms=now - 2 * _DAY_MS + at)
        produce(hasty.bootstrap, topics.input, [old] * 60)
    newer = [Incoming(b"%d" % at, timestamp_ms=now - _DAY_MS + at) for at in range(4 * _PIECE)]
    for at in (0, 1):
        produce(hasty.bootstrap, topics.input, newer[at * _PIECE : (at + 1) * _PIECE])
    place = (topics.input, 0)
    with closing(Source(settings, {})) as source, capture_logs() as logged:
        batch = source.batch()

        read_until(source, batch, lambda: held(source, place) == 2 * _PIECE, _TURN_SECONDS)
        lose_end(hasty, topics.input, _PIECE)
        produce(hasty.bootstrap, topics.input, newer[2 * _PIECE :])
        read_until(source, batch, lambda: bool(_losses(logged)), _TURN_SECONDS)
        assert _losses(logged) == [(2 * _PIECE, _PIECE)]
        assert place not in batch.newest
        read(source, batch, older + 3 * _PIECE)
    values = [message.value() for message in batch.messages if place_of(message) == place]
    assert values == [one.value for one in (*newer[:_PIECE], *newer[2 * _PIECE :])]
