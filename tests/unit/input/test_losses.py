"""When partitions are resumed whose next message is gone, while brokers answer, are away, or refuse."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.stream.input import losses as losses_
from stream_dedup.stream.input.losses import Losses
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import Place
from tests.unit.clock import Clock

_FIRST, _SECOND = ("articles", 0), ("articles", 1)
_AWAY = KafkaError._TIMED_OUT  # noqa: SLF001  # librdkafka's name


class _Broker:
    """Answers what is asked of it, or fails with a code."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.asked: list[tuple[Place, int, str]] = []

    def resume(self, place: Place, offset: int, told: str) -> None:
        self.asked.append((place, offset, told))
        if self.code is not None:
            raise KafkaException(KafkaError(self.code))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of the losses."""
    made = Clock()
    monkeypatch.setattr(losses_, "time", made)
    return made


def _of_two() -> Losses:
    losses = Losses(RecurringFaults())
    losses.add(_FIRST, 7, "out of range")
    losses.add(_SECOND, 9, "truncated")
    return losses


def test_each_loss_is_handled_once() -> None:
    """With what was told of it; then nothing is left."""
    losses, broker = _of_two(), _Broker()
    losses.handle(broker.resume)
    losses.handle(broker.resume)
    assert broker.asked == [(_FIRST, 7, "out of range"), (_SECOND, 9, "truncated")]


def test_broker_that_is_away_is_asked_again_later(clock: Clock) -> None:
    """A partition waits, and the others with it: each question may take seconds. The log tells why, once."""
    losses, broker = _of_two(), _Broker()
    broker.code = _AWAY
    with capture_logs() as logged:
        losses.handle(broker.resume)
        losses.handle(broker.resume)
        clock.now += losses_._PAUSE_SECONDS - 0.1  # noqa: SLF001
        losses.handle(broker.resume)
        assert [place for place, *_ in broker.asked] == [_FIRST]
    assert [(line["event"], line["error"]) for line in logged] == [("input_waits", "_TIMED_OUT")]
    clock.now += 0.2
    broker.code = None
    losses.handle(broker.resume)
    assert [place for place, *_ in broker.asked] == [_FIRST, _FIRST, _SECOND]


def test_refusal_is_an_error() -> None:
    """It says what was told of the loss, and what the broker says."""
    losses, broker = _of_two(), _Broker()
    broker.code = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(BrokerError, match=r"cannot read articles: out of range, and then: .*[Aa]uthorization failed"):
        losses.handle(broker.resume)


def test_what_is_begun_anew_is_forgotten() -> None:
    """The client would tell of the loss again; resuming a partition begins it anew as well."""
    losses, broker = _of_two(), _Broker()
    losses.forget([_SECOND])

    def begin_anew(*loss: Any) -> None:  # noqa: ANN401  # whatever is told
        broker.resume(*loss)
        losses.forget([loss[0]])

    losses.handle(begin_anew)
    losses.handle(broker.resume)
    assert broker.asked == [(_FIRST, 7, "out of range")]
