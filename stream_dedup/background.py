"""Threads whose work can wait: they run while a core would idle, and get a small share of busy ones.

Knows the system's scheduler; knows nothing of what the threads do.
"""

import os
import sys


def let_others_first(niceness: int = 10) -> None:
    """Lower the priority of the calling thread, for good.

    Only on Linux, which schedules each thread by its own niceness: elsewhere that is the process's.

    Args:
        niceness: above that of the rest of the process. Where both want a core, a thread gets a tenth of it with 10,
            and a quarter with 5.
    """
    if sys.platform == "linux":
        os.nice(niceness)
