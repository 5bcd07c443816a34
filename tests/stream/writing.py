"""Topics of one test on one broker, and writers that write to them.

Knows what readers of committed messages see; knows nothing of what writers promise.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream import protocol
from stream_dedup.stream.kafka.patience import Patience, watermarks
from stream_dedup.stream.output.at_least_once import AtLeastOnceWriter
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter
from stream_dedup.stream.output.writer import Writer
from stream_dedup.stream.protocol import Step
from tests.stream.topics import create_topics, new_topic
from tests.stream.waiting import wait_until

SECONDS = 20.0
RECORDS = [(b"k1", b"v1"), (b"k2", None)]


class Stage:
    """Topics of one test on one broker, their writers, and what readers of committed messages see.

    Args:
        bootstrap: the broker.
        partitions: of the input.
    """

    def __init__(self, bootstrap: str, partitions: int = 1) -> None:
        self.bootstrap = bootstrap
        self.name = f"t{uuid4().hex[:12]}"
        self.input, self.output, self.changelog = (f"{self.name}.{kind}" for kind in ("in", "out", "log"))
        self.waits = 0
        self.writers: list[Writer] = []
        create_topics(bootstrap, new_topic(self.input, partitions), *map(new_topic, (self.output, self.changelog)))

    def settings(self, guarantee: str = "exactly_once", deadline: float = 30, **properties: str) -> Settings:
        """Return settings; properties are spelled with underscores instead of dots."""
        dotted = {name.replace("_", "."): value for name, value in properties.items()}
        made = Settings.model_validate(
            {
                "input": {"topics": [self.input], "group": self.name},
                "commit": {"guarantee": guarantee},
                "kafka": {"bootstrap.servers": self.bootstrap, **dotted},
            }
        )
        # Less than users may set, so that a test need not wait as long.
        return made.model_copy(update={"commit": made.commit.model_copy(update={"deadline_seconds": deadline})})

    def writer(
        self, settings: Settings | None = None, while_waiting: Callable[[], None] | None = None
    ) -> ExactlyOnceWriter:
        """Return an open writer with transactions; all of this stage have the same id."""
        made = ExactlyOnceWriter(settings or self.settings(), self.changelog, while_waiting or self.wait)
        self.writers.append(made)
        made.open()
        return made

    def writer_without_transactions(
        self, ask_group: Callable[[float], bool] = lambda _: True, **properties: str
    ) -> AtLeastOnceWriter:
        """Return an open writer without transactions; for `ask_group` see there."""
        settings = self.settings("at_least_once", 30, **properties)
        made = AtLeastOnceWriter(settings, self.changelog, self.wait, ask_group=ask_group)
        self.writers.append(made)
        made.open()
        return made

    def wait(self) -> None:
        """Count how often a writer was waiting."""
        self.waits += 1

    def committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Return `visible` once no transaction is open: markers are written after the commit returns."""
        wait_until(lambda: self.ends(topic)[0] == self.ends(topic)[1], f"no open transaction in {topic}")
        return self.visible(topic)

    def visible(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Return the keys and values that a read_committed reader gets, to the end of a topic."""
        properties = {"enable.partition.eof": "true", "isolation.level": "read_committed", "fetch.wait.max.ms": "20"}
        found: list[tuple[bytes | None, bytes | None]] = []
        with reading(self.bootstrap, **properties) as consumer:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(SECONDS)
                assert message is not None
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001  # librdkafka's name
                    return found
                found.append((message.key(), message.value()))

    def ends(self, topic: str) -> tuple[int, int]:
        """Return a topic's last stable offset and high watermark: they differ while a transaction is open."""
        return tuple(self._end(topic, level) for level in ("read_committed", "read_uncommitted"))  # type: ignore[return-value]

    def _end(self, topic: str, level: str) -> int:
        # A topic that was created a moment ago may not have a leader yet.
        patience = Patience(self.settings(), f"no end of {topic}", lambda: None)
        with reading(self.bootstrap, **{"isolation.level": level}) as consumer:
            place = TopicPartition(topic, 0)
            return watermarks(consumer, place, patience)[1]

    def group_offset(self) -> int:
        """Return what the input's group has committed; negative if nothing."""
        with reading(self.bootstrap, **{"group.id": self.name}) as consumer:
            (place,) = consumer.committed([TopicPartition(self.input, 0)], timeout=SECONDS)
            return int(place.offset)


@contextmanager
def reading(bootstrap: str, **properties: str) -> Iterator[Consumer]:
    """Make a consumer that shares its group with no other, unless a property says otherwise."""
    own = {"bootstrap.servers": bootstrap, "group.id": f"r-{uuid4().hex[:12]}", "enable.auto.commit": "false"}
    with closing(Consumer({**own, "log_level": "0", **properties})) as consumer:
        yield consumer


@contextmanager
def member(stage: Stage) -> Iterator[Consumer]:
    """Make a member of the input's group that has its partitions."""
    with reading(stage.bootstrap, **{"group.id": stage.name}) as consumer:
        consumer.subscribe([stage.input])

        def assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(assigned, "the group has its partitions")
        yield consumer


@contextmanager
def staged(bootstrap: str) -> Iterator[Stage]:
    """Make a stage whose writers are closed at the end."""
    made = Stage(bootstrap)
    try:
        yield made
    finally:
        for writer in made.writers:
            writer.close()


def steps(monkeypatch: pytest.MonkeyPatch, look: Callable[[Step], object] = lambda _: None) -> list[Step]:
    """Return a list to which steps are added as they are reached."""
    reached: list[Step] = []

    def note(step: Step) -> None:
        reached.append(step)
        look(step)

    monkeypatch.setattr(protocol, "reached", note)
    return reached


def send_and_commit(writer: Writer, stage: Stage) -> None:
    """Send more in the open transaction, and commit."""
    writer.send(stage.output, b"first", b"more", [])
    writer.commit(RECORDS, None)
