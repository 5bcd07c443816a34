"""Messages of the input on their way to one commit.

Knows what was read; knows nothing of the client that reads.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from confluent_kafka import Message

from stream_dedup.stream.kafka.headers import size_of
from stream_dedup.stream.kafka.places import Place, offset_of, place_of, positions_after


@dataclass(slots=True, eq=False)
class MessageBatch:
    """Messages on their way to one commit.

    Attributes:
        messages: in order within each partition.
        size: of the messages, in bytes.
        due: when their commit is due, by `time.monotonic`; None while there are none.
        newest: offset of the last message by partition.
        last: the last message itself, by partition.
        moved: whether one of their partitions has since been revoked or assigned again.
        lost: partitions that have lost some of them since: other messages have, or get, their offsets.
    """

    messages: list[Message] = field(default_factory=list)
    size: int = 0
    due: float | None = None
    newest: dict[Place, int] = field(default_factory=dict)
    last: dict[Place, Message] = field(default_factory=dict)
    moved: bool = False
    lost: set[Place] = field(default_factory=set)

    def add(self, messages: Iterable[Message]) -> int:
        """Add the messages that the batch does not hold yet; return how many.

        A partition that is revoked and assigned again in between is read from the state's position once more.
        """
        before = len(self.messages)
        for message in messages:
            place, offset = place_of(message), offset_of(message)
            if offset > self.newest.get(place, -1):
                self.newest[place], self.last[place] = offset, message
                self.messages.append(message)
                self.size += size_of(message)
        return len(self.messages) - before

    def stayed(self, assigned: AbstractSet[Place]) -> bool:
        """Tell whether all its partitions are among those assigned, and have been ever since it was read."""
        # A partition that was revoked and assigned again is read from the state's position again.
        return not self.moved and self.newest.keys() <= assigned

    def positions(self) -> dict[Place, int]:
        """Return the positions after the last messages, with their leader epochs."""
        return positions_after(self.last.values())
