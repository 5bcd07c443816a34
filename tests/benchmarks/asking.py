"""`python -m tests.benchmarks.asking`: how fast the API answers at full load, and what it costs the stream.

Knows questions and how often they are asked; asserts nothing: it prints figures of one run.

A machine's rates differ by more from run to run than the API takes, so that its CPU time is told besides: of two busy
cores it is what the stream cannot have.
"""

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import numpy as np
import orjson
import psutil
from rich.console import Console
from rich.table import Table

from deploy.broker import kafka_for_session
from tests.benchmarks.throughput.articles import read_articles, sample_articles
from tests.benchmarks.throughput.figures import steady_rate
from tests.benchmarks.throughput.service import API, PARTITIONS, api_of, await_decided, collect, cpu_seconds, fill
from tests.stream.harness import Service, fresh_topics

QUESTIONS = ("status", "article", "cluster", "similar", "reason")
_BEFORE = 3  # a third of the articles is decided before anything is measured: whatever starts has started by then
_WITHOUT, _UNASKED, _ASKED = "no API", "API, not asked", "API, asked"
console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)

Latencies = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Taken:
    """What was seen of one run.

    Attributes:
        rate: articles decided a second, by the outputs' own times.
        stream: CPU seconds a second of the service, the API left out.
        api: of the API's process.
        asker: of the process that asked.
    """

    rate: float
    stream: float
    api: float
    asker: float


class Asker:
    """A process that asks at a steady pace, as long as the context lasts.

    Args:
        articles: as JSON, in the order of the stream.
        rate: questions a second.
        seed: of which questions about which articles.
    """

    def __init__(self, articles: Sequence[bytes], rate: float, seed: int) -> None:
        self._articles = articles
        self._rate = rate
        self._seed = seed
        self.latencies: Latencies = {}
        self.cpu_seconds = 0.0

    @contextmanager
    def beside(self, service: Service) -> Iterator[None]:
        """Ask the API of a service."""
        here, there = multiprocessing.Pipe()
        where = api_of(service)
        asking = multiprocessing.Process(target=_ask, args=(where, self._articles, self._rate, self._seed, there))
        asking.start()
        yield
        here.send(None)
        self.latencies, self.cpu_seconds = here.recv()
        asking.join()


def _ask(address: str, articles: Sequence[bytes], rate: float, seed: int, told: Connection) -> None:
    """Ask until told to end; then tell the latencies in milliseconds by question, and the CPU time that asking took.

    Questions that failed count under `failed`.
    """
    began = time.process_time()
    chance = random.Random(seed)
    where = urlsplit(address)
    connection = HTTPConnection(str(where.hostname), where.port, timeout=10)
    latencies: dict[str, list[float]] = defaultdict(list)
    judged, due = 0, time.perf_counter()
    while not told.poll(max(0.0, due - time.perf_counter())):
        question = chance.choice(QUESTIONS) if judged else "status"
        method, path, body = _request(question, articles, judged, chance)
        # From when it was due: one that waits for the one before has waited too.
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        spent = 1000 * (time.perf_counter() - due)
        if question == "status" and answer.status == 200:
            judged = orjson.loads(content)["articles_judged"]
        latencies[question if answer.status in {200, 404, 409} else "failed"].append(spent)
        due = max(due + chance.expovariate(rate), time.perf_counter() - 1.0)
    told.send((dict(latencies), time.process_time() - began))


def _request(question: str, articles: Sequence[bytes], judged: int, chance: random.Random) -> tuple[str, str, bytes]:
    if question == "status":
        return "GET", "/v1/status", b""
    fields = orjson.loads(articles[chance.randrange(min(judged, len(articles)))])
    if question == "similar":
        return "POST", "/v1/similar", orjson.dumps({"body": fields["body"], "title": fields.get("title", "")})
    return "GET", f"/v1/{question}?{urlencode({'id': fields['id']})}", b""


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
                asker = Asker(articles, options.rate, number)
                flags = () if name == _WITHOUT else API
                run = _run(bootstrap, articles, flags, asker if name == _ASKED else None)
                console.print(f"round {number + 1}, {name}: {run.rate:,.0f} articles/s", style="dim")
                runs[name].append(run)
                for question, spent in asker.latencies.items():
                    latencies[question] += spent
    for table in _tables(runs, latencies, options.rate):
        console.print(table)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        taken = {name: [asdict(run) for run in some] for name, some in runs.items()}
        options.json.write_text(json.dumps({"runs": taken, "latencies_ms": latencies}, indent=1) + "\n")


def _copied(articles: Sequence[bytes], copy: int) -> Iterator[bytes]:
    """Yield articles under other ids, so that a stream is long: what was new in the first copy is a copy here."""
    for article in articles:
        fields = orjson.loads(article)
        # Under the same URL it would be a revision.
        yield orjson.dumps({**fields, "id": f"{fields['id']}-{copy}", "url": ""}) if copy else article


def _run(bootstrap: str, articles: Sequence[bytes], flags: Sequence[str], asker: Asker | None) -> Taken:
    topics, first = fresh_topics(bootstrap, partitions=PARTITIONS), len(articles) // _BEFORE
    fill(bootstrap, topics.input, articles[:first])
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder), bootstrap, topics, *flags) as service:
        await_decided(service, first)
        if flags:
            api_of(service)
        fill(bootstrap, topics.input, articles[first:])
        began = _moment(service)
        with asker.beside(service) if asker is not None else nullcontext():
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
