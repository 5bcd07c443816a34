"""Reading the input, with a client that has what the test says: what is taken, held, told and counted.

Knows the client's calls; knows nothing of brokers, on which the rest is tested.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import Settings
from stream_dedup.stream.input import losses, time_order
from stream_dedup.stream.input import source as source_
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.positions import Identify
from stream_dedup.stream.input.source import Lag, Source
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place, epoch_at, offset_of
from tests.unit.arrived import ArrivedMessage
from tests.unit.clock import Clock

_IN, _OTHER = ("in", 0), ("in", 1)


class _Fault(ArrivedMessage):
    """An error in place of a message."""

    def __init__(self, code: int, place: Place = _IN, offset: int = 0, told: str = "as the broker says") -> None:
        super().__init__(b"", offset=offset, partition=place[1], topic=place[0])
        self._code = code
        self._told = told

    def error(self) -> KafkaError:  # type: ignore[override]  # not as of a message
        """Return the error."""
        return KafkaError(self._code, self._told)


class _Client:
    """A client that is assigned what the test says at the first call, and hands out what has arrived.

    Attributes:
        arrived: what `consume` hands out, in order.
        asked: how many messages were asked for, and how long it might take, by call.
        ends: offset after the last message, by partition.
        topics: what exists, with its partitions.
        committed: offsets that the group was told, by call.
        started: partitions that were started, with their offsets, by call.
        unassigned: partitions that were taken from the client by the source, to be started elsewhere.
        sought: partitions that were sought, with their offsets and leader epochs.
        meanwhile: called by `consume`, as the client calls back.
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
        self.unassigned: list[Place] = []
        self.sought: list[tuple[Place, int, int | None]] = []
        self.meanwhile: Callable[[], None] = lambda: None
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
        self.meanwhile()
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

    def offsets_for_times(self, places: list[TopicPartition], _seconds: float) -> list[TopicPartition]:
        """Return the ends: what `ends` asks for."""
        return [
            TopicPartition(one.topic, one.partition, self.ends.get((one.topic, one.partition), -1)) for one in places
        ]

    def get_watermark_offsets(self, place: TopicPartition, **how: object) -> tuple[int, int]:
        where = place.topic, place.partition
        if "cached" not in how and self.refusal is not None:
            raise KafkaException(self.refusal)
        return self.begins.get(where, 0), self.ends.get(where, -1001)

    def pause(self, places: list[TopicPartition]) -> None:
        self.paused |= {(place.topic, place.partition) for place in places}

    def resume(self, places: list[TopicPartition]) -> None:
        self.paused -= {(place.topic, place.partition) for place in places}

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self.started.append({(place.topic, place.partition): place.offset for place in places})

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        self.unassigned += [(place.topic, place.partition) for place in places]

    def seek(self, place: TopicPartition) -> None:
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        self.sought.append(((place.topic, place.partition), place.offset, place.leader_epoch))

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

    def make(
        positions: dict[Place, int] | None = None, identify: Identify = lambda _: {}, **groups: dict[str, Any]
    ) -> Source:
        given = {"input": {"topics": ["in"]}, **groups}
        source = Source(Settings.model_validate(given), positions or {}, identify)
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
    client.begins, client.ends = {_IN: 1}, {_IN: 20, _OTHER: 0}
    assert source.lag() == {_IN: Lag(17, None), _OTHER: Lag(0, None)}
    client.begins = {_IN: 4}  # the one before it was deleted unread
    assert source.lag()[_IN] == Lag(16, None)
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
    client.refusal, client.topics = None, {"out": (0,)}
    clock.now += 60.0
    source.take(batch, _GOES_ON)
    assert client.subscribed[-1] == []


def test_broker_that_does_not_answer_is_told_as_such(make: Make, client: _Client) -> None:
    """Not as an expression that matches nothing: nobody knows yet whether it does."""
    client.refusal = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # librdkafka's name
    with capture_logs() as logged:
        make(input={"topics": ["^in"]})
    assert [line["error"] for line in logged] == ["_ALL_BROKERS_DOWN"]


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


def test_names_are_read_on_while_the_broker_does_not_list_them(make: Make, client: _Client, clock: Clock) -> None:
    """The next look is as far away as ever: reading tells what is wrong."""
    source = make({_IN: 0}, kafka={"consumer.topic.metadata.refresh.interval.ms": "60000"})
    client.give(_IN)
    clock.now += 60.1
    client.refusal = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # librdkafka's name
    with capture_logs() as logged:
        source.take(source.batch(), _GOES_ON)
    assert (client.listed, logged) == (1, [])


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


