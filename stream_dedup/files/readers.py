"""Records out of JSONL (plain, .gz, .zst), CSV and Parquet.

Knows formats; knows nothing of articles.
"""

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import orjson

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CSV_FIELD_LIMIT = 64 << 20  # characters of one CSV field; the csv module's own limit is 128 KiB
_PARQUET_ROWS = 1024


class FileFormatError(Exception):
    """A file cannot be read. The message names it and says what is wrong."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        value: the record as JSON: the line itself where the file has lines of JSON.
        number: of the line, or of the row; the first is 1.
    """

    value: bytes
    number: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has been read: `done` of `total`, in bytes or in rows."""

    done: int
    total: int


Reader = Callable[[Path], Iterator[tuple[Record, Progress]]]


def reader_for(path: Path) -> Reader:
    """Return the reader for a file, by its name.

    Raises:
        FileFormatError: the name ends in nothing that can be read.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in {".gz", ".zst"}
    kind = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes and not packed else ""
    if kind in {".jsonl", ".ndjson", ".json"} or (packed and not kind):
        return _read_lines
    if kind == ".csv":
        return _read_csv
    if kind == ".parquet" and not packed:
        return _read_parquet
    raise FileFormatError(
        f"{path}: cannot tell the format; known are .jsonl, .ndjson and .csv, each also with .gz or .zst, and .parquet"
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], BinaryIO]]:
    """Open a file: its content unpacked, and the file itself, whose position tells the progress."""
    try:
        with path.open("rb") as raw:
            if path.suffix.lower() == ".gz":
                yield cast("IO[bytes]", gzip.GzipFile(fileobj=raw)), raw
            elif path.suffix.lower() == ".zst":
                yield cast("IO[bytes]", zstd.ZstdFile(raw)), raw
            else:
                yield raw, raw
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise FileFormatError(f"{path}: {error}") from None


def _read_lines(path: Path) -> Iterator[tuple[Record, Progress]]:
    total = path.stat().st_size if path.exists() else 0
    with _opened(path) as (content, raw):
        lines = io.BufferedReader(cast("io.RawIOBase", content), 1 << 20) if content is not raw else content
        for number, line in enumerate(lines, 1):
            value = line.rstrip(b"\r\n")
            if number == 1:
                value = value.removeprefix(b"\xef\xbb\xbf")
            if value.strip():
                yield Record(value, number), Progress(raw.tell(), total)


def _read_csv(path: Path) -> Iterator[tuple[Record, Progress]]:
    csv.field_size_limit(CSV_FIELD_LIMIT)
    total = path.stat().st_size if path.exists() else 0
    with _opened(path) as (content, raw):
        text = io.TextIOWrapper(content, "utf-8-sig", newline="")
        try:
            for number, row in enumerate(csv.DictReader(text, strict=True), 1):
                if None in row:
                    raise FileFormatError(f"{path}: row {number} has more fields than the heading")
                yield (
                    Record(orjson.dumps({k: v for k, v in row.items() if v}), number),
                    Progress(raw.tell(), total),
                )
        except (csv.Error, UnicodeDecodeError) as error:
            raise FileFormatError(f"{path}: no CSV in UTF-8: {error}") from None


def _read_parquet(path: Path) -> Iterator[tuple[Record, Progress]]:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an optional extra, and large
        from pyarrow import parquet  # noqa: PLC0415  # the same
    except ImportError:
        raise FileFormatError(f"{path}: reading Parquet takes pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path) as table:
            number, total = 0, table.metadata.num_rows
            for batch in table.iter_batches(_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(orjson.dumps(row, default=_plain), number), Progress(number, total)
    except (OSError, pa.ArrowException) as error:
        raise FileFormatError(f"{path}: {error}") from None


def _plain(value: Any) -> str:  # noqa: ANN401  # whatever Parquet holds that JSON lacks
    return value.hex() if isinstance(value, bytes) else str(value)
