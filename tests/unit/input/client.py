"""A client in memory, which has what a test says, and messages for it.

Knows the client's calls; knows nothing of the input that makes them.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.places import Place, offset_of
from tests.unit.arrived import ArrivedMessage
from tests.unit.clock import Clock

GOES_ON = threading.Event()
Make = Callable[..., Source]
IN, OTHER = ("in", 0), ("in", 1)


class Client:
    """A client that is assigned what the test says at the first call, and hands out what has arrived.

    Attributes:
        arrived: what `consume` hands out, in order.
        asked: how many messages were asked for, and how long it might take, by call.
        ends: offset after the last message, by partition.
        topics: what exists, with its partitions.
        committed: offsets that the group was told, by call.
        started: partitions that were started, with their offsets, by call.
        unassigned: partitions that were taken from the client by the source, to be started elsewhere.
        sought: partitions that were sought, with their offsets and leader epochs.
        meanwhile: called by `consume`, as the client calls back.
        paused: partitions that deliver nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._positions: dict[Place, int] = {}
        self.arrived: deque[Any] = deque()
        self.asked: list[tuple[int, float]] = []
        self.begins: dict[Place, int] = {}
        self.ends: dict[Place, int] = {}
        self.topics: dict[str, Sequence[int]] = {}
        self.committed: list[dict[Place, int]] = []
        self.started: list[dict[Place, int]] = []
        self.unassigned: list[Place] = []
        self.sought: list[tuple[Place, int, int | None]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.paused: set[Place] = set()
        self.subscribed: list[list[str]] = []
        self.listed = 0
        self.refusal: KafkaError | None = None
        self._callbacks: dict[str, Callable[[Any, list[TopicPartition]], None]] = {}

    def subscribe(self, topics: list[str], **callbacks: Callable[[Any, list[TopicPartition]], None]) -> None:
        """Note the topics; the callbacks are those of the group."""
        self.subscribed.append(topics)
        self._callbacks = callbacks

    def unsubscribe(self) -> None:
        """Note that no topic is read."""
        self.subscribed.append([])

    def give(self, *places: Place) -> None:
        """Assign partitions, as the group does."""
        self._callbacks["on_assign"](self, [TopicPartition(*place) for place in places])

    def take(self, *places: Place) -> None:
        """Revoke partitions."""
        self._callbacks["on_revoke"](self, [TopicPartition(*place) for place in places])

    def list_topics(self, *, timeout: float) -> SimpleNamespace:
        """Return what exists, unless the broker is away."""
        assert timeout
        self.listed += 1
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        return SimpleNamespace(
            topics={name: SimpleNamespace(partitions=dict.fromkeys(numbers)) for name, numbers in self.topics.items()}
        )

    def consume(self, most: int, seconds: float) -> list[Any]:
        """Hand out what has arrived of the partitions that are not paused; wait for it in vain otherwise."""
        self.asked.append((most, seconds))
        self.meanwhile()
        ready = [one for one in self.arrived if (one.topic(), one.partition()) not in self.paused][:most]
        for one in ready:
            self.arrived.remove(one)
            if one.error() is None:
                self._positions[one.topic(), one.partition()] = one.offset() + 1
        if len(ready) < most:
            self._clock.sleep(seconds)
        return ready

    def position(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Return where each partition goes on."""
        return [
            TopicPartition(one.topic, one.partition, self._positions.get((one.topic, one.partition), -1001))
            for one in places
        ]

    def offsets_for_times(self, places: list[TopicPartition], _seconds: float) -> list[TopicPartition]:
        """Return the ends: what `ends` asks for."""
        return [
            TopicPartition(one.topic, one.partition, self.ends.get((one.topic, one.partition), -1)) for one in places
        ]

    def get_watermark_offsets(self, place: TopicPartition, **how: object) -> tuple[int, int]:
        """Return the bounds of a partition, unless the broker is asked and away."""
        where = place.topic, place.partition
        if "cached" not in how and self.refusal is not None:
            raise KafkaException(self.refusal)
        return self.begins.get(where, 0), self.ends.get(where, -1001)

    def pause(self, places: list[TopicPartition]) -> None:
        """Let partitions deliver nothing."""
        self.paused |= {(place.topic, place.partition) for place in places}

    def resume(self, places: list[TopicPartition]) -> None:
        """Let partitions deliver again."""
        self.paused -= {(place.topic, place.partition) for place in places}

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        """Note which partitions are started, and where."""
        self.started.append({(place.topic, place.partition): place.offset for place in places})

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        """Note which partitions are taken away."""
        self.unassigned += [(place.topic, place.partition) for place in places]

    def seek(self, place: TopicPartition) -> None:
        """Note what is sought, unless it is refused."""
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        self.sought.append(((place.topic, place.partition), place.offset, place.leader_epoch))

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        """Note what the group is told, unless it is refused."""
        assert asynchronous, "the loop does not wait"
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        self.committed.append({(place.topic, place.partition): place.offset for place in offsets})

    def close(self) -> None:
        """Do nothing."""


def some(count: int, place: Place = IN, first: int = 0, size: int = 1) -> list[ArrivedMessage]:
    """Return messages of a partition, one after another."""
    return [ArrivedMessage(bytes(size), 5, first + n, topic=place[0], partition=place[1]) for n in range(count)]


def timed(times: Sequence[int], place: Place = IN, first: int = 0) -> list[ArrivedMessage]:
    """Return messages with these timestamps, milliseconds since 1970."""
    return [ArrivedMessage(b"", time, first + n, topic=place[0], partition=place[1]) for n, time in enumerate(times)]


def taken(batch: MessageBatch) -> list[tuple[int, int]]:
    """Return the partition and the offset of each message in a batch."""
    return [(int(message.partition() or 0), offset_of(message)) for message in batch.messages]
