"""Threads beside the one that matters: those whose work can wait, and calls that nobody has to wait for.

Knows the system's scheduler; knows nothing of what the threads do.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")


def begun(call: Callable[[], _Result], name: str) -> "Future[_Result]":
    """Make a call in a thread of its own, which the end of the process does not wait for, unlike those of a pool.

    Args:
        call: whatever it raises, the future raises.
        name: of the thread.
    """
    future: Future[_Result] = Future()

    def make() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # the thread would lose it
            future.set_exception(error)

    Thread(target=make, name=name, daemon=True).start()
    return future


def let_others_first(niceness: int = 10) -> None:
    """Lower the priority of the calling thread, for good.

    Only on Linux, which schedules each thread by its own niceness: elsewhere that is the process's.

    Args:
        niceness: above that of the rest of the process. Where both want a core, a thread gets a tenth of it with 10,
            and a quarter with 5.
    """
    if sys.platform == "linux":
        os.nice(niceness)
