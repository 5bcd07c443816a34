"""The supply chain: pinned and hashed packages, allowed licences, a list of packages, an honest audit."""

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from deploy.supply import audit, sbom
from deploy.supply.audit import EXIT_CLEAN, EXIT_UNKNOWN, EXIT_VULNERABLE, findings
from deploy.supply.licences import PAGE, declared, page, refused
from deploy.supply.lock import RUN_TIME, names_here, pinned
from stream_dedup import __version__
from tests.deploy.files import REPOSITORY

_LOCKS = (RUN_TIME, REPOSITORY / "requirements-dev.lock", REPOSITORY / "deploy" / "docker" / "build.lock")
_CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
_SKIPPED = {"name": "rjieba", "skip_reason": "not found"}
_VULNERABLE = {"name": "h11", "version": "0.1", "vulns": [{"id": "CVE-2025-1", "fix_versions": ["0.16.0"]}]}


@pytest.mark.parametrize("lock", _LOCKS, ids=lambda lock: lock.name)
def test_locks_pin_and_hash(lock: Path) -> None:
    """Each package has one version, with the hashes of its files."""
    text = lock.read_text(encoding="utf-8")
    packages = list(pinned(lock))
    assert packages
    assert all(len(package.specifier) == 1 and "==" in str(package.specifier) for package in packages)
    blocks = text.split("\n    --hash=sha256:")
    assert len(blocks) > len(packages)
    # The line that begins a package ends with a backslash, because hashes follow.
    assert text.count(" \\\n") == len(blocks) - 1


def test_what_is_run_is_what_is_tested() -> None:
    """Run-time packages have the versions that the tests use."""
    tested, run = ({(one.name, str(one.specifier)) for one in pinned(lock)} for lock in (_LOCKS[1], RUN_TIME))
    assert run <= tested


def test_licences_are_listed_and_allowed() -> None:
    """The page names each run-time package of this platform with its declared licence; `make licences` updates it."""
    names = names_here()
    licences = declared(names)
    assert sorted(licences) == names
    shown = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
    elsewhere = {one.name for one in pinned(RUN_TIME)} - {*names}  # such as those for other versions of Python
    assert "".join(line for line in shown if not elsewhere & {*line.split()[1:2]}) == page(licences)
    assert refused(licences) == {}


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR AGPL-3.0)", "UNKNOWN", ""])
def test_other_licences_are_refused(licence: str) -> None:
    """A licence that is not allowed is reported, even within an expression, and so is an unknown one."""
    assert refused({"fine": "MIT", "other": licence}) == {"other": licence}


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ([_CLEAN], EXIT_CLEAN),
        ([_CLEAN, _VULNERABLE, _SKIPPED], EXIT_VULNERABLE),
        ([_CLEAN, _SKIPPED], EXIT_UNKNOWN),
        ([_SKIPPED], EXIT_UNKNOWN),
        ([], EXIT_UNKNOWN),
    ],
)
def test_audit_knows_what_it_does_not_know(told: list[dict[str, Any]], code: int) -> None:
    """Packages that could not be checked are not good news: pip-audit itself would exit with 0."""
    assert findings(told).code == code


@pytest.mark.parametrize(
    ("script", "seconds", "told"),
    [
        (None, 60.0, "pip-audit cannot be started"),
        ("sleep 60", 1.0, "gave no answer"),
        ("echo none", 60.0, "reported nothing"),
    ],
)
def test_audit_without_an_answer_is_no_vulnerability(
    script: str | None,
    seconds: float,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without pip-audit, or if it hangs or says nothing, it is unknown whether there are vulnerabilities."""
    if script is not None:
        program = tmp_path / "pip-audit"
        program.write_text(f"#!/bin/sh\nexec {script}\n")
        program.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(audit, "_SECONDS", seconds)
    assert audit.main() == EXIT_UNKNOWN
    assert told in capsys.readouterr().err


def test_audit_names_what_to_do() -> None:
    """A vulnerability is reported with its package and the version that fixes it."""
    assert findings([_VULNERABLE]).vulnerable == ["h11 0.1: CVE-2025-1, fixed in 0.16.0"]


def test_list_of_packages(tmp_path: Path) -> None:
    """The list has the service and each run-time package with their versions and dependencies."""
    file = tmp_path / "sbom.json"
    sbom.write(file)
    told = json.loads(file.read_text(encoding="utf-8"))
    service = told["metadata"]["component"]
    assert (told["bomFormat"], service["name"], service["version"]) == ("CycloneDX", "stream-dedup", __version__)
    listed = {(canonicalize_name(one["name"]), f"=={one['version']}") for one in told["components"]}
    assert sorted(name for name, _ in listed) == names_here()
    assert listed <= {(one.name, str(one.specifier)) for one in pinned()}
    needs = {one["ref"]: one.get("dependsOn", []) for one in told["dependencies"]}
    assert any(name.startswith("confluent-kafka==") for name in needs[service["bom-ref"]])
