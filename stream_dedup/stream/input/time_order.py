"""Hands out the messages of several partitions in the order of their timestamps, as far as they have arrived.

Knows what has arrived of each partition and how long it may wait; knows nothing of commits or of decisions.
"""

import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import NamedTuple, Protocol

from confluent_kafka import Message, TopicPartition

from stream_dedup.stream.kafka.headers import size_of
from stream_dedup.stream.kafka.places import Place, place_of, timestamp_of

_WAIT_SHARE = 0.1  # of a message's age, which it may wait at most
_FRESH_SECONDS = 0.25  # a message that is younger does not wait: a live stream is not delayed
_SILENCE_SECONDS = 5.0  # longest wait for a partition that delivers nothing
_TURN_SECONDS = 1.0  # what counts of it at most between two looks: in a long commit nobody listens
_HELD_BYTES = 32 << 20  # of all partitions: one with more than its share is paused
_LEAST_SHARE_BYTES = 1 << 20  # some fetches: a partition takes up to half a second to go on after a pause
_RESUME_SHARE = 0.5  # of its share, at which it is resumed
_MESSAGE_BYTES = 1 << 10  # what a message takes besides its content


class Pausable(Protocol):
    """What is asked of a consumer."""

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Deliver nothing from some partitions."""

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Deliver from them again."""


class Held(NamedTuple):
    """What is held of a partition.

    Attributes:
        messages: how many messages.
        first: the first of them.
        last: the last.
    """

    messages: int
    first: Message
    last: Message


class _Waiting(NamedTuple):
    timestamp: float  # milliseconds since 1970
    nth: int  # of the messages with this timestamp in its partition
    due: float  # by `time.monotonic`: from then on it does not wait for other partitions
    size: int  # in bytes of memory
    message: Message


@dataclass(slots=True, eq=False)
class _Queue:
    place: Place
    waiting: deque[_Waiting] = field(default_factory=deque)
    size: int = 0  # in bytes
    newest: float = -inf  # timestamp of the last message that arrived
    nth: int = 0  # of the messages with this timestamp
    silent_since: float | None = None  # in seconds of listening

    def rank(self, now: float) -> tuple[bool, float, int]:
        """Return what orders the first messages of all queues."""
        first = self.waiting[0]
        # Brokers and fast producers give one timestamp to many messages: partitions take turns with them.
        return first.due > now, first.timestamp, first.nth

    def push(self, message: Message, *, bounded: bool) -> None:
        """Add a message; one without a timestamp has that of the message before it."""
        timestamp = timestamp_of(message)
        if timestamp is None or timestamp == self.newest:
            self.nth += 1
        else:
            self.newest, self.nth = timestamp, 0
        due = time.monotonic() + _longest_wait(self.newest) if bounded else inf
        size = size_of(message) + _MESSAGE_BYTES
        self.waiting.append(_Waiting(self.newest, self.nth, due, size, message))
        self.size += size
        self.silent_since = None

    def pop(self) -> Message:
        """Return the first message."""
        first = self.waiting.popleft()
        self.size -= first.size
        return first.message


class TimeOrder:
    """Holds messages back while another partition may still deliver an earlier one.

    A client delivers partitions by turns, one fetch of each: without this, a copy in a backlog would often be judged
    before its original. The order within a partition is kept, and partitions that run ahead are paused.

    Args:
        consumer: where the messages come from.
        bounded: whether a message waits for no longer than a tenth of its age on arrival, and not at all if it is
            fresh, so that a partition that is days behind does not delay live ones; and for a silent partition no
            longer than five seconds of listening.
    """

    def __init__(self, consumer: Pausable, *, bounded: bool) -> None:
        self._consumer = consumer
        self._bounded = bounded
        self._queues: dict[Place, _Queue] = {}
        self._looked_at = time.monotonic()
        self._listened = 0.0  # seconds
        self.paused: set[Place] = set()

    def __len__(self) -> int:
        """Return how many messages are held."""
        return sum(len(queue.waiting) for queue in self._queues.values())

    def begin(self, places: Collection[Place], *, keep: bool = False) -> None:
        """Expect messages of partitions that were assigned to the client, or assigned again.

        Args:
            places: the partitions; as far as the client is concerned, none of them is paused.
            keep: whether what is held of them is not read again.
        """
        self.paused.difference_update(places)
        if not keep:
            self._queues |= {place: _Queue(place) for place in places}

    def end(self, places: Collection[Place]) -> None:
        """Discard what is held of partitions that were revoked, and expect nothing more of them."""
        self.paused.difference_update(places)
        for place in places:
            self._queues.pop(place, None)

    def held(self, place: Place) -> Held | None:
        """Return what is held of a partition, if anything."""
        queue = self._queues.get(place)
        if queue is None or not queue.waiting:
            return None
        return Held(len(queue.waiting), queue.waiting[0].message, queue.waiting[-1].message)

    def add(self, message: Message) -> None:
        """Hold a message that has arrived, unless nothing is expected of its partition."""
        if (queue := self._queues.get(place_of(message))) is not None:
            queue.push(message, bounded=self._bounded)

    def take(self, most: int, is_behind: Callable[[Place], bool]) -> list[Message]:
        """Return the messages whose turn has come.

        Args:
            most: at most so many.
            is_behind: tells whether a partition has messages that have not arrived.
        """
        now, to_come = time.monotonic(), None
        self._listened += min(now - self._looked_at, _TURN_SECONDS)
        self._looked_at = now
        heads = [(queue.rank(now), queue.place, queue) for queue in self._queues.values() if queue.waiting]
        heapify(heads)
        taken: list[Message] = []
        while heads and len(taken) < most:
            (waits, timestamp, _), place, queue = heads[0]
            if waits:
                to_come = self._earliest_to_come(is_behind) if to_come is None else to_come
                if timestamp > to_come:
                    break
            taken.append(queue.pop())
            if queue.waiting:
                heapreplace(heads, (queue.rank(now), place, queue))
            else:
                heappop(heads)
                if to_come is not None and self._is_awaited(queue, is_behind):
                    to_come = min(to_come, queue.newest)
        return taken

    def keep_pace(self) -> None:
        """Pause the partitions that run ahead, and resume those that the others have caught up with.

        Raises:
            KafkaException: the client refuses.
        """
        share = max(_LEAST_SHARE_BYTES, _HELD_BYTES // max(1, len(self._queues)))
        ahead = {
            queue.place
            for queue in self._queues.values()
            if queue.size > (share * _RESUME_SHARE if queue.place in self.paused else share)
        }
        if ahead != self.paused:
            self._consumer.pause([TopicPartition(*place) for place in ahead - self.paused])
            self._consumer.resume([TopicPartition(*place) for place in self.paused - ahead])
            self.paused = ahead

    def _earliest_to_come(self, is_behind: Callable[[Place], bool]) -> float:
        """Return the earliest timestamp that an awaited partition may still deliver."""
        empty = (queue for queue in self._queues.values() if not queue.waiting)
        return min((queue.newest for queue in empty if self._is_awaited(queue, is_behind)), default=inf)

    def _is_awaited(self, queue: _Queue, is_behind: Callable[[Place], bool]) -> bool:
        if not is_behind(queue.place):
            queue.silent_since = None
            return False
        if queue.silent_since is None:
            queue.silent_since = self._listened
        return not self._bounded or self._listened - queue.silent_since < _SILENCE_SECONDS


def _longest_wait(timestamp: float) -> float:
    """Return for how many seconds a message with a timestamp may wait from now on."""
    age = time.time() - timestamp / 1000
    return _WAIT_SHARE * age if age > _FRESH_SECONDS else 0.0