def test_identity_of_a_topic_is_committed_with_the_first_messages(make: Make, client: _Client) -> None:
    """The state records it once; the group gets it with each offset."""
    source = make({_IN: 0}, lambda topics: dict.fromkeys(topics, 77), commit={"articles": 2})
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


# ------------------------------------------------------------------------------------------------ held back


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a silent partition be waited for, however slow the machine is."""
    monkeypatch.setattr(time_order, "_SILENCE_SECONDS", 1e9)


def _timed(times: Sequence[int], place: Place = _IN, first: int = 0) -> list[ArrivedMessage]:
    return [ArrivedMessage(b"", time, first + n, topic=place[0], partition=place[1]) for n, time in enumerate(times)]


def _offsets(batch: MessageBatch) -> list[tuple[int, int]]:
    return [(int(message.partition() or 0), offset_of(message)) for message in batch.messages]


@pytest.mark.usefixtures("patient")
def test_source_goes_back_to_what_is_not_committed(make: Make, client: _Client) -> None:
    """What was read, and what is held of the same partitions, is read again: each message once, in order of time."""
    source = make({_IN: 3, _OTHER: 0}, commit={"articles": 2})
    client.ends = {_IN: 8, _OTHER: 2}
    client.give(_IN, _OTHER)
    client.arrived += [*_timed(range(1_006, 1_016, 2), first=3), *_timed([1_011], _OTHER)]
    first, second, third = source.batch(), source.batch(), source.batch()
    for batch in (first, second, third):
        source.take_at_once(batch)
    assert [_offsets(one) for one in (first, second, third)] == [[(0, 3), (0, 4)], [(0, 5), (1, 0)], []]
    assert source.lag()[_IN] == Lag(3 + 2, 1_006)  # two of them are held
    source.advance(first, source.positions_after(first))
    assert source.lag()[_IN] == Lag(1 + 2, 1_010)
    source.take(third, _GOES_ON)
    assert client.asked[-1] == (1, 0.01)  # what is held may be due before anything arrives
    assert source.rewind()
    assert (client.started[-1], sorted(client.unassigned)) == ({_IN: 5, _OTHER: 0}, [_IN, _OTHER])
    assert (source.lag()[_IN].messages, source.holds(second)) == (0, True)
    client.arrived += [*_timed([1_010, 1_012, 1_014], first=5), *_timed([1_011, 1_015], _OTHER)]
    again = [source.batch() for _ in range(3)]
    for batch in again:
        source.take_at_once(batch)
    assert [_offsets(one) for one in again] == [[(0, 5), (1, 0)], [(0, 6), (0, 7)], [(1, 1)]]


@pytest.mark.usefixtures("patient")
def test_all_that_is_due_is_taken_even_if_nothing_more_arrives(make: Make, client: _Client) -> None:
    """More than a piece is held; it is due at once when the other partition has caught up."""
    source = make({_IN: 0, _OTHER: 0})
    client.ends = {_IN: 150, _OTHER: 1}
    client.give(_IN, _OTHER)
    client.arrived += _timed(range(1_000, 1_150))
    batch = source.batch()
    source.take_at_once(batch)
    assert batch.messages == []
    client.arrived += _timed([2_000], _OTHER)
    source.take_at_once(batch)
    assert _offsets(batch) == [*((0, offset) for offset in range(150)), (1, 0)]


@pytest.mark.usefixtures("patient")
def test_partition_that_runs_ahead_is_paused_until_it_is_read_from_elsewhere(
    make: Make, client: _Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the group during a commit leaves it paused; once it is begun anew, the client has to read it."""
    monkeypatch.setattr(time_order, "_HELD_BYTES", 0)
    monkeypatch.setattr(time_order, "_LEAST_SHARE_BYTES", 0)
    source = make({_IN: 0, _OTHER: 0}, commit={"articles": 1})
    client.ends = {_IN: 3, _OTHER: 0}
    client.give(_IN, _OTHER)
    client.arrived += _messages(1)
    batch = source.batch()
    source.take_at_once(batch)
    assert (_offsets(batch), client.paused) == ([(0, 0)], set())
    client.ends[_OTHER] = 1
    client.arrived += _messages(2, first=1)
    source.take_at_once(source.batch())
    assert (client.paused, len(client.arrived)) == ({_IN}, 1)
    clock.now += 6.0
    source.keep_alive()
    assert client.paused == {_IN}
    assert source.rewind()
    assert client.paused == set()


