"""The life of a service's process: what it tells its probes, and whom it must not forget while something takes long.

Knows heartbeats, and how long a stop waits; knows nothing of what takes long.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from stream_dedup.observe.health import Health

_STOP_SECONDS = 3.0  # what the last commit may still take of the ten seconds to closing; closing takes some too

Call = Callable[[], None]

log = structlog.get_logger()


class StoppedError(Exception):
    """A stop was asked for while something took long, or while the service could not go on anyway."""


class Life:
    """The life of a process until a stop.

    Args:
        stuck_seconds: as of `Health`.

    Attributes:
        health: what the probes ask.
        stopping: set by `stop`.
    """

    def __init__(self, stuck_seconds: float) -> None:
        self.health = Health(stuck_seconds)
        self.stopping = threading.Event()
        self._stopping_since: float | None = None
        self._kept: tuple[Call, ...] = ()
        self._heard: tuple[Call, ...] = ()

    def stop(self) -> None:
        """Ask for the end. May be called from a signal handler."""
        self.stopping.set()

    def begin(self, what: str) -> None:
        """Tell the probes what the process is at from now on."""
        self.health.beat()
        self.health.wait_for(what)

    @contextmanager
    def keeping(self, *kept: Call) -> Iterator[None]:
        """Call these at every heartbeat: the brokers take whoever is silent for dead."""
        before = self._kept
        self._kept = (*before, *kept)
        try:
            yield
        finally:
            self._kept = before

    @contextmanager
    def hearing(self, *heard: Call) -> Iterator[None]:
        """Call these at every heartbeat, and whenever it is asked for: clients that want to be polled, and gauges."""
        before = self._heard
        self._heard = (*before, *heard)
        try:
            yield
        finally:
            self._heard = before

    def hear(self) -> None:
        """Hear whoever is to be heard."""
        for hear in self._heard:
            hear()

    def heartbeat(self) -> None:
        """Go on living while something takes long.

        Raises:
            StoppedError: a stop has waited for it long enough.
        """
        self.health.beat()
        for keep in self._kept:
            keep()
        self.hear()
        if self.stopping.is_set():
            self._stopping_since = self._stopping_since or time.monotonic()
            if time.monotonic() - self._stopping_since > _STOP_SECONDS:
                raise StoppedError("the broker did not answer: what was not committed will be decided again")

    def heed_stop(self, what: str) -> None:
        """End something that takes long and can be gone on with, if a stop is asked for.

        Args:
            what: was done, in words.

        Raises:
            StoppedError: it is.
        """
        if self.stopping.is_set():
            raise StoppedError(f"{what}: the next start goes on")


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a stop end what it runs, at whatever step."""
    try:
        yield
    except StoppedError as stopped:
        log.info("stopping", detail=str(stopped))
