"""The formats whose schemas are in a registry.

Knows which class reads which format; the packages of the extra `registry` are needed from here on.
"""

from stream_dedup.decode.avro import AvroFormat
from stream_dedup.decode.fields import Paths
from stream_dedup.decode.format import Format
from stream_dedup.decode.json_schema import JsonSchemaFormat
from stream_dedup.decode.protobuf import ProtobufFormat
from stream_dedup.registry.client import Registry
from stream_dedup.settings import FormatName


def registered_format(name: FormatName, paths: Paths, registry: Registry, *, validate: bool) -> Format:
    """Return a format.

    Args:
        name: of the format; any but JSON without a schema.
        paths: of the fields.
        registry: provides the schemas.
        validate: whether JSON is checked against its schema.
    """
    if name == "avro":
        return AvroFormat(registry)
    if name == "protobuf":
        return ProtobufFormat(registry)
    return JsonSchemaFormat(registry, paths, validate=validate)
