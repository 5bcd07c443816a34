"""Whether the service lives, has started and is ready.

Knows the poll loop's heartbeat and what it is at; knows nothing of HTTP.
"""

import threading
import time

_START_SECONDS = 600.0  # of silence while a state is opened, or the loops compile on a machine that never did


class Health:
    """What the poll loop tells and the probes ask; safe between threads.

    Args:
        stuck_seconds: silence after which the loop counts as stuck, once it has started.
    """

    def __init__(self, stuck_seconds: float) -> None:
        self._stuck_seconds = stuck_seconds
        self._lock = threading.Lock()
        self._beat = time.monotonic()
        self._waiting_for = "start-up"
        self._out_of_reach = ""
        self._started = False

    def beat(self) -> None:
        """Tell that the loop goes round."""
        with self._lock:
            self._beat = time.monotonic()

    def wait_for(self, what: str) -> None:
        """Tell what the service waits for; nothing (an empty string) makes it ready. No heartbeat."""
        with self._lock:
            self._waiting_for = what

    def miss(self, what: str) -> None:
        """Tell what is out of reach, whatever the loop is at; an empty string: nothing. No heartbeat."""
        with self._lock:
            self._out_of_reach = what

    def start(self) -> None:
        """Tell that the start is done. It is done once in the life of a process."""
        with self._lock:
            self._started = True

    def silence(self) -> float:
        """Return the seconds since the last heartbeat."""
        with self._lock:
            return time.monotonic() - self._beat

    def patience(self) -> float:
        """Return the seconds of silence after which the loop counts as stuck."""
        with self._lock:
            return self._stuck_seconds if self._started else max(self._stuck_seconds, _START_SECONDS)

    def alive(self) -> tuple[bool, str]:
        """Return whether the loop goes round, and a line about it."""
        silence = self.silence()
        if silence > self.patience():
            return False, f"the poll loop has been silent for {silence:.0f} s"
        return True, "ok"

    def started(self) -> tuple[bool, str]:
        """Return whether the start is done, and a line about what it is at."""
        with self._lock:
            return (True, "ok") if self._started else _waits_for(self._out_of_reach or self._waiting_for)

    def ready(self) -> tuple[bool, str]:
        """Return whether the service reads its input, or follows it closely, and a line about it."""
        with self._lock:
            return _waits_for(self._out_of_reach or self._waiting_for)


def _waits_for(what: str) -> tuple[bool, str]:
    return (False, f"waiting for {what}") if what else (True, "ok")
