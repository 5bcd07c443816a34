"""Processes of the service that begin with all of it loaded: forked from one that has done that once.

Knows modules, forks and exit codes; knows nothing of what a test expects. Such a process runs the same modules by the
same command line, with an environment and a log of its own, and is a child of the one that asked for it; what loading
takes, and what may happen meanwhile, it cannot show.
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
    """A child of this process that another one has forked; to be used as a `subprocess.Popen`.

    Args:
        pid: its id.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, negative where a signal ended it; None while it runs."""
        with self._lock:
            if self.returncode is None:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if ended else None
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        if self.poll() is None:
            descriptor, looked_at = os.pidfd_open(self.pid), select.poll()
            looked_at.register(descriptor, select.POLLIN)  # it can be read when the process has ended
            try:
                looked_at.poll(None if timeout is None else timeout * 1000)
            finally:
                os.close(descriptor)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["forked"], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


class _Job(NamedTuple):
    """What is run: as `Nursery.start` is told it, files by their paths."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    out: str
    errors: str


class Nursery:
    """A process that has loaded the service, and forks others; it ends with this one."""

    def __init__(self) -> None:
        # What it forks is passed on to this process, which can then wait for it.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        command = [sys.executable, "-m", "tests.stream.nursery"]
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
        """Run a module.

        Args:
            module: that is run, as by `python -m`.
            arguments: of the command line.
            environment: all of it.
            out: file of its standard output, which is made.
            errors: of its standard error; None for the same.
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
        """End it; what it has forked goes on."""
        self._process.communicate()


@cache
def nursery() -> Nursery:
    """Return the one of this process."""
    one = Nursery()
    atexit.register(one.close)
    return one


def main() -> None:
    """Load the service, and fork for each request that comes; in the child, do what is asked for."""
    _load()
    _tell(_READY)
    while line := sys.stdin.readline():
        told, telling = os.pipe()
        # The one in between has a child and ends: from then on it is a child of who asked.
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
    import stream_dedup.cli.main  # noqa: PLC0415  # not where this is only imported
    import stream_dedup.stream.service  # noqa: F401, PLC0415  # the same
    from stream_dedup import Deduplicator  # noqa: PLC0415  # the same

    with Deduplicator() as engine:
        engine.warm_up()
    assert threading.active_count() == 1, "a fork would lose the others"
    gc.collect()
    gc.freeze()


def _become(job: _Job) -> None:
    """Become the process that was asked for, and run its module."""
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
