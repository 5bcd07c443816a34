"""How long a decision takes: articles at a constant rate, their times in their ids, read by another process.

Knows how to pace and to read; knows nothing of throughput. Both clocks are the machine's.
"""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from confluent_kafka import Producer

from tests.benchmarks.throughput.articles import renamed
from tests.benchmarks.throughput.figures import Latency, latency_of
from tests.benchmarks.throughput.service import PARTITIONS, TIMEOUT_SECONDS, reader
from tests.stream.harness import Service, Topics, fresh_topics

WARM_UP = 1_024  # articles that are through before the load begins: a start takes seconds
_STEP_SECONDS = 0.001  # between looks at what is due


def measure_latency(
    bootstrap: str, articles: Sequence[bytes], rate: float, seconds: float, id_path: str, flags: Sequence[str]
) -> Latency:
    """Run the service with the default commit settings under a constant load.

    Args:
        bootstrap: the broker.
        articles: each goes in once, so that the load ends early where they do not last.
        rate: articles a second.
        seconds: how long.
        id_path: dotted path of an article's id.
        flags: settings, as `group.name=value`.

    Raises:
        TimeoutError: not all articles came out.
        ValueError: there are none but for the warm-up.
    """
    load = articles[WARM_UP : WARM_UP + round(rate * seconds)]
    if not load:
        raise ValueError(f"{len(articles)} articles are too few: {WARM_UP} of them are for the warm-up")
    topics = fresh_topics(bootstrap, partitions=PARTITIONS)
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder), bootstrap, topics, *flags) as service,
        # A process of its own: a reader in a thread would wait for this one's turns at the interpreter.
        ProcessPoolExecutor(1, get_context("spawn")) as process,
    ):
        service.wait_ready()
        _produce_at(bootstrap, topics.input, articles[:WARM_UP], rate, id_path)
        process.submit(_read, bootstrap, topics, WARM_UP).result()
        latencies = process.submit(_read, bootstrap, topics, WARM_UP + len(load))
        _produce_at(bootstrap, topics.input, load, rate, id_path)
        counted = sorted(latencies.result())[WARM_UP:]
    return latency_of(rate, [milliseconds for _, milliseconds in counted])


def _produce_at(bootstrap: str, topic: str, articles: Sequence[bytes], rate: float, id_path: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    began, sent = time.monotonic(), 0
    while sent < len(articles):
        due = min(len(articles), int((time.monotonic() - began) * rate))
        for number in range(sent, due):
            value = renamed(articles[number], id_path, f"{time.time_ns()}-{number}")
            producer.produce(topic, value, partition=number % PARTITIONS)
        producer.poll(0)
        sent = max(sent, due)
        time.sleep(_STEP_SECONDS)
    producer.flush()


def _read(bootstrap: str, topics: Topics, expected: int) -> list[tuple[int, float]]:
    """Return of each article when it was produced, nanoseconds, and after how many milliseconds it was read."""
    consumer = reader(bootstrap, topics)
    latencies: list[tuple[int, float]] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(latencies) < expected:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            produced = int(bytes(message.key() or b"").partition(b"-")[0])
            latencies.append((produced, (time.time_ns() - produced) / 1e6))
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(latencies)} of {expected} articles were read in {TIMEOUT_SECONDS:.0f} s")
    consumer.close()
    return latencies
