"""`python -m tests.benchmarks.footprint`: memory and CPU of the service at rest, under a steady load and at full load.

Knows phases and what the system reports on processes; asserts nothing: it prints the figures of one run.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

import psutil
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from deploy.broker import kafka_for_session
from tests.benchmarks.throughput.articles import add_article_options, chosen_articles
from tests.benchmarks.throughput.service import (
    API,
    PARTITIONS,
    TIMEOUT_SECONDS,
    api_of,
    cpu_seconds,
    decided,
    family,
    fill,
)
from tests.stream.service import Service
from tests.stream.topics import fresh_topics
from tests.stream.waiting import wait_until

_LOOK_SECONDS = 0.5
_STEP_SECONDS = 0.005
console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What processes used during a phase.

    Attributes:
        phase: its name.
        rate: articles decided per second.
        cores: CPU seconds per second, including children.
        memory: peak resident bytes, without pages of files.
        resident: peak resident bytes, including those.
    """

    phase: str
    rate: float
    cores: float
    memory: int
    resident: int


class Phases:
    """Watches a service through phases.

    Args:
        service: the running service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._process = psutil.Process(service.pid)
        self.seen: list[Footprint] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Watch the service while the context is active."""
        peaks, ended = [0, 0], Event()
        watching = Thread(target=self._watch, args=(peaks, ended), daemon=True)
        before, spent, began = decided(self._service), cpu_seconds(self._process), time.perf_counter()
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()
        seconds = time.perf_counter() - began
        rate, cores = (decided(self._service) - before) / seconds, (cpu_seconds(self._process) - spent) / seconds
        self.seen.append(Footprint(name, rate, cores, *peaks))

    def await_decided(self, wanted: float) -> None:
        """Wait until so many articles are decided.

        Raises:
            TimeoutError: it takes too long.
        """
        wait_until(lambda: decided(self._service) >= wanted, f"{wanted:.0f} decisions", TIMEOUT_SECONDS)

    def _watch(self, peaks: list[int], ended: Event) -> None:
        while not ended.wait(_LOOK_SECONDS):
            taken = [one.memory_info() for one in family(self._process)]
            peaks[0] = max(peaks[0], sum(memory.rss - memory.shared for memory in taken))
            peaks[1] = max(peaks[1], sum(memory.rss for memory in taken))


def watch(bootstrap: str, articles: Sequence[bytes], flags: Sequence[str], options: argparse.Namespace) -> Phases:
    """Take a service through all phases."""
    topics = fresh_topics(bootstrap, partitions=PARTITIONS)
    steady = round(options.rate * options.seconds)
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder), bootstrap, topics, *flags) as service:
        service.wait_ready()
        if flags:
            api_of(service)
        phases = Phases(service)
        with phases.phase("at rest, new"):
            time.sleep(options.seconds)
        with phases.phase(f"steady, {options.rate:,.0f}/s"):
            _produce_steadily(bootstrap, topics.input, articles[:steady], options.rate)
            phases.await_decided(steady)
        with phases.phase("full load"):
            fill(bootstrap, topics.input, articles[steady:])
            phases.await_decided(len(articles))
        with phases.phase("at rest, after it"):
            time.sleep(options.seconds)
        return phases


def _produce_steadily(bootstrap: str, topic: str, articles: Sequence[bytes], rate: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    began, sent = time.monotonic(), 0
    while sent < len(articles):
        for number in range(sent, due := min(len(articles), int((time.monotonic() - began) * rate))):
            producer.produce(topic, articles[number], partition=number % PARTITIONS)
        producer.poll(0)
        sent = max(sent, due)
        time.sleep(_STEP_SECONDS)
    producer.flush()


def table_of(title: str, seen: Sequence[Footprint]) -> Table:
    """Return the figures as a table with a row per phase."""
    table = Table(title=title, title_justify="left")
    for name in ("phase", "articles/s", "cores", "memory, MB", "with files, MB"):
        table.add_column(name, justify="left" if name == "phase" else "right")
    for one in seen:
        memory = (f"{size / 1e6:,.0f}" for size in (one.memory, one.resident))
        table.add_row(one.phase, f"{one.rate:,.0f}", f"{one.cores:.2f}", *memory)
    return table


def main() -> None:
    """Watch a service alone and one with its API, print and write."""
    options = _options().parse_args()
    articles = chosen_articles(options)
    found = {}
    with kafka_for_session() as bootstrap:
        for title, flags in (("The service", ()), ("The service with its API, not asked", API)):
            seen = watch(bootstrap, articles, flags, options).seen
            console.print(table_of(title, seen))
            found[title] = [asdict(one) for one in seen]
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_article_options(parser, 40_000)
    parser.add_argument(
        "--rate", type=float, default=300.0, help="articles per second under the steady load (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a phase (%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser


if __name__ == "__main__":
    main()
