"""The service as users run it: a separate process, with its log, its signals and its HTTP port.

Knows processes; knows nothing of what the service reads and writes, or of what a test expects.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

from tests.stream.arguments import REPOSITORY, clean_environment, set_flags, write_settings
from tests.stream.fork_server import Forked, fork_server
from tests.stream.metrics import Metrics
from tests.stream.topics import Topics
from tests.stream.waiting import PATIENCE_SECONDS, stand_still, wait_until

READY_SECONDS = 120.0  # when five processes start at once on two cores; one alone takes four
STOP_SECONDS = 10.0
_ANSWER_SECONDS = 30.0  # for an answer from the HTTP port of a process that has to share its core
_SLICE_SECONDS = 0.25  # for which the end is waited for at a time: longer, and this process was paused
_LOG_TAIL_BYTES = 5_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit code; negative for a signal.
        seconds: from the request to the end, without pauses in which this process stood still as well.
    """

    code: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from the HTTP port."""

    status: int
    kind: str
    text: str


class Service:
    """The service as a process; killed on leaving the context if it is still running.

    Args:
        directory: of its settings file, its state (`state` in it, unless a flag says otherwise) and its log.
        bootstrap: the broker.
        topics: what it reads and writes.
        flags: more settings, as `group.name=value`.
        environment: more variables.
        program: module that runs the service's command line, and its own arguments.
        loads: whether it starts with nothing loaded, as it does for users, even if other services are forked.
    """

    started: "list[Service]" = []  # noqa: RUF012  # the processes whose logs a failing test shows
    forks = False  # whether services are forked from a process that has loaded everything; see `fork_server`

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        topics: Topics,
        *flags: str,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = ("stream_dedup",),
        loads: bool = False,
    ) -> None:
        self.directory = directory
        self.log_file = directory / f"log-{uuid4().hex[:8]}.jsonl"
        self._module, *own = program
        self._arguments = [
            *own,
            "run",
            "--config",
            str(write_settings(directory, bootstrap, topics)),
            *set_flags(flags),
        ]
        self._environment = clean_environment(environment)
        self._loads = loads

    def __enter__(self) -> Self:
        self._process = self._forked() if Service.forks and not self._loads else self._loading()
        Service.started.append(self)
        return self

    def _forked(self) -> Forked:
        return fork_server().start(self._module, self._arguments, self._environment, self.log_file)

    def _loading(self) -> "subprocess.Popen[bytes]":
        with self.log_file.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", self._module, *self._arguments],
                cwd=REPOSITORY,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def state(self) -> Path:
        """Directory of the state for its settings."""
        wait_until(lambda: bool(self.events("starting")) or not self._still_running(), "the state's directory")
        return Path(self.events("starting")[0]["state"])

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self._process.poll() is None

    def wait_starting(self) -> None:
        """Wait until it logs that it is starting: from then on it handles signals, and its log has the HTTP port."""
        wait_until(lambda: self._still_running() and bool(self.events("starting")), "starting")

    def wait_ready(self, seconds: float = READY_SECONDS) -> Self:
        """Wait until /readyz says it is ready."""
        wait_until(lambda: self._still_running() and self._is_ready(), "ready", seconds)
        return self

    def terminate(self, seconds: float = PATIENCE_SECONDS) -> Ended:
        """Send SIGTERM and wait for the exit."""
        self._process.send_signal(signal.SIGTERM)
        waited = 0.0
        while waited < seconds:
            began = time.monotonic()
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_SLICE_SECONDS)
                return Ended(code, waited + min(time.monotonic() - began, _SLICE_SECONDS))
            waited += _SLICE_SECONDS
        raise AssertionError(f"it still runs {seconds:g} s after SIGTERM")

    def stop(self) -> None:
        """Send SIGTERM and check that it exits properly: in time, with exit code 0."""
        ended = self.terminate()
        assert ended.code == 0
        assert ended.seconds < STOP_SECONDS

    def kill(self) -> None:
        """Send SIGKILL and wait for the exit."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Send SIGSTOP: it is frozen until `resume`."""
        stand_still(self.pid)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def wait_end(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until it exits by itself and return its exit code."""
        return self._process.wait(seconds)

    def log(self) -> str:
        """Return everything it wrote to standard output and standard error."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def log_tail(self) -> str:
        """Return the end of its log, without librdkafka's debug lines."""
        lines = [line for line in self.log().splitlines(keepends=True) if "[debug" not in line]
        return "".join(lines)[-_LOG_TAIL_BYTES:]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of this name in its log."""
        lines = [line for line in self.log().splitlines(keepends=True) if line.startswith("{") and name in line]
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event.get("event") == name]

    @property
    def address(self) -> tuple[str, int]:
        """Address of its HTTP port: a service that discards a damaged state restarts, on another port."""
        self.wait_starting()
        parts = urlsplit(self.events("starting")[-1]["http"])
        return str(parts.hostname), int(parts.port or 0)

    def ask(self, path: str, method: str = "GET") -> Answer:
        """Send a request to its HTTP port."""
        host, port = self.address
        with closing(HTTPConnection(host, port, timeout=_ANSWER_SECONDS)) as connection:
            connection.request(method, path)
            response: HTTPResponse = connection.getresponse()
            return Answer(response.status, response.getheader("Content-Type", ""), response.read().decode("utf-8"))

    def metrics(self) -> Metrics:
        """Return what /metrics shows."""
        answer = self.ask("/metrics")
        assert answer.status == 200
        return Metrics(answer.text)

    def _is_ready(self) -> bool:
        return self.ask("/readyz").status == 200

    def _still_running(self) -> bool:
        assert self.running, f"it ended with exit code {self._process.returncode}:\n{self.log_tail()}"
        return True


def run_once(*arguments: str, environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command of the service that exits by itself, the same way as `Service`."""
    if not Service.forks:
        command, cleaned = [sys.executable, "-m", "stream_dedup", *arguments], clean_environment(environment)
        return subprocess.run(
            command, cwd=REPOSITORY, env=cleaned, capture_output=True, text=True, timeout=60, check=False
        )
    with TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        process = fork_server().start("stream_dedup", arguments, clean_environment(environment), out, errors)
        code = process.wait(60)
        told = [file.read_text(encoding="utf-8") for file in (out, errors)]
    return subprocess.CompletedProcess(arguments, code, *told)
