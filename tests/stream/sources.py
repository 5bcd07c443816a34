"""A source in the hands of a test: read until something holds, shared with another member of its group.

Knows batches, partitions and what is held back; knows nothing of what is tested with it.
"""

import threading
import time
from collections.abc import Callable

from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.places import Place
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

_TURN_SECONDS = 0.01
# Settings for partitions to be delivered by short turns, and little to be read ahead of them.
SHORT_TURNS = (
    "kafka.consumer.fetch.message.max.bytes=20000",
    "kafka.consumer.queued.max.messages.kbytes=40",
    "kafka.consumer.fetch.queue.backoff.ms=1",
)


def read_until(source: Source, batch: MessageBatch, enough: Callable[[], bool], pause: float = 0.0) -> None:
    """Read with short pauses at most, as the service does: what is held back waits for seconds at most."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not enough():
        source.take(batch, threading.Event())
        time.sleep(pause)
        assert time.monotonic() < deadline, f"{len(batch.messages)} messages were read"


def read(source: Source, batch: MessageBatch, count: int) -> None:
    """Read until a batch has at least so many messages."""
    read_until(source, batch, lambda: len(batch.messages) >= count)


def held(source: Source, place: Place) -> int:
    """Return how many messages of a partition are held back."""
    found = source._order.held(place)  # noqa: SLF001  # nothing tells it from outside
    return found.messages if found else 0


def is_paused(source: Source, place: Place) -> bool:
    """Tell whether a partition is paused because it runs ahead of the others."""
    return place in source._order.paused  # noqa: SLF001  # the same


def read_until_held(source: Source, batch: MessageBatch, place: Place) -> int:
    """Read something, until messages of a partition are held back; return how many are."""
    # Without a pause one partition would be read to its end before another has delivered anything.
    read_until(source, batch, lambda: bool(batch.messages) and held(source, place) > 0, _TURN_SECONDS)
    return held(source, place)


def await_shared(source: Source, other: Source) -> None:
    """Wait until two members of a group have one partition each."""

    def shared() -> bool:
        source.keep_alive()
        other.keep_alive()
        return len(source.assigned) == len(other.assigned) == 1

    wait_until(shared, "the other member has one of the partitions")


def await_partitions(source: Source, count: int) -> None:
    """Wait until a source has so many partitions."""

    def given() -> bool:
        source.keep_alive()
        return len(source.assigned) == count

    wait_until(given, f"{count} partitions")
