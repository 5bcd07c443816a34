"""What the proxy does to a real client's traffic, and that clients of the broker stay behind it."""

import gc
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.broker import KafkaBroker
from tests.faults.proxy import BLACK_HOLE, CUT, HOST, PASS, Proxy, slow
from tests.stream.messages import Incoming, produce
from tests.stream.records import read_topics
from tests.stream.topics import create_topic

_MEGABYTE = 1 << 20
_PATIENCE_SECONDS = 20.0  # for what must get through on a busy machine


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    """A proxy in front of a broker."""
    with Proxy() as proxy, KafkaBroker(proxy_port=proxy.port) as broker:
        proxy.forward_to(broker.proxied)
        yield proxy


@pytest.fixture
def topic(proxy: Proxy) -> Iterator[str]:
    """A topic with one message of a megabyte, written through the proxy, which passes everything again at the end."""
    name = f"t{uuid4().hex[:12]}"
    proxy.set(PASS)
    create_topic(proxy.address, name)
    produce(proxy.address, name, [Incoming(b"x" * _MEGABYTE)])
    yield name
    proxy.set(PASS)


def _read(proxy: Proxy, topic: str, seconds: float = 20.0) -> int:
    (record,) = read_topics(proxy.address, [topic], 1, seconds)[topic]
    return len(record.value or b"")


def _answers(address: str, seconds: float) -> bool:
    client = AdminClient({"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 100})
    try:
        client.list_topics(timeout=seconds)
    except KafkaException:
        return False
    return True


def test_clients_stay_behind_the_proxy(proxy: Proxy, topic: str) -> None:
    """Clients that connect through the proxy are given its address, and write and read through it."""
    brokers = AdminClient({"bootstrap.servers": proxy.address}).list_topics(timeout=_PATIENCE_SECONDS).brokers
    assert [f"{node.host}:{node.port}" for node in brokers.values()] == [proxy.address]
    assert _read(proxy, topic) == _MEGABYTE


def test_cut_refuses_and_comes_back(proxy: Proxy, topic: str) -> None:
    """While it is cut nobody gets through; afterwards the same address works again, every time."""
    for _ in range(3):
        proxy.set(CUT)
        assert not _answers(proxy.address, 1)
        proxy.set(PASS)
        assert _answers(proxy.address, _PATIENCE_SECONDS)
    assert _read(proxy, topic) == _MEGABYTE


def test_cut_ends_open_connections(proxy: Proxy, topic: str) -> None:
    """A connected client loses its connection, and reconnects by itself."""
    client = AdminClient({"bootstrap.servers": proxy.address, "log_level": 0, "reconnect.backoff.max.ms": 100})
    assert topic in client.list_topics(timeout=_PATIENCE_SECONDS).topics
    proxy.set(CUT)
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
    proxy.set(PASS)
    assert topic in client.list_topics(timeout=_PATIENCE_SECONDS).topics


def test_cut_loses_no_connection_that_is_just_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that connects at that very moment is cut off as well: it is not left with a connection to nobody."""
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: lost.append(what.exc_value))
    over = threading.Event()

    def connect(port: int) -> None:
        while not over.is_set():
            with suppress(OSError), socket.create_connection((HOST, port), _PATIENCE_SECONDS):
                pass

    with Proxy() as proxy, closing(socket.create_server((HOST, 0), backlog=1_000)) as target:
        proxy.forward_to(f"{HOST}:{target.getsockname()[1]}")
        clients = [threading.Thread(target=connect, args=(proxy.port,)) for _ in range(2)]
        for client in clients:
            client.start()
        for _ in range(50):
            proxy.set(CUT)
            proxy.set(PASS)
        over.set()
        for client in clients:
            client.join(_PATIENCE_SECONDS)
    gc.collect()
    assert lost == []


def test_black_hole_swallows_until_it_ends(proxy: Proxy, topic: str) -> None:
    """In a black hole requests get no answer; when it ends, an open connection carries on where it was."""
    client = AdminClient({"bootstrap.servers": proxy.address, "log_level": 0})
    assert topic in client.list_topics(timeout=_PATIENCE_SECONDS).topics
    proxy.set(BLACK_HOLE)
    began = time.monotonic()
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
    assert time.monotonic() - began >= 0.9
    assert not _answers(proxy.address, 1)
    proxy.set(PASS)
    assert topic in client.list_topics(timeout=_PATIENCE_SECONDS).topics


def test_slow_line_bounds_the_rate(proxy: Proxy, topic: str) -> None:
    """A megabyte takes the seconds that the rate implies, and still arrives whole."""
    proxy.set(slow(0.001, _MEGABYTE / 2))
    began = time.monotonic()
    assert _read(proxy, topic) == _MEGABYTE
    assert 1.5 < time.monotonic() - began < _PATIENCE_SECONDS


def test_slow_line_becomes_fast_at_once(proxy: Proxy, topic: str) -> None:
    """A piece delayed on a slow line moves on as soon as the line is fast."""
    client = AdminClient({"bootstrap.servers": proxy.address, "log_level": 0})
    assert topic in client.list_topics(timeout=_PATIENCE_SECONDS).topics
    proxy.set(slow(60, _MEGABYTE))
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    proxy.set(PASS)
    assert topic in client.list_topics(timeout=_PATIENCE_SECONDS).topics
