"""What a lock file pins.

Knows the lines of pip's requirements files; knows nothing of what is installed.
"""

from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

RUN_TIME = Path(__file__).parents[2] / "requirements.lock"


def pinned(lock: Path = RUN_TIME) -> Iterator[Requirement]:
    """Yield each package of a lock file, with its version and the platforms it is for."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            yield Requirement(line.removesuffix("\\"))


def names_here() -> list[str]:
    """Return the names of the run-time packages that this platform installs, sorted."""
    return sorted(
        canonicalize_name(package.name) for package in pinned() if not package.marker or package.marker.evaluate()
    )
