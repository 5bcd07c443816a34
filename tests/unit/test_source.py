"""Reading the input, with a client that has what the test says: what is taken, held, told and counted.

Knows the client's calls; knows nothing of brokers, on which the rest is tested.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import Settings
from stream_dedup.stream.input import source as source_
from stream_dedup.stream.input.source import Lag, Source
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place
from tests.unit.arrived import ArrivedMessage
from tests.unit.clock import Clock

_IN, _OTHER = ("in", 0), ("in", 1)


class _Fault(ArrivedMessage):
    """An error in place of a message."""

    def __init__(self, code: int, place: Place = _IN) -> None:
        super().__init__(b"", partition=place[1], topic=place[0])
        self._code = code

    def error(self) -> KafkaError:  # type: ignore[override]  # not as of a message
        """Return the error."""
        return KafkaError(self._code, "as the broker says")


class _Client:
    """A client that is assigned what the test says at the first call, and hands out what has arrived.

    Attributes:
        arrived: what `consume` hands out, in order.
        asked: how many messages were asked for, and how long it might take, by call.
        ends: offset after the last message, by partition.
        topics: what exists, with its partitions.
        committed: offsets that the group was told, by call.
        started: partitions that were started, with their offsets.
        paused: partitions that deliver nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._positions: dict[Place, int] = {}
        self.arrived: deque[Any] = deque()
        self.asked: list[tuple[int, float]] = []
        self.begins: dict[Place, int] = {}
        self.ends: dict[Place, int] = {}
        self.topics: dict[str, Sequence[int]] = {}
        self.committed: list[dict[Place, int]] = []
        self.started: list[dict[Place, int]] = []
        self.paused: set[Place] = set()
        self.subscribed: list[list[str]] = []
        self.listed = 0
        self.refusal: KafkaError | None = None
        self._callbacks: dict[str, Callable[[Any, list[TopicPartition]], None]] = {}

    def subscribe(self, topics: list[str], **callbacks: Callable[[Any, list[TopicPartition]], None]) -> None:
        self.subscribed.append(topics)
        self._callbacks = callbacks

    def unsubscribe(self) -> None:
        self.subscribed.append([])

    def give(self, *places: Place) -> None:
        """Assign partitions, as the group does."""
        self._callbacks["on_assign"](self, [TopicPartition(*place) for place in places])

    def take(self, *places: Place) -> None:
        """Revoke partitions."""
        self._callbacks["on_revoke"](self, [TopicPartition(*place) for place in places])

    def list_topics(self, *, timeout: float) -> SimpleNamespace:
        assert timeout
        self.listed += 1
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        return SimpleNamespace(
            topics={name: SimpleNamespace(partitions=dict.fromkeys(numbers)) for name, numbers in self.topics.items()}
        )

    def consume(self, most: int, seconds: float) -> list[Any]:
        """Hand out what has arrived of the partitions that are not paused; wait for it in vain otherwise."""
        self.asked.append((most, seconds))
        ready = [one for one in self.arrived if (one.topic(), one.partition()) not in self.paused][:most]
        for one in ready:
            self.arrived.remove(one)
            if one.error() is None:
                self._positions[one.topic(), one.partition()] = one.offset() + 1
        if len(ready) < most:
            self._clock.sleep(seconds)
        return ready

    def position(self, places: list[TopicPartition]) -> list[TopicPartition]:
        return [
            TopicPartition(one.topic, one.partition, self._positions.get((one.topic, one.partition), -1001))
            for one in places
        ]

    def get_watermark_offsets(self, place: TopicPartition, **_: object) -> tuple[int, int]:
        where = place.topic, place.partition
        return self.begins.get(where, 0), self.ends.get(where, -1001)

    def pause(self, places: list[TopicPartition]) -> None:
        self.paused |= {(place.topic, place.partition) for place in places}

    def resume(self, places: list[TopicPartition]) -> None:
        self.paused -= {(place.topic, place.partition) for place in places}

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self.started.append({(place.topic, place.partition): place.offset for place in places})

    def incremental_unassign(self, _places: list[TopicPartition]) -> None:
        """Do nothing."""

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous, "the loop does not wait"
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        self.committed.append({(place.topic, place.partition): place.offset for place in offsets})

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves only while the client waits."""
    made = Clock()
    monkeypatch.setattr(source_, "time", made)
    return made


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> _Client:
    """The client of the sources of a test."""
    made = _Client(clock)
    made.topics = {"in": (0, 1)}
    monkeypatch.setattr(source_, "make_consumer", lambda *_: made)
    return made


Make = Callable[..., Source]


@pytest.fixture
def make(client: _Client) -> Iterator[Make]:  # noqa: ARG001  # must be there first
    """A function that makes a source of the topic `in`, given the state's positions and settings by group."""
    made: list[Source] = []

    def make(positions: dict[Place, int] | None = None, **groups: dict[str, Any]) -> Source:
        given = {"input": {"topics": ["in"]}, **groups}
        source = Source(Settings.model_validate(given), positions or {})
        made.append(source)
        return source

    yield make
    for source in made:
        source.close()


