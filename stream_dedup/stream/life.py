"""The life of a service process: what it tells its probes, and what it keeps calling while a step takes long.

Knows heartbeats and how long a stop waits; knows nothing of the steps that take long.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from stream_dedup.observe.health import Awaited, Health

_OVERDUE_SECONDS = 5.0  # an answer of a broker that works takes a hundredth of it
_APART_SECONDS = 3.0  # between two calls while an answer is awaited, at most
_STOP_SECONDS = 3.0  # for the last commit, of the ten seconds that a stop may take: closing needs the rest

Call = Callable[[], None]

log = structlog.get_logger()


class StoppedError(Exception):
    """A stop was requested during a long step, or while the service could not continue anyway."""


class Life:
    """The life of a process until a stop.

    Args:
        stuck_seconds: see `Health`.

    Attributes:
        health: queried by the probes.
        stopping: set by `stop`.
    """

    def __init__(self, stuck_seconds: float) -> None:
        self.health = Health(stuck_seconds)
        self.stopping = threading.Event()
        self._stopping_since: float | None = None
        self._unanswered_since = self._unanswered_last = -math.inf
        self._at_heartbeat: tuple[Call, ...] = ()
        self._when_polled: tuple[Call, ...] = ()

    def stop(self) -> None:
        """Request a stop. May be called from a signal handler."""
        self.stopping.set()

    def begin(self, what: Awaited) -> None:
        """Tell the probes what the process is waiting for from now on."""
        self.health.beat()
        self.health.set_waiting_for(what)

    @contextmanager
    def called_at_heartbeat(self, *calls: Call) -> Iterator[None]:
        """Call these at every heartbeat: brokers take a silent client for dead."""
        before = self._at_heartbeat
        self._at_heartbeat = (*before, *calls)
        try:
            yield
        finally:
            self._at_heartbeat = before

    @contextmanager
    def called_when_polled(self, *calls: Call) -> Iterator[None]:
        """Call these at every heartbeat and every `poll`: polls of clients that need them, and updates of gauges."""
        before = self._when_polled
        self._when_polled = (*before, *calls)
        try:
            yield
        finally:
            self._when_polled = before

    def poll(self) -> None:
        """Call what `called_when_polled` was given."""
        for call in self._when_polled:
            call()

    def heartbeat(self) -> None:
        """Show signs of life during a long step.

        Raises:
            StoppedError: a stop was requested, and has waited long enough.
        """
        self.health.beat()
        for call in self._at_heartbeat:
            call()
        self.poll()
        if self.stopping.is_set():
            self._stopping_since = self._stopping_since or time.monotonic()
            if time.monotonic() - self._stopping_since > _STOP_SECONDS:
                raise StoppedError(
                    f"a step took more than {_STOP_SECONDS:g} s: what was not committed will be decided again at the "
                    "next start"
                )

    def wait_for_broker(self) -> None:
        """Show signs of life while the broker gives no answer, and tell the probes; who has the answer tells them anew.

        Raises:
            StoppedError: as for `heartbeat`.
        """
        self.health.set_waiting_for(Awaited.BROKER)
        self.heartbeat()

    def wait_for_answer(self) -> None:
        """Show signs of life while the broker owes an answer, and tell the probes if it has owed one for too long.

        Raises:
            StoppedError: as for `heartbeat`.
        """
        now = time.monotonic()
        if now - self._unanswered_last > _APART_SECONDS:
            self._unanswered_since = now
        self._unanswered_last = now
        if now - self._unanswered_since > _OVERDUE_SECONDS:
            self.wait_for_broker()
        else:
            self.heartbeat()

    def raise_if_stopping(self, what: str) -> None:
        """End a long step that can be resumed, if a stop was requested.

        Args:
            what: what was being done, as a clause.

        Raises:
            StoppedError: a stop was requested.
        """
        if self.stopping.is_set():
            raise StoppedError(f"{what}: the next start resumes it")


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a stop end the block at any step."""
    try:
        yield
    except StoppedError as stopped:
        log.info("stopping", detail=str(stopped))
