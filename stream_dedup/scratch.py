"""Temporary directories that go with their process: what a killed process leaves behind, the next one removes.

Knows names and locks; knows nothing of what is in them.
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
_YOUNG_SECONDS = 60.0  # allowed for a new directory to be locked by the process that made it


class Scratch(TemporaryDirectory[str]):
    """A temporary directory, locked as long as its process lives.

    Args:
        purpose: part of its name; directories with the same purpose whose processes are gone are removed.
        parent: directory to create it in; None for the system's temporary directory.
    """

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        remove_abandoned(purpose, parent)
        super().__init__(prefix=_prefix(purpose), dir=parent)
        self._lock = os.open(self.name, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        _own.add(self)

    def cleanup(self) -> None:
        """Remove it. Harmless if done twice."""
        super().cleanup()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


_own: WeakSet[Scratch] = WeakSet()


def remove_own() -> None:
    """Remove those of this process, which is about to end. One that is still being written to is left to the next."""
    for scratch in list(_own):
        with suppress(OSError):
            scratch.cleanup()


def remove_abandoned(purpose: str, parent: Path | None) -> None:
    """Remove temporary directories whose processes are gone.

    Args:
        purpose: of the directories.
        parent: directory they were created in; None for the system's temporary directory.
    """
    for folder in (parent or Path(gettempdir())).glob(f"{_prefix(purpose)}*"):
        # One that its own process removes meanwhile, or that cannot be removed, is not our concern.
        with suppress(OSError), _unlocked(folder):
            shutil.rmtree(folder)


def _prefix(purpose: str) -> str:
    return f"{_PREFIX}{purpose}-"


@contextmanager
def _unlocked(folder: Path) -> Iterator[None]:
    """Lock a directory that nobody else has locked.

    Raises:
        OSError: somebody has, it was created a moment ago, or it belongs to another user.
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
