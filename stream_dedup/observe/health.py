"""Whether the service is alive, has started and is ready.

Knows the poll loop's heartbeat and what it is waiting for; knows nothing of HTTP.
"""

import threading
import time
from enum import StrEnum

_START_SECONDS = 600.0  # of silence allowed while a state is opened, or loops are compiled for the first time


class Awaited(StrEnum):
    """What a process waits for until it is ready, as its probes say it."""

    START = "start-up"
    STATE = "the state to load, and the loops to compile at an installation's first start"
    BROKER = "the broker"
    REPLAY = "the changelog to be replayed"
    SECOND_JUDGEMENT = "decided messages to be judged again"
    PARTITIONS = "partitions"
    REGISTRY = "the schema registry"
    END = "the process to end"
    # Of the process that answers queries.
    FIRST_STATE = "a state to read"
    LOOPS = "the loops to compile at an installation's first start"
    STATE_AGAIN = "the state to be read again"


class Health:
    """Set by the poll loop and read by the probes; thread-safe.

    Args:
        stuck_seconds: seconds of silence after which the loop counts as stuck, once the start is complete.
    """

    def __init__(self, stuck_seconds: float) -> None:
        self._stuck_seconds = stuck_seconds
        self._lock = threading.Lock()
        self._beat = time.monotonic()
        self._waiting_for: str = Awaited.START
        self._out_of_reach = ""
        self._started = False

    def beat(self) -> None:
        """Record a heartbeat: the loop is running."""
        with self._lock:
            self._beat = time.monotonic()

    def set_waiting_for(self, what: Awaited | None, left: str = "") -> None:
        """Set what the service is waiting for. Not a heartbeat.

        Args:
            what: None makes it ready.
            left: how much of it is left, if known.
        """
        with self._lock:
            self._waiting_for = f"{what}: {left}" if what and left else what or ""

    def set_unreachable(self, what: Awaited | None) -> None:
        """Set what is unreachable, whatever the loop is doing; None for nothing. Not a heartbeat."""
        with self._lock:
            self._out_of_reach = what or ""

    def start(self) -> None:
        """Record that the start is complete, which happens once in the life of a process."""
        with self._lock:
            self._started = True

    def silence(self) -> float:
        """Return the seconds since the last heartbeat."""
        with self._lock:
            return time.monotonic() - self._beat

    def allowed_silence(self) -> float:
        """Return the seconds of silence after which the loop counts as stuck."""
        with self._lock:
            return self._stuck_seconds if self._started else max(self._stuck_seconds, _START_SECONDS)

    def alive(self) -> tuple[bool, str]:
        """Return whether the loop is running, and a line about it."""
        silence = self.silence()
        if silence > self.allowed_silence():
            return False, f"the poll loop has been silent for {silence:.0f} s"
        return True, "ok"

    def started(self) -> tuple[bool, str]:
        """Return whether the start is complete, and a line about what it is waiting for."""
        with self._lock:
            return (True, "ok") if self._started else _waits_for(self._out_of_reach or self._waiting_for)

    def ready(self) -> tuple[bool, str]:
        """Return whether the service reads its input, or follows it closely, and a line about it."""
        with self._lock:
            return _waits_for(self._out_of_reach or self._waiting_for)


def _waits_for(what: str) -> tuple[bool, str]:
    return (False, f"waiting for {what}") if what else (True, "ok")
