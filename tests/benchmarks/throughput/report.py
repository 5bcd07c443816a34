"""The figures of a run as tables on the terminal and as JSON.

Knows names, units and goals; knows nothing of how anything is timed. All figures are medians over the rounds.
"""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

from rich.table import Table

from tests.benchmarks.throughput.cores import CAN_PIN
from tests.benchmarks.throughput.figures import Ratio
from tests.benchmarks.throughput.latency import SETTLING_SECONDS
from tests.benchmarks.throughput.references import REFERENCES
from tests.benchmarks.throughput.rounds import Plan, Results
from tests.benchmarks.throughput.service import ServiceRun, Variant

RATIOS = (
    Ratio("exactly_once", "rjieba.cut", 1.0),
    Ratio("one_core", "rjieba.cut", 0.6),
    Ratio("exactly_once", "datasketch", 8.0),
    Ratio("exactly_once", "gaoya", 1.0),
    Ratio("dedup", "exactly_once", 1.0),
    Ratio("unproved", "exactly_once", 1.4),
    Ratio("exactly_once", "at_least_once"),
    Ratio("exactly_once", "engine"),
)
MEDIAN_GOAL_MS, P99_GOAL_MS = 150.0, 400.0
HOW_TO_GET = "not installed: install the extra `peers`"
_PACKAGES = ("stream-dedup", "rjieba", "datasketch", "gaoya", "confluent-kafka", "rocksdict", "numpy", "numba")


def as_json(plan: Plan, results: Results, characters: int) -> dict[str, Any]:
    """Return every figure, with the machine, the date and the versions."""
    rates = results.rates()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": dict(_versions()),
        "settings": list(plan.flags),
        "articles": len(plan.articles),
        "mean_characters": characters,
        "rounds": plan.rounds,
        "rates": {name: {"median": median(each), "rounds": each} for name, each in rates.items()},
        "copies": {name: runs[0].copies for name, runs in results.references.items()},
        "not_installed": [one.name for one in REFERENCES if one.missing],
        "ratios": [{**asdict(ratio), "value": ratio.value(rates)} for ratio in RATIOS],
        "service": {name: service_figures(runs) for name, runs in results.services.items()},
        "stage_seconds_per_1000": {name: stages_of(runs) for name, runs in results.services.items()},
        "latency": asdict(results.latency.settled) if results.latency else None,
        "latency_while_settling": asdict(results.latency.settling) if results.latency else None,
    }


def service_figures(runs: Sequence[ServiceRun]) -> dict[str, float | bool]:
    """Return the service's figures other than its rate."""
    return {
        "each out exactly once": all(run.once for run in runs),
        "links": round(median(len(run.links) for run in runs)),
        "CPU, s / 1,000 articles": round(median(run.cpu_seconds for run in runs), 3),
        "resident, MB": round(median(run.memory for run in runs) / 1e6),
        "state on disk, bytes / article": round(median(run.disk for run in runs)),
    }


def stages_of(runs: Sequence[ServiceRun]) -> dict[str, float]:
    """Return seconds per 1,000 articles by stage."""
    stages = {stage for run in runs for stage in run.stages}
    found = {stage: median(run.stages.get(stage, 0.0) for run in runs) for stage in stages}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def machine() -> str:
    """Describe the machine."""
    unpinned = "" if CAN_PIN else ", which cannot pin a process to a core"
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}{unpinned}"


def tables(plan: Plan, results: Results, characters: int) -> Iterator[Table]:
    """Yield the tables."""
    yield _rates_table(plan, results, characters)
    yield _ratios_table(results)
    if results.services:
        yield _service_table(results)


def _rates_table(plan: Plan, results: Results, characters: int) -> Table:
    title = (
        f"{len(plan.articles):,} articles of {characters:,} characters, median of {plan.rounds} rounds; "
        f"{machine()}, {datetime.now(UTC):%Y-%m-%d}"
    )
    table = _table(title, "timed", "what it does")
    for name in ("articles/s", "rounds", "copies"):
        table.add_column(name, justify="right")
    for variant in plan.variants:
        runs = results.services[variant.name]
        does = f"service, {variant.guarantee}, {_cores(variant)}{_segments(variant)}"
        table.add_row(variant.name, does, *_rate_cells([run.rate for run in runs]), f"{len(runs[0].links):,}")
    for one in REFERENCES:
        if timed := results.references.get(one.name):
            copies = timed[0].copies
            cells = _rate_cells([run.rate for run in timed])
            table.add_row(one.name, one.does, *cells, "" if copies is None else f"{copies:,}")
        elif one.missing:
            table.add_row(one.name, HOW_TO_GET, "", "", "", style="dim")
    return table


def _cores(variant: Variant) -> str:
    if variant.cores is None:
        return "all cores"
    return "one core" if variant.cores == 1 else f"{variant.cores} cores"


def _segments(variant: Variant) -> str:
    return "" if variant.segment == "all" else f", text.segment = {variant.segment}"


def _rate_cells(rates: Sequence[float]) -> tuple[str, str]:
    return f"{median(rates):,.0f}", " ".join(f"{rate:,.0f}" for rate in rates)


def _ratios_table(results: Results) -> Table:
    table = _table("Ratios, and latency from producing to reading", "figure")
    for name in ("value", "goal", "reached"):
        table.add_column(name, justify="right")
    rates = results.rates()
    for ratio in RATIOS:
        value = ratio.value(rates)
        if value is not None:
            goal = ("", "") if ratio.goal is None else (f"{ratio.goal:.1f}", _yes(value >= ratio.goal))
            table.add_row(f"{ratio.of} / {ratio.to}", f"{value:.2f}", *goal)
    if results.latency:
        settling, latency = results.latency
        load = f"latency at {latency.rate:,.0f}/s"
        for name, early, value, most in (
            ("median", settling.median_ms, latency.median_ms, MEDIAN_GOAL_MS),
            ("99th percentile", settling.p99_ms, latency.p99_ms, P99_GOAL_MS),
        ):
            table.add_row(f"{load}, {name}", f"{value:.0f} ms", f"{most:.0f} ms", _yes(value < most))
            table.add_row(f"{name} of the {SETTLING_SECONDS:.0f} s before", f"{early:.0f} ms", "", "")
    return table


def _service_table(results: Results) -> Table:
    table = _table("The service", "figure")
    for name in results.services:
        table.add_column(name, justify="right")
    figures = [service_figures(runs) for runs in results.services.values()]
    for name in figures[0]:
        table.add_row(name, *(_written(column[name]) for column in figures))
    stages = [stages_of(runs) for runs in results.services.values()]
    for stage in stages[0]:
        table.add_row(f"{stage}, s / 1,000 articles", *(f"{column.get(stage, 0.0):.3f}" for column in stages))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    return table


def _written(value: float | bool) -> str:  # noqa: FBT001  # a figure
    return _yes(value) if isinstance(value, bool) else f"{value:,}"


def _yes(reached: bool) -> str:  # noqa: FBT001  # a figure
    return "yes" if reached else "no"


def _versions() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            continue
