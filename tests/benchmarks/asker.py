"""A client in a separate process that sends requests at a steady rate, and times the answers.

Knows requests, their rate and the time they take; knows nothing of what is asked.
"""

import multiprocessing
import random
import re
import socket
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.connection import Connection
from typing import NamedTuple
from urllib.parse import urlsplit

from stream_dedup.closing import SelfClosing

_HEAD = re.compile(rb"HTTP/1\.1 (?P<status>\d+)(?:.*\r\n)*?content-length: (?P<length>\d+)\r\n(?:.+\r\n)*\r\n")
_ANSWERED = {200, 404, 409}
_PATIENCE_SECONDS = 10.0
_PIECE_BYTES = 1 << 16
_BEHIND_SECONDS = 1.0  # at most: if the rate cannot be kept, the backlog is not made up for

Latencies = Mapping[str, Sequence[float]]


class Request(NamedTuple):
    """A request to the API.

    Attributes:
        question: the name it is counted under.
        method: HTTP method.
        path: path with its parameters.
        body: JSON, or empty.
    """

    question: str
    method: str
    path: str
    body: bytes = b""

    def written(self) -> bytes:
        """Return the request as it is sent: Python's own client takes a tenth of the time that the answer takes."""
        head = (
            f"{self.method} {self.path} HTTP/1.1",
            "host: 127.0.0.1",
            "content-type: application/json",
            f"content-length: {len(self.body)}",
        )
        return "\r\n".join((*head, "", "")).encode() + self.body


class Asked(NamedTuple):
    """The outcome of one turn's requests.

    Attributes:
        latencies: milliseconds from when a request was due to its answer, by question; `failed` for failed ones.
        cpu_seconds: CPU time that the client itself took.
    """

    latencies: Latencies
    cpu_seconds: float


class Asker(SelfClosing):
    """A client process that prepares all requests beforehand, because the stream lacks the CPU that the client uses.

    Use it as a context manager, or call `close`.

    Args:
        requests: sent one after the other, again and again.
        rate: requests per second.
        seed: seed for the time between them.

    Attributes:
        turns: one outcome for each time that it sent requests.
    """

    def __init__(self, requests: Sequence[Request], rate: float, seed: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        # A fork of the process that holds the articles would copy its memory page by page during the measurement.
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(theirs, requests, rate, seed), daemon=True
        )
        self.turns: list[Asked] = []
        self._process.start()
        theirs.close()  # otherwise the end of the process would go unnoticed
        self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()

    @contextmanager
    def asking(self, address: str) -> Iterator[None]:
        """Send requests to an API while the context is active.

        Args:
            address: its URL.
        """
        self._pipe.send(address)
        yield
        self._pipe.send(None)
        self.turns.append(self._pipe.recv())


def _serve(pipe: Connection, requests: Sequence[Request], rate: float, seed: int) -> None:
    """Report readiness; then repeatedly take an address, send requests until told to stop, and report the outcome."""
    endless, chance = cycle([(request.question, request.written()) for request in requests]), random.Random(seed)
    pipe.send(None)
    while True:
        where = urlsplit(pipe.recv())
        began = time.process_time()
        with socket.create_connection((where.hostname, where.port), _PATIENCE_SECONDS) as connection:
            latencies = _ask(connection, endless, rate, chance, pipe)
        pipe.send(Asked(latencies, time.process_time() - began))


def _ask(
    connection: socket.socket,
    requests: Iterator[tuple[str, bytes]],
    rate: float,
    chance: random.Random,
    told: Connection,
) -> Latencies:
    latencies: dict[str, list[float]] = defaultdict(list)
    due = time.perf_counter() + chance.expovariate(rate)
    while not told.poll(max(0.0, due - time.perf_counter())):
        question, request = next(requests)
        # Timed from when it was due: waiting for the previous one counts as well.
        connection.sendall(request)
        status = _answer(connection)
        spent = 1000 * (time.perf_counter() - due)
        latencies[question if status in _ANSWERED else "failed"].append(spent)
        due = max(due + chance.expovariate(rate), time.perf_counter() - _BEHIND_SECONDS)
    told.recv()
    return dict(latencies)


def _answer(connection: socket.socket) -> int:
    """Read an answer to its end; return its status."""
    received = b""
    while not (head := _HEAD.match(received)):
        received += _some(connection)
    left = head.end() + int(head["length"]) - len(received)
    while left > 0:
        left -= len(_some(connection))
    return int(head["status"])


def _some(connection: socket.socket) -> bytes:
    if not (received := connection.recv(_PIECE_BYTES)):
        raise EOFError("the API closed the connection")
    return received
