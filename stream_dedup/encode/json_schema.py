"""Shapes as JSON schemas.

Knows the types of JSON Schema; knows nothing of what a field means. The values are those of JSON without a schema.
"""

import json
from collections.abc import Mapping
from typing import Any

from stream_dedup.output_shapes import Field, Kind, Shape

_TYPES: Mapping[Kind, dict[str, str]] = {
    Kind.TEXT: {"type": "string"},
    Kind.INTEGER: {"type": "integer"},
    Kind.FLOAT: {"type": "number"},
    Kind.TIMESTAMP: {"type": "string", "format": "date-time"},
}


def schema_of(shape: Shape) -> str:
    """Return a shape's schema as JSON."""
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": shape.name, **_object(shape)})


def _object(shape: Shape) -> dict[str, Any]:
    properties = {field.name: _property(field) for field in shape.fields}
    required = [field.name for field in shape.fields if field.required]
    return {"type": "object", "properties": properties, "required": required}


def _property(field: Field) -> dict[str, Any]:
    inner = field.kind
    kind = {"type": "array", "items": _object(inner)} if isinstance(inner, Shape) else _TYPES[inner]
    return kind if field.required else {"oneOf": [{"type": "null"}, kind]}
