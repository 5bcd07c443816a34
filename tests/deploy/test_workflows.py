"""The workflows: valid, with few permissions, actions pinned to commits, and commands that exist."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.files import REPOSITORY, load_yaml
from tests.programs import found

_WORKFLOWS = REPOSITORY / ".github" / "workflows"
_FILES = sorted(_WORKFLOWS.glob("*.yml"))
_OWN = "uses: ./"  # a workflow of this same commit
_MAKE = re.compile(r"\bmake ([a-z -]*[a-z])")


def _steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in _jobs(workflow) for step in job["steps"]]


def _jobs(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a workflow's own jobs: those of a workflow it calls are checked there."""
    return [job for job in workflow["jobs"].values() if "uses" not in job]


@pytest.fixture(params=_FILES, ids=lambda file: file.name)
def file(request: pytest.FixtureRequest) -> Path:
    """Each workflow."""
    found: Path = request.param
    return found


def test_workflow_is_valid(file: Path) -> None:
    """It satisfies the schema of GitHub workflows."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_actionlint(file: Path) -> None:
    """The linter actionlint has no complaints."""
    program = found("actionlint", how="`go install github.com/rhysd/actionlint/cmd/actionlint@latest`")
    done = subprocess.run([program, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_few_rights(file: Path) -> None:
    """It may only read the repository; a job states further permissions itself, and leaves no token in the checkout."""
    workflow = load_yaml(file)
    assert workflow["permissions"] == {"contents": "read"}
    checkouts = [step for step in _steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_actions_are_of_a_commit(file: Path) -> None:
    """A tag can be moved, a commit cannot; the tag is beside it for readers."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line and _OWN not in line]
    assert all(re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line) for line in lines), lines


def test_commands_are_there(file: Path) -> None:
    """The targets it makes are in the Makefile, and the programs it runs exist."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = [step["run"] for step in _steps(load_yaml(file)) if "run" in step]
    made = {target for command in commands for found in _MAKE.findall(command) for target in found.split()}
    assert made <= targets
    programs = {word for command in commands for word in command.split() if word.startswith(".ci/")}
    assert all((REPOSITORY / program).is_file() for program in programs)
    assert made | programs


def test_each_job_ends(file: Path) -> None:
    """A job that hangs is stopped within an hour and a half."""
    assert all(job["timeout-minutes"] <= 90 for job in _jobs(load_yaml(file)))


def test_notes_of_a_release_are_its_own(tmp_path: Path) -> None:
    """They are the changelog's section of that version, without the others."""
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n## [1.2.30] - later\n- later\n## [1.2.3] - now\n### Added\n- now\n## [1.2.2]\n- then\n",
        encoding="utf-8",
    )
    command = ["make", "--file", str(REPOSITORY / "Makefile"), "--no-print-directory", "notes"]
    for version, code, notes in (("1.2.3", 0, "### Added\n- now\n"), ("1.2", 2, "")):
        done = subprocess.run(
            [*command, f"VERSION={version}"], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
        )
        assert (done.returncode, done.stdout) == (code, notes)


def test_release_wants_the_checks() -> None:
    """Nothing is published before everything that a change has to pass."""
    jobs = load_yaml(_WORKFLOWS / "release.yml")["jobs"]
    assert jobs["checks"]["uses"] == "./.github/workflows/ci.yml"
    assert jobs["release"]["needs"] == "checks"
