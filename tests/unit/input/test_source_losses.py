"""Input that the broker has lost, and messages of a later leader: where reading goes on, and what is counted.

Knows the client's calls; knows nothing of brokers, on which the rest is tested.
"""

import pytest
from confluent_kafka import KafkaError
from structlog.testing import capture_logs

from stream_dedup.stream.input import losses
from stream_dedup.stream.kafka.places import epoch_at
from tests.unit.arrived import ArrivedMessage, Fault
from tests.unit.input.client import GOES_ON, IN, OTHER, Client, Make, some, taken, timed

_END_LOST = "Partition log truncation detected at offset 6 (leader epoch 1): broker end offset is {} (leader epoch 2)"


def _told_of_loss(client: Client, offset: int, told: str = "Offset out of range") -> None:
    client.arrived.append(Fault(KafkaError._AUTO_OFFSET_RESET, IN, offset, told))  # noqa: SLF001  # librdkafka's name


def test_messages_that_were_deleted_unread_are_passed_over(make: Make, client: Client) -> None:
    """They are counted, and the state is to know where reading goes on."""
    source = make({IN: 3})
    client.give(IN)
    client.begins, client.ends = {IN: 10}, {IN: 20}
    _told_of_loss(client, 3)
    with capture_logs() as logged:
        source.take(source.batch(), GOES_ON)
    assert [(line["event"], line["read_to"], line["goes_on"]) for line in logged] == [("input_lost", 3, 10)]
    assert (source.lost, client.started[-1], source.unrecorded()) == (7, {IN: 10}, {IN: 10})


@pytest.mark.parametrize(("end", "left"), [(4, 2), (1, 1)], ids=["some are left", "committed ones are lost too"])
def test_end_that_is_lost_takes_what_is_under_way_with_it(make: Make, client: Client, end: int, left: int) -> None:
    """Other messages may be at its offsets by then. What is left of those under way is read again, if any is."""
    source = make({IN: 2}, commit={"articles": 2})
    client.give(IN)
    client.ends = {IN: 20}
    client.arrived += some(4, first=2)
    first, ahead = source.batch(), source.batch()
    source.take_at_once(first)
    source.take_at_once(ahead)
    positions = source.positions_after(first)
    _told_of_loss(client, 0, _END_LOST.format(end))  # a new leader made the client look: nobody asked for an offset
    source.take(source.batch(), GOES_ON)
    assert (source.lost, client.started[-1]) == (6 - end, {IN: end})
    assert not source.holds(first)
    assert not source.holds(ahead)
    assert source.unrecorded() == {IN: left}
    if left < 2:
        source.advance(first, positions)  # the loss came amid its commit
        assert source.unrecorded() == {IN: left}
    assert source.rewind()
    assert (client.started[-1], source.unrecorded()) == ({IN: left}, {IN: left})
    client.arrived += some(2, first=left)
    again = source.batch()
    source.take_at_once(again)
    assert (taken(again), source.holds(again)) == ([(0, left), (0, left + 1)], True)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("first", "told", "goes_on", "kept"),
    [(0, _END_LOST.format(2), 0, 0), (1, _END_LOST.format(2), 1, 0), (10, "Offset out of range", 10, 4)],
    ids=["the end", "the end and the beginning", "what follows"],
)
def test_what_is_held_is_read_again_only_where_the_end_is_lost(  # parametrised
    make: Make, client: Client, first: int, told: str, goes_on: int, kept: int
) -> None:
    """Messages that were deleted behind what is held leave it as it is: nobody would deliver it again."""
    source = make({IN: 0, OTHER: 0})
    client.give(IN, OTHER)
    client.ends = {IN: 20, OTHER: 1}
    client.arrived += timed(range(1_000, 1_004))
    source.take_at_once(source.batch())
    client.begins = {IN: first}
    _told_of_loss(client, 0, told)
    with capture_logs() as logged:
        source.take(source.batch(), GOES_ON)
    assert [line["read_to"] for line in logged] == [4]
    assert client.started[-1] == {IN: goes_on}
    assert source.lag()[IN].messages == (20 - 4) + kept


@pytest.mark.parametrize("begun_by", ["the group", "the commit"])
def test_loss_is_told_again_of_a_partition_that_is_begun_anew(
    make: Make, client: Client, monkeypatch: pytest.MonkeyPatch, begun_by: str
) -> None:
    """As long as the broker does not say where it goes on: by then it may be somebody else's, or have no loss."""
    monkeypatch.setattr(losses, "_PAUSE_SECONDS", 0.0)
    source = make({IN: 0}, kafka={"consumer.topic.metadata.refresh.interval.ms": "-1"})
    client.give(IN)
    client.arrived += some(1)
    batch = source.batch()
    source.take_at_once(batch)
    client.refusal = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001  # librdkafka's name
    _told_of_loss(client, 1)
    source.take(batch, GOES_ON)
    if begun_by == "the group":
        client.take(IN)
        source.take(batch, GOES_ON)
        client.refusal = None
    else:
        assert source.rewind()
        client.refusal = None
    started = len(client.started)
    source.take(source.batch(), GOES_ON)
    assert (len(client.started), source.lost) == (started, 0)


@pytest.mark.parametrize("refused", [False, True])
def test_message_of_a_later_leader_is_read_once_the_client_has_asked(
    make: Make, client: Client, *, refused: bool
) -> None:
    """The end may be lost. The client delivers what it has read so far again; if it refuses, it begins once more."""
    source = make({IN: 5, epoch_at(IN): 2})
    client.give(IN)
    later = [ArrivedMessage(b"", 5, offset, partition=0, epoch=3) for offset in (5, 6)]
    batch = source.batch()
    if refused:
        client.refusal = KafkaError(KafkaError._STATE)  # noqa: SLF001  # librdkafka's name
        client.arrived += later
        source.take_at_once(batch)
        assert (client.unassigned, client.started[1:], batch.messages) == ([IN], [{IN: 5}], [])
        client.refusal = None
    client.arrived += later
    source.take_at_once(batch)
    assert (client.sought, batch.messages) == ([(IN, 5, 2)], [])
    client.arrived += later
    source.take_at_once(batch)
    assert (taken(batch), len(client.sought)) == ([(0, 5), (0, 6)], 1)


def test_message_of_the_same_leader_is_read_at_once(make: Make, client: Client) -> None:
    """So is one of a later leader behind it: what was there when reading began is proved."""
    source = make({IN: 5, epoch_at(IN): 2})
    client.give(IN)
    client.arrived += [ArrivedMessage(b"", 5, 5 + n, partition=0, epoch=epoch) for n, epoch in enumerate((2, 3))]
    batch = source.batch()
    source.take_at_once(batch)
    assert (taken(batch), client.sought) == ([(0, 5), (0, 6)], [])


def test_message_of_a_later_leader_is_dropped_where_its_partition_has_gone(make: Make, client: Client) -> None:
    """The client may hand it out in the call in which it is told: there is nothing left to ask about."""
    source = make({IN: 5, epoch_at(IN): 2})
    client.give(IN)
    client.meanwhile = lambda: client.take(IN)
    client.arrived.append(ArrivedMessage(b"", 5, 5, partition=0, epoch=3))
    batch = source.batch()
    source.take(batch, GOES_ON)
    assert (batch.messages, client.sought, len(client.started)) == ([], [], 1)
