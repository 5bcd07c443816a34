"""Single messages of topics: one at an offset, or the newest; read outside of any group.

Knows offsets and how long to wait; knows nothing of what messages hold.
"""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_dedup.article import Origin
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import (
    WHERE_TO_LOOK,
    BrokerError,
    browsing_properties,
    is_transient,
    make_consumer,
    reading_error,
)
from stream_dedup.stream.kafka.places import by_time, offset_of, place_of

_SECONDS = 2.0  # to wait for an answer from the broker
_POLL_SECONDS = 0.1
_AT_ONCE = 256
# Otherwise a reader asks for more as soon as it has some, and the next call waits for that answer.
_NO_MORE = {"queued.min.messages": "1", "fetch.queue.backoff.ms": "5"}
OFFSETS_A_MESSAGE = 2  # read before the end of a partition for each message: transactions leave markers in between
# Errors that mean that a partition is read to its end, or no longer holds the offset.
ENDS = {
    KafkaError._PARTITION_EOF,  # noqa: SLF001  # librdkafka's own codes have this form
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  # the same: the offset is gone
    KafkaError.OFFSET_OUT_OF_RANGE,
}


class Messages:
    """Reads single messages; thread-safe, one call at a time.

    If the broker does not answer one call, those that waited for it meanwhile fail with it: each in turn would wait as
    long.

    Args:
        settings: how to reach the broker.

    Raises:
        SettingsError: a property of librdkafka is refused.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer: Consumer | None = None
        self._known: set[str] = set()  # topics whose partitions the consumer has located
        self._lock = threading.Lock()
        self._failure: tuple[float, str] = -math.inf, ""  # when the last call failed, and why

    def at(self, origin: Origin) -> Message | None:
        """Return the message at an offset; None if the topic no longer has it.

        Raises:
            BrokerError: the broker does not answer in time, or refuses.
        """
        with self._turn() as consumer:
            self._look_for(origin.topic, consumer)
            with _assigned(consumer, [TopicPartition(origin.topic, origin.partition, origin.offset)]):
                message = next(_events(consumer, [origin.topic]))
        return message if message.error() is None and offset_of(message) == origin.offset else None

    def newest(self, topic: str, count: int) -> list[Message]:
        """Return the newest messages of a topic, the newest last; fewer if its partitions have fewer.

        Raises:
            BrokerError: the broker does not answer in time, or refuses.
        """
        with self._turn() as consumer:
            bounds = [bound for bound in bounds_of(consumer, topic) if bound[1] < bound[2]]
            places = [
                TopicPartition(topic, partition, max(low, high - OFFSETS_A_MESSAGE * count))
                for partition, low, high in bounds
            ]
            to_end = {(topic, partition): high for partition, _, high in bounds}
            found = []
            with _assigned(consumer, places):
                events = _events(consumer, [topic])
                while to_end:
                    message = next(events)
                    if message.error() is None:
                        found.append(message)
                    # While a partition is being written to, its end is reported again and again, or never.
                    place = place_of(message)
                    if message.error() is not None or offset_of(message) + 1 >= to_end.get(place, 0):
                        to_end.pop(place, None)
        return by_time(found)[-count:]

    def close(self) -> None:
        """Release the connection."""
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None
                self._known.clear()

    @contextmanager
    def _turn(self) -> Iterator[Consumer]:
        """Provide the consumer once it is free."""
        asked = time.monotonic()
        with self._lock:
            failed, why = self._failure
            if failed >= asked:
                raise BrokerError(why)
            try:
                yield self._opened()
            except BrokerError as error:
                self._failure = time.monotonic(), str(error)
                raise

    def _look_for(self, topic: str, consumer: Consumer) -> None:
        """Ask where a topic is: on its own librdkafka may find out only a second after its first assignment."""
        if topic not in self._known:
            partitions_of(consumer, topic)
            self._known.add(topic)

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._consumer = make_consumer(self._settings, {**browsing_properties(self._settings), **_NO_MORE})
        return self._consumer


def bounds_of(consumer: Consumer, topic: str) -> list[tuple[int, int, int]]:
    """Return each partition of a topic with its first offset and the one after its last; none if there is no topic.

    Raises:
        BrokerError: the broker does not answer in time, or refuses.
    """
    bounds = []
    for partition in partitions_of(consumer, topic):
        with _broker_errors(topic):
            offsets = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_SECONDS)
        bounds.append((partition, *(offsets or (0, 0))))
    return bounds


def partitions_of(consumer: Consumer, topic: str) -> list[int]:
    """Return the partitions of a topic, none if there is no topic.

    Raises:
        BrokerError: the broker does not answer in time, or refuses.
    """
    with _broker_errors(topic):
        return list(consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions)


@contextmanager
def _broker_errors(topic: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise reading_error(f"cannot read the topic {topic}", error.args[0]) from None


@contextmanager
def _assigned(consumer: Consumer, places: list[TopicPartition]) -> Iterator[None]:
    """Read from some places while the context is open: a reader left at an end would keep asking."""
    consumer.assign(places)
    try:
        yield
    finally:
        consumer.unassign()


def _events(consumer: Consumer, topics: Sequence[str]) -> Iterator[Message]:
    """Yield the messages of the assigned partitions, and those with an error of `ENDS` that report the end of one.

    Raises:
        BrokerError: nothing arrives in time, or the broker refuses.
    """
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        for message in _polled(consumer):
            error = message.error()
            if error is None or error.code() in ENDS:
                yield message
            elif not is_transient(error):
                raise reading_error(f"cannot read {', '.join(topics)}", error)
    raise BrokerError(f"no answer from the broker within {_SECONDS:.0f} s: {WHERE_TO_LOOK}")


def _polled(consumer: Consumer) -> Iterator[Message]:
    """Yield what arrives: `consume` waits its full timeout for as many as it is asked for, so first ask for one."""
    yield from consumer.consume(1, _POLL_SECONDS)
    yield from consumer.consume(_AT_ONCE, 0.0)
