"""Progress of a long operation, in words.

Knows a clock and numbers; knows nothing of what is done.
"""

import time
from collections.abc import Callable

_MINUTE, _HOUR = 60, 3_600
_ROUNDED_FROM = 90  # from this many of a unit on, the next larger one is used


class RemainingTime:
    """Describes how many things are left, and how long they will take at the rate so far.

    Args:
        things: what is counted.
        clock: returns the time in seconds.
    """

    def __init__(self, things: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._things = things
        self._clock = clock
        self._began = clock()
        self._total = 0

    def left(self, left: int) -> str:
        """Return a line about what is left.

        Args:
            left: how many; the largest number so far is taken for the total.
        """
        self._total = max(self._total, left)
        line = f"{left:,} of {self._total:,} {self._things} left"
        done, seconds = self._total - left, self._clock() - self._began
        return f"{line}, about {_duration(seconds * left / done)}" if done else line


def _duration(seconds: float) -> str:
    if seconds < _ROUNDED_FROM:
        return f"{seconds:.0f} s"
    minutes = seconds / _MINUTE
    return f"{minutes:.0f} min" if minutes < _ROUNDED_FROM else f"{seconds / _HOUR:.0f} h"
