"""The API's process as the service sees it: started, started again where it ended, ended with the service.

Knows the process; knows nothing of what it serves.
"""

import subprocess
import sys
import threading
from types import TracebackType
from typing import Self

import structlog

from stream_dedup.settings import Settings

_END_SECONDS = 3.0
_LEAST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 1.0, 60.0

log = structlog.get_logger()


class ApiProcess:
    """Keeps the API running from entering to leaving the context, if the settings want it.

    The stream does not depend on it: whatever becomes of it, the service goes on.

    Args:
        settings: of the service; they go to the process by a pipe, since a command line can be read by others.
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
            code = process.wait()
            if self._ending.wait(pause):
                return
            log.warning("api_ended", exit_code=code, then="started again")
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", "stream_dedup.api"], stdin=subprocess.PIPE)
        if process.stdin is not None:
            process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
