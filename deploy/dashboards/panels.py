"""The kinds of panels that the dashboards are made of.

Knows Grafana's options; knows nothing of what a panel shows.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from grafana_foundation_sdk.builders import common as make
from grafana_foundation_sdk.builders import dashboard, heatmap, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.dashboards.queries import Series, described

Panel: TypeAlias = timeseries.Panel | stat.Panel | statetimeline.Panel | heatmap.Panel
Limit = tuple[float, str]
"""A value from which a colour applies."""

DATASOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
GREEN, YELLOW, RED, BLUE, GREY = "green", "yellow", "red", "blue", "text"
_WIDTH, _HEIGHT = 8, 8
_NUMBER_HEIGHT = 4


def lines(
    title: str,
    *series: Series,
    unit: str,
    width: int = _WIDTH,
    about: str = "",
    stacked: bool = False,
    limits: Sequence[Limit] = (),
    colours: Mapping[str, str] | None = None,
    least: float | None = 0,
    most: float | None = None,
) -> Panel:
    """Return curves over time.

    Args:
        title: of the panel.
        series: what it shows.
        unit: one of Grafana's.
        width: of 24.
        about: what to say besides what the metrics mean.
        stacked: whether to stack areas, for parts of a whole.
        limits: where to draw dashed lines, at the thresholds of the alerts.
        colours: of series, by their names.
        least: where the axis begins, unless values are lower.
        most: where it ends, unless values are higher.
    """
    panel = (
        timeseries.Panel()
        .unit(unit)
        .line_width(1)
        .fill_opacity(30 if stacked else 8)
        .show_points(common.VisibilityMode.NEVER)
        .legend(_legend())
        .tooltip(make.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING))
    )
    if stacked:
        panel.stacking(make.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    if least is not None:
        panel.axis_soft_min(least)
    if most is not None:
        panel.axis_soft_max(most)
    if limits:
        panel.thresholds(_thresholds(limits))
        panel.thresholds_style(make.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED))
    for name, colour in (colours or {}).items():
        panel.override_by_name(name, [DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})])
    return _panel(panel, title, series, width, _HEIGHT, about)


def number(
    title: str,
    series: Series,
    *,
    unit: str,
    width: int = 3,
    about: str = "",
    limits: Sequence[Limit] = (),
    base: str = GREEN,
    decimals: int | None = None,
) -> Panel:
    """Return the latest value as a number, with its curve in the background.

    Args:
        title: of the panel.
        series: one.
        unit: one of Grafana's.
        width: of 24.
        about: what to say besides what the metrics mean.
        limits: where the colour changes.
        base: the colour below all limits.
        decimals: how many are shown; None if Grafana chooses.
    """
    panel = (
        stat.Panel()
        .unit(unit)
        .reduce_options(make.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common.BigValueGraphMode.AREA)
        .color_mode(common.BigValueColorMode.VALUE)
        .thresholds(_thresholds(limits, base))
        .color_scheme(dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .no_value("none")
    )
    if decimals is not None:
        panel.decimals(decimals)
    return _panel(panel, title, [series], width, _NUMBER_HEIGHT, about)


def states(
    title: str,
    *series: Series,
    names: Mapping[int, tuple[str, str]],
    width: int = 24,
    height: int = _HEIGHT,
    about: str = "",
) -> Panel:
    """Return states over time, one line per series.

    Args:
        title: of the panel.
        series: what it shows; values are numbers of states.
        names: name and colour of each state, by its number.
        width: of 24.
        height: of the panel.
        about: what to say besides what the metrics mean.
    """
    mapping = ValueMap({str(value): ValueMappingResult(name, colour) for value, (name, colour) in names.items()})
    panel = (
        statetimeline.Panel()
        .mappings([mapping])
        .show_value(common.VisibilityMode.AUTO)
        .merge_values(True)
        .fill_opacity(70)
        .legend(make.VizLegendOptions().show_legend(False))
        .color_scheme(dashboard.FieldColor().mode(FieldColorModeId.FIXED))
        .no_value("none")
    )
    return _panel(panel, title, series, width, height, about)


def heat(title: str, series: Series, *, unit: str) -> Panel:
    """Return a histogram over time: the darker a cell, the more observations.

    Args:
        title: of the panel.
        series: buckets by `le`.
        unit: of the buckets' bounds, one of Grafana's.
    """
    colours = heatmap.HeatmapColorOptions().mode(heatmap_model.HeatmapColorMode.SCHEME).scheme("Oranges").steps(32)
    panel = (
        heatmap.Panel()
        .unit(unit)
        .calculate(False)
        .color(colours.exponent(0.5).scale(heatmap_model.HeatmapColorScale.EXPONENTIAL).reverse(False))
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common.AxisPlacement.LEFT))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .cell_gap(1)
        .show_legend()
    )
    return _panel(panel, title, [series], _WIDTH, _HEIGHT, "", PromQueryFormat.HEATMAP)


def _panel(
    panel: Panel,
    title: str,
    series: Sequence[Series],
    width: int,
    height: int,
    about: str,
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> Panel:
    expressions = [one.expression for one in series]
    panel.title(title).span(width).height(height).datasource(DATASOURCE)
    panel.description("\n\n".join(filter(None, (about, described(expressions)))))
    for ref, one, expression in zip("ABCDEFGH", series, expressions, strict=False):
        query = prometheus.Dataquery().ref_id(ref).expr(expression).range().legend_format(one.legend or "__auto")
        panel.with_target(query.format(form).datasource(DATASOURCE))
    return panel


def _legend() -> make.VizLegendOptions:
    legend = make.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM)
    return legend.display_mode(common.LegendDisplayMode.LIST)


def _thresholds(limits: Sequence[Limit], base: str = GREEN) -> dashboard.ThresholdsConfig:
    steps = [Threshold(None, base), *(Threshold(value, colour) for value, colour in limits)]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