def _messages(count: int, place: Place = _IN, first: int = 0, size: int = 1) -> list[ArrivedMessage]:
    return [ArrivedMessage(bytes(size), 5, first + n, topic=place[0], partition=place[1]) for n in range(count)]


_GOES_ON = threading.Event()


def test_batch_waits_for_its_first_message_and_then_until_it_is_due(make: Make, client: _Client, clock: Clock) -> None:
    """A single message is asked for at first, as the client waits until it has as many; `due` counts from then on."""
    source = make({_IN: 0}, commit={"interval_ms": 100})
    client.give(_IN)
    batch = source.batch()
    assert not source.take(batch, _GOES_ON)
    assert (client.asked, batch.due) == ([(1, 0.1)], None)
    client.arrived += _messages(1)
    assert source.take(batch, _GOES_ON)
    due = clock.now + 0.1
    assert (len(batch.messages), batch.due) == (1, due)
    client.arrived += _messages(3, first=1)
    while clock.now < due:
        assert source.take(batch, _GOES_ON)
        assert client.asked[-1][0] == 64
        assert 0 < client.asked[-1][1] <= 0.01
    assert clock.now == pytest.approx(due)
    assert not source.take(batch, _GOES_ON), "it is due, and nothing has arrived"
    assert client.asked[-1] == (64, 0.0)
    assert (len(batch.messages), batch.due) == (4, due)


@pytest.mark.parametrize(("bounds", "count"), [({"articles": 100}, 100), ({"bytes": 1 << 20}, 64)])
def test_batch_takes_no_more_than_a_commit_may_have(
    make: Make, client: _Client, bounds: dict[str, int], count: int
) -> None:
    """As many messages as are allowed exactly; of large ones, the piece with which the bound in bytes is reached."""
    source = make({_IN: 0}, commit=bounds)
    client.give(_IN)
    client.arrived += _messages(300, size=1 << 14)
    batch = source.batch()
    source.take_at_once(batch)
    assert (len(batch.messages), source.take(batch, _GOES_ON)) == (count, False)
    stopping = threading.Event()
    stopping.set()
    other = source.batch()
    assert not source.take(other, stopping)
    assert not other.messages


