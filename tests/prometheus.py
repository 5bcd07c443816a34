"""Prometheus' own programs, where they are installed.

Knows how to get them; knows nothing of what they are asked.
"""

from pathlib import Path

from tests.programs import found


def program(name: str) -> Path:
    """Return where `promtool` or `prometheus` is; see `found`."""
    return Path(found(name, how="`apt-get install prometheus` on Debian", required="PROMETHEUS_REQUIRED"))
