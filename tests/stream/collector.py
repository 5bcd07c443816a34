"""An OpenTelemetry collector: receives spans by OTLP over HTTP and keeps them.

Knows the protocol; knows nothing of who sends. Messages are decoded with OpenTelemetry's own definitions.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PROTOBUF = "application/x-protobuf"


class Collector:
    """Listens on a free port while the context is open.

    Args:
        silent: whether it accepts requests but never answers.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[ExportTraceServiceRequest] = []
        self.asked = 0  # requests, answered or not
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The URL it listens on."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[Span]:
        """Return all spans received."""
        with self._lock:
            requests = list(self._requests)
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resource(self) -> dict[str, Any]:
        """Return the resource that sent the first spans."""
        with self._lock:
            return attributes_of(self._requests[0].resource_spans[0].resource.attributes)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.asked += 1
                if collector._silent:
                    collector._ending.wait()
                    return
                well = self.path == "/v1/traces" and self.headers["Content-Type"] == PROTOBUF
                if well:
                    with collector._lock:
                        collector._requests.append(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if well else 400)
                self.send_header("Content-Type", PROTOBUF)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the overridden name
                """Stay silent."""

        return Handler


def attributes_of(pairs: Any) -> dict[str, Any]:  # noqa: ANN401  # a repeated field, which has no public type
    """Return attributes as a dictionary."""
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:  # noqa: ANN401  # any kind of value
    return getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
