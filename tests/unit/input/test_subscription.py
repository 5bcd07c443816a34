"""When the input looks for topics, what it subscribes to, and whom it tells of partitions that somebody else reads.

Knows a client that lists topics; knows no broker, and no messages.
"""

from collections.abc import Callable, Sequence
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError
from structlog.testing import capture_logs

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import load_settings
from stream_dedup.stream.input.subscription import Subscription
from stream_dedup.stream.kafka.clients import consumer_properties
from stream_dedup.stream.kafka.places import Place
from tests.unit.clock import Clock
from tests.unit.input.client import IN, OTHER, Client

_REFRESH_SECONDS = 60.0
_AGAIN_SECONDS = 10.0  # as the module has it
_BOTH = {IN, OTHER}
_FIRST = {IN}
_AWAY = KafkaError(KafkaError._TRANSPORT)  # noqa: SLF001  # librdkafka's name


def _subscription(client: Client, topics: str = "in", refresh_ms: float = 1_000 * _REFRESH_SECONDS) -> Subscription:
    settings = load_settings(
        flags=[f"input.topics={topics}", f"kafka.topic.metadata.refresh.interval.ms={refresh_ms:.0f}"]
    )
    consumer, properties = cast("Consumer", client), consumer_properties(settings)
    return Subscription(settings, consumer, properties, lambda *_: None, lambda *_: None, RecurringFaults())


def _told(looks: Sequence[set[Place]], client: Client, on_look: Callable[[int], None]) -> list[object]:
    """Return of which partitions a series of looks tells; `looks` are the partitions held at each."""
    subscribed = _subscription(client)
    with capture_logs() as logged:
        for number, held in enumerate(looks):
            on_look(number)
            subscribed.look(held)
    return [event["first"] for event in logged if event["event"] == "partitions_elsewhere"]


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([_BOTH, _BOTH, _BOTH], []),
        ([_FIRST, _BOTH], []),  # it was being handed over
        ([_BOTH, _FIRST, _BOTH, _FIRST], []),
        ([_FIRST, _FIRST], ["in/1"]),
        ([_FIRST, {OTHER}, _BOTH], []),  # another one at each look
        ([_FIRST, set(), _FIRST], []),  # all were taken away in between: nothing is known of what came before
        ([_FIRST, set(), _FIRST, _FIRST], ["in/1"]),
    ],
)
def test_partitions_that_somebody_else_has_at_two_looks_in_a_row_are_told(
    client: Client, looks: Sequence[set[Place]], told: Sequence[str]
) -> None:
    """The group moves partitions now and then; what is elsewhere for longer, another reader of the group has."""
    assert _told(looks, client, lambda _: None) == told


def test_a_look_that_the_broker_does_not_answer_tells_nothing_of_others(client: Client) -> None:
    """The partition may have come and gone in between."""

    def second_fails(number: int) -> None:
        client.refusal = _AWAY if number == 1 else None

    assert _told([_FIRST, _FIRST, _FIRST], client, second_fails) == []
    assert _told([_FIRST, _FIRST, _FIRST, _FIRST], client, second_fails) == ["in/1"]


def test_partitions_of_other_topics_are_nobodys_business(client: Client) -> None:
    """The cluster has topics of others, which this group does not read."""
    client.topics["theirs"] = range(9)
    assert _told([_BOTH, _BOTH], client, lambda _: None) == []


@pytest.mark.parametrize("topics", ["in", "^in.*"])
def test_the_broker_is_asked_once_per_period(client: Client, clock: Clock, topics: str) -> None:
    """Each look takes a question to the broker, and the loop goes round many times a second."""
    subscribed = _subscription(client, topics)
    assert subscribed.is_due
    subscribed.look(_FIRST)
    assert not subscribed.is_due
    clock.now += _REFRESH_SECONDS - 0.1
    assert not subscribed.is_due
    clock.now += 0.2
    assert subscribed.is_due


def test_without_refreshing_there_is_one_look(client: Client, clock: Clock) -> None:
    """As librdkafka has it: -1 turns refreshing off."""
    subscribed = _subscription(client, refresh_ms=-1)
    subscribed.look(_FIRST)
    clock.now += 1e9
    assert not subscribed.is_due


def test_expressions_that_got_no_answer_are_looked_up_again_soon(client: Client, clock: Clock) -> None:
    """Nothing is read until there is one. What is subscribed already stays."""
    subscribed = _subscription(client, "^in.*")
    subscribed.look(set())
    client.refusal, client.topics["in.too"] = _AWAY, (0,)
    with capture_logs() as logged:
        subscribed.look(_FIRST)
    assert [(event["event"], event["error"]) for event in logged] == [("input_waits", "_TRANSPORT")]
    assert client.subscribed[-1] == ["in"]
    clock.now += _AGAIN_SECONDS
    assert subscribed.is_due
    client.refusal = None
    subscribed.look(_FIRST)
    assert client.subscribed[-1] == ["in", "in.too"]


def test_named_topics_need_no_answer(client: Client, clock: Clock) -> None:
    """If they cannot be read, reading tells; before anything is assigned there is no question either.

    Nor is there any hurry to ask again.
    """
    client.refusal = _AWAY
    subscribed = _subscription(client)
    asked = []
    with capture_logs() as logged:
        for held in (set[Place](), _FIRST):
            subscribed.look(held)
            asked.append(client.listed)
    assert asked == [0, 1]
    clock.now += _AGAIN_SECONDS + 0.1
    assert not subscribed.is_due
    assert client.subscribed[-1] == ["in"]
    assert [event["event"] for event in logged] == ["topics_taken_in"]


def test_expressions_whose_topics_are_gone_are_unsubscribed_and_told(client: Client) -> None:
    """It may be wrong, or the first topic is yet to come."""
    subscribed = _subscription(client, "^in.*")
    subscribed.look(set())
    assert client.subscribed[-1] == ["in"]
    client.topics = {"other": (0,)}
    with capture_logs() as logged:
        subscribed.look(_FIRST)
    assert client.subscribed[-1] == []
    assert [event["event"] for event in logged] == ["input_waits", "topics_taken_in"]


def test_named_topics_of_which_nothing_is_held_are_unread(client: Client) -> None:
    """Without any partition, another process reads them all, or nothing is known yet."""
    subscribed = _subscription(client, "in,more,^expected.*")
    assert subscribed.unread(set()) == set()
    assert subscribed.unread(_FIRST) == {"more"}
    assert subscribed.unread(_FIRST | {("more", 3)}) == set()
