"""Batches that were read and are not committed: what they hold, and what has become of their partitions since.

Knows messages and their places; knows nothing of the client that reads, or of the state's positions.
"""

from collections import defaultdict
from collections.abc import Set as AbstractSet

from confluent_kafka import Message

from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.kafka.places import Place, place_of


class UnderWay:
    """Batches that were read and are not committed, in order."""

    def __init__(self) -> None:
        self._batches: list[MessageBatch] = []

    def begin(self) -> MessageBatch:
        """Return a new batch, after all others."""
        batch = MessageBatch()
        self._batches.append(batch)
        return batch

    def end(self, batch: MessageBatch) -> None:
        """Note that a batch is committed."""
        self._batches.remove(batch)

    def clear(self) -> None:
        """Drop all batches: they are read again."""
        self._batches.clear()

    def by_place(self) -> dict[Place, list[Message]]:
        """Return the messages of each partition, in order."""
        messages: dict[Place, list[Message]] = defaultdict(list)
        for batch in self._batches:
            for message in batch.messages:
                messages[place_of(message)].append(message)
        return dict(messages)

    def places(self) -> set[Place]:
        """Return the partitions that have messages here."""
        return {place for batch in self._batches for place in batch.newest}

    def firsts(self) -> dict[Place, Message]:
        """Return the first message of each partition."""
        return {place: messages[0] for place, messages in self.by_place().items()}

    def lasts(self, place: Place) -> list[Message]:
        """Return the last message of a partition in each batch, without those that will be read again."""
        sound = (batch for batch in self._batches if not batch.moved and place not in batch.lost)
        return [batch.last[place] for batch in sound if place in batch.last]

    def lost(self) -> set[Place]:
        """Return the partitions that have lost some of their messages."""
        return {place for batch in self._batches for place in batch.lost}

    def stayed(self, assigned: AbstractSet[Place]) -> bool:
        """Tell whether all partitions are among those assigned, and have been ever since they were read."""
        return all(batch.stayed(assigned) for batch in self._batches)

    def mark_moved(self, places: AbstractSet[Place]) -> None:
        """Note that partitions were revoked or assigned: nothing read from them before is committed as it is."""
        for batch in self._batches:
            batch.moved |= not places.isdisjoint(batch.newest)

    def mark_lost(self, place: Place) -> None:
        """Note that a partition has lost its end: messages here have offsets that now belong to others."""
        for batch in self._batches:
            batch.lost |= {place} & batch.newest.keys()
