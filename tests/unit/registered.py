"""Confluent-kafka's mock schema registry, messages in all formats made with its serializers, and their decoder.

Knows serializers and schemas; does not know what a test expects.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, message_factory, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from stream_dedup.article import Article, Origin, Withdrawal
from stream_dedup.decode import Header, UndecodableError, WireDecoder
from stream_dedup.decode.registered import registered_format
from stream_dedup.registry.client import Registry
from stream_dedup.settings import InputSettings

NOON = datetime(2026, 10, 18, 12, tzinfo=UTC)
NOON_MS = 1_792_324_800_000
NOW = NOON_MS
NAMES = ("avro", "protobuf", "json-schema")
BODY = "三十多个摊位沿河排开。"

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Article",
    "namespace": "news",
    "fields": [
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "title", "type": ["null", "string"], "default": None},
        {"name": "body", "type": "string"},
        {"name": "published_at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "deleted", "type": "boolean", "default": False},
    ],
}
JSON: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Article",
    "type": "object",
    "properties": {
        "id": {"type": ["string", "integer"]},
        "title": {"type": "string", "maxLength": 100},
        "body": {"type": "string"},
        "published_at": {"type": "string"},
        "deleted": {"type": "boolean"},
    },
    "required": ["id"],
}
_Proto = descriptor_pb2.FieldDescriptorProto


def mock_registry() -> SchemaRegistryClient:
    """Return a client of a new, empty registry."""
    return SchemaRegistryClient.new_client({"url": "mock://"})


def decoder(client: SchemaRegistryClient, *, validate: bool = True, **settings: Any) -> WireDecoder:  # noqa: ANN401  # of any setting
    """Return a decoder for JSON and for topics named after their formats."""
    formats = {name: name for name in NAMES}
    chosen = InputSettings.model_validate({"topics": [*NAMES, "json"], "formats": formats, **settings})
    registry = Registry(client)
    return WireDecoder(chosen, None, lambda name, paths: registered_format(name, paths, registry, validate=validate))


def decoded(one: WireDecoder, topic: str, value: bytes | None, headers: Sequence[Header] = ()) -> Article | Withdrawal:
    """Return what a message decodes to."""
    return one.decode(value, NOW, Origin(topic, 0, 0), key=b"key", headers=headers)


def article(one: WireDecoder, topic: str, value: bytes, headers: Sequence[Header] = ()) -> Article:
    """Return the article that a message decodes to."""
    found = decoded(one, topic, value, headers)
    assert isinstance(found, Article)
    return found


def refusal(one: WireDecoder, topic: str, value: bytes) -> UndecodableError:
    """Return why a message cannot be decoded."""
    with pytest.raises(UndecodableError) as raised:
        decoded(one, topic, value)
    assert str(raised.value)
    return raised.value


def context(topic: str) -> SerializationContext:
    """Return the context that a serializer needs for a message."""
    return SerializationContext(topic, MessageField.VALUE)


def avro(client: SchemaRegistryClient, fields: Mapping[str, Any], schema: Any = None) -> bytes:  # noqa: ANN401  # any
    """Return an Avro record as written by confluent-kafka's serializer."""
    return _bytes(AvroSerializer(client, json.dumps(schema or AVRO))(fields, context("avro")))


def record_of(kind: object) -> str:
    """Return an Avro schema of articles that hold such a value as well."""
    fields = [{"name": "body", "type": "string"}, {"name": "more", "type": kind}]
    return json.dumps({"type": "record", "name": "A", "fields": fields})


def json_schema(client: SchemaRegistryClient, fields: Mapping[str, Any]) -> bytes:
    """Return a JSON object as written by confluent-kafka's serializer."""
    return _bytes(JSONSerializer(json.dumps(JSON), client)(dict(fields), context("json-schema")))


def protobuf(client: SchemaRegistryClient, message: Message) -> bytes:
    """Return a Protobuf message as written by confluent-kafka's serializer."""
    kind: Any = type(message)
    return _bytes(ProtobufSerializer(kind, client)(message, context("protobuf")))


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


