"""The files of a run that people and programs read: CSV, JSON and the page.

Knows their names; knows nothing of what is in them. `evaluation.json` is written by the run itself.
"""

import csv
from pathlib import Path

from stream_dedup.evaluate.report.page import page_of
from stream_dedup.evaluate.report.tables import Table, tables_of
from stream_dedup.evaluate.results import Evaluation

PAGE = "report.html"


def write_files(evaluation: Evaluation, directory: Path) -> None:
    """Write the tables as CSV, and the page."""
    for table in tables_of(evaluation):
        _write_csv(table, directory / f"{table.name}.csv")
    (directory / PAGE).write_text(page_of(evaluation), encoding="utf-8")


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.heading for column in table.columns])
        writer.writerows(table.rows)
