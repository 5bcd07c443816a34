"""Promises of the digest of the code: it covers what computes results, what that reads, and nothing else."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import stream_dedup
from stream_dedup.evaluate.runner import digests
from stream_dedup.evaluate.runner.digests import data, digest_of_code, digest_of_set, sources
from tests.unit.evaluate.fakes import five

_PACKAGE = Path(stream_dedup.__file__).parent
_LOADED = """
import sys
import stream_dedup.evaluate.runner.jobs, stream_dedup.evaluate.registry, stream_dedup.evaluate.segmenters.dictionary
print(*(module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "stream_dedup"), sep="\\n")
"""


@pytest.fixture(scope="module")
def names() -> set[str]:
    """The sources that results depend on, by their paths in the package."""
    return {path.relative_to(_PACKAGE).as_posix() for path in sources()}


@pytest.mark.parametrize(
    "name",
    [
        "engine/dedup.py",
        "text/normal.py",
        "compiled/hashing.py",
        "evaluate/runner/tasks.py",
        "evaluate/quality/scores.py",
        "evaluate/similarity/kgram.py",
        "evaluate/segmenters/ansj.py",
        "evaluate/segmenters/java.py",
    ],
)
def test_code_that_computes_counts(names: set[str], name: str) -> None:
    """The engine, the algorithms, the segmenters, and what they are made of."""
    assert name in names


@pytest.mark.parametrize(
    "place",
    [
        "api",
        "ask",
        "cli",
        "decode",
        "encode",
        "observe",
        "planner",
        "registry",
        "rendering",
        "stream",
        "evaluate/report",
        "evaluate/findings.py",
        "evaluate/runner/run.py",
    ],
)
def test_other_code_does_not_count(names: set[str], place: str) -> None:
    """A change to a page, a service or a plot leaves results as they are."""
    assert (_PACKAGE / place).exists()
    assert not [name for name in names if name == place or name.startswith(f"{place}/")]


def test_lists_and_jars_count() -> None:
    """The lists that come with the package, and the lock of the jars: other words or places give other results."""
    lists = [*(_PACKAGE.parent / "config").glob("*.txt"), *_PACKAGE.rglob("*.txt")]
    assert set(data()) == {*lists, _PACKAGE / "evaluate" / "segmenters" / "java.lock.toml"}


def test_what_is_read_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another word in a list is another digest."""
    monkeypatch.setattr(digests, "sources", set)  # reading them takes a second
    before = digest_of_code.__wrapped__()
    first, *others = data()
    (tmp_path / first.name).write_bytes(first.read_bytes() + "词\n".encode())
    monkeypatch.setattr(digests, "data", lambda: [tmp_path / first.name, *others])
    assert digest_of_code.__wrapped__() != before


@pytest.mark.parametrize("library", ["jieba", "rjieba", "opencc", "numpy"])
def test_other_release_of_a_library_counts(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its dictionary or its arithmetic may be another one."""
    monkeypatch.setattr(digests, "sources", set)  # reading them takes a second
    before = digest_of_code.__wrapped__()
    monkeypatch.setattr(digests, "version", lambda name: "999" if name == library else version(name))
    assert digest_of_code.__wrapped__() != before


@pytest.mark.slow
def test_all_that_is_loaded_counts() -> None:
    """Python loads no module of the package that is not among the sources."""
    loaded = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True).stdout
    assert {Path(line) for line in loaded.splitlines()} <= sources()


@pytest.mark.parametrize(
    "changed",
    [
        *({"id": "x"}, {"title": "x"}, {"body": "x"}, {"url": "https://x.example/"}, {"source": "x"}, {"scope": "x"}),
        {"published_ms": 1},
    ],
    ids=str,
)
def test_set_of_other_articles_has_another_digest(changed: dict[str, Any]) -> None:
    """The engine may decide otherwise, whichever field differs."""
    labelled = five()
    first, *others = labelled.articles
    other = replace(first, article=replace(first.article, **changed))
    assert digest_of_set(replace(labelled, articles=[other, *others])) != digest_of_set(labelled)


@pytest.mark.parametrize("changed", [{"cluster": "x"}, {"original": "a1"}, {"kind": "x"}, {"strength": 0.4}], ids=str)
def test_set_of_other_labels_has_another_digest(changed: dict[str, Any]) -> None:
    """Each label counts towards a score, and so does each pair that overlaps; the name of the set does not."""
    labelled = five()
    other = replace(labelled.articles[2], **changed)
    articles = [*labelled.articles[:2], other, *labelled.articles[3:]]
    assert digest_of_set(replace(labelled, articles=articles)) != digest_of_set(labelled)
    assert digest_of_set(replace(labelled, overlapping=labelled.overlapping[:0])) != digest_of_set(labelled)
    assert digest_of_set(replace(labelled, name="other")) == digest_of_set(labelled)
