"""Threads whose work can wait: they run while a core would idle, and get a small share of busy ones.

Knows the system's scheduler; knows nothing of what the threads do.
"""

import os
import sys

_NICENESS = 10  # above the rest of the process: a ninth of the time where both want a core


def let_others_first() -> None:
    """Lower the priority of the calling thread, for good.

    Only on Linux, which schedules each thread by its own niceness: elsewhere that is the process's.
    """
    if sys.platform == "linux":
        os.nice(_NICENESS)
