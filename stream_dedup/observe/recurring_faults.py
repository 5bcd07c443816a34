"""Rate-limited logging of recurring faults: the first is logged at once, then how often it recurred.

Knows a period and what counts as a repetition; knows no event.
"""

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

_PERIOD_SECONDS = 30.0

log = structlog.get_logger()


@dataclass(slots=True)
class _Held:
    """Occurrences of a fault since it was last logged: their number, and the fields of the latest."""

    level: Literal["warning", "error"]
    fields: dict[str, Any] = field(default_factory=dict)
    repeated: int = 0


class RecurringFaults:
    """Logs faults, at most once per period for each combination of event and `error`.

    The first is logged at once. Those that follow within a period are logged at its end as one line: the latest, with
    their number in `repeated`. If none followed, the next one counts as a first one again. Thread-safe.

    Args:
        seconds: length of a period.
    """

    def __init__(self, seconds: float = _PERIOD_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], _Held] = {}

    def warning(self, event: str, *, error: str, **fields: object) -> None:
        """Log a fault that is temporary, or that the service can cope with.

        Args:
            event: name of an event in the catalogue.
            error: the kind of fault; the number of kinds must be bounded.
            fields: the event's other fields.
        """
        self._tell(event, error, "warning", fields)

    def error(self, event: str, *, error: str, **fields: object) -> None:
        """Log a fault that must not happen; see `warning`."""
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
        timer.name, timer.daemon = "recurring_faults", True
        try:
            timer.start()
        except RuntimeError:  # the system has no more threads: the next fault counts as the first
            with self._lock:
                del self._held[event, error]

    def _end(self, event: str, error: str) -> None:
        """End a period: forget the fault if it did not recur, else log it and begin another period."""
        with self._lock:
            held = self._held.pop((event, error))
            if not held.repeated:
                return
            self._held[event, error] = _Held(held.level)
        _write(held.level, event, error, {**held.fields, "repeated": held.repeated})
        self._wait(event, error)


def _write(level: str, event: str, error: str, fields: dict[str, Any]) -> None:
    getattr(log, level)(event, error=error, **fields)
