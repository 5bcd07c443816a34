"""Faults that pass by themselves while a service decides: aborted transactions, an unreachable schema registry.

Knows how they are reported and when there were too many; knows nothing of what is retried.
"""

import math
import time

from stream_dedup.observe.health import Awaited
from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.registry import RegistryUnreachableError
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.life import Life
from stream_dedup.stream.output.errors import AbortedError, StuckError
from stream_dedup.stream.watching.meter import Meter

_PAUSE_SECONDS = 0.5  # after an aborted transaction
_SLICE_SECONDS = 0.05  # of the pause, until a stop is noticed
_MOST_DEADLINES = 3  # that a transaction may take: sending, committing and aborting it each have one


class Aborts:
    """Aborted transactions, treated as transient unless none has succeeded for too long.

    Args:
        life: of the process.
        meter: counts them.
        deadline_seconds: how long that is.
    """

    def __init__(self, life: Life, meter: Meter, deadline_seconds: float) -> None:
        self._life = life
        self._meter = meter
        self._deadline_seconds = deadline_seconds
        self._first = self._last = -math.inf  # of the aborts since the last success
        self._recurring_faults = RecurringFaults()

    def pause_after(self, error: AbortedError) -> None:
        """Pause for a moment after an aborted transaction.

        Raises:
            BrokerError: every transaction has been aborted for too long.
        """
        self._meter.aborted()
        now = time.monotonic()
        if now - self._last > _MOST_DEADLINES * self._deadline_seconds:
            # Since the last one none was tried: there was no message, or another process owned the index.
            self._first = now
        self._last = now
        if now - self._first > self._deadline_seconds:
            raise BrokerError(f"given up after commit.deadline_seconds: {error}") from None
        if isinstance(error, StuckError):
            self._recurring_faults.warning("writer_renewed", error=type(error).__name__, detail=str(error))
        else:
            # A signal handler that sets the event would wait for the lock that its `wait` holds in this thread.
            end = time.monotonic() + _PAUSE_SECONDS
            while time.monotonic() < end and not self._life.stopping.is_set():
                time.sleep(_SLICE_SECONDS)

    def end(self) -> None:
        """Note that a transaction has succeeded."""
        self._last = -math.inf


class Outages:
    """Times when the schema registry is out of reach. May be reported from the reader's thread.

    Args:
        life: of the process.
        metrics: of the process.
    """

    def __init__(self, life: Life, metrics: Metrics) -> None:
        self._life = life
        self._metrics = metrics
        self._recurring_faults = RecurringFaults()

    def report(self, outage: RegistryUnreachableError) -> None:
        """Report that the service is waiting for the schema registry."""
        self._metrics.registry_waiting.set(1)
        self._life.health.set_unreachable(Awaited.REGISTRY)
        self._recurring_faults.warning("registry_out_of_reach", error="registry", detail=str(outage))

    def report_with_heartbeat(self, outage: RegistryUnreachableError) -> None:
        """Report it from the thread that also has to send the heartbeats."""
        self.report(outage)
        self._life.heartbeat()

    def end(self) -> None:
        """Report that the service is no longer waiting for the schema registry."""
        self._metrics.registry_waiting.set(0)
        self._life.health.set_unreachable(None)
