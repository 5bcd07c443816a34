"""A fork server: forks processes of the service from one that has already loaded it, which saves seconds per start.

Knows modules, forks and exit codes; knows nothing of what a test expects. A forked process runs the same module with
the same command line, its own environment and its own log, as a child of the process that asked for it. Faults while
the service loads cannot be seen this way.
"""

import atexit
import ctypes
import gc
import json
import os
import runpy
import select
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

_REPOSITORY = Path(__file__).resolve().parents[2]
_PR_SET_CHILD_SUBREAPER = 36
_READY = "ready\n"


class Forked:
    """A child of this process that the server has forked; used like a `subprocess.Popen`.

    Args:
        pid: its process id.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, negative if a signal ended the process; None while it runs."""
        with self._lock:
            if self.returncode is None:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if ended else None
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: the process still runs after `timeout` seconds.
        """
        if self.poll() is None:
            descriptor, looked_at = os.pidfd_open(self.pid), select.poll()
            looked_at.register(descriptor, select.POLLIN)  # readable once the process has ended
            try:
                looked_at.poll(None if timeout is None else timeout * 1000)
            finally:
                os.close(descriptor)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["forked"], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal if the process still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


class _Job(NamedTuple):
    """A request to the server: the arguments of `ForkServer.start`, with paths as text."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    out: str
    errors: str


class ForkServer:
    """A process that has loaded the service and forks others from itself; it ends with this process."""

    def __init__(self) -> None:
        # The forked processes become children of this one, which can then wait for them.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        command = [sys.executable, "-m", "tests.stream.fork_server"]
        self._process = subprocess.Popen(
            command, cwd=_REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock = threading.Lock()
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == _READY

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        out: Path,
        errors: Path | None = None,
    ) -> Forked:
        """Run a module in a forked process.

        Args:
            module: the module, as for `python -m`.
            arguments: of the command line.
            environment: the whole environment.
            out: file for standard output, which is created.
            errors: file for standard error; None for the same file.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = _Job(module, [*arguments], {**environment}, str(out), str(errors or out))
        for file in (job.out, job.errors):
            Path(file).touch()
        with self._lock:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            return Forked(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End the server; the processes it has forked keep running."""
        self._process.communicate()


@cache
def fork_server() -> ForkServer:
    """Return the fork server of this process; the first call starts it."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def main() -> None:
    """Load the service, then fork for each request; the child runs what was requested."""
    _load()
    _tell(_READY)
    while line := sys.stdin.readline():
        if "registry.url=" in line:
            _load_formats()
        told, telling = os.pipe()
        # The intermediate process exits right after forking, so its child is adopted by the one that asked.
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                os.close(told)
                os.close(telling)
                _become(_Job(*json.loads(line)))
                return
            os.write(telling, b"%d" % child)
            os._exit(0)
        os.waitpid(between, 0)
        _tell(f"{int(os.read(told, 20))}\n")
        os.close(told)
        os.close(telling)


def _tell(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


def _load() -> None:
    import stream_dedup.cli.main  # noqa: PLC0415  # only the server loads it
    import stream_dedup.stream.service  # noqa: F401, PLC0415  # likewise
    from stream_dedup import Deduplicator  # noqa: PLC0415  # likewise

    with Deduplicator() as engine:
        engine.warm_up()
    assert threading.active_count() == 1, "a fork would lose the other threads"
    gc.collect()
    gc.freeze()


def _load_formats() -> None:
    """Load what services with a registry need besides: two seconds of each, unless this process has it."""
    import stream_dedup.decode.registered  # noqa: F401, PLC0415  # most servers do without


def _become(job: _Job) -> None:
    """Become the requested process: its files, its environment, its arguments, its module."""
    for place, file, flags in ((0, os.devnull, os.O_RDONLY), (1, job.out, os.O_WRONLY), (2, job.errors, os.O_WRONLY)):
        opened = os.open(file, flags | os.O_APPEND)
        os.dup2(opened, place)
        os.close(opened)
    os.environ.clear()
    os.environ.update(job.environment)
    sys.argv = [job.module, *job.arguments]
    runpy.run_module(job.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
