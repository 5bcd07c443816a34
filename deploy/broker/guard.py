"""Knows how to keep one command from outliving the process that asked for it; a script, stdlib only.

Does not know what the command is. SIGTERM is passed on to it, SIGUSR1 kills it.
"""

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

POLL_SECONDS = 0.25
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the command, print its process id, and return its exit status; kill it when the owner is gone."""
    options = _options()
    command = _spawn(options.command)
    signal.signal(signal.SIGTERM, lambda *_: command.terminate())
    signal.signal(signal.SIGUSR1, lambda *_: command.kill())
    print(command.pid, flush=True)
    while command.poll() is None and os.getppid() == options.owner:
        _wait(command)
    # Asked again, because the command may have ended by itself just after the owner did.
    if os.getppid() != options.owner:
        _end(command, options.remove)
    return _shell_status(command.returncode)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owner", type=int, required=True, help="process id of the process that asked")
    parser.add_argument("--remove", help="folder to remove when the owner dies before the command")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _spawn(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        preexec_fn=_die_with_guard(),  # noqa: PLW1509 - safe here: the guard has one thread
    )


def _die_with_guard() -> Callable[[], None] | None:
    """Let Linux kill the command when the guard is killed; elsewhere only the owner's death is covered."""
    if sys.platform != "linux":
        return None
    # The signal follows the thread that forks. The guard forks from its only thread, so the two die together;
    # the owner could not promise that, and could not run code between fork and exec safely either.
    prctl, guard = ctypes.CDLL(None).prctl, os.getpid()

    def ask_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)

    return ask_kernel


def _wait(command: subprocess.Popen[bytes]) -> None:
    try:
        command.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return


def _end(command: subprocess.Popen[bytes], folder: str | None) -> None:
    command.kill()
    command.wait()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _shell_status(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


if __name__ == "__main__":
    sys.exit(main())
