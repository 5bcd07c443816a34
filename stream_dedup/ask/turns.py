"""A lock for many threads with questions and one that keeps the state up to date, which must not wait for them all.

Knows threads; knows nothing of what they do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock


class Turns:
    """A lock that threads with questions wait for one behind the other, and any other thread beside the first of them.

    However many questions wait, the other thread's turn comes after one or two of them.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._first_in_line = Lock()

    @contextmanager
    def question(self) -> Iterator[None]:
        """Hold the lock for a question, within which no other may be begun."""
        with self._first_in_line:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def upkeep(self) -> Iterator[None]:
        """Hold the lock for anything else, also within a question."""
        with self._lock:
            yield
