"""Keeps stream_dedup/evaluate/README.md up to date: lists of the available choices, and reports of runs.

Knows their names; run as a module it updates the lists, and with `--report` a report too.
"""

import argparse
import shutil
from pathlib import Path

from stream_dedup.evaluate.report.catalogue import (
    engine_table,
    features_table,
    operators_table,
    segmenters_table,
    similarities_table,
)
from stream_dedup.evaluate.report.markdown import REPORT, markdown_table
from tests.pages import with_part

PAGE = Path(__file__).parent.parent / "stream_dedup" / "evaluate" / "README.md"
_LISTS = "lists"


def renewed(page: str) -> str:
    """Return the page with the current lists."""
    # Those that are the same on every machine.
    tables = segmenters_table(), features_table(), similarities_table(), engine_table(), operators_table()
    lines = [line for table in tables for line in markdown_table(table)]
    return _between(page, _LISTS, "\n".join(lines))


def with_report(page: str, name: str, report: str) -> str:
    """Return the page with a report between its marks; its plots are in `plots/NAME`."""
    return _between(page, f"report {name}", report.replace("](", f"](plots/{name}/"))


def _between(page: str, name: str, text: str) -> str:
    return with_part(page, name, f"\n{text.strip()}\n\n")


def main() -> None:
    """Update the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="directory that `stream-dedup evaluate ... --markdown` wrote")
    parser.add_argument("--name", default="people", help="which report of the page it is")
    options = parser.parse_args()
    page = renewed(PAGE.read_text(encoding="utf-8"))
    if options.report:
        page = with_report(page, options.name, (options.report / REPORT).read_text(encoding="utf-8"))
        plots = PAGE.parent / "plots" / options.name
        shutil.rmtree(plots, ignore_errors=True)
        plots.mkdir(parents=True)
        for plot in options.report.glob("*.svg"):
            shutil.copy(plot, plots)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
