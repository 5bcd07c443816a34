"""Reclaims the disk space of what has expired, in a thread of its own.

Knows which keys belong to generations that have expired; knows nothing of when a generation expires.
"""

import threading
import time
from collections.abc import Callable

from stream_dedup.index.records.generations import ranges
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.stores.store import FileStore, StoreError

_FIRST = Progress().generations[0]

# Called with the number of the oldest generation that is left, the seconds that it took, and what went wrong, if so.
Told = Callable[[int, float, StoreError | None], None]


class Reclaimer:
    """Frees the disk space of each generation soon after it was dropped.

    Args:
        store: the state.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._oldest = _FIRST.number
        self._thread: threading.Thread | None = None
        self.tell: Told = lambda _number, _seconds, _error: None

    def look(self, progress: Progress) -> None:
        """Begin to reclaim what has expired since the last time, unless that is still under way.

        The first time that is everything so far: an earlier process may have ended before it was done. Whatever is
        being reclaimed when the store is closed ends then.

        Args:
            progress: of the state, whose expired generations were dropped.
        """
        oldest = progress.generations[0]
        if oldest.number == self._oldest or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._reclaim_before, args=(oldest,), name="reclaim", daemon=True)
        self._thread.start()
        self._oldest = oldest.number

    def _reclaim_before(self, oldest: Generation) -> None:
        began = time.monotonic()
        error: StoreError | None = None
        try:
            for dropped in ranges(_FIRST, oldest):
                self._store.reclaim(dropped.family, dropped.begin, dropped.end)
        except StoreError as refused:
            error = refused
        self.tell(oldest.number, time.monotonic() - began, error)
