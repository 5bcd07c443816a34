"""The result files of a run: whole batches only, however it ends.

Knows lines and lengths; knows nothing of articles or of the state.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from stream_dedup.files.readers import FileFormatError

DEAD = "dead.jsonl"
NAMES = ("unique.jsonl", "links.jsonl", DEAD)


def has_decisions(out: Path) -> bool:
    """Return whether there is anything but dead letters in results."""
    return any((out / name).stat().st_size for name in NAMES if name != DEAD)


class ResultFile:
    """A file that lines are appended to, a batch at a time.

    Args:
        path: of the file.
        kept: bytes of it to keep; the rest is cut off.
        sync: whether each batch waits for the disk.

    Raises:
        FileFormatError: it is shorter than what is to be kept.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, kept: int, *, sync: bool) -> None:
        self._path = path
        self._sync = sync
        self._lines: list[bytes] = []
        if kept > (path.stat().st_size if path.exists() else 0):
            raise FileFormatError(
                f"{path}: some of the {kept} bytes that an unfinished run wrote are gone; start over with "
                "another --out and another --state"
            )
        self._file = path.open("r+b" if path.exists() else "xb", buffering=0)
        self.cut_to(kept)

    def add(self, line: bytes) -> None:
        """Add a line for `write` to write."""
        self._lines += line, b"\n"

    def write(self) -> None:
        """Write what was added.

        Raises:
            OSError: it cannot be written; the error names the file.
        """
        rest = memoryview(b"".join(self._lines))
        self._lines.clear()
        self.length += len(rest)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None

    def cut_to(self, length: int) -> None:
        """Cut the file off after `length` bytes, and continue there."""
        self._file.truncate(length)
        self._file.seek(length)
        self.length = length

    def close(self) -> None:
        """Close the file; what was added since the last `write` is lost."""
        self._file.close()


class Results:
    """The three result files, open. A batch is written, then the state remembers it, then it is `kept`.

    If the run ends before the state was asked to remember a batch, the batch's lines are cut off, so that the files
    contain just what the state knows. If it ends while the state is asked, only the state can tell; see `cut_to`.

    Args:
        out: directory, created if it does not exist.
        kept: bytes of each file that an unfinished run left, by name; 0 for each in a new run.
        sync: whether each batch waits for the disk.

    Raises:
        FileFormatError: a result file of an unfinished run is shorter than it was.
        OSError: a file cannot be opened.
    """

    def __init__(self, out: Path, kept: Mapping[str, int], *, sync: bool) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._files: list[ResultFile] = []
        try:
            for name in NAMES:
                self._files.append(ResultFile(out / name, kept[name], sync=sync))
        except BaseException:
            self._close()
            raise
        self.unique, self.links, self.dead = self._files
        self._kept: Sequence[int] | None = self._lengths()

    def write(self) -> Mapping[str, int]:
        """Write what was added to the files; return their lengths after that, by name.

        Raises:
            OSError: one cannot be written.
        """
        for file in self._files:
            file.write()
        return dict(zip(NAMES, self._lengths(), strict=True))

    def remembering(self) -> None:
        """Note that from here on only the state can tell whether it remembers what was written."""
        self._kept = None

    def kept(self) -> None:
        """Note that the state remembers what was written."""
        self._kept = self._lengths()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files after cutting off what the state does not know."""
        try:
            if self._kept is not None:
                for file, length in zip(self._files, self._kept, strict=True):
                    file.cut_to(length)
        finally:
            self._close()

    def _lengths(self) -> list[int]:
        return [file.length for file in self._files]

    def _close(self) -> None:
        for file in self._files:
            file.close()


def check_new(out: Path) -> None:
    """Check that a directory contains no results.

    Raises:
        FileExistsError: it does.
    """
    for name in NAMES:
        if (out / name).exists():
            raise FileExistsError(errno.EEXIST, "already exists", str(out / name))
