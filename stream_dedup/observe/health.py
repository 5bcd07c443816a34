"""Whether the service lives and is ready.

Knows the poll loop's heartbeat and its state; knows nothing of HTTP.
"""

import threading
import time


class Health:
    """What the poll loop tells and the probes ask; safe between threads.

    Args:
        stuck_seconds: silence after which the loop counts as stuck.
    """

    def __init__(self, stuck_seconds: float) -> None:
        self._stuck_seconds = stuck_seconds
        self._lock = threading.Lock()
        self._beat = time.monotonic()
        self._waiting_for = "start-up"

    def beat(self) -> None:
        """Tell that the loop goes round."""
        with self._lock:
            self._beat = time.monotonic()

    def wait_for(self, what: str) -> None:
        """Tell what the service waits for; nothing (an empty string) makes it ready. Counts as a heartbeat."""
        with self._lock:
            self._waiting_for = what
            self._beat = time.monotonic()

    def alive(self) -> tuple[bool, str]:
        """Return whether the loop goes round, and a line about it."""
        with self._lock:
            silence = time.monotonic() - self._beat
        if silence > self._stuck_seconds:
            return False, f"the poll loop has been silent for {silence:.0f} s"
        return True, "ok"

    def ready(self) -> tuple[bool, str]:
        """Return whether the service reads its input, and a line about it."""
        with self._lock:
            waiting_for = self._waiting_for
        return (False, f"waiting for {waiting_for}") if waiting_for else (True, "ok")
