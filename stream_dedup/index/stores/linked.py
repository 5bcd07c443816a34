"""A directory of links to the files of a database, through which it is opened where nothing may be written.

Knows that whoever opens a database writes files of its own beside it; knows nothing of what is in one.
"""

import os
from contextlib import suppress
from pathlib import Path

from stream_dedup.closing import SelfClosing
from stream_dedup.scratch import Scratch

# Written by whoever opens the database, for reading too: rocksdict's settings and RocksDB's messages.
_OWN = ("rocksdict-config.json", "LOG")


def needs_links(directory: Path) -> bool:
    """Tell whether nothing may be written to a directory: its file system is read-only, or it is another user's."""
    return directory.is_dir() and not os.access(directory, os.W_OK, effective_ids=True)


class LinkedDirectory(SelfClosing):
    """A temporary directory that shows the files of a database. Use it as a context manager, or call `close`.

    Args:
        directory: directory of the database, which another process may be writing to.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._scratch = Scratch("linked")
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The directory of links."""
        return Path(self._scratch.name)

    def refresh(self) -> None:
        """Show the files that are there now.

        Raises:
            OSError: the directory cannot be read.
        """
        there = {file.name for file in self._directory.iterdir() if not file.name.startswith(_OWN)}
        linked = {file.name for file in self.path.iterdir() if file.is_symlink()}
        for name in there - linked:
            (self.path / name).symlink_to(self._directory / name)
        for name in linked - there:
            (self.path / name).unlink()

    def close(self) -> None:
        """Remove the links. Closing twice does no harm."""
        with suppress(OSError):
            self._scratch.cleanup()
