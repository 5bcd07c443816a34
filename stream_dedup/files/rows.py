"""Rows of CSV as JSON; a faulty row is reported, and the next one read.

Knows headings, quotes and UTF-8; knows nothing of files.
"""

import csv
import io
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO

import orjson

from stream_dedup.counted import counted
from stream_dedup.files.columns import ColumnsError, check_names, check_paths, nested
from stream_dedup.text.utf8 import TO_UTF8

_LONGEST = 64 << 20  # characters of one field, and of one line; the csv module's own limit is 128 KiB
_SKIPPED = 1 << 20  # characters of the rest of a longer line, read at once
_SHOWN = 1 << 10  # characters of a longer line
_LINE_ENDS = "\r", "\n"
_OTHER_MARKS = "\t;|"  # some programs separate columns with these
_FLAGS: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}


class CsvError(Exception):
    """A heading is invalid. The message says what is wrong."""


class _Lines:
    """The lines of a text, and those that the current row was read from.

    Attributes:
        of_row: lines of the current row.
        again: lines that a faulty row ran over, to be read again.
        fault: what was wrong with that row.
    """

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self.of_row: list[str] = []
        self.again: deque[str] = deque()
        self.fault = ""

    def __iter__(self) -> Iterator[str]:
        while line := self._next():
            self.of_row.append(line)
            if _is_too_long(line):
                raise csv.Error(f"the line has more than {_LONGEST} characters")
            yield line

    def _next(self) -> str:
        """Return the next line; of one that is too long, only enough to show that it is.

        Raises:
            csv.Error: the row goes on with a line to be read again. The faulty row went on there too, so both are
                within quotes and fail at the same place: looking for it from every line would take quadratic time.
        """
        if self.again and self.of_row:
            raise csv.Error(self.fault)
        if self.again:
            return self.again.popleft()
        line = self._text.readline(_LONGEST + 1)
        if _is_too_long(line):
            while (rest := self._text.readline(_SKIPPED)) and not rest.endswith(_LINE_ENDS):
                pass
        return line

    def row(self) -> bytes:
        """Return the content of the current row; of a line that is too long, its beginning."""
        row = "".join(self.of_row)
        return (row[:_SHOWN] if _is_too_long(row) else row).encode(errors="surrogateescape")

    def put_back(self, fault: str) -> None:
        """Keep only the first line of the current row, which is faulty; the others are read again."""
        self.fault = fault
        self.again.extendleft(reversed(self.of_row[1:]))
        del self.of_row[1:]


def _is_too_long(line: str) -> bool:
    return len(line) > _LONGEST and not line.endswith(_LINE_ENDS)


def rows_of(content: IO[bytes], flags: Collection[str]) -> Iterator[tuple[bytes, str | None]]:
    """Yield the rows of CSV in UTF-8, without blank ones.

    Each is an object, keyed by the names in the heading, without empty fields; a name with dots is a path into nested
    objects. A faulty row is its raw content, with what is wrong with it, and one that is not UTF-8 only that.

    Args:
        content: the text in UTF-8, with or without a byte order mark.
        flags: names of columns whose `true`, `false`, `1` and `0`, in any case, are booleans.

    Raises:
        CsvError: the heading is invalid.
    """
    csv.field_size_limit(_LONGEST)
    # Invalid UTF-8 becomes surrogates, which JSON refuses: the row is passed on as it is.
    text = io.TextIOWrapper(content, "utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from _rows(_Lines(text), flags)
    finally:
        # Otherwise it would close `content`, which is not its own.
        text.detach()


def _rows(lines: _Lines, flags: Collection[str]) -> Iterator[tuple[bytes, str | None]]:
    reader = csv.reader(lines, strict=True)
    try:
        heading = next(filter(None, reader), [])  # as with rows, blank ones do not count
    except csv.Error as error:
        raise CsvError(f"its first line is not a CSV heading: {error}") from None
    _check_heading(heading)
    flagged = [name in flags for name in heading]
    while True:
        # A line of a text torn apart by a quote may look like a row; a whole row has a field for each column.
        least = len(heading) if lines.again else 0
        lines.of_row.clear()
        try:
            row = next(reader)
            if row:
                yield _object(heading, flagged, row, least), None
        except StopIteration:
            return
        except orjson.JSONEncodeError:
            # It is not valid UTF-8, which the decoder tells, as of a line of JSON.
            yield lines.row(), None
        except ValueError as error:
            yield lines.row(), str(error)
        except csv.Error as error:
            # An unclosed quote would swallow all rows after it.
            lines.put_back(str(error))
            yield lines.row(), str(error)
            reader = csv.reader(lines, strict=True)


def _check_heading(heading: Sequence[str]) -> None:
    if len(heading) == 1 and any(mark in heading[0] for mark in _OTHER_MARKS):
        raise CsvError(f"its heading is one column, {heading[0][:_SHOWN]!r}: separate columns by commas")
    try:
        check_names(filter(None, heading))  # spreadsheets leave columns without a name behind
        check_paths(set(heading))
    except ColumnsError as error:
        raise CsvError(str(error)) from None
    try:
        "".join(heading).encode()
    except UnicodeEncodeError:
        raise CsvError(f"its heading is not valid UTF-8: {TO_UTF8}") from None


def _object(heading: Sequence[str], flagged: Sequence[bool], row: Sequence[str], least: int) -> bytes:
    """Return a row of at least `least` fields as JSON.

    Raises:
        ValueError: it has too few or too many fields.
        JSONEncodeError: it is not valid UTF-8.
    """
    if not least <= len(row) <= len(heading):
        raise ValueError(f"it has {counted(len(row), 'field')}, but the heading has {len(heading)}")
    fields = nested(
        (name, _FLAGS.get(text.strip().lower(), text) if flag else text)
        for name, flag, text in zip(heading, flagged, row, strict=False)
        if text
    )
    return orjson.dumps(fields)
