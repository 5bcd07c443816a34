"""A batch divided among threads: compiled loops run beside one another, since they do without the GIL.

Knows how many threads there are and what is worth dividing; knows nothing of what they do.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_LEAST = 64  # items a thread: for fewer it is not worth waking


class Threads:
    """Some threads, the caller's among them; the others are started when they are first needed.

    Args:
        count: how many; 0: one for each core that the process may use.
    """

    def __init__(self, count: int) -> None:
        self._count = count or len(os.sched_getaffinity(0))
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[Sequence[_Item]], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return what a function makes of consecutive parts of some items, at least of one, in order."""
        parts = max(1, min(self._count, len(items) // _LEAST))
        if parts == 1:
            return [work(items)]
        self._pool = self._pool or ThreadPoolExecutor(self._count - 1, "features")
        bounds = [len(items) * part // parts for part in range(parts + 1)]
        others = [self._pool.submit(work, items[bounds[part] : bounds[part + 1]]) for part in range(1, parts)]
        return [work(items[: bounds[1]]), *(other.result() for other in others)]
