"""The order of timing: references and the service alternate, so that noise of the machine affects them alike.

Knows the order; knows nothing of how each is timed or shown.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from statistics import median
from typing import TypeVar

from deploy.broker import kafka_for_session
from tests.benchmarks.throughput.articles import write_articles
from tests.benchmarks.throughput.figures import Latencies
from tests.benchmarks.throughput.latency import measure_latency
from tests.benchmarks.throughput.references import Reference, Timed
from tests.benchmarks.throughput.service import ServiceRun, Variant, run_service

WARM_UP = 4_000  # articles, for the broker, the kernels and the page cache
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to time.

    Attributes:
        articles: the articles, each as JSON.
        variants: variants of the service; the latency is measured with the first.
        references: the installed references.
        rounds: how often each is timed.
        latency_seconds: duration of the load at half of the top rate that counts; 0 to skip the latency.
        flags: settings, as `group.name=value`.
    """

    articles: Sequence[bytes]
    variants: Sequence[Variant]
    references: Sequence[Reference]
    rounds: int
    latency_seconds: float
    flags: Sequence[str]


@dataclass(slots=True)
class Results:
    """Results by name, one run per round."""

    services: dict[str, list[ServiceRun]] = field(default_factory=dict)
    references: dict[str, list[Timed]] = field(default_factory=dict)
    latency: Latencies | None = None

    def rates(self) -> dict[str, list[float]]:
        """Return articles per second of everything that was timed."""
        runs: dict[str, list[ServiceRun] | list[Timed]] = {**self.services, **self.references}
        return {name: [run.rate for run in timed] for name, timed in runs.items()}


def in_turns(first: Sequence[Entry], second: Sequence[Entry], number: int) -> Iterator[Entry]:
    """Yield entries of both alternately; every other round backwards, so that a drift of the machine cancels out.

    Args:
        first: the entries to begin with.
        second: the others.
        number: number of the round, from 0.
    """
    pairs = chain.from_iterable(zip_longest(first, second))
    order = [entry for entry in pairs if entry is not None]
    yield from order if number % 2 == 0 else reversed(order)


def timed_in_rounds(plan: Plan, tell: Callable[[str], object]) -> Results:
    """Time everything on a real broker, after a warm-up.

    Args:
        plan: what to time.
        tell: called with a line on what is timed next.

    Raises:
        TimeoutError: not all articles came out of the service.
    """
    results = Results()
    references: Sequence[Reference | Variant] = plan.references
    variants: Sequence[Reference | Variant] = plan.variants
    with kafka_for_session() as bootstrap, tempfile.TemporaryDirectory() as folder:
        path = write_articles(Path(folder) / "articles.jsonl", plan.articles)
        for variant in plan.variants:
            tell(f"warming up: broker, kernels, page cache ({variant.name})")
            run_service(bootstrap, plan.articles[:WARM_UP], variant, plan.flags)
        for number in range(plan.rounds):
            for one in in_turns(references, variants, number):
                tell(f"round {number + 1} of {plan.rounds}: {one.name}")
                if isinstance(one, Variant):
                    run = run_service(bootstrap, plan.articles, one, plan.flags)
                    results.services.setdefault(one.name, []).append(run)
                else:
                    results.references.setdefault(one.name, []).append(one.timed(path, plan.flags))
        if plan.latency_seconds and plan.variants:
            tell("latency at half of the top rate")
            results.latency = _latency(bootstrap, plan, results)
    return results


def _latency(bootstrap: str, plan: Plan, results: Results) -> Latencies:
    variant = plan.variants[0]
    half = median(run.rate for run in results.services[variant.name]) / 2
    flags = [*variant.flags(), *plan.flags]
    return measure_latency(bootstrap, plan.articles, half, plan.latency_seconds, flags)
