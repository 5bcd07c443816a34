"""Reports contain every number, escape all data, and their page needs no other files."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from stream_dedup.evaluate.findings import findings_of
from stream_dedup.evaluate.report.catalogue import algorithms_table as selection_table
from stream_dedup.evaluate.report.choice import best_of_families, lines_by_family
from stream_dedup.evaluate.report.files import PAGE, write_files
from stream_dedup.evaluate.report.markdown import write_markdown
from stream_dedup.evaluate.report.page import page_of
from stream_dedup.evaluate.report.plots import plots_of
from stream_dedup.evaluate.report.tables import (
    algorithms_table,
    kinds_table,
    replaced_table,
    shown,
    sweep_table,
    unmeasured_table,
)
from stream_dedup.evaluate.report.terminal import findings_on_terminal, tables_on_terminal
from stream_dedup.evaluate.results import AlgorithmWithoutResult, Evaluation, KindCount, ReplacementExperiment
from stream_dedup.evaluate.selection import WantedPatterns, selected
from tests.unit.evaluate.made import evaluation, measured, replaced

_FAILED = AlgorithmWithoutResult(measured("x/y/z").named, "KeyError: '<script>|'", failed=True)


@pytest.fixture(scope="module")
def whole() -> Evaluation:
    """Return an evaluation that uses everything a report can show."""
    results = [
        measured("engine/default", 0.99, 0.98, swept=False),
        measured("engine/threshold-0.3", 0.9, 0.99, swept=False),
        measured("engine/threshold-0.4", 0.9, 0.97, swept=False),
        *(measured(f"seg{n}/none/jaccard", 0.9 - n / 100, 0.8) for n in range(10)),
        measured("seg/none/cosine", 0.7, 0.6, best=0.65),
    ]
    return evaluation(*results, experiment=replaced(0.9, 0.8, 0.7, 0.6, 0.5, 0.4), unmeasured=(_FAILED,))


def test_cells_as_a_reader_sees_them() -> None:
    """Digits, thousands separators, and a dash for no value; words and names made of digits are unchanged."""
    cells = [(0.12345, 4), (12345.678, 1), (None, 2), ("word", None), (3.0, None), (0.05, None)]
    assert [shown(*cell) for cell in cells] == ["0.1235", "12,345.7", "-", "word", "3", "0.05"]


def test_table_has_every_number(whole: Evaluation) -> None:
    """A row has the values of the result, in the order of the columns."""
    table = algorithms_table(whole)
    row = dict(zip([column.heading for column in table.columns], table.rows[-1], strict=True))
    own = {"at": 0.5, "precision": 0.7, "recall": 0.6, "F1": pytest.approx(0.84 / 1.3), "ARI": 0.7, "links": None}
    best = {"best F1": 0.65, "best at": 0.4, "width": 0.2, "P slope": 1.5, "R slope": 1.25}
    cost = {"words s": 1.0, "features s": 0.25, "compare s": 0.125, "candidates": 12.5}
    assert row == {"algorithm": "seg/none/cosine"} | own | best | cost


def test_title_counts_articles_and_pairs(whole: Evaluation) -> None:
    """Not stories, and not the pairs that overlap."""
    assert algorithms_table(whole).title == "新闻 <b>: 1,234 articles, 300 pairs of copies"


def test_recall_by_edit_is_that_at_the_best_threshold() -> None:
    """Not at the algorithm's own, at which it may have found fewer copies."""
    one = measured("seg/none/cosine", best=0.9)
    assert one.swept is not None
    fewer = tuple(replace(kind, found=1, recall=1 / kind.pairs) for kind in one.given.kinds)
    table = kinds_table(evaluation(replace(one, given=replace(one.given, kinds=fewer))), ["seg/none/cosine"])
    assert [row[-1] for row in table.rows] == [0.9, 1.0]


def test_sweep_has_every_threshold(whole: Evaluation) -> None:
    """An algorithm has a row for each threshold of its curve, a configuration of the engine one for its own."""
    rows = sweep_table(whole).rows
    assert [row for row in rows if row[0] == "engine/threshold-0.3"] == [
        ("engine/threshold-0.3", 0.5, 0.9, 0.99, pytest.approx(2 * 0.9 * 0.99 / 1.89))
    ]
    swept = [row for row in rows if row[0] == "seg/none/cosine"]
    assert [row[1:4] for row in swept] == [(step / 100, 1.0, 1 - step / 100) for step in range(101)]


