"""When the input looks for topics, what it subscribes to, and whom it tells of partitions that somebody else reads.

Knows a client that lists topics; knows no broker, and no messages.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from structlog.testing import capture_logs

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import load_settings
from stream_dedup.stream.input import subscription
from stream_dedup.stream.input.subscription import Subscription
from stream_dedup.stream.kafka.places import Place
from tests.unit.clock import Clock

_REFRESH_SECONDS = 60.0
_AGAIN_SECONDS = 10.0  # as the module has it
_BOTH = {("in", 0), ("in", 1)}
_FIRST = {("in", 0)}


class _Client:
    """A client that knows some topics, by their numbers of partitions, unless the broker is away."""

    def __init__(self, **topics: int) -> None:
        self.topics = topics
        self.away = False
        self.asked = 0
        self.subscribed: list[str] = []

    def list_topics(self, timeout: float) -> object:
        assert timeout > 0
        self.asked += 1
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))  # noqa: SLF001  # librdkafka's name
        return SimpleNamespace(
            topics={name: SimpleNamespace(partitions=range(count)) for name, count in self.topics.items()}
        )

    def subscribe(self, topics: list[str], **_: Callable[..., None]) -> None:
        self.subscribed = topics

    def unsubscribe(self) -> None:
        self.subscribed = []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time, in the hands of the test."""
    clock = Clock()
    monkeypatch.setattr(subscription, "time", clock)
    return clock


def _subscription(client: _Client, topics: str = "in", refresh_ms: float = 1_000 * _REFRESH_SECONDS) -> Subscription:
    settings = load_settings(
        flags=[f"input.topics={topics}", f"kafka.topic.metadata.refresh.interval.ms={refresh_ms:.0f}"]
    )
    return Subscription(settings, cast("Consumer", client), lambda *_: None, lambda *_: None, RecurringFaults())


def _told(looks: Sequence[set[Place]], client: _Client, on_look: Callable[[int], None]) -> list[object]:
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
        ([_FIRST, {("in", 1)}, _BOTH], []),  # another one at each look
        ([_FIRST, set(), _FIRST], []),  # all were taken away in between: nothing is known of what came before
        ([_FIRST, set(), _FIRST, _FIRST], ["in/1"]),
    ],
)
def test_partitions_that_somebody_else_has_at_two_looks_in_a_row_are_told(
    looks: Sequence[set[Place]], told: Sequence[str]
) -> None:
    """The group moves partitions now and then; what is elsewhere for longer, another reader of the group has."""
    assert _told(looks, _Client(**{"in": 2}), lambda _: None) == told


def test_a_look_that_the_broker_does_not_answer_tells_nothing_of_others() -> None:
    """The partition may have come and gone in between."""
    client = _Client(**{"in": 2})

    def second_fails(number: int) -> None:
        client.away = number == 1

    assert _told([_FIRST, _FIRST, _FIRST], client, second_fails) == []
    assert _told([_FIRST, _FIRST, _FIRST, _FIRST], client, second_fails) == ["in/1"]


def test_partitions_of_other_topics_are_nobodys_business() -> None:
    """The cluster has topics of others, which this group does not read."""
    assert _told([_BOTH, _BOTH], _Client(**{"in": 2}, theirs=9), lambda _: None) == []


@pytest.mark.parametrize("topics", ["in", "^in.*"])
def test_the_broker_is_asked_once_per_period(clock: Clock, topics: str) -> None:
    """Each look takes a question to the broker, and the loop goes round many times a second."""
    subscribed = _subscription(_Client(**{"in": 1}), topics)
    assert subscribed.is_due
    subscribed.look(_FIRST)
    assert not subscribed.is_due
    clock.now += _REFRESH_SECONDS - 0.1
    assert not subscribed.is_due
    clock.now += 0.2
    assert subscribed.is_due


def test_without_refreshing_there_is_one_look(clock: Clock) -> None:
    """As librdkafka has it: -1 turns refreshing off."""
    subscribed = _subscription(_Client(**{"in": 1}), refresh_ms=-1)
    subscribed.look(_FIRST)
    clock.now += 1e9
    assert not subscribed.is_due


def test_expressions_that_got_no_answer_are_looked_up_again_soon(clock: Clock) -> None:
    """Nothing is read until there is one. What is subscribed already stays."""
    client = _Client(**{"in": 1})
    subscribed = _subscription(client, "^in.*")
    subscribed.look(set())
    client.away, client.topics = True, {"in": 1, "in.too": 1}
    with capture_logs() as logged:
        subscribed.look(_FIRST)
    assert [(event["event"], event["error"]) for event in logged] == [("input_waits", "_TRANSPORT")]
    assert client.subscribed == ["in"]
    clock.now += _AGAIN_SECONDS
    assert subscribed.is_due
    client.away = False
    subscribed.look(_FIRST)
    assert client.subscribed == ["in", "in.too"]


def test_named_topics_need_no_answer(clock: Clock) -> None:
    """If they cannot be read, reading tells; before anything is assigned there is no question either.

    Nor is there any hurry to ask again.
    """
    client = _Client()
    client.away = True
    subscribed = _subscription(client)
    asked = []
    with capture_logs() as logged:
        for held in (set[Place](), _FIRST):
            subscribed.look(held)
            asked.append(client.asked)
    assert asked == [0, 1]
    clock.now += _AGAIN_SECONDS + 0.1
    assert not subscribed.is_due
    assert client.subscribed == ["in"]
    assert [event["event"] for event in logged] == ["topics_taken_in"]


def test_expressions_whose_topics_are_gone_are_unsubscribed_and_told() -> None:
    """It may be wrong, or the first topic is yet to come."""
    client = _Client(**{"in": 1})
    subscribed = _subscription(client, "^in.*")
    subscribed.look(set())
    assert client.subscribed == ["in"]
    client.topics = {"other": 1}
    with capture_logs() as logged:
        subscribed.look(_FIRST)
    assert client.subscribed == []
    assert [event["event"] for event in logged] == ["input_waits", "topics_taken_in"]


def test_named_topics_of_which_nothing_is_held_are_unread() -> None:
    """Without any partition, another process reads them all, or nothing is known yet."""
    subscribed = _subscription(_Client(), "in,more,^expected.*")
    assert subscribed.unread(set()) == set()
    assert subscribed.unread(_FIRST) == {"more"}
    assert subscribed.unread(_FIRST | {("more", 3)}) == set()
