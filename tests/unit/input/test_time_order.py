"""The order of several partitions' messages, against a sort of all of them by their timestamps.

Knows messages and how they arrive; knows no broker.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message, TopicPartition

from stream_dedup.stream.input import time_order
from stream_dedup.stream.input.time_order import TimeOrder
from stream_dedup.stream.kafka.places import Place, place_of, timestamp_of

_NOW = 1_700_000_000.0  # seconds since 1970
_DAY = 86_400.0
_ALL = 1 << 30


class _Clock:
    """What `time` tells the module; it stands still unless a test moves it."""

    def __init__(self) -> None:
        self.seconds = _NOW

    def time(self) -> float:
        return self.seconds

    monotonic = time


class _Client:
    """A client that can be paused."""

    def __init__(self) -> None:
        self.paused: set[Place] = set()

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused |= {(one.topic, one.partition) for one in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= {(one.topic, one.partition) for one in partitions}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The time, in the hands of the test."""
    clock = _Clock()
    monkeypatch.setattr(time_order, "time", clock)
    return clock


def _message(partition: int, age: float | None, value: bytes = b"") -> Message:
    """Return a message of a partition, so many seconds old."""
    stamp = (TIMESTAMP_NOT_AVAILABLE, 0) if age is None else (TIMESTAMP_CREATE_TIME, round(1000 * (_NOW - age)))
    return Message(topic="in", partition=partition, value=value, timestamp=stamp)


def _order(partitions: int, *, bounded: bool = True) -> TimeOrder:
    order = TimeOrder(_Client(), bounded=bounded)
    order.begin([("in", partition) for partition in range(partitions)])
    return order


def _ages(messages: Iterable[Message]) -> list[float]:
    return [round(_NOW - (timestamp_of(message) or 0) / 1000, 3) for message in messages]


def _add(order: TimeOrder, partition: int, *ages: float | None) -> None:
    for age in ages:
        order.add(_message(partition, age))


def _fetches(partition: int, ages: Sequence[float], chance: random.Random) -> list[list[Message]]:
    """Divide a partition's messages as a client delivers them."""
    cuts = sorted(chance.sample(range(1, len(ages)), min(len(ages) - 1, chance.randrange(1, 9))))
    return [[_message(partition, age) for age in ages[a:b]] for a, b in pairwise([0, *cuts, len(ages)])]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.usefixtures("clock")
def test_backlog_comes_in_the_order_of_all_timestamps(seed: int, *, bounded: bool) -> None:
    """However the fetches of partitions of different volumes alternate."""
    chance = random.Random(seed)
    stream = [(chance.choices(range(4), [30, 10, 3, 1])[0], 9 * _DAY - second) for second in range(600)]
    coming = {p: _fetches(p, [age for one, age in stream if one == p], chance) for p in range(4)}
    order, taken = _order(4, bounded=bounded), list[Message]()
    while any(coming.values()):
        fetches = coming[chance.choice([p for p in coming if coming[p]])]
        for message in fetches.pop(0):
            order.add(message)
        taken += order.take(chance.randrange(1, 90), lambda place: bool(coming[place[1]]))
    taken += order.take(_ALL, lambda _: False)
    assert [(place_of(message)[1], *_ages([message])) for message in taken] == stream
    assert not order


@pytest.mark.usefixtures("clock")
def test_what_another_partition_may_precede_is_held_back() -> None:
    """It may as long as it has more, and has delivered nothing as late."""
    order = _order(2)
    _add(order, 0, 500, 400, 300)
    assert order.take(_ALL, lambda place: place == ("in", 1)) == []
    _add(order, 1, 400)
    assert _ages(order.take(_ALL, lambda place: place == ("in", 1))) == [500, 400, 400]
    held = order.held(("in", 0))
    assert held is not None
    assert (held.messages, _ages([held.first, held.last])) == (1, [300, 300])
    assert _ages(order.take(_ALL, lambda _: False)) == [300]
    assert order.held(("in", 0)) is None


@pytest.mark.usefixtures("clock")
def test_partitions_take_turns_with_messages_of_one_timestamp() -> None:
    """Brokers and fast producers give one to many: else all of a partition's came before the others' of that moment."""
    order = _order(2)
    for partition in range(2):
        _add(order, partition, *[60] * 20)
    taken = order.take(_ALL, lambda _: False)
    assert [place_of(message)[1] for message in taken] == [0, 1] * 20


