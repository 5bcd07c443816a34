"""Messages of the input on their way to one commit.

Knows what was read; knows nothing of the client that reads.
"""

from dataclasses import dataclass, field

from confluent_kafka import Message

from stream_dedup.stream.kafka.places import Place


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

    def positions(self) -> dict[Place, int]:
        """Return the offset after the last message, by topic and partition."""
        return {place: offset + 1 for place, offset in self.newest.items()}
