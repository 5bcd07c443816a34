"""Reading the input, with a client that has what the test says: what is taken, told and counted.

Knows the client's calls; knows nothing of brokers, on which the rest is tested.
"""

import threading
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.stream.input.source import Lag
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place
from tests.unit.arrived import ArrivedMessage, Fault
from tests.unit.clock import Clock
from tests.unit.input.client import GOES_ON, IN, OTHER, Client, Make, some


def test_batch_waits_for_its_first_message_and_then_until_it_is_due(make: Make, client: Client, clock: Clock) -> None:
    """A single message is asked for at first, as the client waits until it has as many; `due` counts from then on."""
    source = make({IN: 0}, commit={"interval_ms": 100})
    client.give(IN)
    batch = source.batch()
    assert not source.take(batch, GOES_ON)
    assert (client.asked, batch.due) == ([(1, 0.1)], None)
    client.arrived += some(1)
    assert source.take(batch, GOES_ON)
    due = clock.now + 0.1
    assert (len(batch.messages), batch.due) == (1, due)
    client.arrived += some(3, first=1)
    while clock.now < due:
        assert source.take(batch, GOES_ON)
        assert client.asked[-1][0] == 64
        assert 0 < client.asked[-1][1] <= 0.01
    assert clock.now == pytest.approx(due)
    assert not source.take(batch, GOES_ON), "it is due, and nothing has arrived"
    assert client.asked[-1] == (64, 0.0)
    assert (len(batch.messages), batch.due) == (4, due)


@pytest.mark.parametrize(("bounds", "count"), [({"articles": 100}, 100), ({"bytes": 1 << 20}, 64)])
def test_batch_takes_no_more_than_a_commit_may_have(
    make: Make, client: Client, bounds: dict[str, int], count: int
) -> None:
    """As many messages as are allowed exactly; of large ones, the piece with which the bound in bytes is reached."""
    source = make({IN: 0}, commit=bounds)
    client.give(IN)
    client.arrived += some(300, size=1 << 14)
    batch = source.batch()
    source.take_at_once(batch)
    assert (len(batch.messages), source.take(batch, GOES_ON)) == (count, False)
    stopping = threading.Event()
    stopping.set()
    other = source.batch()
    assert not source.take(other, stopping)
    assert not other.messages


