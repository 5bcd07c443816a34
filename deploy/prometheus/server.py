"""A real Prometheus with the rules of this directory, for tests and pictures, and what it answers.

Knows its process and its HTTP API; knows nothing of what it scrapes.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from deploy.broker.process import GuardedProcess

_START_SECONDS = 120.0
_STOP_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_ADDRESS = re.compile(r'msg="Listening on".* address=(\S+)')
_READY = "Server is ready to receive web requests"


class PrometheusError(RuntimeError):
    """Prometheus did not start, or refuses a query; the message quotes it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A series of an answer.

    Attributes:
        labels: of the series, its name among them.
        times: seconds since 1970.
        values: at these times.
    """

    labels: Mapping[str, str]
    times: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Alert:
    """A pending or firing alert.

    Attributes:
        name: of the alert.
        state: pending or firing.
        labels: of the alert.
        annotations: with the values filled in.
    """

    name: str
    state: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Prometheus:
    """A Prometheus on a port of its own; ended when the context is left, or with this process.

    Args:
        program: Prometheus's executable.
        config: its configuration.
        directory: for its data and its log.
    """

    def __init__(self, program: Path, config: Path, directory: Path) -> None:
        self._log = directory / "prometheus.log"
        self._command = [
            str(program),
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        self.address = ""

    def __enter__(self) -> Self:
        self._process = GuardedProcess(self._command, self._log, env={**os.environ})
        deadline = time.monotonic() + _START_SECONDS
        while (address := address_in(told := self._log.read_text(encoding="utf-8", errors="replace"))) is None:
            if not self._process.running() or time.monotonic() > deadline:
                self._process.kill()
                raise PrometheusError(f"Prometheus did not start:\n{told}")
            time.sleep(_LOOK_SECONDS)
        self.address = address
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate(_STOP_SECONDS)

    def query(self, expression: str) -> list[Curve]:
        """Return the series of an expression in PromQL as they are now, with one value each.

        Raises:
            PrometheusError: it does not parse, or cannot be evaluated.
        """
        answer = self.ask("query", query=expression)
        if answer["resultType"] == "scalar":
            return [_curve({}, [answer["result"]])]
        return [_curve(one["metric"], [one["value"]]) for one in answer["result"]]

    def query_range(self, expression: str, begin: float, end: float, step: float) -> list[Curve]:
        """Return the series of an expression over a time range.

        Args:
            expression: PromQL.
            begin: seconds since 1970.
            end: the same.
            step: seconds between values.

        Raises:
            PrometheusError: it does not parse, or cannot be evaluated.
        """
        answer = self.ask("query_range", query=expression, start=str(begin), end=str(end), step=str(step))
        return [_curve(one["metric"], one["values"]) for one in answer["result"]]

    def alerts(self) -> list[Alert]:
        """Return the alerts that are pending or firing."""
        return [
            Alert(one["labels"]["alertname"], one["state"], one["labels"], one["annotations"])
            for one in self.ask("alerts")["alerts"]
        ]

    def ask(self, path: str, **parameters: str) -> Any:  # noqa: ANN401  # JSON, whose form depends on the path
        """Return what a path of the API answers.

        Raises:
            PrometheusError: it refuses.
        """
        with closing(HTTPConnection(self.address, timeout=_ANSWER_SECONDS)) as connection:
            connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
            answer = json.loads(connection.getresponse().read())
        if answer["status"] != "success":
            raise PrometheusError(f"{answer.get('error')}: {parameters}")
        return answer["data"]


def address_in(log: str) -> str | None:
    """Return the address at which a Prometheus, 2 or 3, answers; None until its log says that it does."""
    found = _ADDRESS.search(log)
    return found[1] if found and _READY in log else None


def _curve(labels: Mapping[str, str], points: Sequence[Sequence[Any]]) -> Curve:
    return Curve(labels, [float(at) for at, _ in points], [float(value) for _, value in points])
