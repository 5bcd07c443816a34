"""Prometheus' own programs, if installed.

Knows how to get them; knows nothing of how they are used.
"""

from pathlib import Path

from tests.programs import found


def program(name: str) -> Path:
    """Return the path of `promtool` or `prometheus`; see `found`."""
    return Path(found(name, how="`apt-get install prometheus` on Debian", required="PROMETHEUS_REQUIRED"))