def test_experiment_has_a_row_a_share_and_the_correlations(whole: Evaluation) -> None:
    """Each K has a column; the title has the number of texts and their length."""
    table = replaced_table(whole)
    assert table is not None
    assert table.title == "Similarity with characters replaced: 3 texts of 10,000 characters"
    assert [column.heading for column in table.columns] == ["replaced", *(f"K = {k}" for k in range(2, 8))]
    assert [list(row) for row in table.rows] == [
        ["5%", *[0.9] * 6],
        ["50%", *[0.5] * 6],
        ["95%", *[0.1] * 6],
        ["correlation", 0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
    ]


def test_what_has_failed_is_told_from_what_is_missing() -> None:
    """Only the first is a fault of the program."""
    rows = unmeasured_table(evaluation(unmeasured=(_FAILED, replace(_FAILED, reason="no model", failed=False)))).rows
    assert [row[1:] for row in rows] == [("failed", "KeyError: '<script>|'"), ("not available", "no model")]


def test_selection_tells_what_is_slow_or_missing() -> None:
    """Of an algorithm, its segmenter counts."""
    names = ("rjieba/none/jaccard", "chars/5-grams/jaccard", "hanlp-nshort/none/jaccard", "hanlp-crf/none/jaccard")
    selection = selected(WantedPatterns(names))
    missing = {"hanlp-crf": "no model", "hanlp-nshort": None}
    cutters = {
        name: SimpleNamespace(slow=one.slow, missing=lambda name=name: missing.get(name))
        for name, one in selection.segmenters.items()
    }
    table = selection_table(replace(selection, segmenters=cutters))
    assert {row[0]: row[2] for row in table.rows} == dict(
        zip(names, ("available", "available", "available, slow", "no model"), strict=True)
    )


def test_recall_by_edit_has_a_column_an_algorithm(whole: Evaluation) -> None:
    """The rows are the edits of the set, in its order."""
    table = kinds_table(whole, ["engine/default", "seg/none/cosine", "unknown"])
    assert [list(row) for row in table.rows] == [["错字", 0.05, 10, 0.9, 0.9], ["retitle", None, 4, 1.0, 1.0]]


def test_csv_is_read_back(whole: Evaluation, tmp_path: Path) -> None:
    """CSV files contain the unformatted numbers, in UTF-8."""
    write_files(whole, tmp_path)
    with (tmp_path / "algorithms.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["algorithm"] for row in rows] == [one.named.name for one in whole.measured]
    assert float(rows[-1]["F1"]) == pytest.approx(2 * 0.42 / 1.3)
    with (tmp_path / "kinds.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file))["edit"] == "错字"
    assert (tmp_path / PAGE).is_file()


def test_page_stands_alone(whole: Evaluation) -> None:
    """The page loads no script, style sheet, picture or other resource from elsewhere."""
    page = page_of(whole)
    assert not re.search(r"<script|<link|<img|@import|url\(http", page)
    assert {"algorithms", "findings", "kinds", "replaced", "thresholds-jaccard", "unmeasured"} <= set(
        re.findall(r'<h2 id="([^"]+)"', page)
    )


def test_tables_of_the_page_have_their_titles(whole: Evaluation) -> None:
    """As on the terminal: of which threshold the recalls are, and how many texts of which length were changed."""
    page = page_of(whole)
    assert "<h3>Recall by edit, each algorithm at its best threshold</h3>" in page
    experiment = replaced_table(whole)
    assert experiment is not None
    assert f"<h3>{experiment.title}</h3>" in page


def test_page_takes_data_for_text(whole: Evaluation) -> None:
    """Names, reasons and commands are escaped; Chinese stays readable."""
    page = page_of(whole)
    assert "新闻 &lt;b&gt;" in page
    assert "<x>.jsonl" not in page
    assert "错字" in page


@pytest.mark.parametrize("experiment", [None, replaced(0.9, 0.8)])
def test_empty_run_has_a_report(experiment: ReplacementExperiment | None, tmp_path: Path) -> None:
    """An evaluation without any results can be reported."""
    empty = evaluation(experiment=experiment)
    write_files(empty, tmp_path)
    write_markdown(empty, tmp_path)
    assert list(tables_on_terminal(empty))


def test_plots_are_small_and_sound(whole: Evaluation) -> None:
    """Each plot is well-formed SVG under 100 kB with a text legend, and the same evaluation gives the same bytes."""
    plots = {plot.name: plot for plot in plots_of(whole)}
    assert set(plots) == {"thresholds-engine", "thresholds-jaccard", "thresholds-cosine", "kinds", "replaced"}
    for plot in plots.values():
        ET.fromstring(plot.svg)  # noqa: S314  # our own
        assert len(plot.svg.encode()) < 100_000
    assert "seg0/none/jaccard" in plots["thresholds-jaccard"].svg
    assert "错字 0.05" in plots["kinds"].svg
    assert "K = 3, correlation 0.8000" in plots["replaced"].svg
    assert [plot.svg for plot in plots_of(whole)] == [plot.svg for plot in plots.values()]


def test_plots_show_the_best_few(whole: Evaluation) -> None:
    """At most eight lines per family; the engine's runs at several thresholds form one line."""
    lines = lines_by_family(whole)
    assert [line.name for line in lines["jaccard"]] == [f"seg{n}/none/jaccard" for n in range(8)]
    assert [[score.recall for score in line.scores] for line in lines["engine"]] == [[0.99, 0.97]]
    assert [one.named.name for one in best_of_families(whole)] == [
        "engine/default",
        "seg0/none/jaccard",
        "seg/none/cosine",
    ]


def test_best_of_the_engine_are_the_settings_of_the_user() -> None:
    """Other configurations may have a higher F1; of the other families the best is shown, the best family first."""
    results = [
        measured("engine/threshold-0.3", 0.99, 0.99, swept=False),
        measured("seg/none/cosine", 0.9, 0.9),
        measured("other/none/cosine", 0.8, 0.8),
        measured("engine/default", 0.7, 0.7, swept=False),
        measured("seg/none/jaccard", 0.5, 0.5),
    ]
    best = best_of_families(evaluation(*results))
    assert [one.named.name for one in best] == ["seg/none/cosine", "engine/default", "seg/none/jaccard"]
    assert lines_by_family(evaluation(*results)).keys() == {"cosine", "jaccard"}  # one threshold makes no line


def test_markdown_has_tables_and_plots(whole: Evaluation, tmp_path: Path) -> None:
    """Plots are linked as files beside it, and the contents of a cell neither end it nor become HTML."""
    report = write_markdown(whole, tmp_path).read_text(encoding="utf-8")
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", report):
        assert (tmp_path / name).is_file()
    assert report.startswith(
        "1,234 articles of 1,000 stories, 300 pairs of copies; 5 more pairs overlap and count neither for nor against. "
        "Made by `stream-dedup evaluate run '<x>.jsonl'`, version 1.2.3."
    )
    assert "| seg/none/cosine | 0.50 | 0.7000 |" in report
    assert "| 错字 | 0.05 | 10 | 0.9000 |" in report
    assert "| 50% | 0.5000 |" in report
    assert r"KeyError: '&lt;script&gt;\|'" in report
    assert "**not checked**" in report


def test_terminal_takes_data_for_text(whole: Evaluation) -> None:
    """An edit's name, which comes from the labels, cannot move the cursor or set colours."""
    kinds = (KindCount("[bold]x[/nope]\x1b[31m\n", None, 3),)
    console = Console(width=200, record=True, color_system="truecolor", force_terminal=True, file=io.StringIO())
    for table in tables_on_terminal(replace(whole, articles=replace(whole.articles, kinds=kinds))):
        console.print(table)
    assert "[bold]x[/nope]␛[31m␊" in console.export_text(styles=True)


def test_tables_fit_a_terminal(whole: Evaluation) -> None:
    """At 80 columns, no number is cut off."""
    console = Console(width=80, file=None, record=True, quiet=False, force_terminal=False)
    with console.capture() as captured:
        for table in tables_on_terminal(whole):
            console.print(table)
        console.print(findings_on_terminal(findings_of(whole)))
    text = captured.get()
    for number in ("0.9900", "0.9800", "best at", "candidates", "12.5", "0.12"):
        assert number in text
    assert max(map(len, text.splitlines())) <= 80
