"""Shapes as Avro records.

Knows Avro's types; knows nothing of what a field means.
"""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import fastavro

from stream_dedup.output_shapes import NAMESPACE, Field, Kind, Shape, time_parser

_TYPES: Mapping[Kind, Any] = {
    Kind.TEXT: "string",
    Kind.INTEGER: "long",
    Kind.FLOAT: "double",
    Kind.TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
}


def schema_of(shape: Shape) -> str:
    """Return a shape's schema as JSON."""
    return json.dumps(_record(shape))


def writer_of(shape: Shape) -> Callable[[Mapping[str, Any]], bytes]:
    """Return a function that writes a record, given its fields as in JSON."""
    schema = fastavro.parse_schema(_record(shape))
    with_times = time_parser(shape)

    def write(fields: Mapping[str, Any]) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, with_times(fields))
        return stream.getvalue()

    return write


def _record(shape: Shape) -> dict[str, Any]:
    fields = [_field(field) for field in shape.fields]
    return {"type": "record", "name": shape.name, "namespace": NAMESPACE, "fields": fields}


def _field(field: Field) -> dict[str, Any]:
    inner = field.kind
    kind = {"type": "array", "items": _record(inner)} if isinstance(inner, Shape) else _TYPES[inner]
    return {"name": field.name, "type": kind if field.required else ["null", kind]} | (
        {} if field.required else {"default": None}
    )
