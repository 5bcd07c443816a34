"""The service as a child process: started as a user starts it, waited for, queried, ended.

Knows its command line, its log and its HTTP port; knows nothing of what flows through its topics.
"""

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from deploy.broker.process import GuardedProcess
from deploy.demo.measures import Measures
from deploy.demo.topics import Topics
from deploy.ports import free_port
from stream_dedup.closing import SelfClosing

CONFIG = Path(__file__).parents[2] / "config" / "stream-dedup.toml"
_COMMAND = (sys.executable, "-m", "stream_dedup")
READY_SECONDS = 600.0  # including compilation on a slow or busy machine; one that fails ends at once
_STOP_SECONDS = 20.0  # the service promises ten
_LOOK_SECONDS = 0.1
_HTTP_SECONDS = 5.0
_LOG_LINES = 25
_ADDRESS = re.compile(r"\bhttp=(http://\S+)")
# The samples are dated October 2026: on a machine whose clock is behind, they must not all be from the future.
_MAX_FUTURE_SECONDS = 1_000_000_000
_PAGE = re.compile(r"\bapi=(http://\S+)")
_OK = 200


class ServiceFailedError(RuntimeError):
    """The service ended or did not become ready; the message ends with the tail of its log."""


class Service(SelfClosing):
    """`stream-dedup run` as a child that never outlives this process. A context manager that ends it.

    Args:
        bootstrap: address of the broker.
        topics: what it reads and writes.
        folder: a directory for its state and its log; removed even if this process is killed.
        page: whether it can be queried, through its page too.
        settings: further settings, which override the others.

    Attributes:
        ask: path of a command that runs `stream-dedup` with the settings of this service.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Topics,
        folder: Path,
        *,
        page: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._log = folder / "service.log"
        self._url = ""
        flags = [
            *_flags(_own_settings(bootstrap, topics, folder / "state")),
            *_flags(_page_settings() if page else {}),
            *_flags(settings or {}),
        ]
        self.ask = command_to_ask(folder / "ask", flags)
        self._process = GuardedProcess(
            [*_COMMAND, "run", "--config", str(CONFIG), *flags],
            self._log,
            env=_environment(),
            remove=folder,
        )

    def close(self) -> None:
        """End it, however it ends."""
        self._process.terminate(_STOP_SECONDS)

    @property
    def url(self) -> str:
        """Address of its HTTP port, once it is ready."""
        return self._url

    @property
    def page(self) -> str | None:
        """Address of its page, if it has one and the page is up."""
        found = _PAGE.search(self._log.read_text(encoding="utf-8", errors="replace"))
        return f"{found[1]}/" if found else None

    def wait_until_ready(self, report: Callable[[str], None]) -> None:
        """Wait until it reads its input.

        Args:
            report: called now and then with what the service itself is waiting for.

        Raises:
            ServiceFailedError: it ended, or is not ready in time.
        """
        deadline, waits_for = time.monotonic() + READY_SECONDS, ""
        while time.monotonic() < deadline:
            self.check()
            ready, waits_for = self._readiness()
            if ready:
                return
            report(waits_for)
            time.sleep(_LOOK_SECONDS)
        raise ServiceFailedError(
            self._with_log(f"the service was not ready within {READY_SECONDS:.0f} s ({waits_for or 'no answer'})")
        )

    def wait_for_page(self) -> None:
        """Wait until its page is up.

        Raises:
            ServiceFailedError: it ended, or the page is not up in time.
        """
        deadline = time.monotonic() + READY_SECONDS
        while self.page is None:
            self.check()
            if time.monotonic() > deadline:
                raise ServiceFailedError(self._with_log(f"the page was not up within {READY_SECONDS:.0f} s"))
            time.sleep(_LOOK_SECONDS)

    def check(self) -> None:
        """Check that it is running.

        Raises:
            ServiceFailedError: it does not.
        """
        if not self._process.running():
            raise ServiceFailedError(self._with_log(f"the service ended with exit code {self._process.wait()}"))

    def metrics(self) -> str:
        """Return what /metrics shows.

        Raises:
            ServiceFailedError: it does not answer.
        """
        status, text = self._get("/metrics")
        if status != _OK:
            raise ServiceFailedError(self._with_log(f"{self._url}/metrics does not answer"))
        return text

    def end(self) -> None:
        """End it with SIGTERM.

        Raises:
            ServiceFailedError: it does not end in time, or not with exit code 0.
        """
        self._process.terminate(_STOP_SECONDS)
        if code := self._process.wait():
            raise ServiceFailedError(self._with_log(f"the service ended with exit code {code}"))

    def kill(self) -> None:
        """End it with SIGKILL, in the middle of whatever it does."""
        self._process.kill()

    def _readiness(self) -> tuple[bool, str]:
        if not self._url:
            found = _ADDRESS.search(self._log.read_text(encoding="utf-8", errors="replace"))
            if found is None:
                return False, "starting Python"
            self._url = found[1]
        status, line = self._get("/readyz")
        if status != _OK:
            return False, line.strip()
        # A standby is ready as well: this one must have begun to read.
        return Measures(self._get("/metrics")[1]).total("stream_dedup_ready") > 0, "waiting to own the index"

    def _get(self, path: str) -> tuple[int, str]:
        """Return status and text of an answer; no answer is status 0."""
        connection = HTTPConnection(urlsplit(self._url).netloc, timeout=_HTTP_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, HTTPException):
            return 0, ""
        finally:
            connection.close()

    def _with_log(self, message: str) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"{message}; the end of its log:", *lines[-_LOG_LINES:]])


def command_to_ask(path: Path, flags: Sequence[str]) -> Path:
    """Write a command that runs any subcommand of `stream-dedup` with the service's settings; return its path."""
    words = [*_COMMAND, '"$@"', "--config", shlex.quote(str(CONFIG)), *map(shlex.quote, flags)]
    path.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n", encoding="utf-8")
    path.chmod(0o700)
    return path


def _own_settings(bootstrap: str, topics: Topics, state: Path) -> Mapping[str, object]:
    return {
        "kafka.bootstrap.servers": bootstrap,
        "input.topics": topics.articles,
        "input.group": topics.run,
        "input.max_future_seconds": _MAX_FUTURE_SECONDS,
        "output.unique": topics.unique,
        "output.duplicates": topics.duplicates,
        "output.dead": topics.dead,
        "output.clusters": topics.clusters,
        "state.directory": state,
        "http.port": 0,  # any free one; the log says which
    }


def _page_settings() -> dict[str, object]:
    # The API asks the service for its figures at the port in the settings: it must be a specific one.
    return {"api.enabled": True, "api.port": 0, "http.port": free_port()}


def _flags(settings: Mapping[str, object]) -> list[str]:
    return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]


def _environment() -> dict[str, str]:
    """Return this environment without settings of the service: it must run as it is shipped."""
    return {name: value for name, value in os.environ.items() if not name.startswith("STREAM_DEDUP_")}
