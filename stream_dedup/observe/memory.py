"""The memory that this process uses, by kind, and what all processes under its limit use.

Knows where Linux reports it; on other systems nothing is shown.
"""

from pathlib import Path

from stream_dedup.memory_limit import GROUPS, MEMBERSHIP, memory_limit
from stream_dedup.observe.metrics import Metrics

_STATUS = Path("/proc/self/status")
_KINDS = {"RssAnon": "anonymous", "RssFile": "file"}
_UNIT = 1024  # bytes in what Linux calls kB


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
    limit = memory_limit(MEMBERSHIP, GROUPS)
    metrics.memory_limit_bytes.set(limit.size)
    used = own.get("anonymous", 0) if limit.used is None else limit.used
    metrics.memory_limited_bytes.set(used if limit.size else 0)
