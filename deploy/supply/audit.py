"""`python -m deploy.supply.audit`: checks the run-time packages for known vulnerabilities.

Knows what pip-audit reports, and that no report is not good news; knows no vulnerability.
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.supply.lock import RUN_TIME

EXIT_CLEAN, EXIT_VULNERABLE, EXIT_UNKNOWN = 0, 1, 2
_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Findings:
    """What an audit found.

    Attributes:
        audited: packages that the advisory service knows.
        unknown: packages that it could not be asked about.
        vulnerable: a line for each vulnerability.
    """

    audited: int
    unknown: list[str] = field(default_factory=list)
    vulnerable: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The exit code: an unknown package proves as little as an answer that did not come."""
        if self.vulnerable:
            return EXIT_VULNERABLE
        return EXIT_UNKNOWN if self.unknown or not self.audited else EXIT_CLEAN


def findings(told: Sequence[dict[str, Any]]) -> Findings:
    """Return what pip-audit's list of packages says."""
    unknown = [package["name"] for package in told if "skip_reason" in package]
    known = [package for package in told if "skip_reason" not in package]
    return Findings(len(known), unknown, [line for package in known for line in _lines(package)])


def _lines(package: dict[str, Any]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: {one['id']}, fixed in {', '.join(one['fix_versions']) or 'none'}"
        for one in package["vulns"]
    ]


def _asked() -> tuple[list[dict[str, Any]], str]:
    """Return pip-audit's list of packages, or why there is none."""
    program = Path(sysconfig.get_path("scripts")) / "pip-audit"
    flags = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command = [str(program), "--requirement", str(RUN_TIME), *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [], f"pip-audit gave no answer within {_SECONDS:.0f} s"
    except OSError as error:
        return [], f"pip-audit cannot be started: {error}"
    try:
        told: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return [], done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip-audit reported nothing"
    return told, ""


def main() -> int:
    """Print what was found; return 1 for vulnerabilities, 2 if it is unknown whether there are any."""
    told, fault = _asked()
    found = findings(told)
    for line in found.vulnerable:
        print(line)
    if fault:
        print(f"nothing was audited: {fault}", file=sys.stderr)
    elif not found.audited:
        print(
            "nothing was audited: the advisory service knows none of the packages, or is unreachable", file=sys.stderr
        )
    elif found.unknown:
        print(f"not audited, unknown to the advisory service: {', '.join(found.unknown)}", file=sys.stderr)
    print(f"{found.audited} packages audited, {len(found.vulnerable)} vulnerabilities")
    return found.code


if __name__ == "__main__":
    sys.exit(main())
