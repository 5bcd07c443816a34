"""Plans of the SimHash tables: settings as TOML, a table of the expected figures, and the same as JSON.

Knows figures and their units; knows nothing of how a plan is found.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from stream_dedup.counted import counted
from stream_dedup.planner import Expectation, Model, Sample, Shape


def settings_toml(shape: Shape, *, enabled: bool = True) -> str:
    """Return the settings of a shape as TOML.

    Args:
        shape: the settings.
        enabled: whether the tables are switched on; if not, the TOML switches them on.
    """
    switch = [] if enabled else ["enabled = true"]
    return "\n".join(["[simhash]", *switch, *(f"{name} = {value}" for name, value in asdict(shape).items())])


def plan_shown(planned: Expectation, now: Expectation, model: Model) -> Group:
    """Return a plan next to the current settings."""
    table = Table(title="\nexpected", title_justify="left")
    for name in ("", "planned", "current settings"):
        table.add_column(name, justify="right" if name else "left")
    for (label, one), (_, other) in zip(_rows(planned), _rows(now), strict=True):
        table.add_row(label, one, other)
    entries = counted(round(model.traffic.entries), "entry", "entries")
    return Group(
        Text(settings_toml(planned.shape, enabled=model.settings.simhash.enabled)),
        table,
        Text(f"{entries} at most, with {counted(round(model.traffic.articles), 'article')} per window"),
    )


def distances_shown(model: Model) -> Text:
    """Return the distances that a plan is based on: a line for copies and one for unrelated articles."""
    named = (("copies", model.copies), ("unrelated articles", model.strangers))
    lines = (f"Hamming distances of {name}: {_quantiles(mixture.distances())}" for name, mixture in named)
    return Text("\n".join(lines))


def _rows(expected: Expectation) -> Iterator[tuple[str, str]]:
    shape, space = expected.shape, expected.space
    on = bool(shape.tables)
    yield "tables x prefix bits", f"{shape.tables} x {shape.prefix_bits}" if on else "off"
    yield "probes per table", f"{shape.probes}" if on else ""
    yield "maximum distance", f"{shape.max_distance}" if on else ""
    # Which other keys are probed depends on the text, so they guarantee nothing.
    always = f"{min(shape.plan.guaranteed_distance(), shape.max_distance)}" if on else ""
    yield "distance that exact keys always find", always
    yield "recall of the tables", f"{expected.recall:.4f}"
    yield "keys looked up per article", f"{expected.keys:,.0f}"
    yield "blocks read per article", f"{expected.blocks:,.0f}"
    yield "postings read per article", f"{expected.postings:,.0f}"
    yield "candidates per article", f"{expected.candidates:,.1f}"
    yield "time in the tables per article", f"{expected.time_us / 1000:,.2f} ms"
    yield "filters of the tables in memory", _bytes(space.filters)
    yield "posting lists in memory", _bytes(space.lists)
    yield "memory of the process", _bytes(space.memory)
    yield "page cache for the posting lists", _bytes(space.cached)
    yield "tables on disk per indexed article", f"{expected.disk_per_entry:,.0f} B"
    yield "tables on disk", _bytes(space.tables)
    yield "state on disk", _bytes(space.disk)


def plan_fields(
    planned: Expectation | None, now: Expectation, model: Model, sample: Sample | None, *, kept: bool
) -> dict[str, Any]:
    """Return the same for programs, as --json prints it; `kept` says whether the plan reaches the recall."""
    return {
        "recall_reached": kept,
        "toml": settings_toml(planned.shape, enabled=model.settings.simhash.enabled) if planned else None,
        "planned": asdict(planned) if planned else None,
        "now": asdict(now),
        "entries": model.traffic.entries,
        "indexed_share": model.traffic.indexed_share,
        "reserve_share": model.traffic.reserve_share,
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
    """Return a distribution, its mean and the correlation of the flips of two bits, as `copies_of` takes them."""
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
