"""What topics hold, as a read_committed reader sees it: records, and the outputs of a run.

Knows how to read, and which headers are the service's; knows nothing of what a test expects.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tests.stream.messages import Headers
from tests.stream.service import Service
from tests.stream.topics import Topics, admin_of, partitions_of
from tests.stream.waiting import LOOK_SECONDS, PATIENCE_SECONDS

_OWN_PREFIX = "stream_dedup."


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a topic."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int = 0

    def own(self, name: str) -> str | None:
        """Return the value of one of the service's headers; there is at most one of each name."""
        values = [value for header, value in self.headers if header == _OWN_PREFIX + name]
        assert len(values) < 2, f"{name} is there {len(values)} times"
        return values[0].decode() if values and values[0] is not None else None

    def incoming_headers(self) -> Headers:
        """Return the headers that are not the service's."""
        return [(name, value) for name, value in self.headers if not name.startswith(_OWN_PREFIX)]

    def json(self) -> dict[str, Any]:
        """Return the value as a JSON object."""
        fields = json.loads(self.value or b"")
        assert isinstance(fields, dict)
        return fields


@dataclass(frozen=True, slots=True)
class Outputs:
    """Everything that came out, in the order of each topic."""

    unique: list[Record]
    duplicates: list[Record]
    dead: list[Record]

    def links(self) -> dict[str, dict[str, Any]]:
        """Return the links by article id; no id has two."""
        links = {(record.key or b"").decode(): record.json() for record in self.duplicates}
        assert len(links) == len(self.duplicates)
        return links

    def total(self) -> int:
        """Return how many messages there are."""
        return len(self.unique) + len(self.duplicates) + len(self.dead)


def collect(
    bootstrap: str, topics: Topics, count: int, service: Service | None = None, seconds: float = PATIENCE_SECONDS
) -> Outputs:
    """Read the outputs, read_committed, from beginning to end, once they hold `count` messages.

    Args:
        bootstrap: the broker.
        topics: whose outputs.
        count: messages to wait for, in all three.
        service: writes them; once it has ended there is nothing to wait for.
        seconds: deadline.

    Raises:
        AssertionError: they hold fewer at the deadline, or when the service has ended.
    """

    def check_service(counts: str) -> None:
        assert service is None or service.running, f"it ended before {count} outputs: {counts}"

    found = read_topics(bootstrap, topics.outputs, count, seconds, check_service)
    return Outputs(*(found[name] for name in topics.outputs))


def read_topics(
    bootstrap: str,
    names: Sequence[str],
    count: int = 0,
    seconds: float = PATIENCE_SECONDS,
    while_waiting: Callable[[str], None] = lambda _counts: None,
) -> dict[str, list[Record]]:
    """Read topics, read_committed, from beginning to end, once they hold `count` messages together.

    Args:
        bootstrap: the broker.
        names: of the topics; one that does not exist is empty.
        count: messages to wait for.
        seconds: deadline.
        while_waiting: called repeatedly with the counts so far; may raise to give up.

    Raises:
        AssertionError: they hold fewer at the deadline.
    """
    found: dict[str, list[Record]] = {name: [] for name in names}
    with _reading(bootstrap, names) as (consumer, partitions):
        ended: set[tuple[str, int]] = set()
        deadline = time.monotonic() + seconds
        while sum(map(len, found.values())) < count or len(ended) < partitions:
            counts = str({name: len(records) for name, records in found.items()})
            assert time.monotonic() < deadline, f"not {count} messages within {seconds:g} s: {counts}"
            while_waiting(counts)
            for message in consumer.consume(500, 0.05):
                place = str(message.topic()), int(message.partition() or 0)
                error = message.error()
                if error is None:
                    ended.discard(place)
                    found[place[0]].append(_record(message))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001  # librdkafka's name
                    ended.add(place)
    return found


@contextmanager
def _reading(bootstrap: str, names: Sequence[str]) -> Iterator[tuple[Consumer, int]]:
    admin = admin_of(bootstrap)
    places = [
        TopicPartition(name, partition, OFFSET_BEGINNING) for name in names for partition in partitions_of(admin, name)
    ]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid4().hex[:12]}",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": "60",
            "log_level": "0",
        }
    )
    with closing(consumer):
        consumer.assign(places)
        yield consumer, len(places)


def _record(message: Message) -> Record:
    headers: Any = message.headers() or []
    return Record(
        str(message.topic()),
        int(message.offset() or 0),
        message.key(),
        message.value(),
        list(headers),
        int(message.partition() or 0),
    )


class Arrivals:
    """The number of committed messages in the output topics, polled repeatedly; a context manager."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._reading = _reading(bootstrap, topics.outputs)
        self._count = 0

    def __enter__(self) -> Self:
        self._consumer, _ = self._reading.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.__exit__(kind, error, trace)

    def count(self) -> int:
        """Return how many have arrived so far."""
        self._count += sum(message.error() is None for message in self._consumer.consume(500, LOOK_SECONDS))
        return self._count
