"""The registry's client waits out temporary faults, reports permanent ones, and asks for each schema only once.

The registry is a server in this process whose answers the tests determine.
"""

import gzip
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stream_dedup.decode import Reason, UndecodableError, WireDecoder
from stream_dedup.decode.registered import registered_format
from stream_dedup.registry import RegistryError, RegistryUnreachableError, UnknownSchemaError
from stream_dedup.registry import client as client_
from stream_dedup.registry.client import Key, Registry, make_client
from stream_dedup.registry.frame import Frame, FrameError, framed, prefix
from stream_dedup.settings import InputSettings, SettingsError
from tests.stream.waiting import wait_until
from tests.unit.registered import AVRO, article, mock_registry, sample

_SCHEMA = json.dumps({"schema": json.dumps(AVRO)})
_UNKNOWN = json.dumps({"error_code": 40403, "message": "Schema not found"})
_BARE = json.dumps({"error_code": 404, "message": "HTTP 404 Not Found"})  # of a path that does not exist
_TYPES = json.dumps(["JSON", "PROTOBUF", "AVRO"])
_Reply = tuple[int, str]


class _Server(ThreadingHTTPServer):
    """A server that gives one reply after another, the last one forever; the list of schema types has its own reply."""

    replies: list[_Reply]
    types: _Reply
    asked: list[tuple[str, str | None]]
    connections: int  # that are open


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:  # the library's name
        """Answer the request."""
        status, text = self._reply()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _reply(self) -> _Reply:
        if self.path == "/schemas/types":
            return self.server.types
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        return self.server.replies.pop(0) if len(self.server.replies) > 1 else self.server.replies[0]


class _KeepingHandler(_Handler):
    """Keeps connections open after an answer, and counts them."""

    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """Count the connection."""
        super().setup()
        self.server.connections += 1

    def finish(self) -> None:
        """Count it no longer."""
        super().finish()
        self.server.connections -= 1


@contextmanager
def _serving(
    *replies: _Reply, types: _Reply = (404, _BARE), handler: type[_Handler] = _Handler
) -> Iterator[tuple[str, _Server]]:
    server = _Server(("127.0.0.1", 0), handler)
    server.replies, server.types, server.asked, server.connections = list(replies), types, [], 0
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _registry(url: str, outages: list[str] | None = None, user: str = "") -> Registry:
    told: list[str] = [] if outages is None else outages
    return Registry(
        make_client({"url": url, **({"basic.auth.user.info": user} if user else {})}),
        lambda outage: told.append(str(outage)),
    )


@pytest.mark.parametrize(
    "reply",
    [
        (500, "{}"),
        (503, "busy"),
        (429, "{}"),
        (404, "<html>"),
        (404, _BARE),
        (200, "<html>"),
        (302, ""),
        (503, json.dumps({"error_code": "UNAVAILABLE", "message": "of a gateway"})),
    ],
)
@pytest.mark.slow
def test_registry_without_a_sound_answer_is_asked_again(reply: _Reply) -> None:
    """This includes answers from a proxy and a wrong path in the URL, which say nothing about a schema."""
    outages: list[str] = []
    with _serving(reply, reply, (200, _SCHEMA), types=reply) as (url, server):
        assert _registry(url, outages).schema(7).schema_str == json.dumps(AVRO)
        assert [path for path, _ in server.asked] == 3 * ["/schemas/ids/7"]
    assert len(outages) == 2


@pytest.mark.slow
def test_end_of_an_outage_is_told_once() -> None:
    """It ends with any answer, even "no such schema", or when the wait is given up; without one nothing is reported."""
    told: list[str] = []

    def registry(url: str) -> Registry:
        return Registry(make_client({"url": url}), lambda _: told.append("away"), lambda: told.append("over"))

    with _serving((200, _SCHEMA)) as (url, _):
        registry(url).schema(7)
    assert told == []
    with _serving((500, "{}"), (500, "{}"), (200, _SCHEMA)) as (url, _):
        registry(url).schema(7)
    assert told == ["away", "away", "over"]
    told.clear()
    with _serving((500, "{}"), (404, _UNKNOWN)) as (url, _), pytest.raises(UnknownSchemaError):
        registry(url).schema(7)
    assert told == ["away", "over"]
    told.clear()

    def close_at_once(_: RegistryUnreachableError) -> None:
        told.append("away")
        closed.close()

    closed = Registry(make_client({"url": "http://127.0.0.1:1"}), close_at_once, lambda: told.append("over"))
    with pytest.raises(RegistryError, match="given up"):
        closed.schema(7)
    assert told == ["away", "over"]
    told.clear()
    with pytest.raises(RegistryError, match="closed"):
        closed.schema(7)
    assert told == []


