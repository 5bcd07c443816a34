"""Where reading begins, when that is recorded, when the group may know of it, and what a recreated topic changes."""

from collections.abc import Mapping

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from stream_dedup.stream.input.positions import InputPositions
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place

_ONE, _OTHER, _NAME = ("t", 0), ("t", 1), ("t", IDENTITY)


def _positions() -> InputPositions:
    return InputPositions({}, lambda _: {}, OFFSET_END)


def test_first_position_is_told_once_it_is_recorded() -> None:
    """However often the partition is assigned until then."""
    positions = _positions()
    positions.begin_at({_ONE: 7})
    assert positions.starts({_ONE}) == {_ONE: 7}
    assert positions.recorded({_ONE, _OTHER}) == {}
    recording = positions.unrecorded()
    assert recording == {_ONE: 7}
    positions.mark_recorded(recording | {_ONE: 9})
    assert (positions.unrecorded(), positions.recorded({_ONE})) == ({}, {_ONE: 9})


def test_first_position_that_arises_during_a_commit_is_recorded_by_the_next() -> None:
    """As when the group assigns a partition while the broker keeps a commit waiting."""
    positions = _positions()
    positions.begin_at({_ONE: 7})
    recording = positions.unrecorded()
    positions.begin_at({_OTHER: 3})
    positions.mark_recorded(recording)
    assert positions.unrecorded() == {_OTHER: 3}
    assert positions.recorded({_ONE, _OTHER}) == {_ONE: 7}


def test_reading_begins_where_the_state_stands() -> None:
    """A position of 0 means the oldest message that there is; without any, the settings say where."""
    positions = InputPositions({_ONE: 0, _OTHER: 5}, lambda _: {}, OFFSET_END)
    assert positions.starts({_ONE, _OTHER, ("t", 2)}) == {_ONE: OFFSET_BEGINNING, _OTHER: 5, ("t", 2): OFFSET_END}


def test_added_partitions_are_those_after_the_last_of_a_topic_that_is_read() -> None:
    """Neither a gap before it nor a topic of which only the identity is known tells of an addition."""
    positions = InputPositions({_OTHER: 5, _NAME: 1, ("new", IDENTITY): 2}, lambda _: {}, OFFSET_END)
    asked = {_ONE, _OTHER, ("t", 2), ("t", 3), ("new", 0), ("unknown", 0)}
    assert positions.added(asked) == {("t", 2), ("t", 3)}


class _Topics:
    """A broker whose topic `t` can be recreated, and positions of a state that knows its first identity."""

    def __init__(self, known: Mapping[Place, int]) -> None:
        self.identity = 1
        self.positions = InputPositions(known, lambda _: {"t": self.identity}, OFFSET_BEGINNING)

    def recreate(self, *under_way: Place) -> None:
        """Recreate the topic, and assign one of its partitions."""
        self.identity += 1
        self.positions.take_up({_ONE}, {*under_way}, set())


def test_topic_that_is_recreated_during_a_commit_stands_at_its_beginning() -> None:
    """What the commit records of the old one does not count; the next commit records the new identity."""
    topics = _Topics({_NAME: 1, _ONE: 5})
    positions = topics.positions
    recording = positions.unrecorded()
    topics.recreate()
    positions.mark_recorded(recording | {_ONE: 8})
    assert positions.position(_ONE) == 0
    recording = positions.unrecorded()
    assert recording == {_NAME: 2, _ONE: 0}
    positions.mark_recorded(recording | {_ONE: 3})
    assert (positions.unrecorded(), positions.position(_ONE)) == ({}, 3)


def test_topic_that_is_recreated_again_is_recorded_again() -> None:
    """Its positions are the same beginnings as those being recorded, but the identity differs."""
    topics = _Topics({_NAME: 1, _ONE: 5})
    topics.recreate()
    recording = topics.positions.unrecorded()
    topics.recreate()
    topics.positions.mark_recorded(recording | {_ONE: 3})
    assert topics.positions.position(_ONE) == 0
    assert topics.positions.unrecorded() == {_NAME: 3, _ONE: 0}


def test_partition_that_is_not_committed_yet_begins_anew_with_its_topic() -> None:
    """The state has no position in it, but messages from it are on their way to a commit."""
    topics = _Topics({_NAME: 1, _ONE: 5})
    topics.recreate(_OTHER)
    assert topics.positions.unrecorded() == {_NAME: 2, _ONE: 0, _OTHER: 0}


def test_topic_that_is_recreated_while_it_is_read_is_told() -> None:
    """Whether the group assigns more of it or somebody looks: partitions that are being read would be read on."""
    topics = _Topics({_NAME: 1, _ONE: 5})
    topics.positions.check({_ONE})
    topics.identity = 2
    told = "topic t was deleted and recreated: restart the service"
    with pytest.raises(BrokerError, match=told):
        topics.positions.check({_ONE})
    with pytest.raises(BrokerError, match=told):
        topics.positions.take_up({_OTHER}, set(), {_ONE})
    assert topics.positions.unrecorded() == {}


def test_identity_that_is_unknown_at_first_is_recorded_later() -> None:
    """A broker may not tell it at once: a topic that is recreated afterwards is then noticed."""
    topics = _Topics({_ONE: 5})
    topics.positions.check({_ONE})
    assert topics.positions.unrecorded() == {_NAME: 1}
    assert topics.positions.position(_ONE) == 5
