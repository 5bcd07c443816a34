"""`python -m tests.benchmarks.asking`: how fast the API answers at full load, and what it costs the stream.

Knows queries and how often they are sent; asserts nothing: it prints the figures of one run.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

from deploy.broker import kafka_for_session
from tests.benchmarks.asker import Asked, Asker, Request
from tests.benchmarks.throughput.articles import SCOPE, add_article_options, chosen_articles, endless
from tests.benchmarks.throughput.service import API, PARTITIONS, await_decided, fill, outputs_of
from tests.benchmarks.turns import WAYS, Rates, Round, Turns
from tests.stream.service import Service
from tests.stream.topics import fresh_topics

QUESTIONS = ("status", "article", "cluster", "similar", "reason")
_QUESTIONS = 1_000  # different queries, before they repeat
_LEAST_ROUNDS = 2  # needed to estimate an error
console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def _requests(articles: Sequence[bytes], seed: int) -> list[Request]:
    """Return queries about articles, given as JSON, that have already been judged."""
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
    articles = chosen_articles(options)
    with (
        Asker(_requests(articles, options.seed), options.rate, options.seed) as asker,
        kafka_for_session() as bootstrap,
    ):
        rounds, rates = _run(bootstrap, articles, asker, options)
    if len(rounds) < _LEAST_ROUNDS:
        raise SystemExit(f"{options.stream:,} articles were too few for {_LEAST_ROUNDS} rounds: raise --stream")
    for table in (_beside(rounds, rates), _answers(asker.turns, options.rate)):
        console.print(table)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        turns = [[{**asdict(turn), "rate": rates.of(turn)} for turn in one.values()] for one in rounds]
        found = {"rounds": turns, "asked": [asked._asdict() for asked in asker.turns]}
        options.json.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _run(
    bootstrap: str, articles: Sequence[bytes], asker: Asker, options: argparse.Namespace
) -> tuple[list[Round], Rates]:
    topics, rounds = fresh_topics(bootstrap, partitions=PARTITIONS), []
    settings = (*API, f"input.fields.scope={SCOPE}")
    fill(bootstrap, topics.input, islice(endless(articles, SCOPE), options.stream))
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder), bootstrap, topics, *settings) as service:
        await_decided(service, len(articles))  # the queries are about these
        for one in Turns(service, asker, options.seconds).rounds(options.stream):
            rounds.append(one)
            console.print(f"round {len(rounds)}", style="dim")
        await_decided(service, options.stream)
        service.stop()
        return rounds, Rates(output.stamp_ms for output in outputs_of(bootstrap, topics, options.stream))


def _beside(rounds: Sequence[Round], rates: Rates) -> Table:
    table = Table(title=f"The stream beside the API, {len(rounds)} rounds, cores of CPU", title_justify="left")
    for name in ("", "articles/s", "ratio", "error", "service", "its API"):
        table.add_column(name, justify="right" if name else "left")
    for way in WAYS:
        turns, ratio = [one[way] for one in rounds], rates.ratio(way, rounds)
        cores = (median(turn.stream for turn in turns), median(turn.api for turn in turns))
        rate = median(rates.of(turn) for turn in turns)
        table.add_row(way, f"{rate:,.0f}", f"{ratio.mean:.3f}", f"{ratio.error:.3f}", *(f"{one:.3f}" for one in cores))
    return table


def _answers(asked: Sequence[Asked], rate: float) -> Table:
    table = Table(title=f"Answers at that load, {rate:g} questions per second", title_justify="left")
    for name in ("question", "asked", "median ms", "p95 ms", "p99 ms", "max ms"):
        table.add_column(name, justify="left" if name == "question" else "right")
    for question in (*QUESTIONS, "failed"):
        if spent := [one for turn in asked for one in turn.latencies.get(question, ())]:
            percentiles = np.percentile(spent, [50, 95, 99, 100]).tolist()
            table.add_row(question, str(len(spent)), *(f"{value:.1f}" for value in percentiles))
    return table


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_article_options(parser, 20_000)
    parser.add_argument("--stream", type=int, default=600_000, help="articles in all, by repeating them (%(default)s)")
    parser.add_argument("--rate", type=float, default=10.0, help="questions per second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="for the questions and the time between them (%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser


if __name__ == "__main__":
    main()
