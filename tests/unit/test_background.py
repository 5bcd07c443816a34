"""A thread whose work can wait yields to all others, and the rest of its process does not.

Knows priorities as the system reports them; knows nothing of what the threads do.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from stream_dedup.background import let_others_first

_LOWEST = 19


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_only_the_calling_thread_yields() -> None:
    """A thread of a pool runs at ten more than the process, which stays as it is."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with ThreadPoolExecutor(1, initializer=let_others_first) as pool:
        theirs = pool.submit(os.getpriority, os.PRIO_PROCESS, 0).result()
    assert theirs == min(_LOWEST, before + 10)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
