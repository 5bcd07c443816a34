"""Protobuf messages, read with the descriptors in a registry.

Knows descriptors, and which of a message's fields are present; knows nothing of where schemas come from.
"""

import base64
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

from confluent_kafka.schema_registry import Schema
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from stream_dedup.decode.fields import Fields
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.decode.schemas import Schemas, frame_of, references
from stream_dedup.decode.scope import Header
from stream_dedup.registry.client import Registry

_FORM = "serialized"  # a descriptor instead of the text of a .proto file
_FILE = "stream_dedup.schema.proto"  # any name will do: the registry keeps none
_SHIPPED = re.compile(r"(google/(?:protobuf|type)|confluent)/([a-z_]+)\.proto")
_CONFLUENT = "confluent_kafka.schema_registry.confluent"  # where the modules of its types are
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_FREE = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})
_TIMESTAMP = "google.protobuf.Timestamp"


class ProtobufFormat:
    """Protobuf in Confluent's wire format.

    Args:
        registry: provides the schemas.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._schemas = Schemas(registry, "PROTOBUF", self._ready, _FORM)

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the message in a value; see `Format`."""
        frame = frame_of(value, headers, indexed=True)
        message = self._schemas.ready(frame.schema).message(frame.indexes)
        try:
            message.ParseFromString(frame.payload)
        except DecodeError as error:
            fault = f"not a message {message.DESCRIPTOR.full_name} of schema {frame.schema}: {error}"
            raise UndecodableError(Reason.INVALID_RECORD, fault) from None
        return MessageFields(message)

    def _ready(self, schema: Schema) -> "_File":
        pool = DescriptorPool()
        try:
            for name, one in references(schema, self._registry, _FORM).items():
                _add(pool, name, one)
            _add(pool, _FILE, schema)
        except (DecodeError, TypeError) as error:
            raise ValueError(f"not a Protobuf descriptor: {error}") from None
        return _File(pool.FindFileByName(_FILE))


class _File:
    """The messages of a .proto file."""

    def __init__(self, descriptor: FileDescriptor) -> None:
        self._descriptor = descriptor
        self._classes: dict[tuple[int, ...], type[Message]] = {}  # by their indexes

    def message(self, indexes: tuple[int, ...]) -> Message:
        """Return an empty message, by its indexes from the outermost message inwards.

        Raises:
            UndecodableError: the file has none there.
        """
        known = self._classes.get(indexes)
        if known is None:
            known = message_factory.GetMessageClass(_descriptor(self._descriptor, indexes))
            self._classes[indexes] = known
        return known()


class MessageFields(Mapping[str, object]):
    """The fields that are present in a message, by their names in its .proto file.

    A field without presence (in proto3, not `optional`) is present unless it has its default value, which is
    indistinguishable from absence; any other field is if it was set, or its file declares a default. Nothing is
    converted before it is read.

    Args:
        message: the message.
    """

    def __init__(self, message: Message) -> None:
        self._message = message

    def __getitem__(self, name: str) -> object:
        field = self._message.DESCRIPTOR.fields_by_name[name]
        value = getattr(self._message, name)
        if field.is_repeated:
            return _repeated(field, value)
        if field.has_presence:
            absent = not self._message.HasField(name) and not field.has_default_value
        else:
            absent = value == field.default_value
        if absent:
            raise KeyError(name)
        return _single(field, value)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._message.DESCRIPTOR.fields_by_name if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _repeated(field: Any, value: Any) -> object:  # noqa: ANN401  # a descriptor's type depends on how protobuf was built
    kind = field.message_type
    if kind is None or not kind.GetOptions().map_entry:
        return [_single(field, one) for one in value]
    inner = kind.fields_by_name["value"]
    return {_key(key): _single(inner, one) for key, one in value.items()}


def _key(key: object) -> str:
    """Return a key as protobuf writes it in JSON."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _single(field: Any, value: Any) -> object:  # noqa: ANN401  # the same
    if field.enum_type is not None:
        number = field.enum_type.values_by_number.get(value)
        return number.name if number is not None else value
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name == _TIMESTAMP:
        try:
            return value.ToDatetime(UTC)
        except (ValueError, OverflowError) as error:
            raise UndecodableError(Reason.INVALID_TIME, f"{field.name}: {error}") from None
    if name in _WRAPPERS:
        return value.value
    return _free(value) if name in _FREE else MessageFields(value)


def _free(value: Any) -> object:  # noqa: ANN401  # a Struct, a ListValue or a Value
    """Return the content of a value of any kind, even a number that JSON lacks: the field may be one nobody reads."""
    match value.DESCRIPTOR.name:
        case "Struct":
            return {name: _free(one) for name, one in value.fields.items()}
        case "ListValue":
            return [_free(one) for one in value.values]
    kind = value.WhichOneof("kind")
    if kind in {"struct_value", "list_value"}:
        return _free(getattr(value, kind))
    if kind == "number_value":
        # All numbers in it are floats, ids included.
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    return None if kind in {None, "null_value"} else getattr(value, kind)


def _descriptor(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    """Return a message of a file, by its indexes from the outermost message inwards.

    Raises:
        UndecodableError: the file has none there.
    """
    messages: Sequence[Descriptor] = list(file.message_types_by_name.values())
    for depth, index in enumerate(indexes):
        if not 0 <= index < len(messages):
            raise UndecodableError(Reason.INVALID_FRAME, f"no message {list(indexes[: depth + 1])} in the schema")
        found = messages[index]
        messages = found.nested_types
    return found


def _add(pool: DescriptorPool, name: str, schema: Schema) -> None:
    proto = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema.schema_str or "", validate=True))
    proto.name = name
    for needed in proto.dependency:
        _add_shipped(pool, needed)
    pool.Add(proto)


def _add_shipped(pool: DescriptorPool, name: str) -> None:
    """Add a file that comes with the libraries, and those it needs; the schema's own references are there already."""
    match = _SHIPPED.fullmatch(name)
    if match is None:
        return
    place = _CONFLUENT if match[1] == "confluent" else match[1].replace("/", ".")
    file: FileDescriptor = importlib.import_module(f"{place}.{match[2]}_pb2").DESCRIPTOR
    for needed in file.dependencies:
        _add_shipped(pool, needed.name)
    pool.AddSerializedFile(file.serialized_pb)
