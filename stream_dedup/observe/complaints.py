"""Faults that come again and again: the first is told at once, and how many followed.

Knows a period and what is alike; knows no event.
"""

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

_PERIOD_SECONDS = 30.0

log = structlog.get_logger()


@dataclass(slots=True)
class _Held:
    """What came since a fault was told last: how often, and the last of them."""

    level: Literal["warning", "error"]
    fields: dict[str, Any] = field(default_factory=dict)
    repeated: int = 0


class Complaints:
    """Tells the log of faults, at most one event a period of those that are alike in event and `error`.

    The first is told at once. Those that follow within a period are told at its end: the last of them, with
    `repeated`, how many there were. Where none followed the next one is a first one again. Safe between threads.

    Args:
        seconds: of a period.
    """

    def __init__(self, seconds: float = _PERIOD_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], _Held] = {}

    def warning(self, event: str, *, error: str, **fields: object) -> None:
        """Tell of something that passes by itself, or that the service bears.

        Args:
            event: of the catalogue.
            error: what kind of fault it is; there must be a bounded number of them.
            fields: of the event.
        """
        self._tell(event, error, "warning", fields)

    def error(self, event: str, *, error: str, **fields: object) -> None:
        """Tell of something that must not happen; see `warning`."""
        self._tell(event, error, "error", fields)

    def _tell(self, event: str, error: str, level: Literal["warning", "error"], fields: dict[str, Any]) -> None:
        with self._lock:
            held = self._held.get((event, error))
            if held is not None:
                held.repeated += 1
                held.fields = fields
                return
            self._held[event, error] = _Held(level)
        _write(level, event, error, fields)
        self._wait(event, error)

    def _wait(self, event: str, error: str) -> None:
        timer = threading.Timer(self._seconds, self._end, (event, error))
        timer.name, timer.daemon = "complaints", True
        timer.start()

    def _end(self, event: str, error: str) -> None:
        """End a period: forget the fault if nothing followed, else tell and begin another one."""
        with self._lock:
            held = self._held.pop((event, error))
            if not held.repeated:
                return
            self._held[event, error] = _Held(held.level)
        _write(held.level, event, error, {**held.fields, "repeated": held.repeated})
        self._wait(event, error)


def _write(level: str, event: str, error: str, fields: dict[str, Any]) -> None:
    getattr(log, level)(event, error=error, **fields)
