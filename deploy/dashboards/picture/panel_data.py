"""What Grafana would have got for each panel: the answers of a Prometheus over a time range.

Knows steps and variables; knows nothing of drawing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deploy.dashboards import Page
from deploy.dashboards.board import Variables, View, annotations, views
from deploy.prometheus.server import Curve, Prometheus


@dataclass(frozen=True, slots=True)
class Span:
    """The time range shown.

    Attributes:
        begin: seconds since 1970.
        end: the same.
        step: seconds between points.
        rate: seconds over which rates are computed.
    """

    begin: float
    end: float
    step: float
    rate: float


@dataclass(frozen=True, slots=True)
class PanelData:
    """A panel with its data.

    Attributes:
        view: of the panel.
        curves: by their names in the legend, in order.
    """

    view: View
    curves: Sequence[tuple[str, Curve]]


@dataclass(frozen=True, slots=True)
class DashboardData:
    """A dashboard with its data.

    Attributes:
        page: the dashboard.
        span: the time range.
        panels: its panels.
        marks: times of the annotations, by their names.
    """

    page: Page
    span: Span
    panels: Sequence[PanelData]
    marks: Mapping[str, Sequence[float]]


def seen(page: Page, prometheus: Prometheus, span: Span) -> DashboardData:
    """Return a dashboard with its data, from its own queries."""
    times = Variables(interval=span.step, rate_interval=span.rate, range=span.end - span.begin)

    def answers(expression: str) -> list[Curve]:
        return prometheus.query_range(times.filled(expression), span.begin, span.end, span.step)

    panels = [
        PanelData(view, [(query.name(one.labels), one) for query in view.queries for one in answers(query.expression)])
        for view in views(page)
    ]
    marks = {
        query.where: sorted({at for one in answers(query.expression) for at in one.times})
        for query in annotations(page)
    }
    return DashboardData(page, span, panels, marks)
