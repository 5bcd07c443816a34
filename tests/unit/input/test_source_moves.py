"""What the input reads again, holds or drops where partitions run ahead or move, or their topics are recreated.

Knows the client's calls; knows nothing of brokers, on which the rest is tested.
"""

from unittest.mock import Mock

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException

from stream_dedup.stream.input import time_order
from stream_dedup.stream.input.source import Lag
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY
from tests.unit.clock import Clock
from tests.unit.input.client import GOES_ON, IN, OTHER, Client, Make, some, taken, timed


@pytest.mark.usefixtures("patient")
def test_source_goes_back_to_what_is_not_committed(make: Make, client: Client) -> None:
    """What was read, and what is held of the same partitions, is read again: each message once, in order of time."""
    source = make({IN: 3, OTHER: 0}, commit={"articles": 2})
    client.ends = {IN: 8, OTHER: 2}
    client.give(IN, OTHER)
    client.arrived += [*timed(range(1_006, 1_016, 2), first=3), *timed([1_011], OTHER)]
    first, second, third = source.batch(), source.batch(), source.batch()
    for batch in (first, second, third):
        source.take_at_once(batch)
    assert [taken(one) for one in (first, second, third)] == [[(0, 3), (0, 4)], [(0, 5), (1, 0)], []]
    assert source.lag()[IN] == Lag(3 + 2, 1_006)  # two of them are held
    source.advance(first, source.positions_after(first))
    assert source.lag()[IN] == Lag(1 + 2, 1_010)
    source.take(third, GOES_ON)
    assert client.asked[-1] == (1, 0.01)  # what is held may be due before anything arrives
    assert source.rewind()
    assert (client.started[-1], sorted(client.unassigned)) == ({IN: 5, OTHER: 0}, [IN, OTHER])
    assert (source.lag()[IN].messages, source.holds(second)) == (0, True)
    client.arrived += [*timed([1_010, 1_012, 1_014], first=5), *timed([1_011, 1_015], OTHER)]
    again = [source.batch() for _ in range(3)]
    for batch in again:
        source.take_at_once(batch)
    assert [taken(one) for one in again] == [[(0, 5), (1, 0)], [(0, 6), (0, 7)], [(1, 1)]]


@pytest.mark.usefixtures("patient")
def test_all_that_is_due_is_taken_even_if_nothing_more_arrives(make: Make, client: Client) -> None:
    """More than a piece is held; it is due at once when the other partition has caught up."""
    source = make({IN: 0, OTHER: 0})
    client.ends = {IN: 150, OTHER: 1}
    client.give(IN, OTHER)
    client.arrived += timed(range(1_000, 1_150))
    batch = source.batch()
    source.take_at_once(batch)
    assert batch.messages == []
    client.arrived += timed([2_000], OTHER)
    source.take_at_once(batch)
    assert taken(batch) == [*((0, offset) for offset in range(150)), (1, 0)]


