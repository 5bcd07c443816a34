"""Rows of Parquet as JSON; a row with a value that Python cannot represent is reported, and the next one read.

Knows tables and their types, and needs pyarrow, an extra; knows nothing of articles.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson
import pyarrow as pa
from pyarrow import parquet

from stream_dedup.files.columns import ColumnsError, check_names, check_paths, nested

# A text that many rows share is in the file once, so the size of a file does not bound that of its rows.
_ROWS_AT_ONCE = 64
_BYTES_AT_ONCE = 32 << 20  # of rows of average size, before they become Python's

_Shape = Callable[[Iterable[tuple[str, object]]], dict[str, object]]


class ParquetError(Exception):
    """A file is not a table, or several columns have the same name. The message says what is wrong."""


class Row(NamedTuple):
    """A row.

    Attributes:
        value: the row as JSON, by column name; a name with dots is a path into nested objects.
        fault: why it is not a record, None if it is one.
        total: rows in the file.
    """

    value: bytes
    fault: str | None
    total: int


def rows_of_table(path: Path) -> Iterator[Row]:
    """Yield the rows of a file.

    Raises:
        ParquetError: it cannot be read any further.
    """
    try:
        with parquet.ParquetFile(path) as table:
            check_names(table.schema_arrow.names)
            shape = _shape_of(table.schema_arrow.names)
            total = table.metadata.num_rows
            for batch in table.iter_batches(_rows_at_once(table.metadata)):
                for row, fault in _rows_of_batch(batch, shape):
                    yield Row(orjson.dumps(row, default=_plain), fault, total)
    except (OSError, ColumnsError, pa.ArrowException) as error:
        raise ParquetError(str(error)) from None


def _rows_at_once(metadata: parquet.FileMetaData) -> int:
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    return min(_ROWS_AT_ONCE, max(1, _BYTES_AT_ONCE * metadata.num_rows // max(1, size)))


def _shape_of(names: Collection[str]) -> _Shape:
    """Return what turns a row into an object: names with dots are paths, unless one of them leads to another column."""
    try:
        check_paths(names)
    except ColumnsError:
        return dict
    return nested


def _rows_of_batch(batch: pa.RecordBatch, shape: _Shape) -> Iterator[tuple[dict[str, object], str | None]]:
    """Yield the rows of part of a table, each with what is wrong with it: a time that Python cannot represent."""
    names = batch.schema.names
    faults: dict[int, str] = {}
    columns = [_values(_converted(column), name, faults) for name, column in zip(names, batch.columns, strict=True)]
    for place, row in enumerate(zip(*columns, strict=True)):
        yield shape(zip(names, row, strict=True)), faults.get(place)


def _converted(column: "pa.Array[Any]") -> "pa.Array[Any]":
    kind = _in_microseconds(column.type)
    return column if kind == column.type else column.cast(kind, safe=False)


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return a type with microseconds for nanoseconds and known time zones, at any depth: Python has no others."""
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(_in_microseconds(kind.key_type), _in_microseconds(kind.item_type))
    if isinstance(kind, (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)):
        values = _in_microseconds(kind.value_type)
        return kind if values == kind.value_type else pa.large_list(values)
    if isinstance(kind, pa.TimestampType):
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, _known_zone(kind.tz))
    if isinstance(kind, pa.DurationType):
        return pa.duration("us") if kind.unit == "ns" else kind
    return pa.time64("us") if isinstance(kind, pa.Time64Type) else kind


def _known_zone(name: str | None) -> str | None:
    """Return a time zone, or UTC for one that Python does not know: the moments are the same."""
    try:
        pa.scalar(0, pa.timestamp("s", name)).as_py()
    except pa.ArrowInvalid:
        return "UTC"
    return name


def _values(column: "pa.Array[Any]", name: str, faults: dict[int, str]) -> list[object]:
    """Return the values of a column, None for one that Python cannot represent, and note the rows of these."""
    values: list[object] = []
    maps: Literal["lossy"] | None = "lossy" if _maps_are_objects(column.type) else None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Encountered key")  # twice in a map: the last value counts, as in JSON
            return list(column.to_pylist(maps_as_pydicts=maps))
    except pa.ArrowException:
        raise  # it concerns the whole column
    except (ValueError, OverflowError):
        for place, cell in enumerate(column):
            try:
                values.append(cell.as_py(maps_as_pydicts=maps))
            except (ValueError, OverflowError) as error:
                values.append(None)
                faults[place] = f"{name}: {error}"
    return values


def _maps_are_objects(kind: pa.DataType) -> bool:
    """Return whether the keys of all maps in a type, at any depth, are texts."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if isinstance(kind, pa.MapType) and not any(is_text(kind.key_type) for is_text in texts):
        return False
    return all(_maps_are_objects(kind.field(place).type) for place in range(kind.num_fields))


def _plain(value: object) -> object:
    """Return a JSON form of a Parquet value of a type that JSON lacks."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        # Not text, and must not pass for text where that is required.
        return {"bytes": value.hex()}
