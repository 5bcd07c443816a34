"""Messages for the service, and their way into a topic.

Knows how they are produced; reading what comes out is the matter of `records`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import uuid4

from confluent_kafka import KafkaError, Message, Producer

from tests.stream.topics import ADMIN_SECONDS, LARGE

Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message to produce.

    Attributes:
        value: None is a tombstone.
        key: of the message.
        headers: of the message.
        partition: of the input.
        timestamp_ms: of the message, in milliseconds since 1970, UTC; 0 for now.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    partition: int = 0
    timestamp_ms: int = 0


def article(name: str, body: str, **fields: object) -> Incoming:
    """Return the message of an article."""
    return Incoming(json.dumps({"id": name, "body": body, **fields}, ensure_ascii=False).encode())


def produce(
    bootstrap: str,
    topic: str,
    messages: Iterable[Incoming],
    *,
    transaction: bool = False,
    compression: str = "none",
) -> list[int]:
    """Write messages in order, wait until the broker has them, and return their offsets."""
    # One request at a time keeps the order, and saves the half second that an idempotent producer takes to start. But
    # what is written before the client knows the topic's partitions may come later than what is written after.
    properties: dict[str, str | int] = {
        "bootstrap.servers": bootstrap,
        "message.max.bytes": LARGE,
        "linger.ms": 5,
        "compression.type": compression,
        "max.in.flight.requests.per.connection": 1,
        "log_level": 0,
    }
    if transaction:
        properties["transactional.id"] = f"test-{uuid4().hex[:12]}"
    producer = Producer(properties)
    if transaction:
        producer.init_transactions(ADMIN_SECONDS)
        producer.begin_transaction()
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset() or 0)

    for number, message in enumerate(messages):
        producer.produce(
            topic,
            message.value,
            message.key,
            partition=message.partition,
            headers=[*message.headers],  # a copy: the stub needs a wider element type
            timestamp=message.timestamp_ms,
            on_delivery=delivered,
        )
        if not number:
            producer.flush(ADMIN_SECONDS)
        producer.poll(0)
    assert producer.flush(ADMIN_SECONDS) == 0
    if transaction:
        producer.commit_transaction(ADMIN_SECONDS)
    return offsets