@pytest.mark.parametrize("assigned", [*permutations(range(3))])
@pytest.mark.usefixtures("clock")
def test_turns_do_not_depend_on_how_partitions_were_assigned(assigned: Sequence[int]) -> None:
    """A backlog that is read again is judged in the same order: the same article is the first of its copies."""
    order = TimeOrder(_Client(), bounded=True)
    for partition in assigned:
        order.begin([("in", partition)])
    for partition in reversed(assigned):
        _add(order, partition, 500, 500)
    assert [place_of(message)[1] for message in order.take(_ALL, lambda _: False)] == [0, 1, 2, 0, 1, 2]


@pytest.mark.usefixtures("clock")
def test_turns_begin_anew_with_each_timestamp() -> None:
    """A partition that had more messages of an earlier one is not behind the others with the next."""
    order = _order(2)
    _add(order, 0, 60, 60, 60, 50, 50)
    _add(order, 1, 50, 50)
    taken = order.take(_ALL, lambda _: False)
    assert [place_of(message)[1] for message in taken] == [0, 0, 0, 0, 1, 0, 1]


@pytest.mark.usefixtures("clock")
def test_message_does_not_wait_for_others_of_its_timestamp() -> None:
    """No earlier one is to come: of equals, it does not matter which is first."""
    order = _order(2)
    _add(order, 1, 400)
    assert _ages(order.take(_ALL, lambda _: True)) == []
    _add(order, 0, 400)
    assert _ages(order.take(1, lambda _: True)) == [400]
    assert _ages(order.take(_ALL, lambda _: True)) == [400]


def test_partition_that_is_silent_is_not_waited_for_long(clock: _Clock) -> None:
    """Its leader may be down; once it delivers again, it is waited for again."""
    order = _order(2)
    _add(order, 0, 900, 800)
    _add(order, 1, 850)
    assert _ages(order.take(_ALL, lambda place: place == ("in", 1))) == [900, 850]
    for _ in range(7):
        clock.seconds += 0.7
        assert order.take(_ALL, lambda place: place == ("in", 1)) == []
    clock.seconds += 0.2
    assert _ages(order.take(_ALL, lambda place: place == ("in", 1))) == [800]
    _add(order, 1, 700)
    _add(order, 0, 600)
    assert _ages(order.take(_ALL, lambda place: place == ("in", 1))) == [700]
    assert len(order) == 1


@pytest.mark.usefixtures("clock")
def test_fresh_message_does_not_end_the_wait_for_another_partition() -> None:
    """It comes after older ones of its own partition, and waits for nobody; those of a third go on waiting."""
    order = _order(3)
    _add(order, 2, 450)
    assert _ages(order.take(_ALL, lambda _: False)) == [450]
    _add(order, 0, 500, 0)
    _add(order, 1, 400)
    assert _ages(order.take(_ALL, lambda place: place != ("in", 1))) == [500, 0]


def test_partition_of_which_nothing_was_to_come_is_not_silent(clock: _Clock) -> None:
    """Its silence begins once something is to come, however long it has delivered nothing."""
    order = _order(2)
    _add(order, 0, 900)
    for _ in range(4):
        assert order.take(_ALL, lambda place: place == ("in", 1)) == []
        clock.seconds += 0.9
    assert _ages(order.take(_ALL, lambda _: False)) == [900]
    _add(order, 0, 800)
    for _ in range(4):
        assert order.take(_ALL, lambda place: place == ("in", 1)) == []
        clock.seconds += 0.9
    assert len(order) == 1


def test_partition_is_not_silent_while_nobody_listens(clock: _Clock) -> None:
    """What has arrived during a commit of minutes is handed over after the first look."""
    order = _order(2)
    _add(order, 0, 900, 800)
    assert order.take(_ALL, lambda place: place == ("in", 1)) == []
    clock.seconds += 60
    assert order.take(_ALL, lambda place: place == ("in", 1)) == []
    _add(order, 1, 850)
    assert _ages(order.take(_ALL, lambda _: False)) == [900, 850, 800]


def test_all_that_was_decided_waits_for_a_silent_partition(clock: _Clock) -> None:
    """A state that is rebuilt is not in a hurry."""
    order = _order(2, bounded=False)
    _add(order, 0, 1)
    for _ in range(3):
        clock.seconds += _DAY
        assert order.take(_ALL, lambda place: place == ("in", 1)) == []
    assert _ages(order.take(_ALL, lambda _: False)) == [1]


def test_live_messages_wait_for_a_tenth_of_their_age_or_not_at_all(clock: _Clock) -> None:
    """A partition that is days behind would delay the others until it has caught up."""
    order = _order(2)
    _add(order, 0, 2)
    _add(order, 1, *[5 * _DAY] * 100)
    assert _ages(order.take(50, lambda _: True)) == [5 * _DAY] * 50
    clock.seconds += 0.19
    assert _ages(order.take(10, lambda _: True)) == [5 * _DAY] * 10
    clock.seconds += 0.02
    assert _ages(order.take(2, lambda _: True)) == [2, 5 * _DAY]
    _add(order, 0, -0.1)
    assert _ages(order.take(1, lambda _: True)) == [-0.1]


