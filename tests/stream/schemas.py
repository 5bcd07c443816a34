"""A schema registry that services can reach: confluent-kafka's mock registry, served over HTTP.

Knows the requests of clients, and outages; knows nothing of what a test expects.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

Reply = tuple[int, dict[str, Any]]


class SchemaServer(ThreadingHTTPServer):
    """Serves the schemas of a mock registry.

    Attributes:
        client: of the same registry, for the test itself.
        away: while set, every answer has status 503.
        asked: paths of all requests.
        user: required credentials, as `Basic ...`; empty for none.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})
        self.away = threading.Event()
        self.asked: list[str] = []
        self.user = ""

    @property
    def url(self) -> str:
        """The URL it listens on."""
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str, body: dict[str, Any] | None, user: str) -> Reply:
        """Return the status and body of an answer."""
        self.asked.append(path)
        if self.away.is_set():
            return 503, {"error_code": 50301, "message": "away"}
        if self.user and user != self.user:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        try:
            return 200, self._found([unquote(part) for part in path.strip("/").split("/")], body)
        except SchemaRegistryError as error:
            return 404, {"error_code": 40403, "message": error.error_message}

    def _found(self, parts: list[str], body: dict[str, Any] | None) -> dict[str, Any]:
        match parts:
            case ["schemas", "ids", key]:
                schema = self.client.get_schema(int(key))
                return {"id": int(key), "schema": schema.schema_str, "schemaType": schema.schema_type}
            case ["subjects", subject, "versions"] if body is not None:
                return {"id": self.client.register_schema(subject, Schema.from_dict(body))}
            case ["subjects", subject] if body is not None:
                found = self.client.lookup_schema(subject, Schema.from_dict(body))
                return {"id": found.schema_id, "subject": subject, "version": found.version, **body}
        raise SchemaRegistryError(404, 40403, f"nothing at {parts}")


class _Handler(BaseHTTPRequestHandler):
    server: SchemaServer

    def do_GET(self) -> None:  # the library's name
        """Answer a query."""
        self._reply(None)

    def do_POST(self) -> None:  # the same
        """Register or look up."""
        self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _reply(self, body: dict[str, Any] | None) -> None:
        user = self.headers.get("Authorization", "")
        status, answer = self.server.answer(urlsplit(self.path).path, body, user)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def schema_server() -> Iterator[SchemaServer]:
    """Serve until the block ends."""
    with SchemaServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
