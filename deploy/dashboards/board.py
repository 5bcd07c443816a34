"""A dashboard read back from its file, the way Grafana reads it: panels with places, options and queries.

Knows Grafana's format and variables; knows nothing of Prometheus or of drawing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deploy.dashboards.frame import EVERYTHING, Page

Fields = dict[str, Any]
_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Variables:
    """The values of the variables that stand for the time range in queries.

    Attributes:
        interval: seconds between two points of a graph.
        rate_interval: seconds over which rates are computed.
        range: seconds shown.
    """

    interval: float
    rate_interval: float
    range: float

    def filled(self, expression: str) -> str:
        """Return an expression with all variables filled in; every index and every process is selected."""
        values = {
            "$__rate_interval": _duration(self.rate_interval),
            "$__interval_ms": str(round(self.interval * 1000)),
            "$__interval": _duration(self.interval),
            "$__range": _duration(self.range),
            "$namespace": EVERYTHING,
            "$job": EVERYTHING,
            "$instance": EVERYTHING,
        }
        for name, value in values.items():
            expression = expression.replace(name, value)
        return expression


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel or of an annotation.

    Attributes:
        where: title of the panel, or name of the annotation.
        expression: PromQL with Grafana's variables.
        legend: of its series; labels in double braces.
    """

    where: str
    expression: str
    legend: str

    def name(self, labels: Mapping[str, str]) -> str:
        """Return what the legend calls a series."""
        if self.legend == "__auto":
            return ", ".join(f"{name}={value}" for name, value in labels.items() if name != "__name__")
        return _LABEL.sub(lambda label: labels.get(label[1], ""), self.legend)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel is, in units of the grid of 24 columns."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class View:
    """A panel.

    Attributes:
        kind: timeseries, stat, state-timeline, heatmap or row.
        title: of the panel.
        place: on the grid.
        queries: in order.
        unit: one of Grafana's.
        decimals: how many are shown; None if Grafana chooses.
        stacked: whether areas are stacked.
        least: where the axis begins, unless values are lower.
        most: where it ends, unless values are higher.
        limits: values from which a colour applies, ascending; the first is None.
        colours: of series, by name.
        states: names and colours of values.
    """

    kind: str
    title: str
    place: Place
    queries: Sequence[Query]
    unit: str
    decimals: int | None
    stacked: bool
    least: float | None
    most: float | None
    limits: Sequence[tuple[float | None, str]]
    colours: Mapping[str, str]
    states: Mapping[int, tuple[str, str]]


def views(page: Page) -> list[View]:
    """Return the panels of a dashboard, its rows among them."""
    return [_view(panel) for panel in _read(page)["panels"]]


def annotations(page: Page) -> list[Query]:
    """Return the queries whose points are marked in all graphs."""
    return [Query(one["name"], one["expr"], one["textFormat"]) for one in _read(page)["annotations"]["list"]]


def _read(page: Page) -> Fields:
    fields: Fields = json.loads(page.json())
    return fields


def _view(panel: Fields) -> View:
    at = panel["gridPos"]
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    custom = defaults.get("custom", {})
    return View(
        kind=panel["type"],
        title=panel["title"],
        place=Place(at["x"], at["y"], at["w"], at["h"]),
        queries=[Query(panel["title"], one["expr"], one["legendFormat"]) for one in panel.get("targets", [])],
        unit=defaults.get("unit", "none"),
        decimals=defaults.get("decimals"),
        stacked="stacking" in custom,
        least=custom.get("axisSoftMin"),
        most=custom.get("axisSoftMax"),
        limits=[(step["value"], step["color"]) for step in defaults.get("thresholds", {}).get("steps", [])],
        colours={
            one["matcher"]["options"]: one["properties"][0]["value"]["fixedColor"]
            for one in panel.get("fieldConfig", {}).get("overrides", [])
        },
        states={
            int(value): (shown["text"], shown["color"])
            for mapping in defaults.get("mappings", [])
            for value, shown in mapping["options"].items()
        },
    )


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
