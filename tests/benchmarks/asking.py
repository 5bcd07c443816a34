"""`python -m tests.benchmarks.asking`: how fast the API answers at full load, and what it costs the stream.

Knows questions and how often they are asked; asserts nothing: it prints figures of one run.

A machine's rates differ by more from run to run than the API takes, so that its CPU time is told besides: of two busy
cores it is what the stream cannot have.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import orjson
import psutil
from rich.console import Console
from rich.table import Table

from deploy.broker import kafka_for_session
from tests.benchmarks.asker import Asker, Latencies, Request
from tests.benchmarks.throughput.articles import read_articles, sample_articles
from tests.benchmarks.throughput.figures import steady_rate
from tests.benchmarks.throughput.service import API, PARTITIONS, api_of, await_decided, collect, cpu_seconds, fill
from tests.stream.harness import Service, fresh_topics

QUESTIONS = ("status", "article", "cluster", "similar", "reason")
_QUESTIONS = 1_000  # before they are asked again
_BEFORE = 3  # a third of the articles is decided before anything is measured: whatever starts has started by then
_WITHOUT, _UNASKED, _ASKED = "no API", "API, not asked", "API, asked"
console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was seen of one run.

    Attributes:
        rate: articles decided a second, by the outputs' own times.
        stream: CPU seconds a second of the service, the API left out.
        api: of the API's process.
        asker: of the process that asked.
        latencies: of the answers, milliseconds, by question.
    """

    rate: float
    stream: float
    api: float
    asker: float
    latencies: Latencies


class Asking(NamedTuple):
    """How an API is asked.

    Attributes:
        rate: questions a second.
        seed: of which questions about which articles, and when.
    """

    rate: float
    seed: int


def _requests(articles: Sequence[bytes], seed: int) -> list[Request]:
    """Return questions about articles, as JSON, that are judged already."""
    chance = random.Random(seed)
    return [_request(chance.choice(QUESTIONS), orjson.loads(chance.choice(articles))) for _ in range(_QUESTIONS)]


def _request(question: str, article: Mapping[str, str]) -> Request:
    if question == "status":
        return Request(question, "GET", "/v1/status")
    if question == "similar":
        body = orjson.dumps({"body": article["body"], "title": article.get("title", "")})
        return Request(question, "POST", "/v1/similar", body)
    return Request(question, "GET", f"/v1/{question}?{urlencode({'id': article['id']})}")


def main() -> None:
    """Measure, print and write."""
    options = _options().parse_args()
    articles = read_articles(options.articles) if options.articles else sample_articles(options.count)
    articles = [article for copy in range(options.copies) for article in _copied(articles, copy)]
    runs: dict[str, list[Taken]] = {name: [] for name in (_WITHOUT, _UNASKED, _ASKED)}
    latencies: dict[str, list[float]] = defaultdict(list)
    with kafka_for_session() as bootstrap:
        for number in range(options.rounds):
            for name in (_WITHOUT, _UNASKED, _ASKED)[:: 1 if number % 2 else -1]:
                asking = Asking(options.rate, number) if name == _ASKED else None
                run = _run(bootstrap, articles, () if name == _WITHOUT else API, asking)
                console.print(f"round {number + 1}, {name}: {run.rate:,.0f} articles/s", style="dim")
                runs[name].append(run)
                for question, spent in run.latencies.items():
                    latencies[question] += spent
    for table in _tables(runs, latencies, options.rate):
        console.print(table)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        taken = {name: [asdict(run) for run in some] for name, some in runs.items()}
        options.json.write_text(json.dumps({"runs": taken}, indent=1) + "\n")


def _copied(articles: Sequence[bytes], copy: int) -> Iterator[bytes]:
    """Yield articles under other ids, so that a stream is long: what was new in the first copy is a copy here."""
    for article in articles:
        fields = orjson.loads(article)
        # Under the same URL it would be a revision.
        yield orjson.dumps({**fields, "id": f"{fields['id']}-{copy}", "url": ""}) if copy else article


def _run(bootstrap: str, articles: Sequence[bytes], flags: Sequence[str], asking: Asking | None) -> Taken:
    topics, first = fresh_topics(bootstrap, partitions=PARTITIONS), len(articles) // _BEFORE
    fill(bootstrap, topics.input, articles[:first])
    with (
        Asker(_requests(articles[:first], asking.seed), *asking) if asking is not None else nullcontext() as asker,
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder), bootstrap, topics, *flags) as service,
    ):
        await_decided(service, first)
        address = api_of(service) if flags else ""
        fill(bootstrap, topics.input, articles[first:])
        began = _moment(service)
        with asker.asking(address) if asker is not None else nullcontext():
            await_decided(service, len(articles))
            ended = _moment(service)
        service.stop()
        outputs = collect(bootstrap, topics, len(articles))
    seconds = ended.at - began.at
    return Taken(
        rate=steady_rate([output.stamp_ms for output in outputs if output.stamp_ms >= 1000 * began.at]),
        stream=(ended.stream - began.stream) / seconds,
        api=(ended.api - began.api) / seconds,
        asker=asker.cpu_seconds / seconds if asker is not None else 0.0,
        latencies=asker.latencies if asker is not None else {},
    )


class _Moment(NamedTuple):
    """CPU time so far.

    Attributes:
        at: the moment, seconds.
        stream: seconds of the service, the API left out.
        api: seconds of this.
    """

    at: float
    stream: float
    api: float


def _moment(service: Service) -> _Moment:
    process = psutil.Process(service.pid)
    api = sum(cpu_seconds(child) for child in process.children() if "stream_dedup.api" in child.cmdline())
    return _Moment(time.time(), cpu_seconds(process) - api, api)


def _tables(runs: Mapping[str, Sequence[Taken]], latencies: Latencies, rate: float) -> Iterator[Table]:
    table = Table(title="The stream beside the API, cores of CPU", title_justify="left")
    for name in ("", "articles/s", "ratio", "service", "its API", "who asks"):
        table.add_column(name, justify="right" if name else "left")
    alone = median(run.rate for run in runs[_WITHOUT])
    for name, some in runs.items():
        found = median(run.rate for run in some)
        cores = ([run.stream for run in some], [run.api for run in some], [run.asker for run in some])
        table.add_row(name, f"{found:,.0f}", f"{found / alone:.3f}", *(f"{median(values):.3f}" for values in cores))
    yield table
    table = Table(title=f"Answers at that load, {rate:g} questions a second", title_justify="left")
    for name in ("question", "asked", "median ms", "p95 ms", "p99 ms", "most ms"):
        table.add_column(name, justify="left" if name == "question" else "right")
    for question in (*QUESTIONS, "failed"):
        if spent := latencies.get(question):
            percentiles = np.percentile(spent, [50, 95, 99, 100]).tolist()
            table.add_row(question, str(len(spent)), *(f"{value:.1f}" for value in percentiles))
    yield table


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, help="JSONL, plain or .gz, with id, title, body; else samples")
    parser.add_argument("--count", type=int, default=40_000, help="how many samples, without --articles (%(default)s)")
    parser.add_argument("--copies", type=int, default=1, help="how often they are streamed, under other ids")
    parser.add_argument("--rate", type=float, default=10.0, help="questions a second (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is timed (%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser


if __name__ == "__main__":
    main()
