"""How long a decision takes: articles at a constant rate, read by another process; both note the time of each.

Knows how to pace and to read; knows nothing of throughput. Both processes use the same machine's clock.
"""

import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

from stream_dedup.arrays import I64
from stream_dedup.scope import id_of
from stream_dedup.settings import load_settings
from tests.benchmarks.throughput.articles import SCOPE, endless, with_field
from tests.benchmarks.throughput.figures import Latencies, latency_of
from tests.benchmarks.throughput.service import PARTITIONS, TIMEOUT_SECONDS, reader
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics

WARM_UP = 1_024  # articles decided before the load begins: a start takes seconds
# Of the load, before it counts: in the first seconds of one that is new to it, a broker takes twice the CPU.
SETTLING_SECONDS = 10.0
_STEP_SECONDS = 0.001  # between checks of what is due


def measure_latency(
    bootstrap: str, articles: Sequence[bytes], rate: float, seconds: float, flags: Sequence[str]
) -> Latencies:
    """Run the service with the default commit settings under a constant load.

    Args:
        bootstrap: the broker's address.
        articles: if there are too few, they are sent again, in other scopes.
        rate: articles per second.
        seconds: duration of the load that counts, after `SETTLING_SECONDS` of the same.
        flags: settings, as `group.name=value`.

    Raises:
        TimeoutError: not all articles came out.
    """
    fields = load_settings(flags=flags).input.fields
    scope_path = fields.scope or SCOPE
    flags = [*flags, f"input.fields.scope={scope_path}"]
    source, settling = endless(articles, scope_path), round(rate * SETTLING_SECONDS)
    numbered = _numbered(islice(source, WARM_UP + settling + round(rate * seconds)), fields.id)
    warm_up, load = numbered[:WARM_UP], numbered[WARM_UP:]
    topics = fresh_topics(bootstrap, partitions=PARTITIONS)
    # A separate process: a reader in a thread would have to wait for this one to release the interpreter.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    reading = context.Process(target=_read, args=(bootstrap, topics, WARM_UP, len(load), theirs), daemon=True)
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder), bootstrap, topics, *flags) as service:
        service.wait_ready()
        reading.start()
        theirs.close()  # so that a reader that fails is noticed
        load_at = _Load(bootstrap, topics.input, rate)
        load_at.produce(warm_up)
        # From here on both producer and reader are connected.
        _answer(ours)
        sent = load_at.produce(load)
        latencies = (_answer(ours) - sent) / 1e6
        reading.join()
    return Latencies(latency_of(rate, latencies[:settling]), latency_of(rate, latencies[settling:]))


def _numbered(articles: Iterable[bytes], id_path: str) -> list[bytes]:
    """Return articles with their numbers, from 0, as ids."""
    return [with_field(article, id_path, str(number)) for number, article in enumerate(articles)]


class _Load:
    """A constant load."""

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
        self._topic = topic
        self._rate = rate

    def produce(self, articles: Sequence[bytes]) -> I64:
        """Produce articles and wait until all have arrived; return when each was produced, nanoseconds since 1970."""
        times = np.zeros(len(articles), np.int64)
        began, sent = time.monotonic(), 0
        while sent < len(articles):
            due = min(len(articles), int((time.monotonic() - began) * self._rate))
            for number in range(sent, due):
                times[number] = time.time_ns()
                self._producer.produce(self._topic, articles[number], partition=number % PARTITIONS)
            self._producer.poll(0)
            sent = max(sent, due)
            time.sleep(_STEP_SECONDS)
        self._producer.flush()
        return times


def _answer(pipe: Connection) -> I64:
    """Wait for the next answer of the reader.

    Raises:
        TimeoutError: it did not read all articles in time.
    """
    if not pipe.poll(TIMEOUT_SECONDS):
        raise TimeoutError(f"not all articles were read in {TIMEOUT_SECONDS:.0f} s")
    times: I64 = pipe.recv()
    return times


def _read(bootstrap: str, topics: Topics, warm_up: int, load: int, pipe: Connection) -> None:
    """Read the warm-up and then the load; after each, send when each article was read, nanoseconds since 1970."""
    consumer = reader(bootstrap, topics)
    for first, expected in ((0, warm_up), (warm_up, load)):
        times = np.zeros(expected, np.int64)
        for _ in range(expected):
            while (message := consumer.poll(1.0)) is None or message.error() is not None:
                pass
            times[int(id_of(bytes(message.key() or b"").decode())) - first] = time.time_ns()
        pipe.send(times)
    consumer.close()
