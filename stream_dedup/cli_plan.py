"""The command line's `plan`: settings of the SimHash tables for an expected size and a wanted recall.

Knows arguments and tables on the terminal; knows nothing of how a plan is made.
"""

from collections.abc import Iterator
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson
import typer
from rich.table import Table

from stream_dedup.planner import (
    STRANGERS,
    Expectation,
    Limits,
    Model,
    Sample,
    Shape,
    Traffic,
    UnreachableError,
    cheapest,
    copies_of,
    expectation_of,
    measured_sample,
)
from stream_dedup.planner.quantity import article_count, quantity
from stream_dedup.settings import Settings
from stream_dedup.terminal import EXIT_FAILED, ConfigOption, SetOption, as_option, fail, guarded, out, settings_of

_INDEXED_SHARE = 0.55  # the other 45% of a crawl are copies


def plan_command(
    articles: Annotated[
        float,
        typer.Option(
            "--articles", parser=as_option(article_count), help="Articles of a window: 50M, 2.5e6.", metavar="NUMBER"
        ),
    ],
    recall: Annotated[
        float,
        typer.Option("--recall", min=0.01, max=0.9999, help="Share of the copies that the tables find.", metavar="R"),
    ],
    similarity: Annotated[
        float, typer.Option("--similarity", min=0.5, max=0.95, help="Share of their text that copies have in common.")
    ] = 0.8,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory", parser=as_option(quantity), help="Most memory of the process, bytes: 4G.", metavar="BYTES"
        ),
    ] = None,
    disk: Annotated[
        float | None,
        typer.Option(
            "--disk", parser=as_option(quantity), help="Most disk of the state, bytes: 200G.", metavar="BYTES"
        ),
    ] = None,
    unique_share: Annotated[
        float | None,
        typer.Option("--unique-share", min=0.01, max=1, help="Share that is indexed [default: the sample's, or 0.55]."),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option("--sample", help="Articles of your own (as for dedup) to measure distances on.", metavar="FILE"),
    ] = None,
    sample_articles: Annotated[int, typer.Option("--sample-articles", min=100, help="Most that are read.")] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Plan the SimHash tables: settings for a size and a recall, and what they take."""
    settings = settings_of(config, flags)

    def work() -> None:
        measured = measured_sample(sample, settings, similarity, sample_articles) if sample else None
        model = _model(articles, similarity, unique_share, measured, settings)
        planned, refusal = _planned(recall, model, Limits(memory or inf, disk or inf))
        simhash = settings.simhash
        now = expectation_of(Shape(simhash.tables, simhash.prefix_bits, simhash.probes, simhash.max_distance), model)
        if as_json:
            out.print_json(orjson.dumps(_fields(planned, now, model, measured, kept=not refusal)).decode())
        elif planned is not None:
            _print(planned, now, model)
        if refusal:
            fail(refusal, EXIT_FAILED)

    guarded(work)


def _planned(recall: float, model: Model, limits: Limits) -> tuple[Expectation | None, str]:
    """Return the plan; where none reaches the recall, the best one there is and why it is not enough."""
    try:
        return cheapest(recall, model, limits), ""
    except UnreachableError as error:
        return error.best, str(error)


def _model(
    articles: float, similarity: float, unique_share: float | None, sample: Sample | None, settings: Settings
) -> Model:
    share = unique_share or (sample.indexed_share if sample else _INDEXED_SHARE)
    traffic = Traffic(articles, share)
    if sample is None:
        return Model(copies_of(similarity), STRANGERS, traffic, settings)
    return Model(sample.copy_mixture(), sample.stranger_mixture(), traffic, settings)


def settings_toml(shape: Shape) -> str:
    """Return the settings of a shape as TOML."""
    return "\n".join(["[simhash]", *(f"{name} = {value}" for name, value in asdict(shape).items())])


def _print(planned: Expectation, now: Expectation, model: Model) -> None:
    out.print(settings_toml(planned.shape).replace("[", r"\["))
    table = Table(title="\nto expect", title_justify="left")
    for name in ("", "planned", "settings of now"):
        table.add_column(name, justify="right" if name else "left")
    for (label, one), (_, other) in zip(_rows(planned), _rows(now), strict=True):
        table.add_row(label, one, other)
    out.print(table)
    out.print(f"{model.traffic.entries:,.0f} entries at most, on {model.traffic.articles:,.0f} articles a window")
    for name, mixture in (("copies", model.copies), ("unrelated articles", model.strangers)):
        out.print(f"Hamming distances of {name}: {_quantiles(mixture.distances())}", soft_wrap=True)


def _rows(expected: Expectation) -> Iterator[tuple[str, str]]:
    shape, space = expected.shape, expected.space
    yield "tables x prefix bits", f"{shape.tables} x {shape.prefix_bits}"
    yield "probes a table", f"{shape.probes}"
    yield "largest distance", f"{shape.max_distance}"
    yield "distance that is always found", f"{shape.plan.guaranteed_distance()}"
    yield "recall of the tables", f"{expected.recall:.4f}"
    yield "keys looked up an article", f"{expected.keys:,.0f}"
    yield "blocks read an article", f"{expected.blocks:,.0f}"
    yield "postings read an article", f"{expected.postings:,.0f}"
    yield "candidates an article", f"{expected.candidates:,.1f}"
    yield "time of the tables an article", f"{expected.time_us / 1000:,.2f} ms"
    yield "filters of the tables in memory", _bytes(space.filters)
    yield "posting lists in memory", _bytes(space.lists)
    yield "process in memory", _bytes(space.memory)
    yield "tables on disk an indexed article", f"{expected.disk_per_entry:,.0f} B"
    yield "tables on disk", _bytes(space.tables)
    yield "state on disk", _bytes(space.disk)


def _fields(
    planned: Expectation | None, now: Expectation, model: Model, sample: Sample | None, *, kept: bool
) -> dict[str, Any]:
    return {
        "recall_reached": kept,
        "toml": settings_toml(planned.shape) if planned else None,
        "planned": asdict(planned) if planned else None,
        "now": asdict(now),
        "entries": model.traffic.entries,
        "indexed_share": model.traffic.indexed_share,
        "copies": _moments(model.copies.distances()),
        "strangers": _moments(model.strangers.distances()) | asdict(model.strangers),
        "sample": None
        if sample is None
        else {
            "articles": sample.articles,
            "indexed": len(sample.fingerprints),
            "copies": len(sample.copies.originals),
            "copy_distances": sample.copies.distances().tolist(),
        },
    }


def _moments(distances: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """Return a distribution with its mean and the correlation of the flips of two bits, as `copies_of` takes them."""
    numbers = np.arange(len(distances))
    mean = float(distances @ numbers)
    variance = float(distances @ (numbers - mean) ** 2)
    binomial = mean * (1 - mean / 64)
    return {
        "distances": [round(share, 9) for share in distances.tolist()],
        "mean": mean,
        "correlation": (variance / binomial - 1) / 63 if binomial else 0.0,
    }


def _quantiles(distances: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    below = distances.cumsum()
    parts = [f"{share:g}% within {int(np.searchsorted(below, share / 100))}" for share in (0.01, 1, 50, 90, 99)]
    return ", ".join(parts)


def _bytes(size: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size / 1e3:,.1f} kB"
