"""Times and positions of messages, what a group stores, and updates to a state about topics with new identities."""

from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, TopicPartition

from stream_dedup.stream.kafka.places import (
    IDENTITY,
    Place,
    by_time,
    epoch_at,
    identity_updates,
    in_input,
    is_of_deleted,
    offsets_of,
    positions_after,
    timestamp_of,
)
from tests.unit.arrived import ArrivedMessage

_POSITIONS: dict[Place, int] = {("a", IDENTITY): 7, ("a", 0): 30, ("a", 1): 40, ("b", 0): 50}


@pytest.mark.parametrize(
    ("identities", "places", "news"),
    [
        ({}, [("a", 2)], {}),
        ({"a": 7}, [("a", 2)], {}),
        ({"b": 9, "c": 8}, [], {("b", IDENTITY): 9, ("c", IDENTITY): 8}),
        ({"a": 6}, [("a", 2), ("b", 1)], {("a", IDENTITY): 6, ("a", 0): 0, ("a", 1): 0, ("a", 2): 0}),
    ],
    ids=["not told", "as it was", "not known before", "made anew"],
)
def test_only_a_topic_that_was_made_anew_begins_again(
    identities: dict[str, int], places: list[Place], news: dict[Place, int]
) -> None:
    """A recreated topic restarts in each partition, known or read since; of others only new identities are recorded."""
    assert identity_updates(identities, _POSITIONS, places) == news


@pytest.mark.parametrize(
    ("told", "timestamp"),
    [
        ((TIMESTAMP_CREATE_TIME, 5), 5),
        ((TIMESTAMP_LOG_APPEND_TIME, 5), 5),
        ((TIMESTAMP_CREATE_TIME, 0), 0),
        ((TIMESTAMP_CREATE_TIME, -1), None),
        ((TIMESTAMP_NOT_AVAILABLE, 0), None),
    ],
)
def test_timestamp_is_none_where_there_is_none(told: tuple[int, int], timestamp: int | None) -> None:
    """Neither the broker's placeholder nor the client's is a time, though 1970 is one."""
    assert timestamp_of(Mock(**{"timestamp.return_value": told})) == timestamp


def test_order_by_time_keeps_that_of_each_partition() -> None:
    """A message whose producer's clock stepped back counts as no older than those before it."""
    came: list[Any] = [
        ArrivedMessage(b"", time_ms, offset, partition=partition)
        for partition, times in enumerate([(10, 40, 20, 50), (30, 45)])
        for offset, time_ms in enumerate(times)
    ]
    assert [(one.partition(), one.offset()) for one in by_time(came)] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (0, 2),
        (1, 1),
        (0, 3),
    ]


def test_group_stores_the_identity_of_a_topic_with_each_offset() -> None:
    """By that a topic made anew is told from the one the offset was stored for; without either nothing is told."""
    stored = {(one.topic, one.partition): one for one in offsets_of(_POSITIONS)}
    assert {place: one.offset for place, one in stored.items()} == {("a", 0): 30, ("a", 1): 40, ("b", 0): 50}
    of_a, of_b = stored["a", 1], stored["b", 0]
    assert [is_of_deleted(of_a, identities) for identities in ({"a": 7}, {"a": 6}, {})] == [False, True, False]
    assert not is_of_deleted(of_b, {"b": 6})
    assert not is_of_deleted(TopicPartition("b", 0, 50, "of another program"), {"b": 6})


def test_leader_epoch_of_a_new_topic_is_the_first() -> None:
    """As its positions are: an epoch of the old one would tell of losses."""
    known = {("a", IDENTITY): 7, ("a", 1): 30, epoch_at(("a", 1)): 5}
    assert identity_updates({"a": 6}, known, ()) == {("a", IDENTITY): 6, ("a", 1): 0, epoch_at(("a", 1)): 0}


def test_group_stores_identity_and_leader_epoch_with_an_offset() -> None:
    """As far as they are known; no partition's epoch passes for another's, or for an offset."""
    places: list[Place] = [("a", 0), ("a", 1), ("b", 0)]
    positions = {place: 10 + at for at, place in enumerate(places)} | {("a", IDENTITY): 7, epoch_at(("a", 1)): 5}
    stored = [(one.topic, one.partition, one.offset, one.metadata, one.leader_epoch) for one in offsets_of(positions)]
    assert stored == [("a", 0, 10, "7", None), ("a", 1, 11, "7", 5), ("b", 0, 12, "", None)]
    assert in_input(positions) == dict(zip(places, (10, 11, 12), strict=True))


def test_position_is_after_the_last_message_with_its_leader_epoch() -> None:
    """Brokers too old to have epochs tell none."""
    messages = [ArrivedMessage(b"", offset=at, partition=at % 2, epoch=at if at % 2 else None) for at in range(4)]
    assert positions_after(messages) == {("in", 0): 3, ("in", 1): 4, epoch_at(("in", 1)): 3}  # type: ignore[arg-type]  # as far as is asked
