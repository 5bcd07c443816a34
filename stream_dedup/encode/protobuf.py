"""Shapes as Protobuf messages.

Knows descriptors; knows nothing of what a field means.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from stream_dedup.output_shapes import NAMESPACE, Kind, Shape, time_parser

_Proto = descriptor_pb2.FieldDescriptorProto
_TYPES: Mapping[Kind, _Proto.Type.ValueType] = {
    Kind.TEXT: _Proto.TYPE_STRING,
    Kind.INTEGER: _Proto.TYPE_INT64,
    Kind.FLOAT: _Proto.TYPE_DOUBLE,
    Kind.TIMESTAMP: _Proto.TYPE_MESSAGE,
}
_TIMESTAMP = ".google.protobuf.Timestamp"


def schema_of(shape: Shape) -> str:
    """Return a shape's schema: the descriptor of a file, in base64, as the registry takes it."""
    return base64.b64encode(_file(shape).SerializeToString(deterministic=True)).decode("ascii")


def writer_of(shape: Shape) -> Callable[[Mapping[str, Any]], bytes]:
    """Return a function that writes a message, given its fields as in JSON."""
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(_file(shape))
    make: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{NAMESPACE}.{shape.name}"))
    with_times = time_parser(shape)

    def write(fields: Mapping[str, Any]) -> bytes:
        return make(**with_times(fields)).SerializeToString()

    return write


def _file(shape: Shape) -> descriptor_pb2.FileDescriptorProto:
    """Return a file whose first message is a shape; the shapes within it follow."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{NAMESPACE}/{shape.name.lower()}.proto",
        package=NAMESPACE,
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    for one in _with_inner(shape):
        _add_message(file.message_type.add(name=one.name), one)
    return file


def _with_inner(shape: Shape) -> Iterator[Shape]:
    yield shape
    for field in shape.fields:
        if isinstance(field.kind, Shape):
            yield from _with_inner(field.kind)


def _add_message(message: descriptor_pb2.DescriptorProto, shape: Shape) -> None:
    for number, field in enumerate(shape.fields, 1):
        added = message.field.add(name=field.name, number=number, label=_Proto.LABEL_OPTIONAL)
        if isinstance(field.kind, Shape):
            added.type, added.label = _Proto.TYPE_MESSAGE, _Proto.LABEL_REPEATED
            added.type_name = f".{NAMESPACE}.{field.kind.name}"
            continue
        added.type = _TYPES[field.kind]
        if field.kind is Kind.TIMESTAMP:
            added.type_name = _TIMESTAMP
        elif not field.required:  # `optional`: distinguishes null from an empty text or a zero
            added.proto3_optional, added.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