def test_errors_end_the_reading_unless_they_pass(make: Make, client: Client) -> None:
    """What the client recovers from is told; a refusal names the topic; a loss elsewhere is no longer of interest."""
    source = make({IN: 0})
    client.give(IN)
    batch = source.batch()
    client.arrived += [Fault(KafkaError._ALL_BROKERS_DOWN), *some(1)]  # noqa: SLF001  # librdkafka's name
    with capture_logs() as logged:
        source.take_at_once(batch)
        source.take(batch, GOES_ON)
        source.take(batch, GOES_ON)
    assert [(line["event"], line["error"]) for line in logged] == [("input_waits", "_ALL_BROKERS_DOWN")]
    assert len(batch.messages) == 1
    client.arrived.append(Fault(KafkaError._AUTO_OFFSET_RESET, OTHER))  # noqa: SLF001  # the same
    assert (source.take(batch, GOES_ON), source.lost) == (True, 0)
    client.arrived.append(Fault(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match="cannot read in: as the broker says"):
        source.take(batch, GOES_ON)


def test_lag_is_what_is_not_committed_yet(make: Make, client: Client) -> None:
    """Messages under way, held and to come; the oldest of them is as old as its timestamp, as far as it was read."""
    source = make({IN: 3, OTHER: 0}, commit={"articles": 2})
    client.give(IN, OTHER)
    assert source.lag() == {}  # the client does not know the ends yet
    client.begins, client.ends = {IN: 1}, {IN: 20, OTHER: 0}
    assert source.lag() == {IN: Lag(17, None), OTHER: Lag(0, None)}
    client.begins = {IN: 4}  # the one before it was deleted unread
    assert source.lag()[IN] == Lag(16, None)
    client.arrived += [ArrivedMessage(b"", 1_000 + n, n, partition=0) for n in range(10, 15)]
    batch, ahead = source.batch(), source.batch()
    source.take_at_once(batch)
    source.take_at_once(ahead)
    assert (len(batch.messages), len(ahead.messages)) == (2, 2)
    assert source.lag()[IN] == Lag(4 + 6, 1_010)
    source.advance(batch, source.positions_after(batch))
    assert source.lag()[IN] == Lag(2 + 6, 1_012)
    source.advance(ahead, source.positions_after(ahead))
    assert source.lag()[IN] == Lag(6, 1_013)
    client.ends[IN] = 14
    assert source.lag()[IN] == Lag(0, None)
    client.take(IN)
    assert source.lag() == {OTHER: Lag(0, None)}


@pytest.mark.parametrize(("guarantee", "told"), [("exactly_once", []), ("at_least_once", [{IN: 2}])])
def test_group_is_told_of_commits_that_have_no_transaction(
    make: Make, client: Client, guarantee: str, told: list[dict[Place, int]]
) -> None:
    """A transaction has the offsets in it. A group that does not take them is no reason to stop: nothing reads them."""
    source = make({IN: 0}, commit={"guarantee": guarantee, "articles": 2})
    client.give(IN)
    client.committed.clear()
    client.arrived += some(4)
    batch, ahead = source.batch(), source.batch()
    source.take_at_once(batch)
    source.take_at_once(ahead)
    source.advance(batch, source.positions_after(batch))
    assert client.committed == told
    client.refusal = KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    with capture_logs() as logged:
        source.advance(ahead, source.positions_after(ahead))
    assert [line["event"] for line in logged] == ["group_commit_failed"] * len(told)


def test_partitions_that_come_are_read_from_the_states_positions(make: Make, client: Client) -> None:
    """The group is told of them; where the state has none, reading begins at the first message."""
    source = make({IN: 7})
    client.give(IN, OTHER)
    assert client.started == [{IN: 7, OTHER: OFFSET_BEGINNING}]
    assert client.committed == [{IN: 7}]
    assert (source.assigned, source.rebalances) == ({IN, OTHER}, 1)
    client.pause([TopicPartition(*IN)])
    client.take(IN)
    assert (source.assigned, source.rebalances, client.paused) == ({OTHER}, 2, set())


def test_group_is_heard_now_and_then_while_nothing_is_read(make: Make, client: Client, clock: Clock) -> None:
    """What the client hands out all the same is held; what ran ahead stays paused, and the rest is read on."""
    source = make({IN: 0, OTHER: 0})
    client.ends = {IN: 1, OTHER: 0}
    client.give(IN, OTHER)
    batch = source.batch()
    source.take(batch, GOES_ON)
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
        return some(1)

    client.consume = consume_paused  # type: ignore[method-assign]  # as a message that was already on its way
    source.keep_alive()
    source.keep_alive()
    assert (paused, client.paused) == ([{IN, OTHER}], set())
    client.consume = consume  # type: ignore[method-assign]
    source.take(batch, GOES_ON)
    assert len(batch.messages) == 1


def test_topics_are_looked_for_as_often_as_the_settings_say(make: Make, client: Client, clock: Clock) -> None:
    """Expressions at once; names only to see whether they are still the same, so not before something is assigned."""
    every = {"consumer.topic.metadata.refresh.interval.ms": "60000"}
    client.topics = {"in": (0,), "in.two": (0,), "out": (0,)}
    source = make(input={"topics": ["^in"]}, kafka=every)
    batch = source.batch()
    assert (client.subscribed, client.listed) == ([["in", "in.two"]], 1)
    clock.now += 59.0
    source.take(batch, GOES_ON)
    assert client.listed == 1
    client.topics["in.three"] = (0,)
    clock.now += 1.1
    source.take(batch, GOES_ON)
    assert client.listed == 2
    assert sorted(client.subscribed[-1]) == ["in", "in.three", "in.two"]
    client.refusal = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001  # librdkafka's name
    clock.now += 60.0
    with capture_logs() as logged:
        source.take(batch, GOES_ON)
    assert [(line["event"], line["error"]) for line in logged] == [("input_waits", "_ALL_BROKERS_DOWN")]
    clock.now += 10.1
    source.take(batch, GOES_ON)
    assert (client.listed, len(client.subscribed)) == (4, 2)  # asked again soon, and read on meanwhile
    client.refusal, client.topics = None, {"out": (0,)}
    clock.now += 60.0
    source.take(batch, GOES_ON)
    assert client.subscribed[-1] == []


def test_topics_of_which_nothing_is_read_are_named_once_others_are(make: Make, client: Client) -> None:
    """Before that, all are still to come; expressions match what there is."""
    source = make(input={"topics": ["in", "more", "^other"]})
    assert source.unread_topics == set()
    client.give(IN)
    assert source.unread_topics == {"more"}
    client.give(("more", 0))
    assert source.unread_topics == set()


def test_identity_of_a_topic_is_committed_with_the_first_messages(make: Make, client: Client) -> None:
    """The state records it once; the group gets it with each offset."""
    source = make({IN: 0}, lambda topics: dict.fromkeys(topics, 77), commit={"articles": 2})
    client.give(IN)
    client.arrived += some(4)
    first, second = source.batch(), source.batch()
    source.take_at_once(first)
    positions = source.positions_after(first)
    assert positions == {IN: 2, ("in", IDENTITY): 77}
    assert source.offsets_after(first) == positions
    source.advance(first, positions)
    source.take_at_once(second)
    assert source.positions_after(second) == {IN: 4}
    assert source.offsets_after(second) == {IN: 4, ("in", IDENTITY): 77}
