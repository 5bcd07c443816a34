"""A run on the terminal.

Knows rich; knows nothing of files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from stream_dedup.evaluate.findings import Finding, Verdict
from stream_dedup.evaluate.report.choice import best_of_families
from stream_dedup.evaluate.report.tables import (
    Column,
    Table,
    algorithms_table,
    kinds_table,
    replaced_table,
    unmeasured_table,
)
from stream_dedup.evaluate.results import Evaluation
from stream_dedup.rendering.plain import plain

# All columns together are too wide for a terminal; two tables of these fit 80 characters.
_QUALITY = ("at", "precision", "recall", "F1", "ARI", "best F1", "best at")
_COST = ("width", "links", "words s", "features s", "compare s", "candidates")
_MOST_COLUMNS = 4
_NAME = 16  # characters of a name that are never wrapped
_COLOURS = {Verdict.HOLDS: "green", Verdict.IN_PART: "yellow", Verdict.NOT: "red", Verdict.UNCHECKED: "dim"}


def tables_on_terminal(evaluation: Evaluation) -> Iterator[RenderableType]:
    """Yield the tables of a run."""
    table = algorithms_table(evaluation)
    yield rich_table(table.part("algorithm", *_QUALITY))
    yield rich_table(replace(table.part("algorithm", *_COST), title="Stability and cost"))
    if evaluation.articles.kinds:
        names = [measured.named.name for measured in best_of_families(evaluation)]
        yield rich_table(kinds_table(evaluation, names[:_MOST_COLUMNS]))
    replaced = replaced_table(evaluation)
    if replaced:
        yield rich_table(replaced)
    if evaluation.unmeasured:
        yield rich_table(unmeasured_table(evaluation))


def rich_table(table: Table) -> RichTable:
    """Return a table for rich, with numbers aligned to the right."""
    shown = RichTable(title=plain(table.title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        if column.digits is None:
            shown.add_column(Text(column.heading), overflow="fold", min_width=min(_NAME, _widest(table, column)))
        else:
            shown.add_column(Text(column.heading.replace("/", "/\n")), justify="right", no_wrap=True)
    for row in table.shown():
        shown.add_row(*map(plain, row))
    return shown


def _widest(table: Table, column: Column) -> int:
    place = list(table.columns).index(column)
    return max((len(str(row[place])) for row in table.rows), default=0)


def findings_on_terminal(findings: Sequence[Finding]) -> RichTable:
    """Return the findings of the studies, and whether they hold."""
    table = RichTable(title="Findings of the studies, on these articles", title_justify="left", show_lines=True)
    for heading in ("finding", "here", "numbers"):
        table.add_column(heading)
    for finding in findings:
        verdict = Text(finding.verdict, style=_COLOURS[finding.verdict])
        table.add_row(Text(finding.claim), verdict, Text("\n".join(finding.numbers)))
    return table
