"""Rate of the whole service, Kafka to Kafka, with either guarantee, beside bare `rjieba.cut` on one core.

Knows how to time the service as a process; asserts nothing: it prints figures and ratios of one run.
"""

import argparse
import gzip
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import orjson
import psutil
import rjieba
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, types do not say so
from rich.console import Console
from rich.table import Table

from deploy.broker import kafka_for_session
from deploy.demo.samples import sample_stream

PARTITIONS = 3
_REPOSTS, _LEAPS = 0.4, 0.3
TIMEOUT_SECONDS = 600.0
WARM_UP = 4_000  # articles, for the broker, the kernels and the page cache
GUARANTEES = ("exactly_once", "at_least_once")
console = Console()


def sample_articles(count: int, seed: int = 7) -> list[bytes]:
    """Return articles drawn from the words of the demo's samples, each word after one that it follows there.

    Two fifths are reposts of an earlier one, cut at the end. They read like nothing, but their words, lengths and
    n-grams are as varied as those of news.
    """
    source = random.Random(seed)
    follows = _word_pairs()
    firsts = sorted(follows)
    texts: list[str] = []
    articles: list[bytes] = []
    for number in range(count):
        if texts and source.random() < _REPOSTS:
            body = source.choice(texts)[: -source.randrange(1, 200)]
        else:
            body = _walk(follows, firsts, source.randrange(150, 900), source)
            texts.append(body)
        fields = {"id": f"bench-{number}", "title": body[:20], "body": body, "published_at": 1_790_000_000 + number}
        articles.append(orjson.dumps(fields))
    return articles


def _word_pairs() -> dict[str, list[str]]:
    follows: dict[str, list[str]] = defaultdict(list)
    for sample in sample_stream():
        if sample.value and sample.dead_reason is None and sample.repost_of is None:
            for first, second in pairwise(rjieba.cut(orjson.loads(sample.value)["body"])):
                follows[first].append(second)
    return follows


def _walk(follows: dict[str, list[str]], firsts: list[str], words: int, source: random.Random) -> str:
    word = source.choice(firsts)
    text = [word]
    while len(text) < words:
        # Now and then a leap, or the walk would retell whole sentences.
        leap = source.random() < _LEAPS or word not in follows
        word = source.choice(firsts if leap else follows[word])
        text.append(word)
    return "".join(text)