def test_closing_disconnects() -> None:
    """The connection that was kept for the next question is closed, not left to the garbage collector."""
    with _serving((200, _SCHEMA), handler=_KeepingHandler) as (url, server):
        registry = _registry(url)
        registry.schema(7)
        assert server.connections == 1
        registry.close()
        wait_until(lambda: server.connections == 0, "the end of the connection")


@pytest.mark.slow
def test_registry_that_is_not_there_is_waited_for_until_the_end() -> None:
    """The caller is notified repeatedly, and the wait ends as soon as the registry is closed."""
    outages: list[str] = []
    registry = _registry("http://127.0.0.1:1", outages)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(registry.schema, 1)
        while len(outages) < 3:
            time.sleep(0.01)
            assert not asking.done()
        registry.close()
        with pytest.raises(RegistryError, match="given up"):
            asking.result(60)
    assert "ConnectError" in outages[0]


def test_who_waits_may_raise() -> None:
    """A service that is about to stop must not keep waiting."""

    def stop(outage: RegistryUnreachableError) -> None:
        raise KeyboardInterrupt(str(outage))

    with pytest.raises(KeyboardInterrupt):
        Registry(make_client({"url": "http://127.0.0.1:1"}), stop).schema(1)


class _DrippingHandler(_Handler):
    """Sends its answers a byte at a time, with a pause before each."""

    def setup(self) -> None:
        """Slow the connection down."""
        super().setup()
        write = self.wfile.write

        def drip(data: bytes) -> int:
            for byte in data:
                time.sleep(0.01)
                write(bytes([byte]))
            return len(data)

        self.wfile.write = drip  # type: ignore[method-assign, assignment]  # of this connection


@pytest.mark.slow
def test_answer_that_drips_in_is_an_outage_until_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece of it is late, but whoever has to stop in time is called; it is not asked for a second time."""
    monkeypatch.setattr(client_, "_ANSWER_SECONDS", 0.3)
    outages: list[str] = []
    with _serving((200, _SCHEMA), handler=_DrippingHandler) as (url, server):
        assert _registry(url, outages).schema(7).schema_str == json.dumps(AVRO)
        assert len(server.asked) == 1
    assert len(outages) > 2
    assert "does not come to its end" in outages[0]


class _PackingHandler(_Handler):
    """Sends its answers packed."""

    def do_GET(self) -> None:  # the library's name
        """Answer the request."""
        status, text = self._reply()
        self.send_response(status)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(gzip.compress(text.encode()))


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("handler", [_Handler, _PackingHandler])
@pytest.mark.slow
def test_answer_without_end_is_an_outage(status: int, handler: type[_Handler], monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of it is kept in memory than a schema may have, unpacked; it is told what to check."""
    monkeypatch.setattr(client_, "_MOST_BYTES", 1 << 20)
    outages: list[str] = []
    whole = json.dumps({"schema": json.dumps(AVRO), "none": " " * (1 << 20)})
    with _serving((status, whole), (200, _SCHEMA), handler=handler) as (url, server):
        assert _registry(url, outages).schema(7).schema_str == json.dumps(AVRO)
        assert len(server.asked) == 2
    assert outages == ["what answers instead of the schema registry sends more than 1 MiB: check registry.url"]


def test_schema_that_is_not_there_is_told_at_once() -> None:
    """The registry's own error code is decisive."""
    with _serving((404, _UNKNOWN)) as (url, server), pytest.raises(UnknownSchemaError, match="Schema not found"):
        _registry(url).schema(7)
    assert len(server.asked) == 1


@pytest.mark.parametrize("key", [7, "01020304-0506-0708-090a-0b0c0d0e0f10"])
def test_path_that_a_registry_lacks_is_no_outage(key: Key) -> None:
    """Otherwise a single message with a GUID would block all others if the registry does not support GUIDs."""
    outages: list[str] = []
    with (
        _serving((404, _BARE), types=(200, _TYPES)) as (url, _),
        pytest.raises(UnknownSchemaError, match="no such path"),
    ):
        _registry(url, outages).schema(key)
    assert outages == []


