"""Wheel and source archive: complete, the same from either, clean to install, and typed for users of the package."""

import hashlib
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.supply.lock import RUN_TIME
from stream_dedup import __version__
from tests.deploy.files import REPOSITORY

_SECONDS = 600.0
_LISTS = ("stop_words.txt", "marker_words.txt", "boilerplate.txt")
_USER = """
from stream_dedup import Article, Deduplicator

with Deduplicator() as dedup:
    decision = dedup.add(Article("n-1", "text"))
    wrong: int = Article("n-1", "text").id
    reveal_type(decision)
"""


@dataclass(frozen=True, slots=True)
class Archives:
    """What `make dist` builds."""

    wheel: Path
    source: Path


def _run(command: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _build(folder: Path, into: Path) -> Archives:
    _run([sys.executable, "-m", "hatchling", "build", "-d", into], folder)
    return Archives(next(into.glob("*.whl")), next(into.glob("*.tar.gz")))


def _contents(wheel: Path) -> dict[str, str]:
    """Return the digest of each file in a wheel."""
    with zipfile.ZipFile(wheel) as files:
        return {name: hashlib.sha256(files.read(name)).hexdigest() for name in files.namelist()}


def _tool(name: str) -> Path:
    return Path(sysconfig.get_path("scripts")) / name


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Both, built from this checkout."""
    return _build(REPOSITORY, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def fresh(archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the packages of the lock file, and nothing else."""
    environment = tmp_path_factory.mktemp("fresh") / "environment"
    _run([_tool("uv"), "venv", "--python", sys.executable, environment], environment.parent)
    install: list[str | Path] = [_tool("uv"), "pip", "install", "--python", environment]
    _run([*install, "--require-hashes", "--requirement", RUN_TIME], environment.parent)
    _run([*install, "--no-deps", archives.wheel], environment.parent)
    return environment


def test_wheel_is_whole(archives: Archives) -> None:
    """It has all of the package's files that git knows, and the word lists, but no tests."""
    known = _run(["git", "ls-files", "stream_dedup"], REPOSITORY).splitlines()
    contents = _contents(archives.wheel)
    assert set(known) <= set(contents)
    assert {f"stream_dedup/config/{name}" for name in _LISTS} <= set(contents)
    assert "stream_dedup/py.typed" in contents
    tops = {name.split("/")[0] for name in contents}
    assert tops == {"stream_dedup", f"stream_dedup-{__version__}.dist-info"}


def test_source_archive_is_whole(archives: Archives) -> None:
    """It has everything that git does not ignore, what symbolic links lead to included, each file once, and no more."""
    known = _run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], REPOSITORY).splitlines()
    wanted = {
        str(file.relative_to(REPOSITORY))
        for path in (REPOSITORY / name for name in known)
        for file in (path.iterdir() if path.is_dir() else [path])
    }
    with tarfile.open(archives.source) as files:
        names = [name.partition("/")[2] for name in files.getnames()]
    assert sorted(names) == sorted(wanted | {"PKG-INFO"})


def test_source_archive_makes_the_same_wheel(archives: Archives, tmp_path: Path) -> None:
    """Building from the source archive yields the published wheel, every file byte for byte."""
    with tarfile.open(archives.source) as files:
        files.extractall(tmp_path, filter="data")
    again = _build(tmp_path / f"stream_dedup-{__version__}", tmp_path / "dist")
    assert _contents(again.wheel) == _contents(archives.wheel)


def test_installs_cleanly(fresh: Path, tmp_path: Path) -> None:
    """In a fresh environment nothing is missing or conflicting; the command is there, with the right version."""
    _run([_tool("uv"), "pip", "check", "--python", fresh], tmp_path)
    assert _run([fresh / "bin" / "stream-dedup", "--version"], tmp_path).strip() == f"stream-dedup {__version__}"


def test_types_are_seen_by_those_who_import(fresh: Path, tmp_path: Path) -> None:
    """A type checker sees the types of the installed package, and finds a mistake."""
    (tmp_path / "user.py").write_text(_USER, encoding="utf-8")
    python = fresh / "bin" / "python"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", str(python), "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    lines = checked.stdout.splitlines()
    assert [line.split(": ", 1)[1] for line in lines[:-1]] == [
        'error: Incompatible types in assignment (expression has type "str", variable has type "int")  [assignment]',
        'note: Revealed type is "stream_dedup.article.Decision"',
    ]
