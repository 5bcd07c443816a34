"""Knows how to start and signal a command that cannot outlive this process, not even a killed one.

Does not know what the command is: any program will do.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_GUARD = Path(__file__).with_name("guard.py")


class GuardedProcess:
    """A command under a guard process that kills it as soon as this process is gone, however it ended.

    Args:
        command: program and arguments.
        log: file that the command's output is appended to.
        env: the command's whole environment.
        remove: folder that the guard removes after it had to kill the command.
    """

    def __init__(
        self, command: Sequence[str], log: Path, *, env: Mapping[str, str], remove: Path | None = None
    ) -> None:
        """Start the command; returns as soon as it has a process id."""
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [*_guard_command(remove), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                env=env,
                # Out of reach of the terminal's Ctrl-C: the owner decides when the command ends.
                start_new_session=True,
            )
        self.pid = self._read_pid()

    def running(self) -> bool:
        """Tell whether the command is still running."""
        return self._guard.poll() is None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status, as a shell counts it (128 + signal).

        Raises:
            subprocess.TimeoutExpired: it is still running after `timeout` seconds.
        """
        return self._guard.wait(timeout)

    def kill(self) -> None:
        """End the command with SIGKILL and wait until it is gone."""
        self._guard.send_signal(signal.SIGUSR1)
        self.wait()

    def terminate(self, timeout: float) -> None:
        """End the command with SIGTERM, and with SIGKILL if it is still running after `timeout` seconds."""
        self._guard.send_signal(signal.SIGTERM)
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def _read_pid(self) -> int:
        """Read the id that the guard prints once its signal handlers are in place."""
        assert self._guard.stdout is not None  # noqa: S101 - narrows the type: the pipe was asked for
        with self._guard.stdout as pipe:
            line = pipe.readline()
        if not line:
            self._guard.wait()
            raise RuntimeError(f"the guard could not start the command, exit status {self._guard.returncode}")
        return int(line)


def _guard_command(remove: Path | None) -> list[str]:
    # Isolated and without site: the guard needs only the standard library, and so starts in 20 ms.
    command = [sys.executable, "-I", "-S", str(_GUARD), "--owner", str(os.getpid())]
    if remove is not None:
        command += ["--remove", str(remove)]
    return [*command, "--"]
