"""The page stream_dedup/evaluate/README.md."""

import pytest

from stream_dedup.evaluate.engine import configurations
from stream_dedup.evaluate.operators import OPERATORS
from stream_dedup.evaluate.segmenters import segmenters
from tests.evaluate_page import PAGE, renewed, with_report


def test_page_holds_the_lists_of_now() -> None:
    """The lists are those that the code gives; `make evaluate-page` renews them."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page)


def test_page_names_all_there_is() -> None:
    """No segmenter, operator or configuration is left out."""
    page = PAGE.read_text(encoding="utf-8")
    for name in (*segmenters(), *OPERATORS, *configurations()):
        assert f"| {name} |" in page


def test_plots_of_the_page_are_there_and_small() -> None:
    """Each plot that the page shows is a file of less than 100 kB."""
    for part in PAGE.read_text(encoding="utf-8").split("](plots/")[1:]:
        plot = PAGE.parent / "plots" / part.partition(")")[0]
        assert plot.stat().st_size < 100_000


def test_report_goes_between_its_marks() -> None:
    """A report replaces the one of its name alone; its plots are under its name."""
    page = "a\n<!-- report x: begin -->\nold\n<!-- report x: end -->\nb\n"
    renewed_page = with_report(page, "x", "![p](p.svg)\n")
    assert renewed_page == "a\n<!-- report x: begin -->\n\n![p](plots/x/p.svg)\n\n<!-- report x: end -->\nb\n"
    with pytest.raises(ValueError, match="lacks the marks"):
        with_report(page, "y", "")
