"""API connections with slow or stalling clients, over real sockets to a separate server.

Knows what clients can do; does not know the queries.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from stream_dedup.api import connections
from stream_dedup.api.connections import Connection

_SECONDS = 60.0
_PATIENCE = 0.5
_MOST = 8
_LARGE = 64 << 20  # bytes: more than socket buffers hold
_WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
_LAST = {  # requests after which the client closes the connection
    "Connection: close": b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "HTTP/1.0": b"GET /slow HTTP/1.0\r\n\r\n",
}
_OK = b"HTTP/1.1 200"
_ESTABLISHED = "01"  # connection state in /proc/net/tcp
_slow_begun = threading.Event()  # a request for an answer that takes long has arrived whole


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body, then send a small answer, a large one, or one that takes longer than a client's time limit."""
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    if message["type"] == "http.disconnect":
        return
    if scope["path"] == "/slow":
        _slow_begun.set()
        await asyncio.sleep(2 * _PATIENCE)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = bytes(_LARGE) if scope["path"] == "/large" else b"ok"
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Return the port of a server with short time limits and few connections."""
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", _PATIENCE)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", _MOST)
    config = uvicorn.Config(
        _answer, http=Connection, ws="none", lifespan="off", log_config=None, timeout_keep_alive=100
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0), backlog=200)
    with closing(listening):
        serving = threading.Thread(target=server.run, args=([listening],))
        serving.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        serving.join(_SECONDS)
        assert not serving.is_alive(), "a connection kept the server from its end"


def _connected(port: int, sent: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=_SECONDS)
    client.sendall(sent)
    return client


def _rest(client: socket.socket) -> bytes:
    """Return what arrives until the other side closes, whether or not cleanly."""
    parts = []
    try:
        while part := client.recv(1 << 20):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def _await_cut(client: socket.socket, port: int) -> None:
    """Wait until the server has closed its side, without reading, since that would let it continue its answer."""
    place = f":{port:04X} 0100007F:{client.getsockname()[1]:04X} {_ESTABLISHED} "
    until = time.monotonic() + _SECONDS
    while place in Path("/proc/net/tcp").read_text(encoding="ascii"):
        assert time.monotonic() < until, "the connection is still there"
        time.sleep(_PATIENCE / 10)


def _asked(port: int) -> bytes:
    with _connected(port, _WHOLE) as client:
        return client.recv(1 << 10)


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf", _WHOLE + b"GET /"],
    ids=["nothing", "half a head", "half a body", "half a second request"],
)
def test_request_that_is_not_whole_in_time_is_cut(sent: bytes, port: int) -> None:
    """It is not cut early, and a complete request before it is answered."""
    began = time.monotonic()
    with _connected(port, sent) as client:
        told = _rest(client)
    assert told.startswith(_OK) == sent.startswith(_WHOLE)
    assert told.count(_OK) == sent.startswith(_WHOLE)
    assert _PATIENCE * 0.9 < time.monotonic() - began < _SECONDS


def test_bytes_that_drip_give_no_more_time(port: int) -> None:
    """The whole request must arrive in time, not just its next byte."""
    began = time.monotonic()
    with _connected(port, b"GET /") as client:
        client.settimeout(_PATIENCE / 10)
        while time.monotonic() - began < _SECONDS:
            try:
                client.sendall(b"x")
                if client.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                break
    assert _PATIENCE * 0.9 < time.monotonic() - began < _SECONDS


def test_answer_that_is_not_taken_in_time_is_cut(port: int) -> None:
    """This also holds if the client sends another request meanwhile; it gets only part of the answer."""
    with _connected(port, _WHOLE.replace(b"/ ", b"/large ")) as client:
        assert client.recv(12) == _OK
        with suppress(ConnectionError):  # a busy machine may have cut it by now
            client.sendall(_WHOLE)
        _await_cut(client, port)
        assert len(_rest(client)) < _LARGE


def test_client_that_asks_and_reads_is_never_cut(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection may last longer than any single request is allowed to, with answers of any length."""
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 2 * _SECONDS)  # longer than a busy machine needs in between
    passed = 0.0
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + passed)
    with _connected(port) as client:
        for _ in range(10):
            client.sendall(_WHOLE)
            told = b""
            while not told.endswith(b"0\r\n\r\n"):  # the end of a chunked answer
                part = client.recv(1 << 10)
                assert part, "it was cut"
                told += part
            assert told.startswith(_OK)
            passed += _SECONDS
        client.sendall(_WHOLE.replace(b"/ ", b"/large ").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert len(_rest(client)) > _LARGE


@pytest.mark.parametrize("sent", [_WHOLE.replace(b"/ ", b"/slow "), *_LAST.values()], ids=["kept", *_LAST])
def test_who_waits_for_an_answer_has_all_time(sent: bytes, port: int) -> None:
    """This holds for any `Connection` header; and idle connections do not displace it."""
    _slow_begun.clear()
    with ExitStack() as kept:
        client = kept.enter_context(_connected(port, sent))
        assert _slow_begun.wait(_SECONDS)  # it is the oldest of all, and one that idles could be displaced
        for _ in range(2 * _MOST):
            kept.enter_context(_connected(port))
        assert client.recv(1 << 10).startswith(_OK)


@pytest.mark.parametrize("sent", _LAST.values(), ids=_LAST)
def test_last_answer_that_is_not_taken_in_time_is_cut(sent: bytes, port: int) -> None:
    """Otherwise the server, having closed its own side, would wait forever."""
    with _connected(port, sent.replace(b"/slow", b"/large")) as client:
        assert client.recv(8).startswith(_OK[:8])
        _await_cut(client, port)
        assert len(_rest(client)) < _LARGE


def test_connections_for_nothing_keep_nobody_out(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with far more idle or partial requests than there is room for, a complete request is answered at once."""
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 10 * _SECONDS)
    kinds = [b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"]
    with ExitStack() as kept:
        held = [kept.enter_context(_connected(port, kinds[number % 3])) for number in range(10 * _MOST)]
        assert all(_asked(port).startswith(_OK) for _ in range(3))
        for client in held[: -2 * _MOST]:  # the earliest have been closed
            assert _rest(client) == b""
        for client in held:
            client.close()  # so that the server does not wait for them when it ends


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_told_so(sent: bytes, port: int) -> None:
    """TLS, plain words and a request without a host get status 400 with JSON and its headers, as for all errors."""
    with _connected(port, sent) as client:
        head, _, body = _rest(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-type: application/json" in head.lower()
    assert b"x-content-type-options: nosniff" in head.lower()
    assert json.loads(body)["code"] == "not_http"


def test_address_as_it_was_typed_is_told_to_be_encoded(port: int) -> None:
    """Chinese letters in it are no HTTP, and curl sends them as they are."""
    with _connected(port, "GET /v1/article?id=新闻 HTTP/1.1\r\nHost: x\r\n\r\n".encode()) as client:
        _, _, body = _rest(client).partition(b"\r\n\r\n")
    assert "curl -G --data-urlencode" in json.loads(body)["detail"]


def test_garbage_amid_a_request_is_told_so(port: int) -> None:
    """After an invalid chunk length there is nobody left to answer the rest, and the server goes on serving others."""
    with _connected(port, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n") as client:
        assert _rest(client).startswith(b"HTTP/1.1 400")
    assert _asked(port).startswith(_OK)