@pytest.mark.usefixtures("patient")
def test_what_is_held_of_a_partition_that_goes_elsewhere_is_dropped(make: Make, client: _Client) -> None:
    """Its new reader takes it; if it comes back, it is read from the state's position."""
    source = make({_IN: 0, _OTHER: 0})
    client.ends = {_IN: 2, _OTHER: 1}
    client.give(_IN, _OTHER)
    client.arrived += _timed([1_000, 1_001])
    batch = source.batch()
    source.take_at_once(batch)
    assert source.lag()[_IN].messages == 2
    client.take(_IN)
    client.arrived += _timed([1_002], _OTHER)
    source.take_at_once(batch)
    assert _offsets(batch) == [(1, 0)]


# ------------------------------------------------------------------------------------------------ moved


def test_partition_that_moved_amid_its_commit_is_read_on_behind_it(make: Make, client: _Client) -> None:
    """It was begun before it. What was read ahead of the other one, which stayed, is not read again."""
    source = make({_IN: 0, _OTHER: 0}, commit={"articles": 2})
    client.give(_IN, _OTHER)
    client.ends = {_IN: 1, _OTHER: 2}
    client.arrived += [*_timed([1_000]), *_timed([1_001, 1_002], _OTHER)]
    batch, ahead = source.batch(), source.batch()
    source.take_at_once(batch)
    source.take_at_once(ahead)
    assert (_offsets(batch), _offsets(ahead)) == ([(0, 0), (1, 0)], [(1, 1)])
    client.take(_IN)
    client.committed.clear()
    client.give(_IN)
    assert client.committed == [{}]  # the group may know of the commit already
    assert client.started[-1] == {_IN: OFFSET_BEGINNING}  # the state has nothing of it yet
    assert (source.holds(batch), source.holds(ahead)) == (False, True)
    source.advance(batch, source.positions_after(batch))
    assert client.started[-1] == {_IN: 1}
    assert not client.unassigned.count(_OTHER)


def test_partition_that_is_elsewhere_after_its_commit_is_left_there(make: Make, client: _Client) -> None:
    """The client would refuse to begin it, or read what is another's."""
    source = make({_IN: 0, _OTHER: 0})
    client.give(_IN, _OTHER)
    client.ends = {_IN: 1, _OTHER: 1}
    client.arrived += [*_timed([1_000]), *_timed([1_001], _OTHER)]
    batch = source.batch()
    source.take_at_once(batch)
    client.take(_OTHER)
    source.advance(batch, source.positions_after(batch))
    assert client.started[-1] == {_IN: 1}


def test_source_cannot_go_back_where_a_partition_has_moved(make: Make, client: _Client) -> None:
    """It may be another's by now, and this may show only when the group is asked."""
    source = make({_IN: 0})
    client.give(_IN)
    client.arrived += _messages(2)
    batch = source.batch()
    source.take_at_once(batch)
    started = len(client.started)
    client.meanwhile = lambda: client.take(_IN)
    assert not source.rewind()
    assert len(client.started) == started


@pytest.mark.parametrize("end", ["latest", "largest", "end"])
def test_beginning_at_the_end_holds_for_what_was_there(make: Make, client: _Client, end: str) -> None:
    """Partitions that are added later are read whole. The group is told of neither before the state knows of it."""
    latest = {"consumer.auto.offset.reset": end}
    client.ends = {_IN: 30, _OTHER: 40}
    known = make({_IN: 5}, kafka=latest)
    client.give(_IN, _OTHER)
    assert client.started == [{_IN: 5, _OTHER: OFFSET_BEGINNING}]
    assert (known.unrecorded(), client.committed) == ({_OTHER: 0}, [{_IN: 5}])
    new = make(kafka=latest)
    client.give(_IN)
    assert client.started[-1] == {_IN: 30}
    assert (new.unrecorded(), client.committed[-1]) == ({_IN: 30}, {})


# ------------------------------------------------------------------------------------------------ identities


def test_partition_that_cannot_be_begun_ends_the_reading(make: Make, client: _Client) -> None:
    """The callback of the client must not raise, so the next read does."""
    source = make({_IN: 0})
    refusal = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed"))
    client.incremental_assign = Mock(side_effect=refusal)  # type: ignore[method-assign]
    client.give(_IN)
    assert source.assigned == set()
    with pytest.raises(BrokerError, match="cannot start to read the assigned partitions: not allowed"):
        source.take(source.batch(), _GOES_ON)