def read_articles(path: Path) -> list[bytes]:
    """Return the lines of a JSONL file, plain or .gz."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        return [line.rstrip(b"\n") for line in lines if line.strip()]


def segmenting_rate(articles: list[bytes]) -> float:
    """Return articles a second of bare `rjieba.cut` over the bodies, on one core."""
    bodies = [orjson.loads(article)["body"] for article in articles]
    rjieba.cut(bodies[0])
    started = time.perf_counter()
    for body in bodies:
        rjieba.cut(body)
    return len(bodies) / (time.perf_counter() - started)


def produce(bootstrap: str, topic: str, articles: list[bytes]) -> None:
    """Make the input topic and fill it beforehand, the articles spread round over its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4"})
    for number, article in enumerate(articles):
        producer.produce(topic, article, partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


@contextmanager
def running_service(bootstrap: str, prefix: str, state: Path, extra: list[str]) -> Iterator[psutil.Process]:
    """Run the service as a process of its own over the topics of a prefix."""
    settings = {
        "kafka.bootstrap.servers": bootstrap,
        "input.topics": f"{prefix}.in",
        "input.group": prefix,
        "output.unique": f"{prefix}.unique",
        "output.duplicates": f"{prefix}.duplicates",
        "output.dead": f"{prefix}.dead",
        "output.clusters": f"{prefix}.clusters",
        "state.directory": str(state),
        "http.port": "0",
        "log.level": "warning",
    }
    flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
    process = subprocess.Popen([sys.executable, "-m", "stream_dedup", "run", *flags, *extra])
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def collect(bootstrap: str, prefix: str, expected: int) -> tuple[list[tuple[str, bytes, bytes]], float]:
    """Read the outputs until all have come; return (topic, key, value) and seconds from the first to the last.

    The clock is the broker's: each output's own timestamp.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{prefix}-reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    consumer.subscribe([f"{prefix}.{kind}" for kind in ("unique", "duplicates", "dead")])
    outputs: list[tuple[str, bytes, bytes]] = []
    stamps: list[int] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(outputs) < expected and time.monotonic() < deadline:
        for message in consumer.consume(2000, 0.2):
            if message.error() is None:
                outputs.append((str(message.topic()), bytes(message.key() or b""), bytes(message.value() or b"")))
                stamps.append(message.timestamp()[1])
    consumer.close()
    if len(outputs) < expected:
        raise SystemExit(f"only {len(outputs)} of {expected} articles came out within {TIMEOUT_SECONDS:.0f} s")
    return outputs, (max(stamps) - min(stamps)) / 1000


@dataclass(frozen=True, slots=True)
class Timed:
    """One run over all articles.

    Attributes:
        outputs: topic, key and value of each.
        seconds: from the first output to the last.
        cpu_seconds: of the service, its start included.
        memory: of the service at the end, resident bytes.
        disk: of its state, bytes.
    """

    outputs: list[tuple[str, bytes, bytes]]
    seconds: float
    cpu_seconds: float
    memory: int
    disk: int

    def links(self) -> list[bytes]:
        """Return the links, as JSON."""
        return [value for topic, _, value in self.outputs if topic.endswith(".duplicates")]

    def figures(self, articles: int) -> dict[str, float | int | bool]:
        """Return what is printed of it."""
        return {
            "out exactly once": len({key for _, key, _ in self.outputs}) == len(self.outputs) == articles,
            "links": len(self.links()),
            "service, articles/s": round(articles / self.seconds),
            "service, CPU seconds / 1,000 articles": round(1000 * self.cpu_seconds / articles, 3),
            "service, resident MB": round(self.memory / 1e6),
            "state on disk, bytes / article": round(self.disk / articles),
        }


def measure(articles: list[bytes], guarantees: Sequence[str], extra: list[str]) -> tuple[dict[str, Timed], float]:
    """Run the service over the articles on a real broker with each guarantee.

    Returns:
        The runs by guarantee, and articles a second of bare segmenting: the mean of before, between and after.
    """
    prefix = f"bench-{os.getpid()}"
    with kafka_for_session() as bootstrap, tempfile.TemporaryDirectory() as folder:
        for guarantee in guarantees:
            console.print(f"warming up: broker, kernels, page cache ({guarantee})", style="dim")
            flags = ["--set", f"commit.guarantee={guarantee}", *extra]
            _run(bootstrap, f"{prefix}-warm-{guarantee}", articles[:WARM_UP], Path(folder), flags)
        runs, segmenting = {}, [segmenting_rate(articles)]
        for guarantee in guarantees:
            console.print(f"timing {len(articles)} articles ({guarantee})", style="dim")
            flags = ["--set", f"commit.guarantee={guarantee}", *extra]
            runs[guarantee] = _run(bootstrap, f"{prefix}-{guarantee}", articles, Path(folder), flags)
            segmenting.append(segmenting_rate(articles))
    return runs, sum(segmenting) / len(segmenting)


def _run(bootstrap: str, prefix: str, articles: list[bytes], folder: Path, extra: list[str]) -> Timed:
    produce(bootstrap, f"{prefix}.in", articles)
    state = folder / prefix
    with running_service(bootstrap, prefix, state, extra) as process:
        outputs, seconds = collect(bootstrap, prefix, len(articles))
        cpu, memory = process.cpu_times(), process.memory_info().rss
    disk = sum(path.stat().st_size for path in state.rglob("*") if path.is_file())
    return Timed(outputs, seconds, cpu.user + cpu.system, memory, disk)


def table_of(articles: list[bytes], runs: Mapping[str, Timed], segmenting: float, machine: str) -> Table:
    """Return the figures of all runs, one a column."""
    table = Table(title=f"Kafka to Kafka, one process ({machine})", title_justify="left")
    table.add_column("figure")
    for guarantee in runs:
        table.add_column(guarantee, justify="right")
    characters = round(sum(len(orjson.loads(article)["body"]) for article in articles) / len(articles))
    columns = [
        {
            "articles": len(articles),
            "mean characters": characters,
            **run.figures(len(articles)),
            "rjieba.cut alone, articles/s": round(segmenting),
            "service / rjieba.cut": round(len(articles) / run.seconds / segmenting, 3),
        }
        for run in runs.values()
    ]
    for name in columns[0]:
        table.add_row(name, *(_written(column[name]) for column in columns))
    return table


def _written(value: float | bool) -> str:  # noqa: FBT001  # a figure
    return str(value) if isinstance(value, bool) else f"{value:,}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, help="JSONL, plain or .gz, with id, title, body; else samples")
    parser.add_argument("--count", type=int, default=12_000, help="how many sample articles, without --articles")
    parser.add_argument("--guarantee", choices=("both", *GUARANTEES), default="both", help="commit.guarantee")
    parser.add_argument("--links", type=Path, help="write the links of the first run here, to score them")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--set", dest="flags", action="append", default=[], help="a setting of the service")
    options = parser.parse_args()
    articles = read_articles(options.articles) if options.articles else sample_articles(options.count)
    extra = [part for flag in options.flags for part in ("--set", flag)]
    guarantees = GUARANTEES if options.guarantee == "both" else (options.guarantee,)
    runs, segmenting = measure(articles, guarantees, extra)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    console.print(table_of(articles, runs, segmenting, machine))
    if len(runs) > 1:
        exactly, at_least = (runs[guarantee].seconds for guarantee in GUARANTEES)
        console.print(f"exactly_once runs at {at_least / exactly:.1%} of the rate of at_least_once")
    if options.links:
        options.links.write_bytes(b"".join(value + b"\n" for value in runs[guarantees[0]].links()))
    if options.json:
        figures = {guarantee: run.figures(len(articles)) for guarantee, run in runs.items()}
        found = {"machine": machine, "rjieba.cut alone, articles/s": round(segmenting), **figures}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
