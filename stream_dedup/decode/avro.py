"""Avro records, each read with the schema that it was written with.

Knows fastavro and how it handles logical types; knows nothing of where schemas come from.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import fastavro
from confluent_kafka.schema_registry import Schema
from fastavro import _read_py as slow_reader  # the same in Python: it notices records that nest too deeply
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException, UnknownType

from stream_dedup.decode.fields import Fields
from stream_dedup.decode.parse import kind_of
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.decode.schemas import Schemas, frame_of, references
from stream_dedup.decode.scope import Header
from stream_dedup.machine_faults import MACHINE_FAULTS
from stream_dedup.registry.client import Registry

_LONGEST_DECIMAL = 1_000  # bytes: the time to read one grows with the square of its length
_MOST_WEIGHTLESS = 100  # values of a record that take no bytes; with each record in the next one twice, millions
_NESTING = ("items", "values", "type")
_Logical = Callable[[Any, Any, Any], object]


def _telling(name: str, read: _Logical) -> _Logical:
    """Return a reader of a logical type that gives a text for what Python cannot represent, such as the end of time.

    The field may be one that nobody reads. If a time is needed, the text is refused.
    """

    def told(value: Any, writer: Any = None, reader: Any = None) -> object:  # noqa: ANN401  # fastavro's own types
        if isinstance(value, bytes) and len(value) > _LONGEST_DECIMAL:
            return f"{len(value)} bytes as {name}"
        try:
            return read(value, writer, reader)
        except (ValueError, OverflowError):
            return value if isinstance(value, str) else f"{value} as {name}"

    return told


LOGICAL_READERS.update({name: _telling(name, read) for name, read in LOGICAL_READERS.items()})


class _Ready(NamedTuple):
    schema: Any
    read: Callable[..., object]


class AvroFormat:
    """Avro in Confluent's wire format.

    Args:
        registry: provides the schemas.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._schemas = Schemas(registry, "AVRO", self._ready)

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the record in a value; see `Format`."""
        frame = frame_of(value, headers)
        schema, read = self._schemas.ready(frame.schema)
        stream = io.BytesIO(frame.payload)
        try:
            record = read(stream, schema, None)
        except MACHINE_FAULTS:
            raise
        except Exception as error:  # noqa: BLE001  # fastavro lets through whatever a wrong byte leads to
            fault = str(error) or type(error).__name__
            raise UndecodableError(Reason.INVALID_RECORD, f"not a record of schema {frame.schema}: {fault}") from None
        behind = len(frame.payload) - stream.tell()
        if behind:
            raise UndecodableError(Reason.INVALID_RECORD, f"{behind} bytes after the record of schema {frame.schema}")
        if not isinstance(record, Mapping):
            raise UndecodableError(
                Reason.NOT_AN_OBJECT, f"schema {frame.schema} describes {kind_of(record)}, not a record"
            )
        return record

    def _ready(self, schema: Schema) -> _Ready:
        names: dict[str, Any] = {}
        try:
            for one in references(schema, self._registry).values():
                fastavro.parse_schema(json.loads(one.schema_str or ""), names)
            parsed = fastavro.parse_schema(json.loads(schema.schema_str or ""), names)
        except (SchemaParseException, UnknownType) as error:
            raise ValueError(f"not an Avro schema: {error}") from None
        weightless = _Weightless(names)
        if any(weightless(array["items"]) for array in _arrays(parsed, names)):
            raise ValueError("it has an array of items that take no bytes: a few bytes could claim any number of them")
        for name, part in names.items():
            if sum(weightless(field["type"]) for field in part.get("fields", ())) > _MOST_WEIGHTLESS:
                raise ValueError(f"its record {name} has more than {_MOST_WEIGHTLESS} values that take no bytes")
        # fastavro's compiled reader has no limit: a record nested some thousand levels deep crashes the process.
        recursive = _recursive(parsed, names)
        return _Ready(parsed, slow_reader.schemaless_reader if recursive else fastavro.schemaless_reader)


def _recursive(schema: Any, names: Mapping[str, Any]) -> bool:  # noqa: ANN401  # any of Avro's
    """Return whether a type contains itself."""
    sound: set[str] = set()  # types that do not

    def within(part: Any, inside: tuple[str, ...]) -> bool:  # noqa: ANN401  # the same
        if isinstance(part, str):
            return part in inside or (part in names and part not in sound and within(names[part], inside))
        if isinstance(part, list):
            return any(within(one, inside) for one in part)
        name = part.get("name")
        deeper = (*inside, name) if name else inside
        found = any(within(one, deeper) for one in _inner(part))
        if name and not found:
            sound.add(name)
        return found

    return within(schema, ())


def _arrays(schema: Any, names: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401  # the same
    """Yield each type that is an array, in a type and in those that it names."""
    waiting, named = [schema], set(names)
    while waiting:
        part = waiting.pop()
        if isinstance(part, str) and part in named:
            named.remove(part)
            waiting.append(names[part])
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, Mapping):
            if part["type"] == "array":
                yield part
            waiting += _inner(part)


def _inner(part: Mapping[str, Any]) -> list[Any]:
    """Return the types that a type is made of."""
    return [field["type"] for field in part.get("fields", ())] + [part[key] for key in _NESTING if key in part]


class _Weightless:
    """Tells how many values, one within another, a value of a type consists of if it takes no bytes.

    Args:
        names: types, by name.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._known = {"null": 1}

    def __call__(self, schema: Any) -> int:  # noqa: ANN401  # the same
        """Return the number of values; 0 if a value of the type takes bytes."""
        if isinstance(schema, str):
            if schema not in self._known:
                self._known[schema] = self(self._names[schema]) if schema in self._names else 0
            return self._known[schema]
        if isinstance(schema, list):
            return 0
        if schema["type"] == "fixed":
            return int(schema["size"] == 0)
        if "fields" in schema:
            within = [self(field["type"]) for field in schema["fields"]]
            return 1 + sum(within) if all(within) else 0
        return int(schema["type"] == "null")
