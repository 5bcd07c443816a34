"""Pins what is timed to CPU cores. Knows the scheduler's masks; knows nothing of what runs there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CAN_PIN = sys.platform == "linux"


@contextmanager
def pinned(cores: int | None) -> Iterator[None]:
    """Pin this thread, and the processes and threads that it starts meanwhile, to the last cores.

    Args:
        cores: number of cores, no more than there are; None changes nothing. Other platforms than Linux cannot pin.
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