@pytest.mark.parametrize("shows", ["another partition comes", "at the next look"])
def test_topic_that_is_made_anew_while_it_is_read_ends_the_reading(
    make: Make, client: _Client, clock: Clock, shows: str
) -> None:
    """What is at its offsets now is something else."""
    identities = {"in": 7}
    source = make({_IN: 0}, lambda _: identities, kafka={"consumer.topic.metadata.refresh.interval.ms": "1000"})
    client.give(_IN)
    identities["in"] = 8
    source.take(source.batch(), _GOES_ON)
    if shows == "at the next look":
        clock.now += 1.1
    else:
        client.give(_OTHER)
    with pytest.raises(BrokerError, match="topic in was deleted and recreated"):
        source.take(source.batch(), _GOES_ON)


def test_topic_that_was_made_anew_amid_a_commit_stands_at_its_beginning(make: Make, client: _Client) -> None:
    """Also where the state had no position yet: that of the commit is of the deleted topic, and so is the group's."""
    identities = {"in": 7}
    source = make(identify=lambda _: identities, commit={"guarantee": "at_least_once"})
    client.give(_IN)
    client.arrived += _messages(3)
    batch = source.batch()
    source.take_at_once(batch)
    positions = source.positions_after(batch)
    assert positions == {_IN: 3, ("in", IDENTITY): 7}
    client.take(_IN)
    identities["in"] = 8
    client.give(_OTHER)
    source.advance(batch, positions)
    assert client.committed[-1] == {_IN: 0}
    assert source.unrecorded() == {_IN: 0, _OTHER: 0, ("in", IDENTITY): 8}


# ------------------------------------------------------------------------------------------------ losses


_END_LOST = "Partition log truncation detected at offset 6 (leader epoch 1): broker end offset is {} (leader epoch 2)"


def _told_of_loss(client: _Client, offset: int, told: str = "Offset out of range") -> None:
    client.arrived.append(_Fault(KafkaError._AUTO_OFFSET_RESET, _IN, offset, told))  # noqa: SLF001  # librdkafka's name


def test_messages_that_were_deleted_unread_are_passed_over(make: Make, client: _Client) -> None:
    """They are counted, and the state is to know where reading goes on."""
    source = make({_IN: 3})
    client.give(_IN)
    client.begins, client.ends = {_IN: 10}, {_IN: 20}
    _told_of_loss(client, 3)
    with capture_logs() as logged:
        source.take(source.batch(), _GOES_ON)
    assert [(line["event"], line["read_to"], line["goes_on"]) for line in logged] == [("input_lost", 3, 10)]
    assert (source.lost, client.started[-1], source.unrecorded()) == (7, {_IN: 10}, {_IN: 10})


@pytest.mark.parametrize(("end", "left"), [(4, 2), (1, 1)], ids=["some are left", "committed ones are lost too"])
def test_end_that_is_lost_takes_what_is_under_way_with_it(make: Make, client: _Client, end: int, left: int) -> None:
    """Other messages may be at its offsets by then. What is left of those under way is read again, if any is."""
    source = make({_IN: 2}, commit={"articles": 2})
    client.give(_IN)
    client.ends = {_IN: 20}
    client.arrived += _messages(4, first=2)
    first, ahead = source.batch(), source.batch()
    source.take_at_once(first)
    source.take_at_once(ahead)
    positions = source.positions_after(first)
    _told_of_loss(client, 0, _END_LOST.format(end))  # a new leader made the client look: nobody asked for an offset
    source.take(source.batch(), _GOES_ON)
    assert (source.lost, client.started[-1]) == (6 - end, {_IN: end})
    assert not source.holds(first)
    assert not source.holds(ahead)
    assert source.unrecorded() == {_IN: left}
    if left < 2:
        source.advance(first, positions)  # the loss came amid its commit
        assert source.unrecorded() == {_IN: left}
    assert source.rewind()
    assert (client.started[-1], source.unrecorded()) == ({_IN: left}, {_IN: left})
    client.arrived += _messages(2, first=left)
    again = source.batch()
    source.take_at_once(again)
    assert (_offsets(again), source.holds(again)) == ([(0, left), (0, left + 1)], True)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("first", "told", "goes_on", "kept"),
    [(0, _END_LOST.format(2), 0, 0), (1, _END_LOST.format(2), 1, 0), (10, "Offset out of range", 10, 4)],
    ids=["the end", "the end and the beginning", "what follows"],
)
def test_what_is_held_is_read_again_only_where_the_end_is_lost(  # parametrised
    make: Make, client: _Client, first: int, told: str, goes_on: int, kept: int
) -> None:
    """Messages that were deleted behind what is held leave it as it is: nobody would deliver it again."""
    source = make({_IN: 0, _OTHER: 0})
    client.give(_IN, _OTHER)
    client.ends = {_IN: 20, _OTHER: 1}
    client.arrived += _timed(range(1_000, 1_004))
    source.take_at_once(source.batch())
    client.begins = {_IN: first}
    _told_of_loss(client, 0, told)
    with capture_logs() as logged:
        source.take(source.batch(), _GOES_ON)
    assert [line["read_to"] for line in logged] == [4]
    assert client.started[-1] == {_IN: goes_on}
    assert source.lag()[_IN].messages == (20 - 4) + kept


