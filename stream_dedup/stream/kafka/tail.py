"""The messages of topics as they are committed, old ones first if requested; read outside of any group.

Knows offsets and ends of partitions; knows nothing of what messages hold.
"""

import time
from collections.abc import Collection, Iterator, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from stream_dedup.closing import SelfClosing
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import (
    WHERE_TO_LOOK,
    BrokerError,
    browsing_properties,
    is_transient,
    make_consumer,
    reading_error,
)
from stream_dedup.stream.kafka.messages import ENDS, OFFSETS_A_MESSAGE, bounds_of, partitions_of
from stream_dedup.stream.kafka.places import by_time, place_of

_POLL_SECONDS = 0.1
_SILENT_SECONDS = 10.0  # after which a broker that still owes existing messages counts as gone
_LOOK_SECONDS = 5.0  # between two looks at which partitions there are
_AT_ONCE = 256
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001  # librdkafka's own codes have this form


class Tail(SelfClosing):
    """Follows topics. Use it as a context manager, or call `close`.

    Args:
        settings: how to reach the broker.
        topics: to follow, in all of their partitions.

    Raises:
        SettingsError: a property of librdkafka is refused.
    """

    def __init__(self, settings: Settings, topics: Sequence[str]) -> None:
        self._topics = topics
        self._assigned: set[tuple[str, int]] = set()
        self._missing: list[str] = []  # topics, at the last look
        # A message that is deleted before it is read is skipped.
        properties = {**browsing_properties(settings), "auto.offset.reset": "earliest"}
        self._consumer: Consumer = make_consumer(settings, properties)

    def messages(self, last: int | None, *, endless: bool) -> Iterator[Message]:
        """Yield messages, in the order of each partition.

        Args:
            last: how many of the messages that exist at first, the newest by timestamp; None for all.
            endless: whether to wait for more at the end of the topics.

        Raises:
            BrokerError: a topic is missing or gone, or the broker does not answer in time, or refuses.
        """
        places = self._places(last)
        self._consumer.assign(places)
        self._assigned = {(place.topic, place.partition) for place in places}
        to_end = set(self._assigned)
        if last is None and endless:
            to_end.clear()
        newest: list[Message] = []
        events = self._events(to_end)
        while to_end:
            message = next(events)
            if message.error() is not None:
                to_end.discard(place_of(message))
            elif last is None:
                yield message
            else:
                newest.append(message)
        yield from by_time(newest)[-last:] if last else ()
        if endless:
            yield from (message for message in events if message.error() is None)

    def close(self) -> None:
        """Release the connection."""
        self._consumer.close()

    def _places(self, last: int | None) -> list[TopicPartition]:
        bounds = {topic: bounds_of(self._consumer, topic) for topic in self._topics}
        if missing := [topic for topic, partitions in bounds.items() if not partitions]:
            raise _without(missing)
        return [
            TopicPartition(topic, partition, low if last is None else max(low, high - OFFSETS_A_MESSAGE * last))
            for topic, partitions in bounds.items()
            for partition, low, high in partitions
        ]

    def _events(self, to_end: Collection[tuple[str, int]]) -> Iterator[Message]:
        """Yield messages, and those without content that report the ends of partitions.

        Args:
            to_end: partitions still being read to their end; once there are none, silence is no error.
        """
        heard = looked = time.monotonic()
        while True:
            if not to_end and time.monotonic() - looked > _LOOK_SECONDS:
                self._look_again()
                looked = time.monotonic()
            for message in self._consumer.consume(_AT_ONCE, _POLL_SECONDS):
                error = message.error()
                if error is None or error.code() == _EOF:
                    yield message
                    heard = time.monotonic()
                elif error.code() not in ENDS and not is_transient(error):
                    raise reading_error(f"cannot read {', '.join(self._topics)}", error)
            if to_end and time.monotonic() - heard > _SILENT_SECONDS:
                told = f"nothing has arrived for {_SILENT_SECONDS:.0f} s"
                raise BrokerError(f"cannot read {', '.join(self._topics)}: {told}: {WHERE_TO_LOOK}")

    def _look_again(self) -> None:
        """Read the partitions that were added since the last look, from their beginning.

        Raises:
            BrokerError: a topic is gone.
        """
        try:
            known = {topic: partitions_of(self._consumer, topic) for topic in self._topics}
        except BrokerError:
            return  # It may be back soon; what it refuses for good, reading reports.
        missing = [topic for topic, partitions in known.items() if not partitions]
        # A broker that has just started may not know all of its topics yet.
        if gone := [topic for topic in missing if topic in self._missing]:
            raise _without(gone)
        self._missing = missing
        there = {(topic, partition) for topic, partitions in known.items() for partition in partitions}
        added = [TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(there - self._assigned)]
        if added:
            self._consumer.incremental_assign(added)
            self._assigned |= there


def _without(topics: Sequence[str]) -> BrokerError:
    """Return the error that tells that topics do not exist."""
    return BrokerError(
        f"no topic {', '.join(topics)}: the service creates it when it starts, that of the shadow with "
        "shadow.enabled = true; see output.* and shadow.*"
    )
