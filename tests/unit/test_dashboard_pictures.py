"""Dashboards as pictures: numbers with units, variables replaced, and each kind of panel drawn."""

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deploy.dashboards import DASHBOARDS, Page
from deploy.dashboards.board import Query, Variables, View, annotations, views
from deploy.dashboards.picture.draw import draw
from deploy.dashboards.picture.panel_data import DashboardData, PanelData, Span
from deploy.dashboards.picture.units import written
from deploy.prometheus.server import Curve

_SPAN = Span(begin=1_790_000_000.0, end=1_790_000_200.0, step=2.0, rate=8.0)
_GREEN = (0x73, 0xBF, 0x69)
_TIMES = [_SPAN.begin + _SPAN.step * number for number in range(101)]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "none", "0"),
        (12.345, "none", "12.3"),
        (0.5, "percentunit", "50%"),
        (0.0004, "s", "400 µs"),
        (0.25, "s", "250 ms"),
        (1, "s", "1 s"),
        (90, "s", "1.5 min"),
        (86_400 * 14, "s", "14 day"),
        (0, "s", "0 s"),
        (1536, "bytes", "1.5 KiB"),
        (3 << 30, "bytes", "3 GiB"),
        (2_500_000, "Bps", "2.5 MB/s"),
        (1_234_567, "short", "1.23 Mil"),
        (999, "short", "999"),
        (6_659.4, "suffix: /s", "6659 /s"),
    ],
)
def test_numbers_are_written_with_their_units(value: float, unit: str, text: str) -> None:
    """As in Grafana: three digits, and the next larger unit instead of a fourth."""
    assert written(value, unit) == text


def test_decimals_that_a_panel_asks_for_are_kept() -> None:
    """The panel's number of decimals is used."""
    assert written(0.12345, "percentunit", 1) == "12.3%"
    assert written(2, "none", 2) == "2.00"


def test_variables_are_put_in() -> None:
    """Times become durations as Prometheus reads them; all indexes and processes are selected."""
    expression = 'rate(a{namespace=~"$namespace", job=~"$job", instance=~"$instance"}[$__rate_interval])'
    filled = Variables(interval=0.5, rate_interval=2.0, range=60.0).filled(expression)
    assert filled == 'rate(a{namespace=~".*", job=~".*", instance=~".*"}[2000ms])'
    times = Variables(interval=0.5, rate_interval=2.0, range=60.0).filled("a[$__range] b[$__interval] $__interval_ms")
    assert times == "a[60000ms] b[500ms] 500"


def test_legends_name_series_by_their_labels() -> None:
    """Labels are in double braces; without a legend, all labels are shown."""
    labels = {"__name__": "a", "client": "consumer", "stat": "p99"}
    assert Query("", "", "{{client}} {{ stat }}").name(labels) == "consumer p99"
    assert Query("", "", "__auto").name(labels) == "client=consumer, stat=p99"


def test_views_have_all_that_is_drawn() -> None:
    """Kinds, limits, colours and states come from the file."""
    found = {view.title: view for view in views(DASHBOARDS[0])}
    assert found["Active"].kind == "stat"
    assert found["Active"].limits == [(None, "red"), (1, "green"), (2, "red")]
    assert found["Articles by decision"].colours == {"unique": "green", "duplicate": "blue"}
    assert found["Articles by decision"].stacked
    assert found["Role"].states[3] == ("active", "green")
    assert {view.kind for page in DASHBOARDS for view in views(page)} == {
        *("row", "stat", "timeseries", "state-timeline", "heatmap"),
    }


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
@pytest.mark.slow
def test_each_dashboard_is_drawn(page: Page, tmp_path: Path) -> None:
    """The drawing handles data and gaps, is small enough for a page, and uses the colours of what it shows."""
    file = tmp_path / "drawn.png"
    draw(_scene(page), file, "made up")
    with Image.open(file) as picture:
        assert picture.width == 1500
        pixels = np.asarray(picture.convert("RGB"), dtype=int)
    assert np.abs(pixels - _GREEN).sum(axis=2).min() < 30
    assert file.stat().st_size < 300_000


def test_panels_without_data_are_drawn(tmp_path: Path) -> None:
    """A panel without series stays empty, whatever its kind, stacked or not, with limits or without."""
    of_all = [view for page in DASHBOARDS for view in views(page)]
    one_of_each = {(view.kind, view.stacked, bool(view.limits)): view for view in of_all}.values()
    panels = [PanelData(view, []) for view in one_of_each]
    empty = DashboardData(DASHBOARDS[0], _SPAN, panels, {"Start": [], "IDF epoch": []})
    draw(empty, tmp_path / "empty.png", "nothing")


def _scene(page: Page) -> DashboardData:
    marks = {query.where: [_SPAN.begin + 50.0] for query in annotations(page)}
    return DashboardData(page, _SPAN, [PanelData(view, _curves(view)) for view in views(page)], marks)


def _curves(view: View) -> list[tuple[str, Curve]]:
    names = ["0.1", "1.0", "+Inf"] if view.kind == "heatmap" else ["one", "another"]
    return [(name, _curve(number)) for number, name in enumerate(names[: 1 if view.kind == "stat" else None], 1)]


def _curve(number: int) -> Curve:
    values = [math.nan if 40 < at < 45 else number * (1.0 + at // 25) for at in range(len(_TIMES))]
    return Curve({}, _TIMES[10:], values[10:])
