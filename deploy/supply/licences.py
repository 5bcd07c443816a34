"""`python -m deploy.supply.licences`: writes the licences of the run-time packages to deploy/LICENCES.md.

Knows the table, and which licences may be in it; knows nothing of how packages declare theirs.
"""

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from deploy.supply.lock import names_here

PAGE = Path(__file__).parents[1] / "LICENCES.md"
# By the words of the packages: SPDX's identifiers, or the classifiers of older ones. All may be passed on with a
# service under the Apache License; the MPL asks for its own files' source alone, which are others' and unchanged.
ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC"),
        *("MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Zlib"),
        *("3-Clause BSD License", "Apache Software License", "BSD License", "ISC License (ISCL)", "MIT License"),
        "Mozilla Public License 2.0 (MPL 2.0)",
    }
)
_HEAD = """# Licences of the packages that the service runs with
Made by `make licences` out of what the packages of `requirements.lock` declare, on Linux. Libraries that they bring
along (librdkafka, RocksDB, LLVM, OpenBLAS, ...) have theirs in the packages. The service: [Apache 2.0](../LICENSE).

| package | licence |
| --- | --- |
"""


def declared(names: list[str]) -> dict[str, str]:
    """Return the licence that each of some installed packages declares, by its name."""
    program = Path(sysconfig.get_path("scripts")) / "pip-licenses"
    command = [str(program), "--python", sys.executable, "--format=json", "--packages", *names]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {canonicalize_name(package["Name"]): package["License"] for package in told}


def refused(licences: Mapping[str, str]) -> dict[str, str]:
    """Return those whose licence, or any part of it, is not an allowed one."""
    return {name: licence for name, licence in licences.items() if not set(_parts(licence)) <= ALLOWED}


def page(licences: Mapping[str, str]) -> str:
    """Return the page."""
    return _HEAD + "".join(f"| {name} | {licence} |\n" for name, licence in sorted(licences.items()))


def _parts(licence: str) -> list[str]:
    """Return the licences in an expression, or in a list of classifiers."""
    if licence in ALLOWED:
        return [licence]  # some have brackets of their own
    return [part.strip("()") for part in re.split(r" AND | OR |; ", licence)]


def main() -> int:
    """Write the page; end with 1 where a licence is not allowed."""
    licences = declared(names_here())
    PAGE.write_text(page(licences), encoding="utf-8")
    for name, licence in refused(licences).items():
        print(f"{name}: {licence} is none of those that are allowed (deploy/supply/licences.py)", file=sys.stderr)
    return bool(refused(licences))


if __name__ == "__main__":
    sys.exit(main())
