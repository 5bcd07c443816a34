"""A run as Markdown, with its plots as separate files.

Knows Markdown; knows nothing of the page or of the terminal.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from stream_dedup.evaluate.findings import Finding, findings_of
from stream_dedup.evaluate.report.choice import best_of_families
from stream_dedup.evaluate.report.plots import Plot, plots_of
from stream_dedup.evaluate.report.tables import (
    Table,
    algorithms_table,
    kinds_table,
    replaced_table,
    unmeasured_table,
)
from stream_dedup.evaluate.results import Evaluation

REPORT = "report.md"


def write_markdown(evaluation: Evaluation, directory: Path) -> Path:
    """Write `report.md` and the plots that it shows, and return its path.

    Args:
        evaluation: the run.
        directory: created if it does not exist.
    """
    directory.mkdir(parents=True, exist_ok=True)
    plots = list(plots_of(evaluation))
    for plot in plots:
        (directory / f"{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
    path = directory / REPORT
    path.write_text("\n".join(_report(evaluation, plots)), encoding="utf-8")
    return path


def _report(evaluation: Evaluation, plots: Sequence[Plot]) -> Iterator[str]:
    articles = evaluation.articles
    yield (
        f"{articles.articles:,} articles of {articles.clusters:,} stories, {articles.pairs:,} pairs of copies; "
        f"{articles.overlapping:,} more pairs overlap and count neither for nor against. "
        f"Made by `{evaluation.command}`, version {evaluation.version}.\n"
    )
    if evaluation.engine_settings:
        changed = ", ".join(f"`{change}`" for change in evaluation.engine_settings)
        yield f"Settings of the engine that are not as shipped: {changed}.\n"
    yield from markdown_table(algorithms_table(evaluation))
    for plot in plots:
        if plot.name.startswith("thresholds"):
            yield _image(plot)
    if articles.kinds:
        yield from markdown_table(kinds_table(evaluation, [one.named.name for one in best_of_families(evaluation)]))
    replaced = replaced_table(evaluation)
    if replaced is not None:
        yield from markdown_table(replaced)
    for plot in plots:
        if not plot.name.startswith("thresholds"):
            yield _image(plot)
    yield from _findings(findings_of(evaluation))
    if evaluation.unmeasured:
        yield from markdown_table(unmeasured_table(evaluation))


def markdown_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table under its title."""
    yield f"**{_cell(table.title)}**\n"
    yield _row([column.heading for column in table.columns])
    yield _row(["---" if column.digits is None else "---:" for column in table.columns])
    for row in table.shown():
        yield _row(row)
    yield ""


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    yield "**Findings of the studies, on these articles**\n"
    yield _row(["finding", "here", "numbers"])
    yield _row(["---"] * 3)
    for finding in findings:
        yield _row([finding.claim, f"**{finding.verdict}**", "; ".join(finding.numbers)])
    yield ""


def _image(plot: Plot) -> str:
    return f"![{plot.title}]({plot.name}.svg)\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return a text as the content of a cell: it neither ends the cell nor is taken for HTML."""
    return " ".join(escape(text, quote=False).split()).replace("|", r"\|")
