"""Reads runs ahead of look-ups, in a thread: after a restart of the machine, each block would wait for the disk alone.

Knows files and the memory that can cache them; knows nothing of what runs hold.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Event, Thread

from stream_dedup.index.runs.run import Run
from stream_dedup.memory_limit import GROUPS, MEMBERSHIP, memory_limit

_CHUNK = 1 << 20  # bytes read between two looks at whether to go on
_SHARE = 0.5  # of the memory: lists that do not fit in it would displace one another


def cacheable_bytes() -> int:
    """Return how many bytes of runs are worth having in memory."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(_SHARE * min(physical, memory_limit(MEMBERSHIP, GROUPS).size or physical))


class ReadAhead(Thread):
    """Reads runs into the system's page cache, the newest first, once started. Look-ups go on meanwhile.

    Args:
        runs: the oldest first; they may be closed meanwhile.
        most: how many bytes to read at most.
    """

    def __init__(self, runs: Sequence[Run], most: int) -> None:
        super().__init__(name="read-ahead", daemon=True)
        self._stopped = Event()
        # Of its own: a descriptor that is closed may be that of another file a moment later.
        self._descriptors = [os.dup(run.descriptor) for run in _newest(runs, most)]

    def run(self) -> None:
        """Read; what cannot be read is left to look-ups, which report it."""
        chunk = bytearray(_CHUNK)
        for descriptor in self._descriptors:
            with suppress(OSError), os.fdopen(descriptor, "rb", buffering=0) as file:
                file.seek(0)
                while not self._stopped.is_set() and file.readinto(chunk):
                    pass

    def stop(self) -> None:
        """Read no more."""
        self._stopped.set()
        self.join()


def _newest(runs: Sequence[Run], most: int) -> Iterator[Run]:
    for run in reversed(runs):
        most -= run.size
        if most < 0:
            break
        yield run
