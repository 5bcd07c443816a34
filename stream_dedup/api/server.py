"""The API's process: waits for a state, follows it, answers queries and probes until it is stopped.

Knows processes, threads and sockets; knows nothing of paths or queries.
"""

import asyncio
import gc
import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn

from stream_dedup.api.app import make_app
from stream_dedup.api.connections import KEEP_ALIVE_SECONDS, Connection
from stream_dedup.ask.query_service import QueryService
from stream_dedup.background import let_others_first
from stream_dedup.index.stores.store import StoreError
from stream_dedup.observe.health import Awaited, Health
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.observe.watchdog import Watchdog
from stream_dedup.settings import Settings
from stream_dedup.signals import leave

_WAIT_SECONDS = 1.0
_TICK_SECONDS = 0.5
_READING_NICENESS = 5  # queries wait while the state is being read
_END_SECONDS = 1.0  # for what is being read when a stop is requested
_BEATS = 4  # heartbeats, at least, before the loop would count as stuck
# Refreshes cost the stream something: so many seconds after the last query, there is only one per second.
_ASKING_SECONDS, _UNASKED_SECONDS = 10.0, 1.0

log = structlog.get_logger()


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller, and wakes up less often."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield

    async def main_loop(self) -> None:
        """Look for a stop, and renew the time in answers, until there is one: the base does so ten times a second."""
        while not await self.on_tick(0):  # noqa: ASYNC110  # the flag is the base's, and no event
            await asyncio.sleep(_TICK_SECONDS)


class Server:
    """Serves the API: probes from the beginning, answers once there is a state to read.

    If its loop hangs for `http.stuck_seconds`, the process logs its stacks and ends: it has nothing to lose, and is
    restarted.

    Args:
        settings: settings of the service whose state is queried.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._server: uvicorn.Server | None = None
        self._health = Health(settings.http.stuck_seconds)
        self._recurring_faults = RecurringFaults()
        self._queries: QueryService | None = None
        self._fault: Exception | None = None
        self._asked_at = -math.inf  # by `time.monotonic`

    def stop(self) -> None:
        """Ask the server to end. May be called from a signal handler or another thread."""
        self._stopping.set()
        if self._server is not None:
            self._server.should_exit = True

    def run(self) -> None:
        """Serve until `stop`; while the state is being opened, or loops are compiled, that ends the process.

        Raises:
            OSError: the port is taken.
            SettingsError: a setting is refused by the library that uses it.
        """
        api = self._settings.api
        os.nice(api.nice)
        with _listening(api.host, api.port) as listening, Watchdog(self._health, ends=True):
            looking = threading.Thread(target=self._look, args=(_url(listening),), name="look", daemon=True)
            looking.start()
            self._serve(listening)
            self._stopping.set()
            looking.join(_END_SECONDS)
            if looking.is_alive():
                # Neither compiling nor opening a large state can be interrupted, and there is nothing to lose.
                leave(0)
            if self._queries is not None:
                self._queries.close()
        if self._fault is not None:
            raise self._fault

    def queries(self) -> QueryService:
        """Return the service that answers queries.

        Raises:
            StoreError: there is no state to read yet.
        """
        self._asked_at = time.monotonic()
        started, line = self._health.started()
        if self._queries is None or not started:
            raise StoreError(line)
        return self._queries

    def _serve(self, listening: socket.socket) -> None:
        config = uvicorn.Config(
            make_app(self.queries, self._settings, self._health),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=Connection,
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=KEEP_ALIVE_SECONDS,
        )
        self._server = _Server(config)
        if not self._stopping.is_set():
            self._server.run([listening])

    def _look(self, url: str) -> None:
        """Open the state once there is one, and follow it."""
        try:
            queries = self._queries = self._opened(url)
            if queries is None:
                return
            self._health.set_waiting_for(Awaited.LOOPS)
            queries.warm_up()
            # A garbage collection that goes through the dictionaries would delay queries by a tenth of a second.
            gc.collect()
            gc.freeze()
            if self._stopping.is_set():
                return
            self._health.beat()  # compiling takes longer than a loop may be silent
            self._health.start()
            log.info("answering", api=url)
            self._follow(queries)
        except Exception as error:  # noqa: BLE001  # whatever it is, `run` raises it
            self._fault = error
            self.stop()

    def _opened(self, url: str) -> QueryService | None:
        """Return the query service once there is a state to read; None if the server was stopped before."""
        told = False
        self._health.set_waiting_for(Awaited.FIRST_STATE)
        while not self._stopping.is_set():
            self._health.beat()
            try:
                return QueryService(self._settings)
            except StoreError as error:
                if not told:
                    log.info("api_waits", api=url, detail=str(error))
                told = True
            self._stopping.wait(_WAIT_SECONDS)
        return None

    def _follow(self, queries: QueryService) -> None:
        let_others_first(_READING_NICENESS)
        while not self._stopping.is_set():
            try:
                queries.refresh()
            except StoreError as error:
                self._health.set_waiting_for(Awaited.STATE_AGAIN)
                kind = type(error).__name__
                self._recurring_faults.warning("state_not_read", error=kind, detail=str(error), then="trying again")
            else:
                self._health.set_waiting_for(None)
            self._rest(self._pause())

    def _rest(self, seconds: float) -> None:
        """Wait for the next refresh, however long, with heartbeats meanwhile."""
        slice_seconds = self._health.allowed_silence() / _BEATS
        end = time.monotonic() + seconds
        self._health.beat()
        while (left := end - time.monotonic()) > 0 and not self._stopping.wait(min(left, slice_seconds)):
            self._health.beat()

    def _pause(self) -> float:
        """Return the seconds between two refreshes of the state."""
        pause = self._settings.api.refresh_ms / 1000
        asking = time.monotonic() - self._asked_at < _ASKING_SECONDS
        return pause if asking else max(pause, _UNASKED_SECONDS)


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listening(host: str, port: int) -> socket.socket:
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(f"cannot listen on api.host = {host}, api.port = {port}: {error.strerror or error}") from None
    # Connections inherit it: otherwise the body of an answer waits 40 ms for its head to be acknowledged.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
