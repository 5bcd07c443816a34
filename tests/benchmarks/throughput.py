"""Rate of the whole service, Kafka to Kafka, beside bare `rjieba.cut` over the same texts on one core.

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
from collections.abc import Iterator
from contextlib import contextmanager
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


def measure(articles: list[bytes], links: Path | None, extra: list[str]) -> dict[str, float | int]:
    """Run the service over the articles on a real broker and return the figures."""
    prefix = f"bench-{os.getpid()}"
    with kafka_for_session() as bootstrap, tempfile.TemporaryDirectory() as folder:
        console.print("warming up: broker, kernels, page cache", style="dim")
        _run(bootstrap, f"{prefix}-warm", articles[: min(len(articles), 4000)], Path(folder) / "warm", extra)
        before = segmenting_rate(articles)
        console.print(f"timing {len(articles)} articles", style="dim")
        outputs, seconds, cpu, memory = _run(bootstrap, prefix, articles, Path(folder) / "state", extra)
        after = segmenting_rate(articles)
        disk = sum(path.stat().st_size for path in (Path(folder) / "state").rglob("*") if path.is_file())
    found = [value for topic, _, value in outputs if topic.endswith(".duplicates")]
    if links is not None:
        links.write_bytes(b"".join(value + b"\n" for value in found))
    rate, segmenting = len(articles) / seconds, (before + after) / 2
    return {
        "articles": len(articles),
        "mean characters": round(sum(len(orjson.loads(a)["body"]) for a in articles) / len(articles)),
        "out exactly once": len({key for _, key, _ in outputs}) == len(outputs) == len(articles),
        "links": len(found),
        "service, articles/s": round(rate),
        "rjieba.cut alone, articles/s": round(segmenting),
        "service / rjieba.cut": round(rate / segmenting, 3),
        "service, CPU seconds / 1,000 articles": round(1000 * cpu / len(articles), 3),
        "service, peak resident MB": round(memory / 1e6),
        "state on disk, bytes / article": round(disk / len(articles)),
    }


def _run(
    bootstrap: str, prefix: str, articles: list[bytes], state: Path, extra: list[str]
) -> tuple[list[tuple[str, bytes, bytes]], float, float, int]:
    produce(bootstrap, f"{prefix}.in", articles)
    with running_service(bootstrap, prefix, state, extra) as process:
        outputs, seconds = collect(bootstrap, prefix, len(articles))
        cpu = process.cpu_times()
        return outputs, seconds, cpu.user + cpu.system, process.memory_info().rss


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, help="JSONL, plain or .gz, with id, title, body; else samples")
    parser.add_argument("--count", type=int, default=12_000, help="how many sample articles, without --articles")
    parser.add_argument("--links", type=Path, help="write the links here, to score them")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--set", dest="flags", action="append", default=[], help="a setting of the service")
    options = parser.parse_args()
    articles = read_articles(options.articles) if options.articles else sample_articles(options.count)
    extra = [part for flag in options.flags for part in ("--set", flag)]
    figures = measure(articles, options.links, extra)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    table = Table(title=f"Kafka to Kafka, one process ({machine})", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(
            name, f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
        )
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, **figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