@pytest.mark.parametrize("begun_by", ["the group", "the commit"])
def test_loss_is_told_again_of_a_partition_that_is_begun_anew(
    make: Make, client: _Client, monkeypatch: pytest.MonkeyPatch, begun_by: str
) -> None:
    """As long as the broker does not say where it goes on: by then it may be somebody else's, or have no loss."""
    monkeypatch.setattr(losses, "_PAUSE_SECONDS", 0.0)
    source = make({_IN: 0}, kafka={"consumer.topic.metadata.refresh.interval.ms": "-1"})
    client.give(_IN)
    client.arrived += _messages(1)
    batch = source.batch()
    source.take_at_once(batch)
    client.refusal = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001  # librdkafka's name
    _told_of_loss(client, 1)
    source.take(batch, _GOES_ON)
    if begun_by == "the group":
        client.take(_IN)
        source.take(batch, _GOES_ON)
        client.refusal = None
    else:
        assert source.rewind()
        client.refusal = None
    started = len(client.started)
    source.take(source.batch(), _GOES_ON)
    assert (len(client.started), source.lost) == (started, 0)


@pytest.mark.parametrize("refused", [False, True])
def test_message_of_a_later_leader_is_read_once_the_client_has_asked(
    make: Make, client: _Client, *, refused: bool
) -> None:
    """The end may be lost. The client delivers what it has read so far again; if it refuses, it begins once more."""
    source = make({_IN: 5, epoch_at(_IN): 2})
    client.give(_IN)
    later = [ArrivedMessage(b"", 5, offset, partition=0, epoch=3) for offset in (5, 6)]
    batch = source.batch()
    if refused:
        client.refusal = KafkaError(KafkaError._STATE)  # noqa: SLF001  # librdkafka's name
        client.arrived += later
        source.take_at_once(batch)
        assert (client.unassigned, client.started[1:], batch.messages) == ([_IN], [{_IN: 5}], [])
        client.refusal = None
    client.arrived += later
    source.take_at_once(batch)
    assert (client.sought, batch.messages) == ([(_IN, 5, 2)], [])
    client.arrived += later
    source.take_at_once(batch)
    assert (_offsets(batch), len(client.sought)) == ([(0, 5), (0, 6)], 1)


def test_message_of_the_same_leader_is_read_at_once(make: Make, client: _Client) -> None:
    """So is one of a later leader behind it: what was there when reading began is proved."""
    source = make({_IN: 5, epoch_at(_IN): 2})
    client.give(_IN)
    client.arrived += [ArrivedMessage(b"", 5, 5 + n, partition=0, epoch=epoch) for n, epoch in enumerate((2, 3))]
    batch = source.batch()
    source.take_at_once(batch)
    assert (_offsets(batch), client.sought) == ([(0, 5), (0, 6)], [])


def test_message_of_a_later_leader_is_dropped_where_its_partition_has_gone(make: Make, client: _Client) -> None:
    """The client may hand it out in the call in which it is told: there is nothing left to ask about."""
    source = make({_IN: 5, epoch_at(_IN): 2})
    client.give(_IN)
    client.meanwhile = lambda: client.take(_IN)
    client.arrived.append(ArrivedMessage(b"", 5, 5, partition=0, epoch=3))
    batch = source.batch()
    source.take(batch, _GOES_ON)
    assert (batch.messages, client.sought, len(client.started)) == ([], [], 1)