@pytest.mark.usefixtures("patient")
def test_partition_that_runs_ahead_is_paused_until_it_is_read_from_elsewhere(
    make: Make, client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the group during a commit leaves it paused; once it is begun anew, the client has to read it."""
    monkeypatch.setattr(time_order, "_HELD_BYTES", 0)
    monkeypatch.setattr(time_order, "_LEAST_SHARE_BYTES", 0)
    source = make({IN: 0, OTHER: 0}, commit={"articles": 1})
    client.ends = {IN: 3, OTHER: 0}
    client.give(IN, OTHER)
    client.arrived += some(1)
    batch = source.batch()
    source.take_at_once(batch)
    assert (taken(batch), client.paused) == ([(0, 0)], set())
    client.ends[OTHER] = 1
    client.arrived += some(2, first=1)
    source.take_at_once(source.batch())
    assert (client.paused, len(client.arrived)) == ({IN}, 1)
    clock.now += 6.0
    source.keep_alive()
    assert client.paused == {IN}
    assert source.rewind()
    assert client.paused == set()


@pytest.mark.usefixtures("patient")
def test_what_is_held_of_a_partition_that_goes_elsewhere_is_dropped(make: Make, client: Client) -> None:
    """Its new reader takes it; if it comes back, it is read from the state's position."""
    source = make({IN: 0, OTHER: 0})
    client.ends = {IN: 2, OTHER: 1}
    client.give(IN, OTHER)
    client.arrived += timed([1_000, 1_001])
    batch = source.batch()
    source.take_at_once(batch)
    assert source.lag()[IN].messages == 2
    client.take(IN)
    client.arrived += timed([1_002], OTHER)
    source.take_at_once(batch)
    assert taken(batch) == [(1, 0)]


def test_partition_that_moved_amid_its_commit_is_read_on_behind_it(make: Make, client: Client) -> None:
    """It was begun before it. What was read ahead of the other one, which stayed, is not read again."""
    source = make({IN: 0, OTHER: 0}, commit={"articles": 2})
    client.give(IN, OTHER)
    client.ends = {IN: 1, OTHER: 2}
    client.arrived += [*timed([1_000]), *timed([1_001, 1_002], OTHER)]
    batch, ahead = source.batch(), source.batch()
    source.take_at_once(batch)
    source.take_at_once(ahead)
    assert (taken(batch), taken(ahead)) == ([(0, 0), (1, 0)], [(1, 1)])
    client.take(IN)
    client.committed.clear()
    client.give(IN)
    assert client.committed == [{}]  # the group may know of the commit already
    assert client.started[-1] == {IN: OFFSET_BEGINNING}  # the state has nothing of it yet
    assert (source.holds(batch), source.holds(ahead)) == (False, True)
    source.advance(batch, source.positions_after(batch))
    assert client.started[-1] == {IN: 1}
    assert not client.unassigned.count(OTHER)


def test_partition_that_is_elsewhere_after_its_commit_is_left_there(make: Make, client: Client) -> None:
    """The client would refuse to begin it, or read what is another's."""
    source = make({IN: 0, OTHER: 0})
    client.give(IN, OTHER)
    client.ends = {IN: 1, OTHER: 1}
    client.arrived += [*timed([1_000]), *timed([1_001], OTHER)]
    batch = source.batch()
    source.take_at_once(batch)
    client.take(OTHER)
    source.advance(batch, source.positions_after(batch))
    assert client.started[-1] == {IN: 1}


def test_source_cannot_go_back_where_a_partition_has_moved(make: Make, client: Client) -> None:
    """It may be another's by now, and this may show only when the group is asked."""
    source = make({IN: 0})
    client.give(IN)
    client.arrived += some(2)
    batch = source.batch()
    source.take_at_once(batch)
    started = len(client.started)
    client.meanwhile = lambda: client.take(IN)
    assert not source.rewind()
    assert len(client.started) == started


@pytest.mark.parametrize("end", ["latest", "largest", "end"])
def test_beginning_at_the_end_holds_for_what_was_there(make: Make, client: Client, end: str) -> None:
    """Partitions that are added later are read whole. The group is told of neither before the state knows of it."""
    latest = {"consumer.auto.offset.reset": end}
    client.ends = {IN: 30, OTHER: 40}
    known = make({IN: 5}, kafka=latest)
    client.give(IN, OTHER)
    assert client.started == [{IN: 5, OTHER: OFFSET_BEGINNING}]
    assert (known.unrecorded(), client.committed) == ({OTHER: 0}, [{IN: 5}])
    new = make(kafka=latest)
    client.give(IN)
    assert client.started[-1] == {IN: 30}
    assert (new.unrecorded(), client.committed[-1]) == ({IN: 30}, {})


def test_partition_that_cannot_be_begun_ends_the_reading(make: Make, client: Client) -> None:
    """The callback of the client must not raise, so the next read does."""
    source = make({IN: 0})
    refusal = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed"))
    client.incremental_assign = Mock(side_effect=refusal)  # type: ignore[method-assign]
    client.give(IN)
    assert source.assigned == set()
    with pytest.raises(BrokerError, match="cannot start to read the assigned partitions: not allowed"):
        source.take(source.batch(), GOES_ON)


@pytest.mark.parametrize("shows", ["another partition comes", "at the next look"])
def test_topic_that_is_made_anew_while_it_is_read_ends_the_reading(
    make: Make, client: Client, clock: Clock, shows: str
) -> None:
    """What is at its offsets now is something else."""
    identities = {"in": 7}
    source = make({IN: 0}, lambda _: identities, kafka={"consumer.topic.metadata.refresh.interval.ms": "1000"})
    client.give(IN)
    identities["in"] = 8
    source.take(source.batch(), GOES_ON)
    if shows == "at the next look":
        clock.now += 1.1
    else:
        client.give(OTHER)
    with pytest.raises(BrokerError, match="topic in was deleted and recreated"):
        source.take(source.batch(), GOES_ON)


def test_topic_that_was_made_anew_amid_a_commit_stands_at_its_beginning(make: Make, client: Client) -> None:
    """Also where the state had no position yet: that of the commit is of the deleted topic, and so is the group's."""
    identities = {"in": 7}
    source = make(identify=lambda _: identities, commit={"guarantee": "at_least_once"})
    client.give(IN)
    client.arrived += some(3)
    batch = source.batch()
    source.take_at_once(batch)
    positions = source.positions_after(batch)
    assert positions == {IN: 3, ("in", IDENTITY): 7}
    client.take(IN)
    identities["in"] = 8
    client.give(OTHER)
    source.advance(batch, positions)
    assert client.committed[-1] == {IN: 0}
    assert source.unrecorded() == {IN: 0, OTHER: 0, ("in", IDENTITY): 8}
