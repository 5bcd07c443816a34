"""Records from files: JSONL and CSV (plain, .gz, .zst), Parquet, and JSONL on standard input.

Knows file names, compression and lines; rows of CSV and of tables have their own modules. Knows nothing of articles.
"""

import gzip
import io
import itertools
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from stream_dedup.files.rows import CsvError, rows_of
from stream_dedup.paths import is_there
from stream_dedup.zstandard import zstd

STANDARD_INPUT = Path("-")
ONE_OBJECT_PER_LINE = "one object per line is required: convert an array with jq -c '.[]'"
_LINES_BYTES = 1 << 20  # read at once
_LONGEST_LINE = 256 << 20  # bytes: a whole file may be one line, and larger than memory
_SHOWN_BYTES = 1 << 10  # of a longer line
_BEGIN_BYTES = 1 << 10
_BOM = b"\xef\xbb\xbf"
_NEEDS_MUCH = "Frame requires too much memory"  # libzstd's words for a window of more than 128 MiB


class FileFormatError(Exception):
    """A file cannot be read. The message names it and says what is wrong."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        value: the record as JSON: the line itself if the file has lines of JSON; for a faulty one, and for a row of CSV
            that is not UTF-8, its raw content.
        number: of the line, or of the row; the first is 1.
        fault: why it is not a record, None if it is one.
    """

    value: bytes
    number: int
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has been read: `done` of `total`, in bytes or in rows; 0 where that is unknown."""

    done: int
    total: int


Reader = Callable[[Path], Iterator[tuple[Record, Progress]]]


def shown(path: Path | str) -> str:
    """Return the name of a file as text, with bytes that are not UTF-8 escaped."""
    return str(path).encode(errors="backslashreplace").decode()


def reader_for(path: Path, flags: Collection[str] = ()) -> Reader:
    """Return the reader for a file, by its name; `-` is standard input, with lines of JSON.

    Args:
        path: of the file.
        flags: columns of CSV that hold true or false, for which CSV has no type.

    Raises:
        FileFormatError: the name does not end in a known format.
    """
    if path == STANDARD_INPUT:
        return _read_standard_input
    kind, packed = _kind(path)
    if kind in {".jsonl", ".ndjson", ".json"} or (packed and not kind):
        return _read_lines
    if kind == ".csv":
        return partial(_read_csv, flags=flags)
    if kind == ".parquet" and not packed:
        return _read_parquet
    raise FileFormatError(
        f"{path}: cannot tell the format; supported are .jsonl, .ndjson, .json and .csv, each also with .gz or .zst, "
        "and .parquet; - is JSONL on standard input"
    )


def check_exists(path: Path) -> None:
    """Check that a path is that of a file, or standard input.

    Raises:
        FileFormatError: it is neither, or standard input is closed.
    """
    if path == STANDARD_INPUT and sys.stdin is None:
        raise FileFormatError("-: standard input is closed")
    if path.is_dir():
        raise FileFormatError(f"{path} is a directory: name a file in it")
    if path != STANDARD_INPUT and not is_there(path):
        raise FileFormatError(f"{path}: there is no such file")


def check_regular(path: Path) -> None:
    """Check that a file exists and can be read more than once.

    Raises:
        FileFormatError: it does not, or cannot.
    """
    check_exists(path)
    if path == STANDARD_INPUT or not path.is_file():
        raise FileFormatError(f"{path} cannot be read more than once: name a file")


def check_begin(path: Path) -> None:
    """Check how a regular file begins: what cannot be read must not end a run that has been going for hours.

    Raises:
        FileFormatError: it cannot be opened or decompressed, or is one large array where the name leaves that open.
    """
    if path == STANDARD_INPUT or not path.is_file():
        return
    with _opened(path) as (content, _):
        begin = content.read(_BEGIN_BYTES)
    if _kind(path)[0] == ".json" and begin.removeprefix(_BOM).lstrip().startswith(b"["):
        raise FileFormatError(f"{path} holds an array, but {ONE_OBJECT_PER_LINE}")


def _kind(path: Path) -> tuple[str, bool]:
    """Return the suffix that names the format, before any .gz or .zst, and whether the file is compressed."""
    packed = path.suffix.lower() in {".gz", ".zst"}
    return (path.with_suffix("") if packed else path).suffix.lower(), packed


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], BinaryIO]]:
    """Open a file: its decompressed content, and the file itself, whose position gives the progress."""
    try:
        with path.open("rb") as raw:
            if path.suffix.lower() == ".gz":
                yield _gunzipped(raw), raw
            elif path.suffix.lower() == ".zst":
                yield cast("IO[bytes]", zstd.ZstdFile(raw)), raw
            else:
                yield raw, raw
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        # The window is memory, and a file that needs much may be small: only who knows the file can tell.
        advice = ": decompress it with `zstd -d --long=31`" if _NEEDS_MUCH in str(error) else ""
        raise FileFormatError(f"{path}: {error}{advice}") from None


def _gunzipped(raw: io.BufferedReader) -> IO[bytes]:
    """Return the content of a .gz file.

    Raises:
        EOFError: the file is empty: Python would take it for compressed nothing, but that has 20 bytes.
    """
    if not raw.peek(1):
        raise EOFError("it is empty, so it is not a compressed file")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))


def _progress_of(raw: BinaryIO) -> Callable[[], Progress]:
    """Return what tells how far an open file has been read."""
    total = os.fstat(raw.fileno()).st_size
    at = raw.tell if raw.seekable() else int  # `int()` is 0: a pipe has no position
    return lambda: Progress(at(), total)


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, up to where it is damaged: a larger read would hit the damage first."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = cast("io.BufferedIOBase", content)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, room: Any) -> int:  # noqa: ANN401  # whatever has a buffer
        """Read what has been decompressed already, or the next part."""
        return self._content.readinto1(room)


def _read_standard_input(_path: Path) -> Iterator[tuple[Record, Progress]]:
    # Not via `sys.stdin`, which Python closes at exit: it would wait for a thread that reads it, or abort.
    with open(sys.stdin.fileno(), "rb", closefd=False) as lines:
        for record in _lines_of(lines):
            yield record, Progress(0, 0)


def _read_lines(path: Path) -> Iterator[tuple[Record, Progress]]:
    check_begin(path)
    with _opened(path) as (content, raw):
        progress = _progress_of(raw)
        lines = io.BufferedReader(_Unpacked(content), _LINES_BYTES) if content is not raw else content
        for record in _lines_of(lines):
            yield record, progress()


def _lines_of(lines: IO[bytes] | io.BufferedReader) -> Iterator[Record]:
    for number in itertools.count(1):
        line = lines.readline(_LONGEST_LINE + 1)
        if not line:
            break
        value = line.rstrip(b"\r\n")
        if number == 1:
            value = value.removeprefix(_BOM)
        if len(line) > _LONGEST_LINE and not line.endswith(b"\n"):
            _skip_line(lines)
            yield Record(value[:_SHOWN_BYTES], number, f"the line has more than {_LONGEST_LINE} bytes")
        elif value.strip():
            yield Record(value, number)


def _skip_line(lines: IO[bytes] | io.BufferedReader) -> None:
    while (rest := lines.readline(_LINES_BYTES)) and not rest.endswith(b"\n"):
        pass


def _read_csv(path: Path, flags: Collection[str]) -> Iterator[tuple[Record, Progress]]:
    with _opened(path) as (content, raw):
        progress = _progress_of(raw)
        try:
            for number, (value, fault) in enumerate(rows_of(content, flags), 1):
                yield Record(value, number, fault), progress()
        except CsvError as error:
            raise FileFormatError(f"{path}: {error}") from None


def _read_parquet(path: Path) -> Iterator[tuple[Record, Progress]]:
    try:
        from stream_dedup.files.parquet import ParquetError, rows_of_table  # noqa: PLC0415  # of an extra, and large
    except ImportError:
        raise FileFormatError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        for number, row in enumerate(rows_of_table(path), 1):
            yield Record(row.value, number, row.fault), Progress(number, row.total)
    except ParquetError as error:
        raise FileFormatError(f"{path}: {error}") from None
