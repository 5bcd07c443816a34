"""The documents are consistent: links and module names are valid, examples run, figures agree in both languages."""

import ast
import graphlib
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from stream_dedup.decode import Reason
from stream_dedup.stream.kafka.topics import CHANGELOG

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "stream_dedup"
_FOLDERS = ("config", "deploy", "stream_dedup", "tests")
_PAGES = sorted([*_ROOT.glob("*.md"), *(page for folder in _FOLDERS for page in (_ROOT / folder).rglob("*.md"))])
_FILES = ["/" + file.relative_to(_ROOT).as_posix() for folder in _FOLDERS for file in (_ROOT / folder).rglob("*.*")]
_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_ENGLISH, _CHINESE = _ROOT / "README.md", _ROOT / "README.zh-CN.md"


def _of_page(page: Path) -> str:
    return page.relative_to(_ROOT).as_posix()


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _anchors(page: Path) -> set[str]:
    """Return the anchors that a forge gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", _text(page)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken(page: Path) -> Iterator[str]:
    """Yield a page's links to files or anchors of this repository that do not exist."""
    for link in re.findall(r"\]\(([^)\s]+)\)", _BLOCK.sub("", _text(page))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not link.startswith("http") and not (target.exists() and (not anchor or anchor in _anchors(target))):
            yield link


@pytest.mark.parametrize("page", _PAGES, ids=_of_page)
def test_links_lead_somewhere(page: Path) -> None:
    """Files and headings that a page links to exist."""
    assert not [*_broken(page)]


@pytest.mark.parametrize("page", [page for page in _PAGES if page.name != "CHANGELOG.md"], ids=_of_page)
def test_modules_that_are_named_exist(page: Path) -> None:
    """A module named on a page or in its diagrams matches the end of a file's path."""
    named = {name.strip("./") for name in re.findall(r"[\w./-]+\.py\b", _text(page))}
    assert not [name for name in named if not any(file.endswith("/" + name) for file in _FILES)]


@pytest.mark.parametrize("page", [_ENGLISH, _CHINESE], ids=_of_page)
def test_python_of_the_first_page_runs(page: Path) -> None:
    """The example for embedding runs, including its assertions."""
    examples = re.findall(r"^```python\n(.*?)^```$", _text(page), re.DOTALL | re.MULTILINE)
    assert examples
    for example in examples:
        exec(compile(example, page.name, "exec"), {})  # noqa: S102  # that is what the page invites to


def test_folders_import_only_what_their_arrows_lead_to() -> None:
    """The architecture page has an arrow for each import between folders, or several in a row, and none in a circle."""
    leads = _arrows()
    before = graphlib.TopologicalSorter(leads).static_order()  # raises an error for a circle
    for folder in before:
        leads[folder] = leads.get(folder, set()).union(*(leads[other] for other in leads.get(folder, ())))
    assert {(folder, other) for folder, other in _imports() if other not in leads[folder]} == set()


def test_every_arrow_is_an_import() -> None:
    """No arrow of the architecture page is left over."""
    assert {(folder, other) for folder, others in _arrows().items() for other in others} - _imports() == set()


def _arrows() -> dict[str, set[str]]:
    """Return the folders to which arrows of the architecture page point from each folder."""
    (told,) = re.findall(r"^Arrows point one way: (.*?)\. ", _text(_PACKAGE / "README.md"), re.DOTALL | re.MULTILINE)
    arrows: dict[str, set[str]] = {}
    for row in told.split(";"):
        for start, end in pairwise(re.findall(r"`(\w+)`", names) for names in row.split("->")):
            for folder in start:
                arrows.setdefault(folder, set()).update(end)
    return arrows


def _imports() -> set[tuple[str, str]]:
    """Return each folder of the package with each other one that it imports from; `settings` is for all."""
    folders = {folder.parent.name for folder in _PACKAGE.glob("*/__init__.py")} - {"settings"}
    imports = {
        (folder, node.module.split(".")[1])
        for folder in folders
        for file in (_PACKAGE / folder).rglob("*.py")
        for node in ast.walk(ast.parse(_text(file)))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stream_dedup.")
    }
    return {(folder, other) for folder, other in imports if other in folders - {folder}}


def test_the_chinese_page_has_no_figures_of_its_own() -> None:
    """Every number in it is also in the English page, so that a new measurement changes both."""
    numbers = [set(re.findall(r"\d[\d,.]*\d|\d", _text(page))) for page in (_CHINESE, _ENGLISH)]
    assert not numbers[0] - numbers[1]


def test_the_chart_asks_for_the_cpu_that_the_first_page_tells() -> None:
    """The CPU time per thousand articles is measured only once."""
    chart = _ROOT / "deploy" / "helm" / "stream-dedup" / "README.md"
    told = [set(re.findall(r"([\d.]+) s of CPU for 1,000", _text(page))) for page in (chart, _ENGLISH)]
    assert told[0] == told[1] != set()


def test_the_printed_command_counts_dead_letters_by_their_whole_reason() -> None:
    """The pattern that operation gives to grep matches each reason to its end."""
    (pattern,) = re.findall(r"grep -ao '(stream_dedup\.reason:[^']+)'", _text(_ROOT / "deploy" / "README.md"))
    headers = [f"stream_dedup.reason:{reason.value}" for reason in Reason]
    assert [header for header in headers if not re.fullmatch(pattern, header)] == []


@pytest.mark.parametrize("page", [_ROOT / "deploy" / "README.md", _CHINESE])
def test_each_reason_of_dead_letters_has_its_row(page: Path) -> None:
    """Both languages tell what it means."""
    rows = re.findall(r"^\| (`[^|]+) \|", _text(page), re.MULTILINE)
    assert {reason.value for reason in Reason} - {
        name for row in rows for name in re.findall(r"`([^`]+)`", row)
    } == set()


def test_a_changelog_made_by_hand_is_like_that_of_the_service() -> None:
    """Operation names every property that the service gives the topic, with its value."""
    told = set(re.findall(r"`([a-z.]+=[^`]+)`", _text(_ROOT / "deploy" / "README.md")))
    assert {f"{name}={value}" for name, value in CHANGELOG.items()} - told == set()
