"""The memory that this process uses, by kind, and its limit.

Knows where Linux reports them; on other systems nothing is shown.
"""

from contextlib import suppress
from pathlib import Path

from stream_dedup.observe.metrics import Metrics

_STATUS = Path("/proc/self/status")
_KINDS = {"RssAnon": "anonymous", "RssFile": "file"}
_UNIT = 1024  # bytes in what Linux calls kB
_MEMBERSHIP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60  # version 1 reports a larger number if there is no limit


def show_memory(metrics: Metrics) -> None:
    """Refresh the metrics of the memory in use and its limit; where they cannot be read, they stay as they are."""
    try:
        status = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        # Another system, or no file descriptor is left: the other metrics are then needed most.
        return
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in _KINDS:
            metrics.memory_bytes.labels(_KINDS[name]).set(int(value.split()[0]) * _UNIT)
    metrics.memory_limit_bytes.set(memory_limit(_MEMBERSHIP, _GROUPS))


def memory_limit(membership: Path, groups: Path) -> int:
    """Return the memory limit of a process in bytes: the lowest of its control group and those above it; 0 for none.

    Args:
        membership: file that lists the process's groups, of version 1 or 2.
        groups: directory where they are mounted. In a container it is the container's own group, whatever the path
            to that is outside.
    """
    limits: list[int] = []
    with suppress(OSError):
        for line in membership.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                limits += _limits(groups, path, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _limits(groups / "memory", path, "memory.limit_in_bytes")
    return min((limit for limit in limits if limit < _NO_LIMIT), default=0)


def _limits(root: Path, path: str, name: str) -> list[int]:
    """Return the limits of a group and of all above it, up to the root."""
    own = root / path.lstrip("/")
    found: list[int] = []
    for group in (own, *own.parents):
        if group.is_relative_to(root):
            # The file may be missing, or say "max".
            with suppress(OSError, ValueError):
                found.append(int((group / name).read_text(encoding="ascii")))
    return found
