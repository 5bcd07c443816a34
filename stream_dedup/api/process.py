"""The API's process as managed by the service: started, restarted if it ends, and stopped with the service.

Knows the process; knows nothing of what it serves.
"""

import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import structlog

from stream_dedup.settings import Settings

_END_SECONDS = 3.0
_LEAST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 1.0, 60.0

log = structlog.get_logger()


class ApiProcess:
    """Keeps the API running while the context is active, if the settings enable it.

    The stream does not depend on it: whatever happens to the API, the service carries on.

    Args:
        settings: the service's settings; passed to the process through a pipe, because others can read command lines.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ending = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._keeper = threading.Thread(target=self._keep, name="api", daemon=True)

    def __enter__(self) -> Self:
        if self._settings.api.enabled:
            self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ending.set()
            process = self._process
        if process is not None:
            _end(process)

    def _keep(self) -> None:
        pause = _LEAST_PAUSE_SECONDS
        while True:
            with self._lock:
                if self._ending.is_set():
                    return
                self._process = process = self._started()
            began = time.monotonic()
            code = _code_of(process) if process is not None else None
            if time.monotonic() - began > _MOST_PAUSE_SECONDS:
                pause = _LEAST_PAUSE_SECONDS  # it has worked in between
            if self._ending.wait(pause):
                return
            if code is not None:
                log.warning("api_ended", exit_code=code, then="restarted")
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)

    def _started(self) -> subprocess.Popen[bytes] | None:
        """Start the process; return None if the system cannot start another one."""
        try:
            process = subprocess.Popen([sys.executable, "-m", "stream_dedup.api"], stdin=subprocess.PIPE)
        except OSError as error:
            log.warning("api_not_started", error=str(error), then="trying again")
            return None
        if process.stdin is not None:
            # If it has already ended, the caller notices as with any other.
            with suppress(BrokenPipeError):
                process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
                process.stdin.flush()
        return process


def _code_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process to end; return its exit code."""
    code = process.wait()
    _close(process)
    return code


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close a process's standard input, which tells it to end."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):  # closing flushes what could not be written before
            process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    _close(process)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
