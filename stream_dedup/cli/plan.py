"""The command `plan`: settings of the SimHash tables for an expected volume and recall.

Knows arguments, what is printed and what is assumed without a sample; knows nothing of how a plan is made.
"""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from stream_dedup.cli.quantity import article_count, quantity
from stream_dedup.cli.terminal import (
    EXIT_FAILED,
    ConfigOption,
    SetOption,
    fail,
    file_path,
    option_parser,
    out,
    run_reporting_errors,
    settings_of,
)
from stream_dedup.settings import Settings

if TYPE_CHECKING:
    from stream_dedup.planner import Expectation, Limits, Model, Sample

_INDEXED_SHARE = 0.55  # the other 45% of a crawl are copies
_RESERVE = 2 / 3  # of the copies, if stories have few: one of each cluster, as in labelled news


def plan_command(
    articles: Annotated[
        float,
        typer.Option(
            "--articles",
            parser=option_parser(article_count),
            help="Articles per window (window.days), such as 50M or 2.5e6.",
            metavar="NUMBER",
        ),
    ],
    recall: Annotated[
        float,
        typer.Option(
            "--recall", min=0.01, max=0.9999, help="Share of the copies that the tables must find.", metavar="R"
        ),
    ],
    similarity: Annotated[
        float, typer.Option("--similarity", min=0.5, max=0.95, help="Share of their text that copies have in common.")
    ] = 0.8,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            parser=option_parser(quantity),
            help="Maximum memory of the process, without the page cache, such as 4G.",
            metavar="BYTES",
        ),
    ] = None,
    disk: Annotated[
        float | None,
        typer.Option(
            "--disk",
            parser=option_parser(quantity),
            help="Maximum disk space of the state, such as 200G.",
            metavar="BYTES",
        ),
    ] = None,
    unique_share: Annotated[
        float | None,
        typer.Option(
            "--unique-share", min=0.01, max=1, help="Share of articles indexed [default: the sample's, or 0.55]."
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            help="Your own articles (as for dedup), to measure distances on.",
            metavar="FILE",
            parser=file_path,
        ),
    ] = None,
    sample_articles: Annotated[
        int, typer.Option("--sample-articles", min=100, help="Maximum number of articles read from the sample.")
    ] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Plan the SimHash tables: settings for a volume and a recall, and the memory, disk and time that they take."""
    settings = settings_of(config, flags)
    from stream_dedup.planner import Limits, measured_sample
    from stream_dedup.rendering.plan import distances_shown, plan_fields, plan_shown

    def work() -> None:
        measured = measured_sample(sample, settings, similarity, sample_articles) if sample else None
        model = _model(articles, similarity, unique_share, measured, settings)
        planned, refusal = _planned(recall, model, Limits(memory or inf, disk or inf))
        now = _now(model)
        if as_json:
            out.print_json(orjson.dumps(plan_fields(planned, now, model, measured, kept=not refusal)).decode())
        elif planned is not None:
            out.print(plan_shown(planned, now, model))
            out.print(distances_shown(model), soft_wrap=True)
        if refusal:
            fail(refusal, EXIT_FAILED)

    run_reporting_errors(work)


def _reserved(sample: "Sample | None") -> float:
    """Return the share of the copies whose entry is kept in reserve."""
    if sample is None:
        return _RESERVE
    copies = 1 - sample.indexed_share
    return sample.reserve_share / copies if copies else 0.0


def _planned(recall: float, model: "Model", limits: "Limits") -> "tuple[Expectation | None, str]":
    """Return the plan; if none reaches the recall, the best one, if any, and why it is not enough."""
    from stream_dedup.planner import UnreachableError, cheapest

    try:
        return cheapest(recall, model, limits), ""
    except UnreachableError as error:
        return error.best, str(error)


def _now(model: "Model") -> "Expectation":
    from stream_dedup.planner import Shape, expectation_of, expectation_without_tables

    simhash = model.settings.simhash
    if not simhash.enabled:
        return expectation_without_tables(model)
    return expectation_of(Shape(simhash.tables, simhash.prefix_bits, simhash.probes, simhash.max_distance), model)


def _model(
    articles: float, similarity: float, unique_share: float | None, sample: "Sample | None", settings: Settings
) -> "Model":
    from stream_dedup.planner import STRANGERS, Model, Traffic, copies_of

    share = unique_share or (sample.indexed_share if sample else _INDEXED_SHARE)
    traffic = Traffic(articles, share, _reserved(sample) * (1 - share))
    if sample is None:
        return Model(copies_of(similarity), STRANGERS, traffic, settings)
    return Model(sample.copy_mixture(), sample.stranger_mixture(), traffic, settings)