@pytest.mark.usefixtures("clock")
def test_clocks_that_are_ahead_delay_nothing() -> None:
    """Nor do messages without a timestamp, which keep their place in their partition."""
    order = _order(3)
    _add(order, 0, -3 * _DAY, 70)
    _add(order, 1, None, 80, None)
    assert _ages(order.take(1, lambda _: True)) == [-3 * _DAY]
    assert [place_of(message)[1] for message in order.take(_ALL, lambda _: False)] == [1, 1, 1, 0]


@pytest.mark.usefixtures("clock")
def test_partitions_that_run_ahead_are_paused_until_half_of_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the memory is bounded, whatever the difference in volume."""
    monkeypatch.setattr(time_order, "_HELD_BYTES", 4 << 20)
    client = _Client()
    order = TimeOrder(client, bounded=True)
    order.begin([("in", 0), ("in", 1)])
    size, held, share = 9_000 + 1_024, 0, 2 << 20
    while not client.paused:
        order.add(_message(0, 5 * _DAY - held, bytes(9_000)))
        held += 1
        order.keep_pace()
    assert client.paused == {("in", 0)}
    assert held == share // size + 1
    order.add(_message(1, 4 * _DAY))
    while client.paused:
        assert order.take(1, lambda _: True)
        order.keep_pace()
    left = order.held(("in", 0))
    assert left is not None
    assert left.messages == share // 2 // size


@pytest.mark.usefixtures("clock")
def test_partition_that_is_read_anew_is_paused_anew() -> None:
    """The client delivers from it again, although what it has delivered is still held."""
    client = _Client()
    order = TimeOrder(client, bounded=True)
    order.begin([("in", 0)])
    for _ in range(40):
        order.add(_message(0, 5 * _DAY, bytes(1 << 20)))
    order.keep_pace()
    assert client.paused == {("in", 0)}
    client.paused.clear()
    order.begin([("in", 0)], keep=True)
    order.keep_pace()
    assert client.paused == {("in", 0)}


@pytest.mark.usefixtures("clock")
def test_partition_that_is_revoked_is_not_resumed() -> None:
    """It is somebody else's by now; others that are paused stay so."""
    client = _Client()
    order = TimeOrder(client, bounded=True)
    order.begin([("in", 0), ("in", 1)])
    for partition in (0, 1):
        for _ in range(40):
            order.add(_message(partition, 5 * _DAY, bytes(1 << 20)))
    order.keep_pace()
    order.end([("in", 0)])
    assert order.paused == {("in", 1)}
    order.keep_pace()
    assert client.paused == {("in", 0), ("in", 1)}


@pytest.mark.usefixtures("clock")
def test_each_of_many_partitions_may_hold_some_fetches() -> None:
    """Of hundreds, an equal share of the memory would be less than one fetch, and each pause costs half a second."""
    client, fetch = _Client(), 256 << 10
    order = TimeOrder(client, bounded=True)
    order.begin([("in", partition) for partition in range(1_000)])
    for fetches in range(1, 6):
        order.add(_message(0, 5 * _DAY, bytes(fetch)))
        order.keep_pace()
        assert bool(client.paused) == (fetches > 3)


@pytest.mark.usefixtures("clock")
def test_what_is_read_again_is_not_held_twice() -> None:
    """A revoked partition is read by others, one that is assigned again from the state's position."""
    order = _order(3)
    for partition in range(3):
        _add(order, partition, 60)
    order.end([("in", 0)])
    order.begin([("in", 1)])
    order.begin([("in", 2)], keep=True)
    _add(order, 0, 50)
    assert [place_of(message)[1] for message in order.take(_ALL, lambda _: False)] == [2]
    order.begin([("in", 0)])
    _add(order, 0, 50)
    assert [place_of(message)[1] for message in order.take(_ALL, lambda _: False)] == [0]


def test_many_partitions_are_asked_once_each_for_a_batch() -> None:
    """With a message in each of thousands of partitions, each message taken leaves one empty."""
    partitions, asked = 2_000, list[Place]()
    order = _order(partitions)
    for partition in range(partitions):
        order.add(_message(partition, _DAY))

    def is_behind(place: Place) -> bool:
        asked.append(place)
        return False

    assert len(order.take(_ALL, is_behind)) == partitions
    assert len(asked) <= partitions
