"""Where the CPU time of a decision goes: own time per article of each function and compiled loop, in one thread.

Knows the path of a batch from bytes to the changelog's records; knows nothing of Kafka, whose clients are C threads.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from typing import Any, NamedTuple, cast

import orjson
from rich.console import Console
from rich.table import Table

from stream_dedup import Decision, Deduplicator
from stream_dedup.index.changelog import commit_records
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.output_fields import link_fields
from stream_dedup.settings import Settings, load_settings
from tests.benchmarks.throughput.articles import decoded, read_articles, sample_articles

_PACKAGE = "stream_dedup"
_ENGINE = "engine"  # each of its files is a separate area
_AREAS, _SHOWN = 12, 25
_ROCKS = ("Rdict", "WriteBatch")  # in the names of rocksdict's methods
_LIBRARIES = "NumPy, orjson and Python's own"
console = Console(highlight=False)


class Own(NamedTuple):
    """Own time of a function.

    Attributes:
        area: folder or module of the package that contains it, or the library for others.
        name: module and function.
        calls: number of calls.
        seconds: wall-clock time, without the functions it called.
    """

    area: str
    name: str
    calls: int
    seconds: float


def judge(values: Sequence[bytes], settings: Settings, profile: Profile | None = None) -> float:
    """Judge articles as the service does, on a new state; return the seconds of CPU time.

    Args:
        values: articles, as JSON.
        settings: settings of the engine.
        profile: records, but not while the loops compile.
    """
    now_ms = time.time_ns() // 1_000_000
    with (
        tempfile.TemporaryDirectory() as directory,
        Deduplicator(settings=settings, store=RocksStore(Path(directory) / "state")) as engine,
    ):
        engine.warm_up()
        began = time.thread_time()
        if profile is not None:
            profile.enable()
        for start in range(0, len(values), settings.commit.articles):
            judged = engine.decide(decoded(values[start : start + settings.commit.articles], settings.input))
            for outcome in judged.outcomes:
                if isinstance(outcome, Decision) and outcome.link is not None:
                    orjson.dumps(link_fields(outcome, outcome.link, now_ms))
            commit_records(engine.commit_of(judged.change, {("hotspots", 0): start}))
            engine.apply(judged.change)
        if profile is not None:
            profile.disable()
        return time.thread_time() - began


def own_times(profile: Profile) -> list[Own]:
    """Return the own times of a profile, longest first. Compiled loops appear as functions."""
    told = cast("Mapping[tuple[str, int, str], tuple[int, int, float, float, Any]]", Stats(profile).stats)  # type: ignore[attr-defined]  # typeshed lacks it
    found = [Own(*_place(file, function), calls, own) for (file, _, function), (_, calls, own, _, _) in told.items()]
    return sorted(found, key=lambda one: -one.seconds)


def _place(file: str, function: str) -> tuple[str, str]:
    """Return the area of a function and its name."""
    parts = Path(file).with_suffix("").parts
    if _PACKAGE in parts:
        inner = parts[len(parts) - parts[::-1].index(_PACKAGE) :]
        area = inner[1] if inner[0] == _ENGINE else inner[0]
        return area, f"{'.'.join(inner)}.{function}"
    name = function.strip("<>")
    return ("RocksDB" if any(one in name for one in _ROCKS) else _LIBRARIES), name


def print_profile(owns: Sequence[Own], articles: int, bare: float) -> None:
    """Print own times by area and by function, per article."""
    total = sum(one.seconds for one in owns)
    console.print(
        f"{articles:,} articles: {1e6 * bare / articles:.0f} us of CPU each, {1e6 * total / articles:.0f} when profiled"
    )
    areas: defaultdict[str, float] = defaultdict(float)
    for one in owns:
        areas[one.area] += one.seconds
    by_area = _table("area", "us per article", "share")
    for area, seconds in sorted(areas.items(), key=lambda item: -item[1])[:_AREAS]:
        by_area.add_row(area, f"{1e6 * seconds / articles:.1f}", f"{seconds / total:.0%}")
    console.print(by_area)
    by_function = _table("function", "calls", "us per article", "share")
    for one in owns[:_SHOWN]:
        cells = f"{one.calls:,}", f"{1e6 * one.seconds / articles:.1f}", f"{one.seconds / total:.1%}"
        by_function.add_row(one.name, *cells)
    console.print(by_function)


def _table(name: str, *numbers: str) -> Table:
    table = Table(name)
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def main() -> None:
    """Profile and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--articles", type=Path, help="JSONL, plain or .gz; by default 8,192 made from the demo's samples"
    )
    parser.add_argument("--set", dest="flags", action="append", default=[], help="a setting of the engine")
    options = parser.parse_args()
    settings = load_settings(flags=options.flags)
    values = read_articles(options.articles) if options.articles else sample_articles(8192)
    bare = judge(values, settings)
    profile = Profile()
    judge(values, settings, profile)
    print_profile(own_times(profile), len(values), bare)


if __name__ == "__main__":
    main()
