"""Outputs in the formats whose schemas are in a registry.

Knows subjects and how values name their schema; the packages of the extra `registry` are needed from here on.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson
from confluent_kafka.schema_registry import Schema

from stream_dedup.encode import avro, json_schema, protobuf
from stream_dedup.output_shapes import CLUSTER, LINK, Shape
from stream_dedup.registry.client import Registry
from stream_dedup.registry.errors import RegistryError, UnknownSchemaError
from stream_dedup.registry.frame import prefix
from stream_dedup.settings import FormatName, OutputSettings

Values = Mapping[str, Any]


class _FormatSpec(NamedTuple):
    """How a format is made: its kind in the registry, its schema for a shape, and what writes a shape's values.

    `indexed` is whether a value's frame says which of the schema's messages it is.
    """

    kind: str
    schema: Callable[[Shape], str]
    writer: Callable[[Shape], Callable[[Values], bytes]]
    indexed: bool = False


_FORMATS: Mapping[FormatName, _FormatSpec] = {
    "avro": _FormatSpec("AVRO", avro.schema_of, avro.writer_of),
    "protobuf": _FormatSpec("PROTOBUF", protobuf.schema_of, protobuf.writer_of, indexed=True),
    "json-schema": _FormatSpec("JSON", json_schema.schema_of, lambda _: orjson.dumps),
}


def registration(shape: Shape, name: FormatName) -> dict[str, str]:
    """Return what registers a shape: the body of a request to `/subjects/TOPIC-value/versions`."""
    making = _FORMATS[name]
    return {"schemaType": making.kind, "schema": making.schema(shape)}


class RegisteredEncoder:
    """Encodes links and clusters in Confluent's wire format, under `TOPIC-value`.

    Args:
        settings: format and topics.
        registry: gives the schemas their ids, and is asked only once.

    Raises:
        RegistryError: it refuses, or lacks a schema that is not to be registered.
    """

    def __init__(self, settings: OutputSettings, registry: Registry) -> None:
        making = _FORMATS[settings.format]
        self._link_prefix = _prefix(making, LINK, settings.duplicates, settings, registry)
        self._cluster_prefix = _prefix(making, CLUSTER, settings.clusters, settings, registry)
        self._write_link, self._write_cluster = making.writer(LINK), making.writer(CLUSTER)

    def link(self, fields: Values) -> bytes:
        """Return a link; see `Encoder`."""
        return self._link_prefix + self._write_link(fields)

    def cluster(self, fields: Values) -> bytes:
        """Return a cluster; see `Encoder`."""
        return self._cluster_prefix + self._write_cluster(fields)


def _prefix(making: _FormatSpec, shape: Shape, topic: str, settings: OutputSettings, registry: Registry) -> bytes:
    subject = f"{topic}-value"
    schema = Schema(making.schema(shape), making.kind)
    try:
        known = registry.identify(subject, schema, register=settings.register_schemas)
    except UnknownSchemaError:
        raise RegistryError(
            f"the schema registry lacks the schema of {shape.name} under {subject}: register it (`stream-dedup config "
            f"--schema {shape.name.lower()}` prints it), or set output.register_schemas = true"
        ) from None
    return prefix(known, indexed=making.indexed)
