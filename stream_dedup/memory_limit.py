"""The memory limit of this process: that of its control group and of those above it.

Knows where Linux keeps it, in both versions of control groups; elsewhere there is none.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MEMBERSHIP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60  # version 1 reports a larger number if there is no limit
_USED = {"anon", "total_rss"}  # what versions 2 and 1 call the anonymous memory of a group and those below it


class MemoryLimit(NamedTuple):
    """The lowest memory limit that applies to a process.

    Attributes:
        size: in bytes; 0 if there is none.
        used: anonymous memory of all processes under it, in bytes; None if unknown.
    """

    size: int
    used: int | None


def memory_limit(membership: Path, groups: Path) -> MemoryLimit:
    """Return the memory limit of a process: the lowest of its control group and those above it.

    Args:
        membership: file that lists the process's groups, of version 1 or 2.
        groups: directory where they are mounted. In a container it is the container's own group, whatever the path
            to that is outside.
    """
    limits: list[tuple[int, Path]] = []
    with suppress(OSError):
        for line in membership.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                limits += _limits(groups, path, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _limits(groups / "memory", path, "memory.limit_in_bytes")
    if not limits:
        return MemoryLimit(0, None)
    size, group = min(limits)
    return MemoryLimit(size, _used(group / "memory.stat"))


def _limits(root: Path, path: str, name: str) -> list[tuple[int, Path]]:
    """Return the limits of a group and of all above it, up to the root, in bytes, each with its group.

    Args:
        root: directory of the uppermost group.
        path: of the group, below it.
        name: of the file with a group's limit.
    """
    own = root / path.lstrip("/")
    found: list[tuple[int, Path]] = []
    for group in (own, *own.parents):
        if group.is_relative_to(root):
            # The file may be missing, or say "max".
            with suppress(OSError, ValueError):
                limit = int((group / name).read_text(encoding="ascii"))
                if limit < _NO_LIMIT:
                    found.append((limit, group))
    return found


def _used(statistics: Path) -> int | None:
    with suppress(OSError):
        for line in statistics.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name in _USED:
                return int(value)
    return None
