"""Draws a dashboard: its panels in their places, each in its own way, in colours like Grafana's dark ones.

Knows Matplotlib; knows nothing of where the numbers come from.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, MultipleLocator
from PIL import Image

from deploy.dashboards.board import Place, View
from deploy.dashboards.picture.panel_data import DashboardData, PanelData, Span
from deploy.dashboards.picture.units import written
from deploy.prometheus.server import Curve

_WIDTH, _LINE, _GAP, _TOP = 1500.0, 31.0, 7.0, 52.0  # pixels: of the picture, of a line of the grid, between panels
_COLUMNS = 24
_DPI = 100
_COLOURS_KEPT = 255
_PAGE, _PANEL, _EDGE, _GRID, _TEXT, _DIM = "#111217", "#181b1f", "#2c2f36", "#2a2d34", "#d5d6de", "#8e9099"
_NAMED = {"green": "#73bf69", "yellow": "#f2cc0c", "red": "#f2495c", "blue": "#5794f2", "text": "#9fa7b3"}
_PALETTE = (
    *("#73bf69", "#f2cc0c", "#8ab8ff", "#ff9830", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a"),
    *("#447ebc", "#c15c17", "#890f02", "#0a437c", "#6d1f62", "#584477"),
)
_MARKS = {"Start": "#ff9830", "IDF epoch": "#5794f2"}
_HEAT = LinearSegmentedColormap.from_list("heat", ["#3d2314", "#a63603", "#fd8d3c", "#feedde"])
_SMALL, _MIDDLE, _LARGE = 6.6, 7.8, 19.0
_LEGEND_LINES = 2
_LETTER = 5.4  # mean width of a small letter in pixels
_TICKS = 5
_STEPS = {
    "bytes": tuple(2.0**power for power in range(50)),
    "s": (60.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0),
}


def draw(dashboard: DashboardData, file: Path, caption: str) -> None:
    """Draw a dashboard into a PNG file.

    Args:
        dashboard: the dashboard with its data.
        file: the file to write.
        caption: a line at the top, beside the title.
    """
    lines = max(panel_data.view.place.y + panel_data.view.place.height for panel_data in dashboard.panels)
    height = _TOP + lines * _LINE + _GAP
    figure = Figure(figsize=(_WIDTH / _DPI, height / _DPI), dpi=_DPI, facecolor=_PAGE)
    figure.text(_GAP * 2 / _WIDTH, 1 - 26 / height, dashboard.page.title, color=_TEXT, size=12, va="center")
    figure.text(1 - _GAP * 2 / _WIDTH, 1 - 26 / height, caption, color=_DIM, size=_SMALL, va="center", ha="right")
    for panel_data in dashboard.panels:
        _Panel(figure, height, dashboard, panel_data).draw()
    figure.savefig(file, facecolor=_PAGE)
    # A few colours are enough for lines on a plain background, and make the file a third of the size.
    Image.open(file).convert("RGB").quantize(_COLOURS_KEPT, dither=Image.Dither.NONE).save(file, optimize=True)


class _Panel:
    """One panel on the figure.

    Args:
        figure: of the dashboard.
        height: of the figure in pixels.
        dashboard: the dashboard, for its span and its marks.
        panel_data: the panel with its data.
    """

    def __init__(self, figure: Figure, height: float, dashboard: DashboardData, panel_data: PanelData) -> None:
        self._figure = figure
        self._height = height
        self._dashboard = dashboard
        self._view: View = panel_data.view
        self._curves = [(name, _without_gaps(curve, dashboard.span)) for name, curve in panel_data.curves]

    def draw(self) -> None:
        """Draw the panel."""
        if self._view.kind == "row":
            self._text(0.006, 0.45, f"▾  {self._view.title}", _TEXT, _MIDDLE + 1, va="center")
            return
        self._frame()
        if self._view.kind == "stat":
            self._draw_number()
        elif self._view.kind == "state-timeline":
            self._draw_states()
        elif self._view.kind == "heatmap":
            self._draw_heat()
        else:
            self._draw_lines()

    # ------------------------------------------------------------------------------------------ places

    def _box(self) -> tuple[float, float, float, float]:
        """Return left, bottom, width and height in pixels."""
        place: Place = self._view.place
        column = (_WIDTH - _GAP) / _COLUMNS
        top = self._height - _TOP - place.y * _LINE
        size = place.height * _LINE - _GAP
        return _GAP + place.x * column, top - size - _GAP / 2, place.width * column - _GAP, size

    def _part(self, left: float, bottom: float, right: float, top: float) -> Axes:
        """Return axes within the panel, by their distances from its edges in pixels."""
        x, y, width, height = self._box()
        place = (
            (x + left) / _WIDTH,
            (y + bottom) / self._height,
            (width - left - right) / _WIDTH,
            (height - bottom - top) / self._height,
        )
        axes = self._figure.add_axes(place, facecolor=_PANEL)
        axes.tick_params(colors=_DIM, labelsize=_SMALL, length=0, pad=3)
        for spine in axes.spines.values():
            spine.set_visible(False)
        return axes

    def _text(self, x: float, y: float, text: str, colour: str, size: float, **more: Any) -> None:  # noqa: ANN401  # options of Matplotlib's texts
        left, bottom, width, height = self._box()
        place = ((left + x * width) / _WIDTH, (bottom + y * height) / self._height)
        self._figure.text(*place, text, color=colour, size=size, **more)

    def _frame(self) -> None:
        left, bottom, width, height = self._box()
        self._figure.add_artist(
            FancyBboxPatch(
                (left / _WIDTH, bottom / self._height),
                width / _WIDTH,
                height / self._height,
                boxstyle="square,pad=0",
                facecolor=_PANEL,
                edgecolor=_EDGE,
                linewidth=0.6,
                zorder=-1,
            )
        )
        self._text(8 / width, 1 - 15 / height, self._view.title, _TEXT, _MIDDLE, va="center")

    # ------------------------------------------------------------------------------------------- kinds

    def _draw_number(self) -> None:
        values = [value for _, curve in self._curves for value in curve.values if math.isfinite(value)]
        colour = self._colour_of(values[-1]) if values else _DIM
        shown = written(values[-1], self._view.unit, self._view.decimals) if values else "none"
        axes = self._part(0, 0, 0, 62)
        axes.set_axis_off()
        for _, curve in self._curves:
            axes.fill_between(curve.times, curve.values, color=colour, alpha=0.18, linewidth=0)
            axes.plot(curve.times, curve.values, color=colour, linewidth=0.8, alpha=0.7)
        axes.set_xlim(self._dashboard.span.begin, self._dashboard.span.end)
        axes.set_ylim(bottom=min([0.0, *values]))
        self._text(0.5, 0.56, shown, colour, _LARGE if len(shown) < 9 else 14.0, ha="center", va="center")  # noqa: PLR2004  # what fits

    def _draw_lines(self) -> None:
        legend = self._legend()
        axes = self._part(54, 22 + 13 * len(legend), 12, 30)
        self._scale(axes)
        if self._view.stacked:
            self._stack(axes)
        else:
            for (name, curve), colour in zip(self._curves, self._colours(), strict=True):
                axes.plot(curve.times, curve.values, color=colour, linewidth=1.0, label=name)
                axes.fill_between(curve.times, curve.values, color=colour, alpha=0.05, linewidth=0)
        self._bound(axes)
        self._limit(axes)
        self._mark(axes)
        self._write(legend)

    def _stack(self, axes: Axes) -> None:
        times = sorted({at for _, curve in self._curves for at in curve.times})
        below = np.zeros(len(times))
        for (_, curve), colour in zip(self._curves, self._colours(), strict=True):
            above = below + np.nan_to_num(curve.values)
            axes.fill_between(times, below, above, color=colour, alpha=0.35, linewidth=0)
            axes.plot(times, above, color=colour, linewidth=0.9)
            below = above

    def _draw_states(self) -> None:
        names = [name for name, _ in self._curves] or ["none"]
        axes = self._part(16 + _LETTER * max(map(len, names)), 22, 12, 30)
        self._scale(axes)
        for line, (_, curve) in enumerate(self._curves):
            for begin, end, value in _stretches(curve, self._dashboard.span.step):
                name, colour = self._view.states.get(round(value), (f"{value:g}", "text"))
                axes.add_patch(
                    Rectangle((begin, line - 0.36), end - begin, 0.72, color=_NAMED[colour], alpha=0.75, lw=0)
                )
                if end - begin > (self._dashboard.span.end - self._dashboard.span.begin) / 14:
                    axes.text((begin + end) / 2, line, name, size=_SMALL, color=_PAGE, ha="center", va="center")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False)
        self._mark(axes)

    def _draw_heat(self) -> None:
        axes = self._part(54, 22, 12, 30)
        self._scale(axes)
        bounds = sorted(self._curves, key=lambda one: float(one[0]))
        if not bounds:
            return
        times = list(bounds[0][1].times)
        below = np.zeros(len(times))
        rows = []
        for _, curve in bounds:
            above = np.nan_to_num(curve.values)
            rows.append(np.clip(above - below, 0, None))
            below = above
        fields = np.ma.masked_less_equal(np.sqrt(np.array(rows)), 1e-6)
        axes.pcolormesh(times, range(len(rows)), fields, cmap=_HEAT, shading="nearest")
        labels = [written(float(name), self._view.unit) if name != "+Inf" else "more" for name, _ in bounds]
        every = math.ceil(len(labels) / 9)
        axes.set_yticks(range(0, len(labels), every), labels[::every])
        axes.grid(visible=False)
        self._mark(axes)

    # ------------------------------------------------------------------------------------------- parts

    def _scale(self, axes: Axes) -> None:
        span: Span = self._dashboard.span
        axes.set_xlim(span.begin, span.end)
        axes.xaxis.set_major_locator(MaxNLocator(max(2, self._view.place.width // 2), steps=[1, 2, 3, 6, 10]))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda at, _: datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S"))
        )
        axes.grid(color=_GRID, linewidth=0.6)
        axes.set_axisbelow(True)

    def _bound(self, axes: Axes) -> None:
        values = [value for _, curve in self._curves for value in _finite(curve)]
        low, high = axes.get_ylim() if any(values) else (0.0, 1.0)
        if self._view.least is not None:
            low = min([self._view.least, *values])
        if self._view.most is not None:
            high = max(high, self._view.most)
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(_locator(high - low, self._view.unit))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, self._view.unit)))

    def _limit(self, axes: Axes) -> None:
        low, high = axes.get_ylim()
        for value, colour in self._view.limits:
            if value is not None and low < value < high:
                axes.axhline(value, color=_NAMED[colour], linewidth=0.9, linestyle=(0, (4, 3)))

    def _mark(self, axes: Axes) -> None:
        for name, times in self._dashboard.marks.items():
            for at in times:
                axes.axvline(at, color=_MARKS[name], linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.8)

    def _legend(self) -> list[list[tuple[str, str]]]:
        """Return the lines of the legend: names with their colours, as many as fit."""
        room = self._box()[2] / _LETTER
        lines: list[list[tuple[str, str]]] = [[]]
        for (name, _), colour in zip(self._curves, self._colours(), strict=True):
            used = sum(len(known) + 5 for known, _ in lines[-1])
            if used + len(name) > room and lines[-1]:
                if len(lines) == _LEGEND_LINES:
                    break
                lines.append([])
            lines[-1].append((name, colour))
        return lines

    def _write(self, legend: Sequence[Sequence[tuple[str, str]]]) -> None:
        width, height = self._box()[2:]
        for number, names in enumerate(reversed(legend)):
            at = 12.0
            for name, colour in names:
                self._text(at / width, (9 + 13 * number) / height, "━", colour, _MIDDLE, va="center")
                self._text((at + 14) / width, (9 + 13 * number) / height, name, _DIM, _SMALL, va="center")
                at += 26 + _LETTER * len(name)

    def _colours(self) -> list[str]:
        known: Mapping[str, str] = self._view.colours
        return [
            _NAMED[known[name]] if name in known else _PALETTE[number % len(_PALETTE)]
            for number, (name, _) in enumerate(self._curves)
        ]

    def _colour_of(self, value: float) -> str:
        reached = [colour for bound, colour in self._view.limits if bound is None or value >= bound]
        return _NAMED[reached[-1]]


def _locator(height: float, unit: str) -> Locator:
    """Return a locator for ticks at round values: those of bytes and minutes are not round in tens."""
    steps = [step for step in _STEPS.get(unit, ()) if height / step <= _TICKS]
    return MultipleLocator(steps[0]) if steps and height > steps[0] else MaxNLocator(_TICKS)


def _finite(curve: Curve) -> list[float]:
    return [value for value in curve.values if math.isfinite(value)]


def _without_gaps(curve: Curve, span: Span) -> Curve:
    """Return a curve with a value at each step, NaN where there was none, so that no line crosses the gap."""
    known = {round((at - span.begin) / span.step): value for at, value in zip(curve.times, curve.values, strict=True)}
    steps = range(round((span.end - span.begin) / span.step) + 1)
    return Curve(
        curve.labels, [span.begin + step * span.step for step in steps], [known.get(step, math.nan) for step in steps]
    )


def _stretches(curve: Curve, step: float) -> list[tuple[float, float, float]]:
    """Return begin, end and value of each stretch of equal values."""
    found: list[tuple[float, float, float]] = []
    for at, value in zip(curve.times, curve.values, strict=True):
        if math.isnan(value):
            continue
        if found and found[-1][2] == value and at - found[-1][1] <= step:
            found[-1] = (found[-1][0], at, value)
        else:
            found.append((at, at + step / 2, value))
    return found
