"""The HTTP port: /metrics, /startupz, /healthz and /readyz.

Knows the four paths; knows nothing of what the values mean.
"""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import make_wsgi_app

from stream_dedup.observe.faults import traceback_without_messages
from stream_dedup.observe.health import Health
from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import HttpSettings

_REQUEST_SECONDS = 10.0  # from the connection to the end of the answer
_MOST_CONNECTIONS = 64

_recurring_faults = RecurringFaults()


class _Server(ThreadingMixIn, WSGIServer):
    """Gives each connection a thread, and no client the means to use up threads or descriptors of the service.

    A connection ends after `_REQUEST_SECONDS`, however slowly its client goes on; above `_MOST_CONNECTIONS`, the
    oldest ends at once.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._lock = threading.Lock()
        self._begun: dict[socket.socket, float] = {}  # when connections that may go on were accepted, oldest first

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as in the library
        """Answer a connection in a thread of its own."""
        with self._lock:
            self._begun[request] = time.monotonic()
            self._disconnect([*self._begun][:-_MOST_CONNECTIONS])
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as in the library
        """Close a connection."""
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Disconnect clients that have taken too long; called twice a second."""
        latest = time.monotonic() - _REQUEST_SECONDS
        with self._lock:
            self._disconnect([request for request, begun in self._begun.items() if begun < latest])

    def _disconnect(self, requests: Iterable[socket.socket]) -> None:
        """Disconnect clients, under the lock; their threads notice that and close the connections."""
        for request in requests:
            del self._begun[request]
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a fault outside an answer, such as no thread for it; the library would print its traceback."""
        del request, client_address
        if (error := sys.exception()) is not None:
            _log_fault(error)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    def handle(self) -> None:
        """Answer a request; a client that sends none in time, or goes away, is no fault."""
        with suppress(TimeoutError, ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the overridden name
        """Keep probes and scrapes out of the log."""


class MonitoringServer:
    """Serves the port from its own threads while the context is active.

    Args:
        settings: address and port.
        metrics: shown by /metrics.
        health: queried by the other paths.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, settings: HttpSettings, metrics: Metrics, health: Health) -> None:
        self._refresh = metrics.refresh
        self._metrics: WSGIApplication = make_wsgi_app(metrics.registry)
        self._probes = {"/startupz": health.started, "/healthz": health.alive, "/readyz": health.ready}
        try:
            self._server = make_server(
                settings.host,
                settings.port,
                self._respond,
                server_class=_Server6 if ":" in settings.host else _Server,
                handler_class=_QuietHandler,
            )
        except OSError as error:
            place = f"http.host = {settings.host}, http.port = {settings.port}"
            raise OSError(f"cannot listen on {place}: {error.strerror or error}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def url(self) -> str:
        """The URL that it listens on."""
        host = str(self._server.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _respond(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return self._answered(environment, start_response)
        except Exception as error:  # noqa: BLE001  # logged, whatever it is: the next request may be answered
            _log_fault(error)
            return _answer(start_response, "500 Internal Server Error", "a fault of the service: see its log\n")

    def _answered(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match environment.get("REQUEST_METHOD"):
            case "GET":
                return self._get(environment, start_response)
            case "HEAD":
                return _headers_alone(self._get, environment, start_response)
            case _:
                return _answer(start_response, "405 Method Not Allowed", "use GET or HEAD\n", ("Allow", "GET, HEAD"))

    def _get(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environment.get("PATH_INFO", "")
        if path == "/metrics":
            self._refresh()
            return self._metrics(environment, start_response)
        probe = self._probes.get(path)
        if probe is None:
            return _answer(start_response, "404 Not Found", f"the paths are /metrics, {', '.join(self._probes)}\n")
        well, line = probe()
        return _answer(start_response, "200 OK" if well else "503 Service Unavailable", line + "\n")


def _log_fault(error: BaseException) -> None:
    """Log why a request was not answered; rarely, however often a client asks."""
    _recurring_faults.error(
        "request_not_answered", error=type(error).__name__, exception=traceback_without_messages(error)
    )


def _answer(start_response: StartResponse, status: str, text: str, *more: tuple[str, str]) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *more])
    return [text.encode()]


def _headers_alone(
    get: WSGIApplication, environment: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer HEAD like GET, with the length of the body but without the body."""
    told: list[tuple[str, list[tuple[str, str]]]] = []

    def keep(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> Callable[[bytes], object]:
        told.append((status, headers))
        return lambda _: None

    body = b"".join(get({**environment, "REQUEST_METHOD": "GET"}, keep))
    ((status, headers),) = told
    start_response(status, [*headers, ("Content-Length", str(len(body)))])
    return []
