"""The plots of a report as SVG.

Knows matplotlib; knows nothing of pages. Text stays text in the SVG: whatever shows it has fonts for Chinese.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from stream_dedup.evaluate.report.choice import Line, best_of_families, lines_by_family
from stream_dedup.evaluate.results import AlgorithmResult, Evaluation, ReplacementExperiment

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stream-dedup",  # so that the same plot gives the same file
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_MARKERS = "osD^vP*X"
_MARKS = 10  # per line


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot.

    Attributes:
        name: name of its file, without the suffix.
        title: heading above it.
        svg: the plot, an `<svg>` element.
    """

    name: str
    title: str
    svg: str


def plots_of(evaluation: Evaluation) -> Iterator[Plot]:
    """Yield the plots for which there are results."""
    for family, lines in lines_by_family(evaluation).items():
        yield Plot(f"thresholds-{family}", f"Precision and recall over thresholds: {family}", _thresholds(lines))
    chosen = best_of_families(evaluation)
    if evaluation.articles.kinds and chosen:
        yield Plot("kinds", "Recall by edit and strength", _kinds(evaluation, chosen))
    if evaluation.replaced is not None:
        yield Plot("replaced", "Similarity against the share of replaced characters", _replaced(evaluation.replaced))


def _thresholds(lines: Sequence[Line]) -> str:
    with _styled():
        figure = Figure(figsize=(9, 2.6 + 0.17 * len(lines)), layout="constrained")
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for panel, title in zip(panels, ("precision", "recall"), strict=True):
            panel.set(title=title, xlabel="threshold", xlim=(0, 1), ylim=(0, 1.02))
        for marker, line in zip(_MARKERS, lines, strict=False):
            style = {"marker": marker, "markersize": 4, "markevery": max(1, len(line.scores) // _MARKS)}
            thresholds = [score.threshold for score in line.scores]
            precision, recall = [score.precision for score in line.scores], [score.recall for score in line.scores]
            for panel, values in zip(panels, (precision, recall), strict=True):
                panel.plot(thresholds, values, label=line.name, linewidth=1.2, **style)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return _svg(figure)


def _kinds(evaluation: Evaluation, chosen: Sequence[AlgorithmResult]) -> str:
    """Return a heat map: a row for each edit and strength, a column for each algorithm."""
    edits = [(one.kind, one.strength) for one in evaluation.articles.kinds]
    recalls = [{(one.kind, one.strength): one.recall for one in result.best.kinds} for result in chosen]
    field = np.array([[recall.get(edit, np.nan) for recall in recalls] for edit in edits])
    with _styled():
        mpl.rcParams["axes.grid"] = False
        figure = Figure(figsize=(3.5 + 0.55 * len(chosen), 2.4 + 0.17 * len(edits)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(field, vmin=0, vmax=1, aspect="auto", interpolation="none", cmap="viridis")
        labels = [kind if strength is None else f"{kind} {strength:g}" for kind, strength in edits]
        axes.set_yticks(range(len(edits)), labels, fontsize=7)
        axes.set_xticks(range(len(chosen)), [one.named.name for one in chosen], rotation=60, ha="right", fontsize=7)
        figure.colorbar(image, label="recall", shrink=0.5)
        return _svg(figure)


def _replaced(replaced: ReplacementExperiment) -> str:
    with _styled():
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for marker, curve in zip(_MARKERS, replaced.curves, strict=False):
            label = f"K = {curve.k}, correlation {curve.correlation:.4f}"
            axes.plot(curve.shares, curve.similarity, marker=marker, markersize=4, linewidth=1.2, label=label)
        axes.set(xlabel="share of characters replaced", ylabel="similarity to the original", xlim=(0, 1), ylim=(0, 1))
        axes.legend()
        return _svg(figure)


@contextmanager
def _styled() -> Iterator[None]:
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # It does not matter whether matplotlib has the font: the reader's browser draws the text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _svg(figure: Figure) -> str:
    """Return only the `<svg>` element, without the XML declaration that a separate file would have."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    return text[text.index("<svg") :]
