"""The input: batches of messages from the place where the state stands.

Knows subscription, assignment and offsets; knows nothing of what messages hold.
"""

import threading
import time
from collections.abc import Iterable, Mapping

import structlog
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.clients import BrokerError, consumer_properties, make_consumer

_CHUNK = 64  # messages taken at a time, so that a batch of giants is noticed before it fills the memory
_POLL_SECONDS = 0.05
_QUIET_SECONDS = 30.0  # between two lines about the same trouble
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001  # librdkafka's own codes have this form
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001  # the same
        KafkaError._RESOLVE,  # noqa: SLF001  # the same
        KafkaError._TIMED_OUT,  # noqa: SLF001  # the same
        # The group goes on without this consumer, which joins again at the next poll.
        KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001  # the same
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)

log = structlog.get_logger()


class Source:
    """Reads the input topics from the offsets that the state stands at.

    Where the state has none for a partition, reading begins as `auto.offset.reset` says (the earliest message by
    default): the offsets which the group commits are for lag monitors, the state alone is the truth.

    Args:
        settings: topics, group and batch bounds.
        positions: next offset by topic and partition; kept up to date by `advance`.
    """

    def __init__(self, settings: Settings, positions: Mapping[tuple[str, int], int]) -> None:
        self._batch = settings.batch
        self._positions = dict(positions)
        self._consumer: Consumer = make_consumer(settings)
        reset = consumer_properties(settings)["auto.offset.reset"]
        self._first_offset = OFFSET_END if reset in {"latest", "largest", "end"} else OFFSET_BEGINNING
        self._complaints: dict[str, float] = {}
        self._fault: KafkaError | None = None
        self.assigned: set[tuple[str, int]] = set()
        self._consumer.subscribe(
            settings.input.topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def poll(self, room: int, stopping: threading.Event) -> list[Message]:
        """Return the next messages: what is at hand, up to a full batch, or what comes first within the waiting time.

        Args:
            room: most messages, beside the bounds of the settings.
            stopping: ends the waiting.

        Raises:
            BrokerError: the broker refuses for good, for instance for want of rights.
        """
        messages: list[Message] = []
        newest: dict[tuple[str, int], int] = {}
        most, size = min(self._batch.articles, room), 0
        deadline = time.monotonic() + self._batch.wait_ms / 1000
        while len(messages) < most and size < self._batch.bytes and not stopping.is_set():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            # consume() waits its whole time unless it gets all it asks for: so once something is here, only
            # what is at hand already is taken.
            wait = 0.0 if messages else min(_POLL_SECONDS, remaining)
            chunk = self._good(self._consumer.consume(min(_CHUNK, most - len(messages)), wait), newest)
            if messages and not chunk:
                break
            if self._fault is not None:
                raise BrokerError(f"cannot take up the assigned partitions: {self._fault.str()}")
            messages += chunk
            size += sum(len(message) for message in chunk)
        return messages

    def advance(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Note that the state now stands at these next offsets, and tell the group."""
        self._positions |= positions
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in positions.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._complain("group_commit_failed", error.args[0])

    def lag(self) -> dict[tuple[str, int], int]:
        """Return how many messages of each assigned partition are still to be read, as far as is known."""
        # The consumer's position, not the last message's: a transaction ends with a marker, which is no message.
        positions = self._consumer.position([TopicPartition(*partition) for partition in self.assigned])
        lags = {}
        for place in positions:
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
            start = self._positions.get((place.topic, place.partition), 0)
            if high >= 0:
                lags[place.topic, place.partition] = max(0, high - (place.offset if place.offset >= 0 else start))
        return lags

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _good(self, messages: Iterable[Message], newest: dict[tuple[str, int], int]) -> list[Message]:
        """Return the messages that are none twice in this poll, and note the newest offsets.

        A partition which is revoked and assigned again in between is read from the state's position once more.
        """
        good = []
        for message in messages:
            error = message.error()
            if error is None:
                place, offset = (str(message.topic()), int(message.partition() or 0)), int(message.offset() or 0)
                if offset > newest.get(place, -1):
                    newest[place] = offset
                    good.append(message)
            elif error.fatal() or (error.code() not in _PASSING and not error.retriable()):
                raise BrokerError(f"cannot read {message.topic() or 'the input'}: {error.str()}")
            else:
                self._complain("input_waits", error)
        return good

    def _complain(self, event: str, error: KafkaError) -> None:
        """Log a passing trouble, but not many times a second."""
        now = time.monotonic()
        if now - self._complaints.get(error.name(), -_QUIET_SECONDS) >= _QUIET_SECONDS:
            self._complaints[error.name()] = now
            log.warning(event, error=error.name(), detail=error.str())

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = self._positions.get((partition.topic, partition.partition), self._first_offset)
        try:
            consumer.incremental_assign(partitions)
        except KafkaException as error:
            # An exception would get lost on its way out of a callback: `poll` raises it.
            self._fault = error.args[0]
            return
        self.assigned |= {(partition.topic, partition.partition) for partition in partitions}
        log.info("partitions_assigned", partitions=_named(partitions))

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {(partition.topic, partition.partition) for partition in partitions}
        log.info("partitions_revoked", partitions=_named(partitions))


def _named(partitions: list[TopicPartition]) -> list[str]:
    return sorted(f"{partition.topic}/{partition.partition}" for partition in partitions)
