"""A stream's rate while its API is stopped, idle and queried, alternating within one run.

Knows turns, the API's process and the outputs' times; knows nothing of queries.

A machine's rates drift by more than the API costs, so neighbouring turns are compared, cycling through all orders.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import cycle, permutations
from math import exp, log
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
import psutil

from tests.benchmarks.asker import Asker
from tests.benchmarks.throughput.service import api_of, cpu_seconds, decided
from tests.stream.service import Service

STOPPED, UNASKED, ASKED = WAYS = ("API stopped", "API, not asked", "API, asked")
_SETTLE_SECONDS = 1.0  # output written within it may stem from work in the previous turn
_CATCH_UP_SECONDS = 0.5  # a resumed API first reads what was written meanwhile
_PAUSE_MS = 20  # between two batches; pauses within a batch are shorter
_SPARE = 1.2  # a round begins only if so many times the articles of the last round are left


@dataclass(frozen=True, slots=True)
class Turn:
    """A span of time in which the API was treated in one way.

    Attributes:
        way: one of `WAYS`.
        began: seconds since 1970.
        ended: likewise.
        stream: CPU cores used by the service without the API.
        api: CPU cores used by the API.
    """

    way: str
    began: float
    ended: float
    stream: float
    api: float


Round = Mapping[str, Turn]  # by way


class Ratio(NamedTuple):
    """A rate relative to that with the API stopped.

    Attributes:
        mean: geometric mean over the rounds. The arithmetic mean of the ratio of two noisy rates is too large, by
            about the square of their relative noise.
        error: its standard error.
    """

    mean: float
    error: float


class Turns:
    """Takes a service at full load through turns.

    Args:
        service: the running service, with its API enabled.
        asker: sends it queries.
        seconds: length of a turn.
    """

    def __init__(self, service: Service, asker: Asker, seconds: float) -> None:
        self._service = service
        self._asker = asker
        self._seconds = seconds
        self._address = api_of(service)
        self._process = psutil.Process(service.pid)
        [self._api] = [one for one in self._process.children() if "stream_dedup.api" in one.cmdline()]

    def rounds(self, articles: int) -> Iterator[Round]:
        """Yield rounds of one turn in each way, until the stream would end during the next.

        Args:
            articles: number of articles in the stream.
        """
        seen = decided(self._service)
        for order in cycle(permutations(WAYS)):
            yield {way: self._turn(way) for way in order}
            before, seen = seen, decided(self._service)
            if articles - seen < _SPARE * (seen - before):
                return

    def _turn(self, way: str) -> Turn:
        with self._treated(way):
            time.sleep(_SETTLE_SECONDS)
            at, stream, api = self._moment()
            time.sleep(self._seconds)
            until, stream_until, api_until = self._moment()
        spent = until - at
        return Turn(way, at, until, (stream_until - stream) / spent, (api_until - api) / spent)

    def _treated(self, way: str) -> AbstractContextManager[None]:
        if way == STOPPED:
            return self._stopped()
        return self._asker.asking(self._address) if way == ASKED else nullcontext()

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        self._api.suspend()
        try:
            yield
        finally:
            self._api.resume()
        time.sleep(_CATCH_UP_SECONDS)

    def _moment(self) -> tuple[float, float, float]:
        api = cpu_seconds(self._api)
        return time.time(), cpu_seconds(self._process) - api, api


class Rates:
    """Articles per second in any span of a run.

    Outputs come in batches, one per commit. The time between the last outputs of two batches is the work on the second.

    Args:
        stamps_ms: when each output of the run was written, milliseconds since 1970, in any order.
    """

    def __init__(self, stamps_ms: Iterable[int]) -> None:
        stamps = np.sort(np.fromiter(stamps_ms, np.int64))
        self._written = np.append(np.flatnonzero(np.diff(stamps) >= _PAUSE_MS), len(stamps) - 1)
        self._moments = stamps[self._written]

    def of(self, turn: Turn) -> float:
        """Return the rate of a turn."""
        before, after = np.interp([1000 * turn.began, 1000 * turn.ended], self._moments, self._written)
        return float(after - before) / (turn.ended - turn.began)

    def ratio(self, way: str, rounds: Sequence[Round]) -> Ratio:
        """Return the rate of one way relative to that with the API stopped in the same round.

        Args:
            way: one of `WAYS`.
            rounds: two or more.
        """
        found = [log(self.of(one[way]) / self.of(one[STOPPED])) for one in rounds]
        ratio = exp(mean(found))
        return Ratio(ratio, ratio * stdev(found) / len(found) ** 0.5)
