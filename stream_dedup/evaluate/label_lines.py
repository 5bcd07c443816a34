"""Lines of JSON that hold labels, and the errors in them.

Knows lines and names; knows nothing of articles or clusters.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any

from stream_dedup.decode.fields import encodable
from stream_dedup.decode.parse import exact_object
from stream_dedup.decode.reason import UndecodableError
from stream_dedup.files.readers import Record, reader_for
from stream_dedup.scope import name_of


class LabelError(Exception):
    """A label is invalid. The message names the file, the line and the value, and says what is allowed."""


@dataclass(frozen=True, slots=True)
class Line:
    """A record of a file and its position.

    Attributes:
        path: the file.
        number: line or row number, from 1.
        fields: the fields of the record.
    """

    path: Path
    number: int
    fields: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The file and the line, as errors name them."""
        return f"{self.path}, line {self.number}"

    def fault(self, message: str) -> LabelError:
        """Return an error that names the file and the line."""
        return LabelError(f"{self.place}: {message}")

    def name(self, field: str) -> str | None:
        """Return the name in a field; None if the field is missing or empty.

        Raises:
            LabelError: it is neither a string nor an integer, or cannot be encoded as UTF-8.
        """
        return self._name(field, self.fields.get(field))

    def names(self, field: str) -> list[str]:
        """Return the names in a field that holds a list; none if the field is missing or empty.

        Raises:
            LabelError: it is not a list, or one of its items is not a name.
        """
        values = self.fields.get(field) or []
        if not isinstance(values, list):
            raise self.fault(f"{field} is {values!r}, not a list of ids")
        return [self._name(field, value) or "" for value in values]

    def _name(self, field: str, value: object) -> str | None:
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self.fault(f"{field} is {value!r}, not a string or an integer")
        name = str(value).strip()  # as the ids of articles are
        if encodable(name) != name:
            raise self.fault(f"{field} is {value!r}, which cannot be encoded as UTF-8")
        return name

    def strength(self) -> float | None:
        """Return the strength of the edit; None if it is not given.

        Raises:
            LabelError: it is not a finite number.
        """
        value = self.fields.get("strength")
        if value is None or value == "":
            return None
        try:
            strength = float(value)
        except (TypeError, ValueError, OverflowError):
            strength = nan
        if not isfinite(strength):
            raise self.fault(f"strength is {value!r}, not a number")
        return strength

    def index_of_article(self, field: str, places: Mapping[str, int], scope: str) -> int | None:
        """Return the index of the article in a scope whose id is in a field; None if the field is missing or empty.

        Raises:
            LabelError: there is no such article.
        """
        article_id = self.name(field)
        if article_id is None:
            return None
        place = places.get(name_of(scope, article_id))
        if place is None:
            of_scope = f" in the scope {scope!r}" if scope else ""
            raise self.fault(f"{field} is {article_id!r}, but there is no article with this id{of_scope}")
        return place


def read_lines(path: Path, flags: Collection[str] = ()) -> Iterator[Line]:
    """Yield the lines of a file: JSONL, also with .gz or .zst, CSV or Parquet.

    Args:
        path: the file.
        flags: CSV columns that hold true or false, see `reader_for`.

    Raises:
        FileFormatError: the file cannot be read.
        LabelError: a line is not a JSON object.
    """
    for record, _ in reader_for(path, flags)(path):
        yield line_of(record, path)


def line_of(record: Record, path: Path) -> Line:
    """Return a record of a file as a line.

    Raises:
        LabelError: it is not a JSON object.
    """
    if record.fault is not None:
        raise LabelError(f"{path}, line {record.number}: {record.fault}")
    try:
        return Line(path, record.number, exact_object(record.value))
    except UndecodableError as error:
        raise LabelError(f"{path}, line {record.number}: not a JSON object: {error}") from None
