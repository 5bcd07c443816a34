"""Waiting until something is so: any condition, or that a process stands still.

Knows how patient tests are with a busy machine; knows nothing of what they wait for.
"""

import os
import signal
import time
from collections.abc import Callable

import psutil

PATIENCE_SECONDS = 180.0  # for what must happen: a busy machine is not the service's fault
LOOK_SECONDS = 0.02
_MOST_LOOK_SECONDS = 0.1


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition; fail at the deadline. It is looked at less and less often: that takes the service's CPU."""
    deadline, pause = time.monotonic() + seconds, LOOK_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
        pause = min(1.5 * pause, _MOST_LOOK_SECONDS)


def stand_still(pid: int) -> None:
    """Send SIGSTOP to a process and wait until it has stopped: on a busy machine its threads run on for 50 ms."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: stands_still(pid), "the process stands still")


def stands_still(pid: int) -> bool:
    """Return whether all threads of a process have stopped, whoever sent SIGSTOP."""
    try:
        threads = [psutil.Process(thread.id) for thread in psutil.Process(pid).threads()]
        return all(thread.status() == psutil.STATUS_STOPPED for thread in threads)
    except psutil.NoSuchProcess:  # a thread ended meanwhile
        return False
