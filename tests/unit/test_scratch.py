"""Temporary directories are removed with their process or by the next one, and nobody else's are touched."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from stream_dedup import scratch as module
from stream_dedup.scratch import Scratch, remove_abandoned

_PATIENCE_SECONDS = 120.0
_HOLDER = """
import time
import typer
from stream_dedup.scratch import Scratch
from stream_dedup.signals import exit_at_once_on_signals
from stream_dedup.cli.terminal import run_reporting_errors
def work():
    with Scratch("trial") as name:
        print(name, flush=True)
        time.sleep(60)
exit_at_once_on_signals()
typer.run(lambda: run_reporting_errors(work))
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder for this test alone, where no directory counts as just created."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(module, "_YOUNG_SECONDS", 0.0)
    return tmp_path


def _ended(number: int) -> tuple[Path, int]:
    """Return the directory of a process that was ended by a signal, and its exit code."""
    with subprocess.Popen([sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.is_dir()
        process.send_signal(number)
        return folder, process.wait(_PATIENCE_SECONDS)


def test_directory_is_gone_after_its_use(temporary: Path) -> None:
    """Cleaning up twice, as when a command is closed twice, does no harm."""
    scratch = Scratch("trial")
    (Path(scratch.name) / "file").touch()
    scratch.cleanup()
    scratch.cleanup()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_ended_by_a_signal_leaves_none(temporary: Path, number: signal.Signals) -> None:
    """A command interrupted while working cleans up and exits with the code of the signal."""
    _, code = _ended(number)
    assert (code, list(temporary.iterdir())) == (128 + number, [])


def test_what_a_killed_process_left_is_removed_by_the_next(temporary: Path) -> None:
    """This applies only to directories of the same purpose."""
    folder, _ = _ended(signal.SIGKILL)
    (folder / "deep").mkdir()
    (folder / "deep" / "file").touch()
    with Scratch("other"):
        assert folder.is_dir()
    with Scratch("trial") as name:
        assert list(temporary.iterdir()) == [Path(name)]


def test_directory_of_ones_own_choice(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A directory chosen by the caller is not treated as temporary; the caller may remove it."""
    chosen = tmp_path_factory.mktemp("chosen")
    left = [place / "stream-dedup-trial-left" for place in (temporary, chosen)]
    for folder in left:
        folder.mkdir()
    with Scratch("trial", chosen) as name:
        assert list(chosen.iterdir()) == [Path(name)]
    assert list(temporary.iterdir()) == [left[0]]
    left[1].mkdir()
    remove_abandoned("trial", chosen)
    assert list(chosen.iterdir()) == []


def test_directory_in_use_is_left() -> None:
    """This holds whether this process or another one uses it."""
    with Scratch("trial") as first, Scratch("trial") as second:
        assert Path(first).is_dir()
        assert Path(second).is_dir()


@pytest.mark.parametrize("kind", ["young", "foreign", "link", "file"])
def test_what_may_be_another_ones_is_left(temporary: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Not yet lockable, owned by another user, a link to elsewhere, or a file with such a name."""
    target = temporary / "stream-dedup-trial-x"
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        target.symlink_to(elsewhere)
    elif kind == "file":
        target.touch()
    else:
        target.mkdir()
    if kind == "young":
        monkeypatch.setattr(module, "_YOUNG_SECONDS", time.time())
    elif kind == "foreign":
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    with Scratch("trial"):
        assert target.exists()
        assert elsewhere.is_dir()
