"""What a service does besides its commits: it reclaims disk space and makes snapshots.

Knows what has expired and where snapshots are requested; knows nothing of decisions.
"""

import queue
import threading
import time
from types import TracebackType
from typing import Self

import structlog

from stream_dedup.index.records.generations import ranges
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import StoreError
from stream_dedup.stream.state.snapshots import SnapshotServer

_TURN_SECONDS = 1.0
_FIRST = Progress().generations[0]

log = structlog.get_logger()


class Upkeep:
    """Works while its context is open; space is reclaimed in a thread of its own.

    Args:
        store: the state.
        snapshots: takes requests for snapshots.
    """

    def __init__(self, store: RocksStore, snapshots: SnapshotServer) -> None:
        self._store = store
        self._snapshots = snapshots
        self._oldest = -1
        self._turned_at = 0.0
        self._expired: queue.SimpleQueue[Generation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._reclaim, name="reclaim", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whatever the thread is doing ends when the store is closed.
        self._expired.put(None)

    def turn(self, progress: Progress) -> None:
        """Check once a second whether there is something to do.

        Args:
            progress: of the state.
        """
        now = time.monotonic()
        if now - self._turned_at < _TURN_SECONDS:
            return
        self._turned_at = now
        oldest = progress.generations[0]
        if oldest.number != self._oldest:
            # At the first turn too: an earlier process may have ended before it was done.
            self._oldest = oldest.number
            self._expired.put(oldest)
        self._snapshots.serve()

    def _reclaim(self) -> None:
        while (oldest := self._expired.get()) is not None:
            began = time.monotonic()
            try:
                for dropped in ranges(_FIRST, oldest):
                    self._store.reclaim(dropped.family, dropped.begin, dropped.end)
            except StoreError as error:
                log.warning("space_not_reclaimed", error=str(error))
            else:
                seconds = round(time.monotonic() - began, 2)
                log.debug("space_reclaimed", before_generation=oldest.number, seconds=seconds)
