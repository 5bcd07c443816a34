"""Questions to the broker, with errors as librdkafka reports them."""

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka import patience
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.patience import Patience

_SETTINGS = Settings.model_validate({"commit": {"deadline_seconds": 5}})


def _answering_after(silences: int, code: int) -> Callable[[float], str]:
    asked = count()

    def ask(seconds: float) -> str:
        assert 0 < seconds <= 1
        if next(asked) < silences:
            raise KafkaException(KafkaError(code))
        return "an answer"

    return ask


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TIMED_OUT,  # noqa: SLF001  # librdkafka's names
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._DESTROY_BROKER,  # noqa: SLF001
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    ],
)
def test_asks_again_while_the_broker_is_away(code: int) -> None:
    """It shows signs of life once for each attempt without an answer."""
    lives: list[None] = []
    assert Patience(_SETTINGS, "cannot read", lambda: lives.append(None)).answer(_answering_after(2, code)) == (
        "an answer"
    )
    assert len(lives) == 2


def test_refusal_is_not_asked_again() -> None:
    """The error says what cannot be done, and why."""
    patient = Patience(_SETTINGS, "cannot read the input", lambda: pytest.fail("it waits"))
    with pytest.raises(BrokerError, match=r"^cannot read the input: .*[Aa]uthorization failed"):
        patient.answer(_answering_after(1, KafkaError.TOPIC_AUTHORIZATION_FAILED))


def test_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that stays away is an error after `commit.deadline_seconds`, and not before."""
    seconds = count(0.0, 2.0)
    clock = SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None)
    monkeypatch.setattr(patience, "time", clock)
    lives: list[None] = []
    with pytest.raises(BrokerError, match=r"^cannot read: no broker has answered for 5 s; "):
        Patience(_SETTINGS, "cannot read", lambda: lives.append(None)).answer(
            _answering_after(99, KafkaError._TIMED_OUT)  # noqa: SLF001  # librdkafka's name
        )
    assert len(lives) == 2  # at 2 and 4 s


def test_caller_may_give_up() -> None:
    """For instance because a stop was requested."""

    class GivenUpError(Exception):
        pass

    def give_up() -> None:
        raise GivenUpError

    with pytest.raises(GivenUpError):
        Patience(_SETTINGS, "cannot read", give_up).answer(_answering_after(1, KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