def test_registry_that_has_just_come_up_is_not_taken_at_the_word_of_what_stood_for_it() -> None:
    """A proxy answers 404 as long as there is no registry behind it."""
    with _serving((404, "<html>"), (200, _SCHEMA), types=(200, _TYPES)) as (url, _):
        assert _registry(url).schema(7).schema_str == json.dumps(AVRO)


@pytest.mark.parametrize("status", [401, 403])
def test_refusal_ends_the_waiting(status: int) -> None:
    """The message names the setting to check, and contains no secret."""
    reply = (status, json.dumps({"error_code": status, "message": "no"}))
    with _serving(reply) as (url, server), pytest.raises(RegistryError, match=r"basic\.auth\.user\.info") as raised:
        _registry(url, user="me:hunter2").schema(7)
    assert "hunter2" not in str(raised.value)
    assert server.asked == [("/schemas/ids/7", "Basic bWU6aHVudGVyMg==")]


def test_each_schema_is_asked_for_once() -> None:
    """Known schemas are cached, and unknown ones are not requested again for every message."""
    client = mock_registry()
    value = sample(client, "avro")
    replies = [(200, _SCHEMA), (404, _UNKNOWN), (500, "")]
    with _serving(*replies) as (url, server):
        registry = _registry(url)
        settings = InputSettings(format="avro")
        one = WireDecoder(settings, None, lambda name, paths: registered_format(name, paths, registry, validate=True))
        for _ in range(3):
            assert article(one, "articles.in", value).id == "n-1"
            with pytest.raises(UndecodableError) as raised:
                article(one, "articles.in", value[:4] + b"\x63" + value[5:])
            assert raised.value.reason is Reason.UNKNOWN_SCHEMA
        assert [path for path, _ in server.asked] == ["/schemas/ids/1", "/schemas/ids/99"]


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        ({"no.such.property": "1"}, "no.such.property"),
        ({"timeout": "soon"}, "^registry.timeout = 'soon' is not a number$"),
        ({"max.retries": "3"}, "registry.max.retries"),
        ({"basic.auth.user.info": "hunter2"}, "basic.auth.user.info"),
        ({"ssl.ca.location": "/no/such/file.pem"}, "ssl.ca.location = '/no/such/file.pem': there is no such file"),
        ({"ssl.ca.location": "x" * 300}, "^registry.ssl.ca.location = 'x{300}': File name too long$"),
        ({"ssl.key.location": __file__}, "ssl.certificate.location"),
    ],
)
def test_properties_that_are_of_no_use_are_told_before_anything_is_sent(properties: dict[str, str], fault: str) -> None:
    """The error names the property, and omits the value if it is secret."""
    with pytest.raises(SettingsError, match=fault) as raised:
        make_client({"url": "http://127.0.0.1:1", **properties})
    assert "hunter2" not in str(raised.value)


def test_authorities_are_the_systems_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the system has no list of authorities, a registry with TLS requires the setting, one without does not."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nothing.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nothing"))
    with pytest.raises(SettingsError, match=r"^registry.ssl.ca.location: set it to a file"):
        make_client({"url": "https://registry.example"})


@pytest.mark.parametrize(
    ("indexes", "tail"),
    [((), b""), ((0,), b"\0"), ((1,), b"\x02\x02"), ((1, 0), b"\x04\x02\0"), ((70,), b"\x02\x8c\x01")],
)
def test_frames(indexes: tuple[int, ...], tail: bytes) -> None:
    """A frame is magic byte 0, a four-byte id and, for Protobuf, the indexes as zigzag varints, [0] as a single 0."""
    head = b"\0\0\0\x01\x02" + tail
    assert framed(head + b"value", indexed=bool(indexes)) == Frame(258, indexes, b"value")
    if len(tail) <= 1:
        assert prefix(258, indexed=bool(indexes)) == head


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (b"", "nothing"),
        (b"\0\0\0\x01", "no magic byte"),
        (b"\x02\0\0\0\x01", "no magic byte"),
        (b"\x01" + bytes(15), "no magic byte"),
        (b"\0\x80\0\0\0", "2147483648 is not the id"),
        (b"\0\xff\xff\xff\xff", "4294967295 is not the id"),
    ],
)
def test_what_is_no_frame(head: bytes, fault: str) -> None:
    """Too short, another magic byte, or an id beyond the signed 32 bits that registries use."""
    with pytest.raises(FrameError, match=fault):
        framed(head)
