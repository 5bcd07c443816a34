"""How long a decision takes: articles at a constant rate, with their send times in their ids, read by another process.

Knows how to pace and to read; knows nothing of throughput. Both processes use the same machine's clock.
"""

import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from confluent_kafka import Producer

from stream_dedup.scope import id_of
from stream_dedup.settings import load_settings
from tests.benchmarks.throughput.articles import SCOPE, endless, with_field
from tests.benchmarks.throughput.figures import Latency, latency_of
from tests.benchmarks.throughput.service import PARTITIONS, TIMEOUT_SECONDS, reader
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics

WARM_UP = 1_024  # articles decided before the load begins: a start takes seconds
_STEP_SECONDS = 0.001  # between checks of what is due


def measure_latency(
    bootstrap: str, articles: Sequence[bytes], rate: float, seconds: float, flags: Sequence[str]
) -> Latency:
    """Run the service with the default commit settings under a constant load.

    Args:
        bootstrap: the broker's address.
        articles: if there are too few, they are sent again, in other scopes.
        rate: articles per second.
        seconds: duration of the load.
        flags: settings, as `group.name=value`.

    Raises:
        TimeoutError: not all articles came out.
    """
    fields = load_settings(flags=flags).input.fields
    scope_path = fields.scope or SCOPE
    flags = [*flags, f"input.fields.scope={scope_path}"]
    source, count = endless(articles, scope_path), round(rate * seconds)
    warm_up, load = list(islice(source, WARM_UP)), list(islice(source, count))
    topics = fresh_topics(bootstrap, partitions=PARTITIONS)
    # A separate process: a reader in a thread would have to wait for this one to release the interpreter.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    reading = context.Process(target=_read, args=(bootstrap, topics, WARM_UP, len(load), theirs), daemon=True)
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder), bootstrap, topics, *flags) as service:
        service.wait_ready()
        reading.start()
        theirs.close()  # so that a reader that fails is noticed
        load_at = _Load(bootstrap, topics.input, rate, fields.id)
        load_at.produce(warm_up)
        # From here on both producer and reader are connected.
        _answer(ours)
        load_at.produce(load)
        latencies = _answer(ours)
        reading.join()
    return latency_of(rate, latencies)


class _Load:
    """A constant load."""

    def __init__(self, bootstrap: str, topic: str, rate: float, id_path: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
        self._topic = topic
        self._rate = rate
        self._id_path = id_path

    def produce(self, articles: Sequence[bytes]) -> None:
        """Produce articles, each with the send time in its id, and wait until all have arrived."""
        began, sent = time.monotonic(), 0
        while sent < len(articles):
            due = min(len(articles), int((time.monotonic() - began) * self._rate))
            for number in range(sent, due):
                value = with_field(articles[number], self._id_path, f"{time.time_ns()}-{number}")
                self._producer.produce(self._topic, value, partition=number % PARTITIONS)
            self._producer.poll(0)
            sent = max(sent, due)
            time.sleep(_STEP_SECONDS)
        self._producer.flush()


def _answer(pipe: Connection) -> list[float]:
    """Wait for the next answer of the reader.

    Raises:
        TimeoutError: it did not read all articles in time.
    """
    if not pipe.poll(TIMEOUT_SECONDS):
        raise TimeoutError(f"not all articles were read in {TIMEOUT_SECONDS:.0f} s")
    latencies: list[float] = pipe.recv()
    return latencies


def _read(bootstrap: str, topics: Topics, warm_up: int, load: int, pipe: Connection) -> None:
    """Read the warm-up and then the load; after each, send the latencies in milliseconds."""
    consumer = reader(bootstrap, topics)
    for expected in (warm_up, load):
        latencies: list[float] = []
        while len(latencies) < expected:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                produced = int(id_of(bytes(message.key() or b"").decode()).partition("-")[0])
                latencies.append((time.time_ns() - produced) / 1e6)
        pipe.send(latencies)
    consumer.close()
