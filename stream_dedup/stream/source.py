"""The input: batches of messages from the place where the state stands.

Knows subscription, assignment and offsets; knows nothing of what messages hold.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence

import structlog
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.clients import BrokerError, Complaints, consumer_properties, make_consumer, passes

Place = tuple[str, int]  # topic and partition

_CHUNK = 64  # messages taken at a time, so that a batch of giants is noticed before it fills the memory
_POLL_SECONDS = 0.05
_IDLE_SECONDS = 0.1  # without a message, after which the loop goes round
_KEEP_ALIVE_SECONDS = 30.0  # between two signs of life to the group while a commit takes long

log = structlog.get_logger()


class Source:
    """Reads the input topics from the offsets that the state stands at.

    Where the state has none for a partition, reading begins as `auto.offset.reset` says (the earliest message by
    default): what the group has committed is for the monitors of its lag, and for states that are made anew.

    Args:
        settings: topics, group and commit bounds.
        positions: next offset by topic and partition; kept up to date by `advance`.
    """

    def __init__(self, settings: Settings, positions: Mapping[Place, int]) -> None:
        self._commit = settings.commit
        self._positions = dict(positions)
        self._consumer: Consumer = make_consumer(settings)
        reset = consumer_properties(settings)["auto.offset.reset"]
        self._first_offset = OFFSET_END if reset in {"latest", "largest", "end"} else OFFSET_BEGINNING
        self._complaints = Complaints()
        self._fault: KafkaError | None = None
        self._polled_at = time.monotonic()
        self.assigned: set[Place] = set()
        self.rebalances = 0
        self._at_hand: set[Place] = set()  # partitions with messages in the last poll
        self._moved: set[Place] = set()  # those of them that were taken or given since
        self._consumer.subscribe(
            settings.input.topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def poll(self, stopping: threading.Event) -> list[Message]:
        """Return the messages of the next commit: as many, or as large, or as long as a commit may wait; or none.

        Args:
            stopping: ends the waiting.

        Raises:
            BrokerError: the broker refuses for good, for instance for want of rights.
        """
        messages: list[Message] = []
        newest: dict[Place, int] = {}
        self._at_hand.clear()
        self._moved.clear()
        size, deadline = 0, time.monotonic() + _IDLE_SECONDS
        while len(messages) < self._commit.articles and size < self._commit.bytes and not stopping.is_set():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            # consume() waits its whole time unless it gets all it asks for: one message is asked for as long as there
            # is none, and then what is at hand.
            most = min(_CHUNK, self._commit.articles - len(messages)) if messages else 1
            chunk = self._good(self._consumer.consume(most, min(_POLL_SECONDS, remaining)), newest)
            self._polled_at = time.monotonic()
            if self._fault is not None:
                raise BrokerError(f"cannot take up the assigned partitions: {self._fault.str()}")
            if chunk and not messages:
                deadline = time.monotonic() + self._commit.interval_ms / 1000
            messages += chunk
            self._at_hand |= {place_of(message) for message in chunk}
            size += sum(len(message) for message in chunk)
        return messages

    def holds(self, messages: Sequence[Message]) -> bool:
        """Tell whether the partitions of the messages of the last poll have been this process's ever since."""
        # One that was taken and given back is read from the state's position again.
        return {place_of(message) for message in messages} <= self.assigned - self._moved

    def group(self) -> object:
        """Return the group's metadata of now: every transaction wants its own."""
        return self._consumer.consumer_group_metadata()

    def advance(self, positions: Mapping[Place, int]) -> None:
        """Note that the state now stands at these next offsets. Without transactions, tell the group as well.

        Args:
            positions: next offset by topic and partition.
        """
        self._positions |= positions
        if self._commit.guarantee == "exactly_once":
            return
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in positions.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._complaints.tell("group_commit_failed", error.args[0])

    def rewind(self, messages: Sequence[Message]) -> bool:
        """Go back to the first of the messages of the last poll; return whether that can be done.

        It cannot where one of their partitions was taken, or taken and given back: then this source is of no use.

        Raises:
            BrokerError: the broker or librdkafka refuses.
        """
        # The group may have gone on without this process: it joins again, and hears what it has left.
        self._look_in()
        if not self.holds(messages):
            return False
        firsts: dict[Place, int] = {}
        for message in messages:
            place, offset = place_of(message), int(message.offset() or 0)
            firsts[place] = min(offset, firsts.get(place, offset))
        try:
            for place, offset in firsts.items():
                self._consumer.seek(TopicPartition(*place, offset))
        except KafkaException as error:
            raise BrokerError(f"cannot go back in the input: {error.args[0].str()}") from None
        return True

    def keep_alive(self) -> None:
        """Stay in the group while a commit takes long: nothing is read meanwhile."""
        if time.monotonic() - self._polled_at < _KEEP_ALIVE_SECONDS:
            return
        self._look_in()

    def _look_in(self) -> None:
        """Hear from the group without reading anything."""
        self._polled_at = time.monotonic()
        self._consumer.pause([TopicPartition(*place) for place in self.assigned])
        self._good(self._consumer.consume(1, 0.0), {})
        self._consumer.resume([TopicPartition(*place) for place in self.assigned])

    def lag(self) -> dict[Place, int]:
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

    def _good(self, messages: Iterable[Message], newest: dict[Place, int]) -> list[Message]:
        """Return the messages that are none twice in this poll, and note the newest offsets.

        A partition which is revoked and assigned again in between is read from the state's position once more.
        """
        good = []
        for message in messages:
            error = message.error()
            if error is None:
                place, offset = place_of(message), int(message.offset() or 0)
                if offset > newest.get(place, -1):
                    newest[place] = offset
                    good.append(message)
            elif not passes(error):
                raise BrokerError(f"cannot read {message.topic() or 'the input'}: {error.str()}")
            else:
                self._complaints.tell("input_waits", error)
        return good

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            for partition in partitions:
                partition.offset = self._positions.get((partition.topic, partition.partition), self._first_offset)
            consumer.incremental_assign(partitions)
        except KafkaException as error:
            # An exception would get lost on its way out of a callback: `poll` raises it.
            self._fault = error.args[0]
            return
        self.rebalances += 1
        places = {(partition.topic, partition.partition) for partition in partitions}
        self._moved |= places & self._at_hand
        self.assigned |= places
        log.info("partitions_assigned", partitions=_named(partitions))

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        places = {(partition.topic, partition.partition) for partition in partitions}
        self._moved |= places & self._at_hand
        self.assigned -= places
        log.info("partitions_revoked", partitions=_named(partitions))


def _named(partitions: list[TopicPartition]) -> list[str]:
    return sorted(f"{partition.topic}/{partition.partition}" for partition in partitions)


def place_of(message: Message) -> Place:
    """Return the topic and partition of a message."""
    return str(message.topic()), int(message.partition() or 0)
