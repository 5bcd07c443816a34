"""Pins what is timed to cores. Knows the scheduler's masks; knows nothing of what runs there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CAN_PIN = sys.platform == "linux"


@contextmanager
def pinned(cores: int | None) -> Iterator[None]:
    """Keep this thread, and the processes and threads that it starts meanwhile, to the last so many cores.

    Args:
        cores: how many, no more than there are; None leaves everything as it is, and so does a platform that cannot.
    """
    if cores is None or sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    # The last ones: interrupts tend to be served by the first.
    os.sched_setaffinity(0, sorted(before)[-cores:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
