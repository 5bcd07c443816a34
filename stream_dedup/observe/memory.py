"""The memory that this process uses, by kind, its limit, and what all processes under that limit use.

Knows where Linux reports them; on other systems nothing is shown.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from stream_dedup.observe.metrics import Metrics

_STATUS = Path("/proc/self/status")
_KINDS = {"RssAnon": "anonymous", "RssFile": "file"}
_UNIT = 1024  # bytes in what Linux calls kB
_MEMBERSHIP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
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


def show_memory(metrics: Metrics) -> None:
    """Refresh the metrics of the memory in use and its limit; where they cannot be read, they stay as they are."""
    try:
        status = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        # Another system, or no file descriptor is left: the other metrics are then needed most.
        return
    own = {
        _KINDS[name]: int(value.split()[0]) * _UNIT
        for name, _, value in (line.partition(":") for line in status.splitlines())
        if name in _KINDS
    }
    for kind, size in own.items():
        metrics.memory_bytes.labels(kind).set(size)
    limit = memory_limit(_MEMBERSHIP, _GROUPS)
    metrics.memory_limit_bytes.set(limit.size)
    used = own.get("anonymous", 0) if limit.used is None else limit.used
    metrics.memory_limited_bytes.set(used if limit.size else 0)


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