def test_errors_end_the_reading_unless_they_pass(make: Make, client: _Client) -> None:
    """What the client recovers from is told; a refusal names the topic; a loss elsewhere is no longer of interest."""
    source = make({_IN: 0})
    client.give(_IN)
    batch = source.batch()
    client.arrived += [_Fault(KafkaError._ALL_BROKERS_DOWN), *_messages(1)]  # noqa: SLF001  # librdkafka's name
    with capture_logs() as logged:
        source.take_at_once(batch)
        source.take(batch, _GOES_ON)
        source.take(batch, _GOES_ON)
    assert [(line["event"], line["error"]) for line in logged] == [("input_waits", "_ALL_BROKERS_DOWN")]
    assert len(batch.messages) == 1
    client.arrived.append(_Fault(KafkaError._AUTO_OFFSET_RESET, _OTHER))  # noqa: SLF001  # the same
    assert (source.take(batch, _GOES_ON), source.lost) == (True, 0)
    client.arrived.append(_Fault(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match="cannot read in: as the broker says"):
        source.take(batch, _GOES_ON)


def test_lag_is_what_is_not_committed_yet(make: Make, client: _Client) -> None:
    """Messages under way, held and to come; the oldest of them is as old as its timestamp, as far as it was read."""
    source = make({_IN: 3, _OTHER: 0}, commit={"articles": 2})
    client.give(_IN, _OTHER)
    assert source.lag() == {}  # the client does not know the ends yet
    client.begins, client.ends = {_IN: 4}, {_IN: 20, _OTHER: 0}
    assert source.lag() == {_IN: Lag(16, None), _OTHER: Lag(0, None)}
    client.arrived += [ArrivedMessage(b"", 1_000 + n, n, partition=0) for n in range(10, 15)]
    batch, ahead = source.batch(), source.batch()
    source.take_at_once(batch)
    source.take_at_once(ahead)
    assert (len(batch.messages), len(ahead.messages)) == (2, 2)
    assert source.lag()[_IN] == Lag(4 + 6, 1_010)
    source.advance(batch, source.positions_after(batch))
    assert source.lag()[_IN] == Lag(2 + 6, 1_012)
    source.advance(ahead, source.positions_after(ahead))
    assert source.lag()[_IN] == Lag(6, 1_013)
    client.ends[_IN] = 14
    assert source.lag()[_IN] == Lag(0, None)
    client.take(_IN)
    assert source.lag() == {_OTHER: Lag(0, None)}


@pytest.mark.parametrize(("guarantee", "told"), [("exactly_once", []), ("at_least_once", [{_IN: 2}])])
def test_group_is_told_of_commits_that_have_no_transaction(
    make: Make, client: _Client, guarantee: str, told: list[dict[Place, int]]
) -> None:
    """A transaction has the offsets in it. A group that does not take them is no reason to stop: nothing reads them."""
    source = make({_IN: 0}, commit={"guarantee": guarantee, "articles": 2})
    client.give(_IN)
    client.committed.clear()
    client.arrived += _messages(4)
    batch, ahead = source.batch(), source.batch()
    source.take_at_once(batch)
    source.take_at_once(ahead)
    source.advance(batch, source.positions_after(batch))
    assert client.committed == told
    client.refusal = KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    with capture_logs() as logged:
        source.advance(ahead, source.positions_after(ahead))
    assert [line["event"] for line in logged] == ["group_commit_failed"] * len(told)


def test_partitions_that_come_are_read_from_the_states_positions(make: Make, client: _Client) -> None:
    """The group is told of them; where the state has none, reading begins at the first message."""
    source = make({_IN: 7})
    client.give(_IN, _OTHER)
    assert client.started == [{_IN: 7, _OTHER: OFFSET_BEGINNING}]
    assert client.committed == [{_IN: 7}]
    assert (source.assigned, source.rebalances) == ({_IN, _OTHER}, 1)
    client.pause([TopicPartition(*_IN)])
    client.take(_IN)
    assert (source.assigned, source.rebalances, client.paused) == ({_OTHER}, 2, set())


def test_group_is_heard_now_and_then_while_nothing_is_read(make: Make, client: _Client, clock: Clock) -> None:
    """What the client hands out all the same is held; what ran ahead stays paused, and the rest is read on."""
    source = make({_IN: 0, _OTHER: 0})
    client.ends = {_IN: 1, _OTHER: 0}
    client.give(_IN, _OTHER)
    batch = source.batch()
    source.take(batch, _GOES_ON)
    asked = len(client.asked)
    clock.now += 4.9
    source.keep_alive()
    assert len(client.asked) == asked
    clock.now += 0.2
    paused: list[set[Place]] = []
    consume = client.consume

    def consume_paused(most: int, seconds: float) -> list[Any]:
        paused.append(set(client.paused))
        assert (most, seconds) == (1, 0.0)
        consume(most, seconds)
        return _messages(1)

    client.consume = consume_paused  # type: ignore[method-assign]  # as a message that was already on its way
    source.keep_alive()
    source.keep_alive()
    assert (paused, client.paused) == ([{_IN, _OTHER}], set())
    client.consume = consume  # type: ignore[method-assign]
    source.take(batch, _GOES_ON)
    assert len(batch.messages) == 1


def test_topics_are_looked_for_as_often_as_the_settings_say(make: Make, client: _Client, clock: Clock) -> None:
    """Expressions at once; names only to see whether they are still the same, so not before something is assigned."""
    every = {"consumer.topic.metadata.refresh.interval.ms": "60000"}
    client.topics = {"in": (0,), "in.two": (0,), "out": (0,)}
    source = make(input={"topics": ["^in"]}, kafka=every)
    batch = source.batch()
    assert (client.subscribed, client.listed) == ([["in", "in.two"]], 1)
    clock.now += 59.0
    source.take(batch, _GOES_ON)
    assert client.listed == 1
    client.topics["in.three"] = (0,)
    clock.now += 1.1
    source.take(batch, _GOES_ON)
    assert client.listed == 2
    assert sorted(client.subscribed[-1]) == ["in", "in.three", "in.two"]
    client.refusal = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # librdkafka's name
    clock.now += 60.0
    with capture_logs() as logged:
        source.take(batch, _GOES_ON)
    assert [(line["event"], line["error"]) for line in logged] == [("input_waits", "_ALL_BROKERS_DOWN")]
    clock.now += 10.1
    source.take(batch, _GOES_ON)
    assert (client.listed, len(client.subscribed)) == (4, 2)  # asked again soon, and read on meanwhile


def test_topics_that_are_named_are_read_without_a_look(make: Make, client: _Client, clock: Clock) -> None:
    """They need no answer. With an interval of -1 nobody looks ever again."""
    client.refusal = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # librdkafka's name
    with capture_logs() as logged:
        source = make(kafka={"consumer.topic.metadata.refresh.interval.ms": "-1"})
    assert (client.subscribed, client.listed, logged[:-1]) == ([["in"]], 0, [])
    client.refusal = None
    client.give(_IN)
    clock.now += 1e9
    source.take(source.batch(), _GOES_ON)
    assert client.listed == 0


def test_partitions_of_another_reader_are_told_at_the_second_look(make: Make, client: _Client, clock: Clock) -> None:
    """At the first they may be on their way. Partitions of topics that are not read are none of the input's."""
    source = make(kafka={"consumer.topic.metadata.refresh.interval.ms": "1000"})
    client.topics = {"in": (0, 1, 2), "out": (0,)}
    client.give(_IN)
    batch = source.batch()
    looks: list[list[tuple[str, int, str]]] = []
    for given in ((), (_OTHER,), ()):
        client.give(*given)
        clock.now += 1.1
        with capture_logs() as logged:
            source.take(batch, _GOES_ON)
        events = [line for line in logged if line["event"] == "partitions_elsewhere"]
        looks.append([(line["error"], line["partitions"], line["first"]) for line in events])
    assert looks == [[], [("shared_group", 1, "in/2")], []]  # the third look's is held back as a repetition


def test_topics_of_which_nothing_is_read_are_named_once_others_are(make: Make, client: _Client) -> None:
    """Before that, all are still to come; expressions match what there is."""
    source = make(input={"topics": ["in", "more", "^other"]})
    assert source.unread_topics == set()
    client.give(_IN)
    assert source.unread_topics == {"more"}
    client.give(("more", 0))
    assert source.unread_topics == set()


def test_identity_of_a_topic_is_committed_with_the_first_messages(client: _Client) -> None:
    """The state records it once; the group gets it with each offset."""
    settings = Settings.model_validate({"input": {"topics": ["in"]}, "commit": {"articles": 2}})
    with closing(Source(settings, {_IN: 0}, lambda topics: dict.fromkeys(topics, 77))) as source:
        client.give(_IN)
        client.arrived += _messages(4)
        first, second = source.batch(), source.batch()
        source.take_at_once(first)
        positions = source.positions_after(first)
        assert positions == {_IN: 2, ("in", IDENTITY): 77}
        assert source.offsets_after(first) == positions
        source.advance(first, positions)
        source.take_at_once(second)
        assert source.positions_after(second) == {_IN: 4}
        assert source.offsets_after(second) == {_IN: 4, ("in", IDENTITY): 77}
