"""The fail points: they hit the process, and nothing that is shipped can activate them."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stream_dedup
from stream_dedup.cli.main import app
from stream_dedup.settings import Settings
from stream_dedup.stream import protocol
from stream_dedup.stream.protocol import Step
from tests.faults.runner import SIGNALS, Fuse
from tests.stream.arguments import REPOSITORY

_PACKAGE = Path(stream_dedup.__file__).parent


def _nothing(step: Step) -> None:
    """Do nothing."""


def test_shipped_fail_point_does_nothing() -> None:
    """`reached` compiles to the same bytes as a function without a body: it only returns."""
    assert protocol.reached.__code__.co_code == _nothing.__code__.co_code
    assert protocol.reached.__code__.co_names == ()
    assert protocol.reached.__closure__ is None


def test_nothing_in_the_package_replaces_the_fail_point() -> None:
    """Modules of the package define it once, import it and call it; none assigns to it or looks it up by name."""
    uses = [use for path in _PACKAGE.rglob("*.py") for use in _uses(ast.parse(path.read_text(encoding="utf-8")))]
    assert uses.count("defined") == 1
    assert "changed" not in uses


def _uses(module: ast.Module) -> list[str]:
    uses = []
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == "reached":
            uses.append("defined")
        elif isinstance(node, ast.Name | ast.Attribute) and "reached" in {
            getattr(node, "id", ""),
            getattr(node, "attr", ""),
        }:
            uses.append("used" if isinstance(node.ctx, ast.Load) else "changed")
        elif isinstance(node, ast.Constant) and node.value == "reached":
            uses.append("changed")  # setattr, or an entry in a module's dictionary
    return uses


def test_no_setting_knows_of_steps() -> None:
    """No setting has a step as its name or value."""
    shown = Settings().model_dump_json()
    assert not [step for step in Step if f'"{step}"' in shown]


@pytest.mark.parametrize("option", [("--at", "committed"), ("--after", "3"), ("--signal", "stop")])
def test_shipped_command_has_no_such_option(option: tuple[str, str]) -> None:
    """The service's own command refuses the runner's options, before and after `run`."""
    for arguments in ((*option, "run"), ("run", *option)):
        refused = CliRunner().invoke(app, arguments)
        assert refused.exit_code == 2
        assert f"No such option: {option[0]}" in refused.stderr


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("number", SIGNALS.values())
def test_fuse_sends_its_signal_at_the_step_for_the_nth_time(
    step: Step, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step sends this process the signal when it is reached for the third time; no other step does."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *hit: sent.append(hit))
    fuse = Fuse(step, 3, number)
    for commit in (1, 2, 3, 4):
        for reached in Step:
            fuse(reached)
            assert bool(sent) == (commit > 3 or (commit == 3 and list(Step).index(reached) >= list(Step).index(step)))
    assert sent == [(os.getpid(), number)]


def test_fuse_kills_the_process() -> None:
    """A process with a fuse ends by SIGKILL, and prints nothing more."""
    ended = _run(
        """
        from stream_dedup.stream import protocol
        from tests.faults.runner import Fuse, SIGNALS
        protocol.reached = Fuse(protocol.Step.COMMITTED, 1, SIGNALS["kill"])
        print("before", flush=True)
        protocol.reached(protocol.Step.COMMITTED)
        print("after", flush=True)
        """
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "before\n")


def _run(script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_runner_runs_the_command_line() -> None:
    """The service's own command line follows --; the runner returns its exit code."""
    command = [sys.executable, "-m", "tests.faults.runner", "--at", "read", "--", "config", "--set", "no.such=1"]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "error: no.such = '1': no such setting" in ended.stderr