def proto_file() -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of this file, in which the article is the second message nested in the second one.

    syntax = "proto3"; package news;
    message Other { string x = 1; }
    message Outer {
      message Inner { string x = 1; }
      message Article {
        string id = 1; optional string title = 2; string body = 3; google.protobuf.Timestamp published_at = 4;
        bool deleted = 5; google.protobuf.StringValue source = 6; google.protobuf.Struct meta = 7;
        repeated string tags = 8; int64 number = 9; Article original = 10; Kind kind = 11;
        map<string, string> labels = 12; map<bool, string> flags = 13;
      }
    }
    enum Kind { NEWS = 0; POST = 1; }
    """
    file = descriptor_pb2.FileDescriptorProto(name="news/article.proto", package="news", syntax="proto3")
    shipped = (timestamp_pb2, wrappers_pb2, struct_pb2)
    file.dependency.extend(module.DESCRIPTOR.name for module in shipped)
    other, outer = file.message_type.add(name="Other"), file.message_type.add(name="Outer")
    _field(other, 1, "x", _Proto.TYPE_STRING)
    _field(outer.nested_type.add(name="Inner"), 1, "x", _Proto.TYPE_STRING)
    inner = outer.nested_type.add(name="Article")
    _field(inner, 1, "id", _Proto.TYPE_STRING)
    title = _field(inner, 2, "title", _Proto.TYPE_STRING)
    title.proto3_optional, title.oneof_index = True, 0
    inner.oneof_decl.add(name="_title")
    _field(inner, 3, "body", _Proto.TYPE_STRING)
    _field(inner, 4, "published_at", _Proto.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    _field(inner, 5, "deleted", _Proto.TYPE_BOOL)
    _field(inner, 6, "source", _Proto.TYPE_MESSAGE, ".google.protobuf.StringValue")
    _field(inner, 7, "meta", _Proto.TYPE_MESSAGE, ".google.protobuf.Struct")
    _field(inner, 8, "tags", _Proto.TYPE_STRING).label = _Proto.LABEL_REPEATED
    _field(inner, 9, "number", _Proto.TYPE_INT64)
    _field(inner, 10, "original", _Proto.TYPE_MESSAGE, ".news.Outer.Article")
    _field(inner, 11, "kind", _Proto.TYPE_ENUM, ".news.Kind")
    for number, name, of_key in ((12, "labels", _Proto.TYPE_STRING), (13, "flags", _Proto.TYPE_BOOL)):
        entry = inner.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _field(entry, 1, "key", of_key)
        _field(entry, 2, "value", _Proto.TYPE_STRING)
        entries = _field(inner, number, name, _Proto.TYPE_MESSAGE, f".news.Outer.Article.{entry.name}")
        entries.label = _Proto.LABEL_REPEATED
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NEWS", number=0)
    kind.value.add(name="POST", number=1)
    return file


def message_class() -> Any:  # noqa: ANN401  # a class made at run time
    """Return the class of that article."""
    pool = DescriptorPool()
    for module in (timestamp_pb2, wrappers_pb2, struct_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(proto_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("news.Outer.Article"))


def _field(
    message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: _Proto.Type.ValueType, of: str = ""
) -> descriptor_pb2.FieldDescriptorProto:
    return message.field.add(name=name, number=number, type=kind, type_name=of or None, label=_Proto.LABEL_OPTIONAL)


def register(client: SchemaRegistryClient, kind: str, text: str, *needed: SchemaReference) -> int:
    """Register a schema under a new subject and return its id."""
    return client.register_schema(f"{kind}-{len(client.get_subjects())}", Schema(text, kind, list(needed)))


def sample(client: SchemaRegistryClient, name: str, **changes: Any) -> bytes:  # noqa: ANN401  # of any field
    """Return the same article in the given format."""
    fields = {"id": "n-1", "title": "夜市重开", "body": BODY, "published_at": NOON, **changes}
    if name == "avro":
        return avro(client, fields)
    if name == "protobuf":
        message = message_class()(**{key: value for key, value in fields.items() if key != "published_at"})
        if fields["published_at"] is not None:
            message.published_at.FromDatetime(fields["published_at"])
        return protobuf(client, message)
    return json_schema(client, {**fields, "published_at": NOON.isoformat()})
