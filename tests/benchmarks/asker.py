"""Who asks: a process of its own that sends requests at a steady pace, and times the answers.

Knows requests, their pace and the time they take; knows nothing of what is asked.
"""

import multiprocessing
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import cycle
from multiprocessing.connection import Connection
from typing import NamedTuple
from urllib.parse import urlsplit

from stream_dedup.closing import SelfClosing

_HEADERS = {"content-type": "application/json"}
_ANSWERED = {200, 404, 409}
_BEHIND_SECONDS = 1.0  # at most: a pace that cannot be kept is not made up for

Latencies = Mapping[str, Sequence[float]]


class Request(NamedTuple):
    """A question as it is sent.

    Attributes:
        question: what it counts under.
        method: of HTTP.
        path: with its parameters.
        body: JSON, or empty.
    """

    question: str
    method: str
    path: str
    body: bytes = b""


class Asked(NamedTuple):
    """What became of the questions of one turn.

    Attributes:
        latencies: milliseconds from when a request was due to its answer, by question; `failed` for the others.
        cpu_seconds: that asking took.
    """

    latencies: Latencies
    cpu_seconds: float


class Asker(SelfClosing):
    """A process that asks, with all that it sends at hand before it begins: what it takes is the stream's to miss.

    Use it as a context manager, or call `close`.

    Args:
        requests: in turn, again and again.
        rate: requests a second.
        seed: of the time between them.

    Attributes:
        turns: what became of the questions, an entry each time that it was asked to ask.
    """

    def __init__(self, requests: Sequence[Request], rate: float, seed: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        # A fork of whoever holds the articles would copy its memory page by page while the stream is measured.
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(theirs, requests, rate, seed), daemon=True
        )
        self.turns: list[Asked] = []
        self._process.start()
        theirs.close()  # else nobody would hear of its end
        self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()

    @contextmanager
    def asking(self, address: str) -> Iterator[None]:
        """Ask an API, as long as the context lasts.

        Args:
            address: its URL.
        """
        self._pipe.send(address)
        yield
        self._pipe.send(None)
        self.turns.append(self._pipe.recv())


def _serve(pipe: Connection, requests: Sequence[Request], rate: float, seed: int) -> None:
    """Tell that it is there; then, again and again, ask whom it is told of until told to end, and tell what became."""
    pipe.send(None)
    endless, chance = cycle(requests), random.Random(seed)
    while True:
        where = urlsplit(pipe.recv())
        began = time.process_time()
        with closing(HTTPConnection(str(where.hostname), where.port, timeout=10)) as connection:
            latencies = _ask(connection, endless, rate, chance, pipe)
        pipe.send(Asked(latencies, time.process_time() - began))


def _ask(
    connection: HTTPConnection, requests: Iterator[Request], rate: float, chance: random.Random, told: Connection
) -> Latencies:
    latencies: dict[str, list[float]] = defaultdict(list)
    due = time.perf_counter() + chance.expovariate(rate)
    while not told.poll(max(0.0, due - time.perf_counter())):
        request = next(requests)
        # From when it was due: one that waits for the one before has waited too.
        connection.request(request.method, request.path, request.body, _HEADERS)
        answer = connection.getresponse()
        answer.read()
        spent = 1000 * (time.perf_counter() - due)
        latencies[request.question if answer.status in _ANSWERED else "failed"].append(spent)
        due = max(due + chance.expovariate(rate), time.perf_counter() - _BEHIND_SECONDS)
    told.recv()
    return dict(latencies)
