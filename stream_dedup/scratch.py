"""Temporary directories that are gone with their process: what a killed one has left the next one removes.

Knows names and locks; knows nothing of what lies in them.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from weakref import WeakSet

_PREFIX = "stream-dedup-"
_YOUNG_SECONDS = 60.0  # for a directory to be locked by whoever has just made it


class Scratch(TemporaryDirectory[str]):
    """A temporary directory, locked as long as its process lives.

    Args:
        purpose: part of its name; those of the same purpose whose processes are gone are removed.
        parent: in which it is made; None for the system's directory of temporary files.
    """

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        remove_abandoned(purpose, parent)
        super().__init__(prefix=_prefix(purpose), dir=parent)
        self._lock = os.open(self.name, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        _own.add(self)

    def cleanup(self) -> None:
        """Remove it. Doing so twice does no harm."""
        super().cleanup()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


_own: WeakSet[Scratch] = WeakSet()


def remove_own() -> None:
    """Remove those of this process, which is about to end. What is written to meanwhile is left to the next start."""
    for scratch in list(_own):
        with suppress(OSError):
            scratch.cleanup()


def remove_abandoned(purpose: str, parent: Path | None = None) -> None:
    """Remove temporary directories whose processes are gone.

    Args:
        purpose: theirs.
        parent: in which they were made, as of `Scratch`.
    """
    for folder in (parent or Path(gettempdir())).glob(f"{_prefix(purpose)}*"):
        # One that is removed by its own process meanwhile, or cannot be, is not ours to care for.
        with suppress(OSError), _unlocked(folder):
            shutil.rmtree(folder)


def _prefix(purpose: str) -> str:
    return f"{_PREFIX}{purpose}-"


@contextmanager
def _unlocked(folder: Path) -> Iterator[None]:
    """Hold a directory that nobody else does.

    Raises:
        OSError: somebody does, it was made a moment ago, or it is none of this user's.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(held)
        if status.st_uid != os.geteuid() or time.time() - status.st_ctime < _YOUNG_SECONDS:
            raise BlockingIOError(f"{folder} may be in use")
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)
