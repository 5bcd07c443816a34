"""What a member of the owners' group makes of what its client tells, on a clock that the test moves.

Knows the calls of a client; who becomes owner on a real broker is tested in tests/stream.
"""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import Settings
from stream_dedup.stream import ownership as ownership_
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.ownership import Ownership
from tests.unit.clock import Clock

_TOPIC = "index.owner"
_FIRST, _ADDED = TopicPartition(_TOPIC, 0), TopicPartition(_TOPIC, 1)
_GONE = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "unknown topic")
_SILENT = KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker")  # noqa: SLF001  # librdkafka's name
_NO_MEMBER = KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "who?")
_NO_RIGHT = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no right")


class _Scene(NamedTuple):
    member: Ownership
    client: Mock
    properties: Mapping[str, Any]
    clock: Clock

    def assign(self, *partitions: TopicPartition) -> None:
        """Let the client tell of an assignment."""
        self._called("on_assign")(self.client, list(partitions))

    def revoke(self, *partitions: TopicPartition) -> None:
        """Let the client tell of a revocation."""
        self._called("on_revoke")(self.client, list(partitions))

    def answer(self, error: KafkaError | None) -> None:
        """Let the client tell what became of a commit at the next poll."""

        def poll(seconds: float) -> None:
            self.client.poll.side_effect = None
            self.clock.now += seconds
            self.properties["on_commit"](error, [])

        self.client.poll.side_effect = poll

    def polled(self, *errors: KafkaError) -> None:
        """Poll, and let the client return each of these."""
        for error in errors:
            self.client.poll.side_effect = [SimpleNamespace(error=lambda error=error: error)]
            self.member.poll()
        self.client.poll.side_effect = None

    def found(self, error: KafkaError | None) -> None:
        """Let the broker know the topic, or say what is the matter with it."""
        self.client.list_topics.return_value.topics = {_TOPIC: SimpleNamespace(error=error)}

    def _called(self, name: str) -> Any:  # noqa: ANN401  # a callback of the client
        return self.client.subscribe.call_args.kwargs[name]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Scene]:
    """Return a member that has polled once, without a broker."""
    clock, given = Clock(), list[Mapping[str, Any]]()

    def poll(seconds: float) -> None:
        clock.now += seconds

    client = Mock(poll=Mock(wraps=poll))

    def make(_settings: Settings, properties: Mapping[str, Any]) -> Mock:
        given.append(properties)
        return client

    monkeypatch.setattr(ownership_, "make_consumer", make)
    monkeypatch.setattr(ownership_, "time", clock)
    member = Ownership(Settings.model_validate({"kafka": {}}), _TOPIC, "0a1b2c3d")
    member.poll()
    yield _Scene(member, client, given[0], clock)
    member.leave()


# --------------------------------------------------------------------------------------- who has the partition


def test_member_joins_once_and_leaves_once(scene: _Scene) -> None:
    """Each time anew it would lose its place in the group; after it has left it is owner no more."""
    scene.assign(_FIRST)
    scene.member.poll()
    scene.client.subscribe.assert_called_once()
    scene.member.leave()
    assert not scene.member.owner
    scene.member.leave()
    scene.client.close.assert_called_once()


def test_only_the_first_partition_decides_who_is_owner(scene: _Scene) -> None:
    """One may be assigned or revoked together with those that somebody has added, or without them."""
    scene.assign()
    scene.assign(_ADDED)
    assert (scene.member.owner, scene.member.term) == (False, 0)
    scene.assign(_ADDED, _FIRST)
    assert (scene.member.owner, scene.member.term) == (True, 1)
    scene.revoke(_ADDED)
    assert scene.member.owner
    scene.revoke(_FIRST, _ADDED)
    assert not scene.member.owner
    scene.assign(_FIRST)
    assert (scene.member.owner, scene.member.term) == (True, 2)


def test_nothing_is_read_from_the_partition(scene: _Scene) -> None:
    """It is paused, and where reading begins is not looked up: with `auto.offset.reset = error` that would fail."""
    scene.assign(TopicPartition(_TOPIC, 0))
    for taken in (scene.client.incremental_assign, scene.client.pause):
        assert [(one.partition, one.offset) for one in taken.call_args.args[0]] == [(0, 0)]


