"""The Makefile: set-up recovers from an attempt that was cut short."""

import subprocess
from pathlib import Path

from tests.deploy.files import REPOSITORY

_PYTHON = """#!/bin/sh
[ "$2" != venv ] || ln -sf /bin/true "$3/bin/python"
"""


def test_an_environment_without_pip_is_made_again(tmp_path: Path) -> None:
    """Debian's Python without `python3-venv` leaves one, as Ctrl-C does: once it can be made, set-up makes it."""
    for name in ("requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to("/bin/false")  # whatever is asked of it fails, such as `-m pip`
    python = tmp_path / "python"
    python.write_text(_PYTHON, encoding="utf-8")
    python.chmod(0o700)
    command = ["make", "--file", str(REPOSITORY / "Makefile"), "setup", f"PYTHON={python}", "VENV=.venv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
