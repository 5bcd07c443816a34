"""The whole service, Kafka to Kafka, as a separate process reading a topic that was filled beforehand.

Knows how to run and measure it once; knows nothing of references or of how figures are shown.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.benchmarks.throughput.cores import pinned
from tests.benchmarks.throughput.figures import steady_rate
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

PARTITIONS = 3
TIMEOUT_SECONDS = 600.0
API = ("api.enabled=true", "api.port=0")  # settings that start it
_API_SECONDS = 120.0  # allowed for its start
_LOOK_SECONDS = 0.5  # between reads of the metrics, which cost the service some milliseconds each


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the service.

    Attributes:
        name: its name in the tables.
        guarantee: `commit.guarantee`.
        cores: number of cores it is pinned to; None for all. The broker always has all.
        segment: `text.segment`.
    """

    name: str
    guarantee: str
    cores: int | None = None
    segment: str = "all"

    def flags(self) -> list[str]:
        """Return its settings."""
        return [f"commit.guarantee={self.guarantee}", f"text.segment={self.segment}"]


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """One run over all articles.

    Attributes:
        rate: articles per second, by the outputs' timestamps, without the start.
        once: whether each article came out exactly once.
        links: the links, as JSON.
        cpu_seconds: CPU time per 1,000 articles, from the first commits on.
        memory: resident memory at the end, in bytes.
        disk: size of the state, in bytes per article.
        stages: seconds per 1,000 articles by stage, from the service's metrics.
    """

    rate: float
    once: bool
    links: list[bytes]
    cpu_seconds: float
    memory: int
    disk: float
    stages: dict[str, float]


@dataclass(frozen=True, slots=True)
class Output:
    """A message of an output topic.

    Attributes:
        topic: name of the topic.
        key: the message's key.
        value: the message's value.
        stamp_ms: when it was written, milliseconds since 1970 in UTC.
    """

    topic: str
    key: bytes
    value: bytes
    stamp_ms: int


def run_service(bootstrap: str, articles: Sequence[bytes], variant: Variant, flags: Sequence[str]) -> ServiceRun:
    """Fill a topic, run the service over it and measure.

    Args:
        bootstrap: the broker's address.
        articles: the articles, as JSON.
        variant: a way to run the service.
        flags: further settings.

    Raises:
        TimeoutError: not all articles came out.
    """
    topics = fresh_topics(bootstrap, partitions=PARTITIONS)
    fill(bootstrap, topics.input, articles)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        with pinned(variant.cores):
            service = stack.enter_context(Service(Path(folder), bootstrap, topics, *variant.flags(), *flags))
        waited = _awaited(service, len(articles))
        return _measured(bootstrap, topics, service, articles, waited)


class _Awaited(NamedTuple):
    """What was observed while the service was deciding.

    Attributes:
        seen: articles already decided when the metrics were first read.
        cpu_seconds: CPU time from then on.
        memory: resident memory at the end, in bytes.
    """

    seen: int
    cpu_seconds: float
    memory: int


def _awaited(service: Service, count: int) -> _Awaited:
    process = psutil.Process(service.pid)
    seen, cpu_before = await_decided(service, 1), cpu_seconds(process)
    await_decided(service, count)
    cpu_after = cpu_seconds(process)
    return _Awaited(seen, cpu_after - cpu_before, sum(one.memory_info().rss for one in family(process)))


def _measured(
    bootstrap: str, topics: Topics, service: Service, articles: Sequence[bytes], waited: _Awaited
) -> ServiceRun:
    stages = service.metrics().by("stage_seconds_total", "stage")
    service.stop()
    # Read only now: a concurrent reader would take some of the CPU, and the outputs have their own timestamps.
    outputs = list(outputs_of(bootstrap, topics, len(articles)))
    disk = sum(path.stat().st_size for path in (service.directory / "state").rglob("*") if path.is_file())
    count = len(articles)
    return ServiceRun(
        rate=steady_rate([output.stamp_ms for output in outputs]),
        once=len({output.key for output in outputs}) == len(outputs) == count,
        links=[output.value for output in outputs if output.topic == topics.duplicates],
        cpu_seconds=1000 * waited.cpu_seconds / max(1, count - waited.seen),
        memory=waited.memory,
        disk=disk / count,
        stages={stage: 1000 * seconds / count for (stage,), seconds in stages.items()},
    )


def api_of(service: Service) -> str:
    """Wait until the API of a service answers; return its URL."""
    wait_until(lambda: bool(service.events("answering")), "the API", _API_SECONDS)
    return str(service.events("answering")[-1]["api"])


def fill(bootstrap: str, topic: str, articles: Iterable[bytes]) -> None:
    """Produce the articles in order, distributed over the partitions in turn."""
    properties = {"linger.ms": 20, "compression.type": "lz4", "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **properties})
    for number, article in enumerate(articles):
        producer.produce(topic, article, partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
            if len(producer) > 50 * 1000:
                producer.flush()
    producer.flush()


def reader(bootstrap: str, topics: Topics) -> Consumer:
    """Return a read_committed consumer of the three outputs, from the beginning.

    The partitions are assigned directly: joining a group takes seconds during which nothing would be read.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{topics.group}-reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in topics.outputs])
    return consumer


def decided(service: Service) -> int:
    """Return how many articles are decided so far."""
    return int(sum(service.metrics().series("commit_messages_sum")))


def await_decided(service: Service, wanted: int) -> int:
    """Wait until so many articles are decided; return the number decided.

    Raises:
        TimeoutError: it takes too long.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (count := decided(service)) < wanted:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {count} of {wanted} articles were decided within {TIMEOUT_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    return count


def outputs_of(bootstrap: str, topics: Topics, expected: int) -> Iterator[Output]:
    """Yield the expected number of outputs, or a few more.

    Raises:
        TimeoutError: there are fewer.
    """
    consumer, count = reader(bootstrap, topics), 0
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while count < expected:
        for message in consumer.consume(2000, 0.2):
            if message.error() is None:
                count += 1
                key, value = bytes(message.key() or b""), bytes(message.value() or b"")
                yield Output(str(message.topic()), key, value, message.timestamp()[1])
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {count} of {expected} articles came out within {TIMEOUT_SECONDS:.0f} s")
    consumer.close()


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all its descendants."""
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time of a process and all its descendants, in seconds."""
    return sum(times.user + times.system for times in (one.cpu_times() for one in family(process)))
