"""Questions to the broker, asked again while it is away.

Knows which errors pass and how long they may last; knows nothing of what the answers are for.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError, is_transient, reading_error

_SLICE_SECONDS = 1.0  # longest wait at a time, so that signals and heartbeats get their turn
_PAUSE_SECONDS = 0.1

# A topic that was created a moment ago may not be known to every broker yet.
_ABSENT = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})  # noqa: SLF001  # librdkafka's names

_Answer = TypeVar("_Answer")


class Patience:
    """Asks until the broker answers or refuses.

    Args:
        settings: `commit.deadline_seconds` limits how long one question is asked.
        what: what cannot be done without an answer, for errors.
        while_waiting: called about every second while there is no answer; may raise to give up.
    """

    def __init__(self, settings: Settings, what: str, while_waiting: Callable[[], None]) -> None:
        self._seconds = settings.commit.deadline_seconds
        self._what = what
        self._while_waiting = while_waiting

    def answer(self, ask: Callable[[float], _Answer]) -> _Answer:
        """Return the answer to a question.

        Args:
            ask: asks once, and waits for as many seconds as it is given.

        Raises:
            BrokerError: a refusal, or no answer within `commit.deadline_seconds`.
        """
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                return ask(_SLICE_SECONDS)
            except KafkaException as error:
                fault = error.args[0]
                if not is_transient(fault) and fault.code() not in _ABSENT:
                    raise reading_error(self._what, fault) from None
                if time.monotonic() > deadline:
                    silence = f"no broker has answered for {self._seconds:g} s"
                    raise BrokerError(f"{self._what}: {silence}; {fault.str()}") from None
            self._while_waiting()
            time.sleep(_PAUSE_SECONDS)


def watermarks(consumer: Consumer, place: TopicPartition, patience: Patience) -> tuple[int, int]:
    """Return the first offset of a partition that still exists, and its end.

    Raises:
        BrokerError: see `Patience.answer`.
    """
    return patience.answer(lambda seconds: consumer.get_watermark_offsets(place, timeout=seconds))
