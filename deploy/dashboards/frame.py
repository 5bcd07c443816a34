"""What all dashboards have around their panels: variables, annotations, links to each other, places.

Knows Grafana's dashboards; knows nothing of what a panel shows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from deploy.dashboards.panels import DATASOURCE, Panel
from deploy.dashboards.queries import Series

TAG = "stream-dedup"
EVERYTHING = ".*"
_BUILD = "stream_dedup_build_info"

# Each is visible at one step of a graph: the first at which things differ from the step before. A process that was
# merely out of reach for a while has not started.
RESTARTS = Series(
    "process_start_time_seconds{$of} > time() - 300 - $__interval_ms / 1000"
    " unless process_start_time_seconds{$of} == last_over_time(process_start_time_seconds{$of}[5m] offset $__interval)",
    "{{instance}}",
)
EPOCHS = Series(
    "stream_dedup_idf_epoch{$of} and on (namespace, job, instance) stream_dedup_epoch_drift_distance_count{$of}"
    " > stream_dedup_epoch_drift_distance_count{$of} offset $__interval",
    "{{instance}}",
)


@dataclass(frozen=True, slots=True)
class Section:
    """A row of a dashboard.

    Attributes:
        title: above its panels.
        panels: from left to right, line by line; each line is 24 wide.
    """

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Page:
    """A dashboard.

    Attributes:
        name: of its file, and its address in Grafana.
        title: in Grafana's list.
        description: what it is for.
        sections: from top to bottom.
    """

    name: str
    title: str
    description: str
    sections: Sequence[Section]

    def json(self) -> str:
        """Return it as the file that Grafana reads."""
        board = _frame(self)
        for section in self.sections:
            board.with_row(Row(section.title))
            for panel in section.panels:
                board.with_panel(panel)
        # What the SDK cannot express is added to the encoded form: numbers of panels, texts of annotations.
        fields: dict[str, Any] = json.loads(json.dumps(board.build(), cls=JSONEncoder))
        for number, panel_fields in enumerate(fields["panels"], 1):
            panel_fields["id"] = number
        for annotation in fields["annotations"]["list"]:
            annotation["titleFormat"], annotation["textFormat"] = annotation["name"], "{{instance}}"
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"

    def write(self, folder: Path) -> Path:
        """Write the file and return its path."""
        file = folder / f"{self.name}.json"
        file.write_text(self.json(), encoding="utf-8")
        return file


def _frame(page: Page) -> Dashboard:
    return (
        Dashboard(page.title)
        .uid(page.name)
        .description(page.description)
        .tags([TAG])
        .timezone("browser")
        .time("now-3h", "now")
        .refresh("30s")
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables([_datasource(), _everything("namespace"), _job(), _everything("instance")])
        .annotations([_annotation("Start", RESTARTS, "orange"), _annotation("IDF epoch", EPOCHS, "blue")])
        .link(_link())
    )


def _datasource() -> DatasourceVariable:
    return DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _job() -> QueryVariable:
    return (
        _query("job", f'label_values({_BUILD}{{namespace=~"$namespace"}}, job)')
        .label("index (job)")
        .description("One index: all its processes are one job.")
    )


def _everything(label: str) -> QueryVariable:
    narrowed = '{namespace=~"$namespace", job=~"$job"}' if label == "instance" else ""
    return (
        _query(label, f"label_values({_BUILD}{narrowed}, {label})")
        .label(label)
        .multi(True)
        .include_all(True)
        .all_value(EVERYTHING)
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )


def _query(name: str, query: str) -> QueryVariable:
    return (
        QueryVariable(name)
        .query({"query": query, "refId": name})
        .datasource(DATASOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
    )


def _annotation(name: str, series: Series, colour: str) -> AnnotationQuery:
    return AnnotationQuery().name(name).datasource(DATASOURCE).enable(True).icon_color(colour).expr(series.expression)


def _link() -> DashboardLink:
    return (
        DashboardLink("stream_dedup")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .include_vars(True)
        .keep_time(True)
        .icon("external link")
    )
