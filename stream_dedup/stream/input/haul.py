"""A haul: messages of the input on their way to one commit.

Knows what was read; knows nothing of the client that reads.
"""

from dataclasses import dataclass, field

from confluent_kafka import Message

from stream_dedup.stream.kafka.places import Place


@dataclass(slots=True, eq=False)
class Haul:
    """Messages on their way to one commit.

    Attributes:
        messages: in order within each partition.
        size: bytes of them.
        due: when their commit is due, by `time.monotonic`; None as long as there are none.
        newest: offset of the last one by partition.
        last: that one itself.
        moved: whether a partition of theirs was taken away or given anew since, or has lost what was read.
    """

    messages: list[Message] = field(default_factory=list)
    size: int = 0
    due: float | None = None
    newest: dict[Place, int] = field(default_factory=dict)
    last: dict[Place, Message] = field(default_factory=dict)
    moved: bool = False

    def positions(self) -> dict[Place, int]:
        """Return the offset behind the last message, by topic and partition."""
        return {place: offset + 1 for place, offset in self.newest.items()}