@pytest.mark.parametrize("call", ["incremental_assign", "pause"])
def test_partition_that_cannot_be_taken_makes_no_owner(scene: _Scene, call: str) -> None:
    """The next poll says why: an exception in the client's callback would be lost."""
    getattr(scene.client, call).side_effect = KafkaException(KafkaError(KafkaError._STATE, "no such call now"))  # noqa: SLF001  # the same
    scene.assign(_FIRST)
    assert (scene.member.owner, scene.member.term) == (False, 0)
    with pytest.raises(BrokerError, match=f"cannot take the partition of {_TOPIC}: no such call now"):
        scene.member.poll()


# ---------------------------------------------------------------------------------------------------- faults


def test_fault_that_passes_ends_no_member(scene: _Scene) -> None:
    """It is told, and the member keeps polling; a refusal ends it, with what to do."""
    with capture_logs() as events:
        scene.polled(_SILENT)
    assert [(event["event"], event["error"]) for event in events] == [("ownership_waits", "_ALL_BROKERS_DOWN")]
    with pytest.raises(BrokerError, match="Read and Describe on the topic of the same name"):
        scene.polled(_NO_RIGHT)


def test_topic_is_looked_for_once_it_has_been_missing_for_a_while(scene: _Scene) -> None:
    """Counted from the first time, though it is reported again and again; a broker that has it is asked no more."""
    scene.found(None)
    for _ in range(4):
        scene.polled(_GONE)
        scene.client.list_topics.assert_not_called()
        scene.clock.now += 2.6
    scene.member.poll()
    scene.member.poll()
    scene.client.list_topics.assert_called_once()


def test_topic_is_looked_for_again_if_no_broker_answers(scene: _Scene) -> None:
    """It may be missing still, and would not be reported a second time."""
    scene.polled(_GONE)
    scene.clock.now += 11
    scene.client.list_topics.side_effect = KafkaException(_SILENT)
    scene.member.poll()
    scene.member.poll()
    scene.client.list_topics.assert_called_once()
    scene.client.list_topics.side_effect = None
    scene.found(_GONE)
    scene.clock.now += 11
    with pytest.raises(BrokerError, match=f"the topic {_TOPIC} was deleted"):
        scene.member.poll()


def test_topic_with_another_fault_was_not_deleted(scene: _Scene) -> None:
    """As one that has no leader at the moment."""
    scene.polled(_GONE)
    scene.clock.now += 11
    scene.found(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "an election"))
    scene.member.poll()
    scene.client.list_topics.assert_called_once()


# ---------------------------------------------------------------------------------------------------- asking


def test_question_is_put_once_until_its_answer_comes(scene: _Scene) -> None:
    """Whoever has no answer yet waits for it again, for as long as it likes."""
    began = scene.clock.now
    assert not scene.member.ask(0.5)
    assert not scene.member.ask(0.5)
    assert 1.0 <= scene.clock.now - began < 1.1
    scene.client.commit.assert_called_once()
    scene.answer(None)
    assert scene.member.ask(0.5)
    assert not scene.member.ask(0.5)
    assert scene.client.commit.call_count == 2


@pytest.mark.parametrize("error", [None, _NO_MEMBER])
def test_answer_that_comes_between_two_calls_is_told_by_the_next(scene: _Scene, error: KafkaError | None) -> None:
    """Whoever waits polls in between too, to stay alive: nothing is asked a second time for it."""
    assert not scene.member.ask(0.5)
    scene.answer(error)
    scene.member.poll()
    if error is None:
        assert scene.member.ask(0.5)
    else:
        with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
            scene.member.ask(0.5)
    scene.client.commit.assert_called_once()


def test_answer_counts_for_its_own_question_only(scene: _Scene) -> None:
    """Who was told once that it is no member, and asks again, has no answer until the next one comes."""
    scene.answer(_NO_MEMBER)
    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        scene.member.ask(0.5)
    assert not scene.member.ask(0.5)
    scene.answer(None)
    assert scene.member.ask(0.5)


def test_whoever_waits_for_an_answer_takes_part_in_the_group(scene: _Scene) -> None:
    """A revocation is heard meanwhile, and so is a refusal."""
    scene.client.poll.side_effect = [SimpleNamespace(error=lambda: _NO_RIGHT)]
    with pytest.raises(BrokerError, match="grant the rights"):
        scene.member.ask(0.5)
