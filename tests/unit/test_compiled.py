"""The cache of compiled loops: the user's own is written, root's is only read, and any other is not trusted."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stream_dedup.compiled import kernel as compiled


def _double(number: complex) -> complex:
    return 2 * number


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a cache for this test alone."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled.cache_directory.cache_clear()
    yield tmp_path
    compiled.cache_directory.cache_clear()


@pytest.fixture
def shipped(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache that holds a loop for integers and cannot be written, even if the tests run as root."""
    assert _run(21) == (42, 0)
    monkeypatch.setattr(os, "access", lambda path, mode: not Path(path).is_relative_to(cache) or mode != os.W_OK)
    compiled.cache_directory.cache_clear()
    return next(cache.iterdir())


def _run(number: complex) -> tuple[complex, int]:
    """Return the loop's result for a number, and how often its compiled code was found."""
    loop: Any = compiled.kernel(_double)
    return loop(number), sum(loop.stats.cache_hits.values())


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("cache")
def test_loop_is_compiled_once() -> None:
    """A second process finds the code of the first."""
    assert [_run(21), _run(21)] == [(42, 0), (42, 1)]


@pytest.mark.usefixtures("cache")
def test_compiling_is_heard_of_once_whatever_is_compiled_already() -> None:
    """Whoever waits is told at the first loop that is missing, also from a cache that holds others."""
    heard: list[str] = []
    later: Any = np.float32(21)
    _run(21)
    with compiled.hearing_of_compiling(lambda: heard.append("compiling")):
        _run(21)
        assert heard == []
        _run(2.5)
        _run(21j)
    assert heard == ["compiling"]
    _run(later)
    assert heard == ["compiling"]


@pytest.mark.parametrize("compiled_before", [False, True])
def test_full_disk_is_no_cache_for_new_code(
    cache: Path, monkeypatch: pytest.MonkeyPatch, *, compiled_before: bool
) -> None:
    """Loops are compiled at each start then, unless their code is already there."""
    if compiled_before:
        assert _run(21) == (42, 0)
        compiled.cache_directory.cache_clear()
    before = _files(cache)
    monkeypatch.setattr(compiled, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    for _ in range(2):
        assert _run(21) == (42, int(compiled_before))
    assert _files(cache) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make what is root's")
def test_shipped_code_is_taken(shipped: Path) -> None:
    """Precompiled code in a read-only cache is used; loops missing from it are compiled, but not written there."""
    before = _files(shipped)
    assert [_run(21), _run(2.5), _run(2.5)] == [(42, 1), (5.0, 0), (5.0, 1)]
    assert _files(shipped) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make what is root's")
@pytest.mark.parametrize(("owner", "mode"), [(65534, 0o700), (0, 0o770), (0, 0o707)])
def test_code_of_others_is_not_run(shipped: Path, owner: int, mode: int) -> None:
    """If anyone but root could have written the cache, loops are compiled again."""
    os.chown(shipped, owner, owner)
    shipped.chmod(mode)
    assert _run(21) == (42, 0)


def _directory() -> Path | None:
    compiled.cache_directory.cache_clear()
    return compiled.cache_directory()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("variables", "root"),
    [
        (["HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"], "NUMBA_CACHE_DIR"),
        (["HOME", "XDG_CACHE_HOME"], "XDG_CACHE_HOME/stream-dedup"),
        (["HOME"], "HOME/.cache/stream-dedup"),
    ],
)
def test_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: list[str], root: str
) -> None:
    """Nobody but the user may write to it or look into it."""
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in variables:
        monkeypatch.setenv(name, str(tmp_path / name))
    directory = _directory()
    assert directory is not None
    assert directory.parent == tmp_path / root
    assert directory.stat().st_mode & 0o077 == 0


def test_loops_are_compiled_at_each_start_where_no_cache_can_be(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is in its place, or the user has no home."""
    (cache / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache / "file"))
    assert _directory() is None
    assert [_run(21), _run(21)] == [(42, 0), (42, 0)]
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert _directory() is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can write to what is another's")
def test_code_in_the_cache_of_another_is_not_run(cache: Path) -> None:
    """Root can write to the cache of any user, who can write to it as well."""
    assert _run(21) == (42, 0)
    (directory,) = cache.iterdir()
    os.chown(directory, 65534, 65534)
    assert _directory() is None
    assert _run(21) == (42, 0)


def test_compiled_code_is_of_just_these_sources(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It depends on the sources of the loops and on the constants they import, which are compiled in."""
    package = cache / "stream_dedup"
    sources = {
        "loop.py": "from stream_dedup.text.marks import (\n    MARK,\n    helper,\n)\n@kernel\ndef loop(): ...\n",
        "other.py": "from stream_dedup.loop import loop\nLIMIT = 1\n",
        "text/marks.py": "MARK = 1\n",
        "text/words.py": "WORD = 1\n",
        "more.py": "from stream_dedup.bounds import LIMIT\n@kernel\ndef more(): ...\n",
        "bounds/__init__.py": "LIMIT = 1\n",
    }
    for name, source in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source, encoding="utf-8")
    monkeypatch.setattr(compiled, "__file__", str(package / "compiled" / "kernel.py"))
    before = _directory()
    assert before is not None
    heeded = set()
    for name, source in sources.items():
        (package / name).write_text(source + "# changed\n", encoding="utf-8")
        if _directory() != before:
            heeded.add(name)
        (package / name).write_text(source, encoding="utf-8")
    assert heeded == {"loop.py", "more.py", "text/marks.py", "bounds/__init__.py"}
