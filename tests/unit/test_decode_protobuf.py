"""The decoder reads Protobuf messages as written by confluent-kafka's serializer.

Expected values are what was given to the serializer, or bytes built by hand from the format's specification.
"""

import base64
import math
import struct

from confluent_kafka.schema_registry import Schema, SchemaReference

from stream_dedup.decode import Reason
from tests.unit.registered import (
    BODY,
    NOON_MS,
    article,
    decoder,
    message_class,
    mock_registry,
    proto_file,
    protobuf,
    refusal,
    register,
    sample,
)


def test_message_is_found_by_its_indexes() -> None:
    """The frame of the second message nested in the second one is count 2, then 1 and 1, as zigzag varints."""
    client = mock_registry()
    value = sample(client, "protobuf")
    assert value[5:8] == b"\x04\x02\x02"
    one = decoder(client)
    assert article(one, "protobuf", value).id == "n-1"
    refused = refusal(one, "protobuf", value[:5] + b"\x04\x02\x0c" + value[8:])
    assert refused.reason is Reason.INVALID_FRAME
    assert "[1, 6]" in str(refused)
    assert refusal(one, "protobuf", value[:5] + b"\x03" + value[6:]).reason is Reason.INVALID_FRAME
    assert refusal(one, "protobuf", value[:5] + b"\x02\x01" + value[6:]).reason is Reason.INVALID_FRAME
    assert refusal(one, "protobuf", value[:5] + b"\xff" * 9).reason is Reason.INVALID_FRAME


def test_field_that_is_not_set_has_its_declared_default() -> None:
    """In proto2 a field may declare one; a field without is missing."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415  # an optional extra

    file = descriptor_pb2.FileDescriptorProto(name="old.proto", syntax="proto2")
    fields = descriptor_pb2.FieldDescriptorProto
    message = file.message_type.add(name="A")
    for number, (name, default) in enumerate({"body": None, "source": "甲报", "title": None}.items(), 1):
        field = message.field.add(name=name, number=number, type=fields.TYPE_STRING, label=fields.LABEL_OPTIONAL)
        if default is not None:
            field.default_value = default
    client = mock_registry()
    key = register(client, "PROTOBUF", base64.b64encode(file.SerializeToString()).decode())
    value = struct.pack(">BI", 0, key) + b"\0" + b"\x0a\x03abc"
    found = article(decoder(client), "protobuf", value)
    assert (found.body, found.source, found.title) == ("abc", "甲报", "")


def test_first_message_may_be_told_by_a_single_nought() -> None:
    """Serializers shorten the index of the first message to a single zero byte."""
    client = mock_registry()
    key = int.from_bytes(sample(client, "protobuf")[1:5], "big")
    value = struct.pack(">BI", 0, key) + b"\0" + b"\x0a\x03abc"  # Other: field 1, a text of 3 bytes
    assert article(decoder(client, fields={"body": "x"}), "protobuf", value).body == "abc"


def test_fields_that_are_not_set_are_missing() -> None:
    """In proto3, an empty string, 0 or false is the same as unset; a Timestamp or `optional` field is set or not."""
    client, kind = mock_registry(), message_class()
    found = article(decoder(client), "protobuf", protobuf(client, kind(body=BODY, title="")))
    assert (found.title, found.source, found.published_ms) == ("", "", None)
    assert found.id.startswith("content:")
    numbered = decoder(client, fields={"id": "number", "published_at": "number"})
    assert article(numbered, "protobuf", protobuf(client, kind(body=BODY))).published_ms is None
    assert article(numbered, "protobuf", protobuf(client, kind(body=BODY, number=NOON_MS))).id == str(NOON_MS)
    assert refusal(decoder(client), "protobuf", protobuf(client, kind(id="a"))).reason is Reason.MISSING_FIELD


def test_fields_of_every_kind_are_reached_by_paths() -> None:
    """Wrappers count as their values; messages, maps and Structs as objects; enumerations as names."""
    client, kind = mock_registry(), message_class()
    message = kind(id="n-1", labels={"tenant": "甲"}, flags={True: "要闻"}, kind=1, original=kind(body=BODY, id="o-1"))
    message.source.value = "石桥网"
    message.meta.update({"channel": {"name": "财经"}})
    fields = {"body": "original.body", "source": "source", "title": "meta.channel.name", "scope": "labels.tenant"}
    found = article(decoder(client, fields=fields), "protobuf", protobuf(client, message))
    assert (found.body, found.source, found.title, found.scope) == (BODY, "石桥网", "财经", "甲")
    of_kind = decoder(client, fields={"body": "original.body", "title": "kind", "source": "tags.first"})
    assert article(of_kind, "protobuf", protobuf(client, message)).title == "POST"
    flagged = decoder(client, fields={"body": "original.body", "title": "flags.true"})
    assert article(flagged, "protobuf", protobuf(client, message)).title == "要闻"


def test_number_without_a_name_in_an_enumeration_is_a_number() -> None:
    """In proto3 a newer producer may send one that the schema lacks."""
    client, kind = mock_registry(), message_class()
    value = protobuf(client, kind(body=BODY, kind=7))
    assert article(decoder(client), "protobuf", value).body == BODY
    assert article(decoder(client, fields={"id": "kind"}), "protobuf", value).id == "7"


def test_struct_holds_ids_and_what_is_not_read() -> None:
    """All its numbers are floats; whole ones become integers. One that JSON cannot express matters only if read."""
    client, kind = mock_registry(), message_class()
    message = kind(body=BODY)
    message.meta.update({"id": 7, "titles": ["一", None, {"deep": True}], "nothing": None, "share": 0.5})
    message.meta["odd"] = math.nan
    value = protobuf(client, message)
    assert article(decoder(client, fields={"id": "meta.id"}), "protobuf", value).id == "7"
    for name, wrong in (("share", "a number"), ("titles", "an array"), ("odd", "a number")):
        refused = refusal(decoder(client, fields={"id": f"meta.{name}"}), "protobuf", value)
        assert (refused.reason, wrong in str(refused)) == (Reason.WRONG_TYPE, True)
    assert article(decoder(client, fields={"id": "meta.nothing"}), "protobuf", value).id.startswith("content:")


def test_timestamp_out_of_bounds_is_a_dead_letter() -> None:
    """This holds only if the field is read."""
    client, kind = mock_registry(), message_class()
    message = kind(id="n-1", body=BODY)
    message.published_at.seconds = 2**60
    value = protobuf(client, message)
    assert refusal(decoder(client), "protobuf", value).reason is Reason.INVALID_TIME
    assert article(decoder(client, fields={"published_at": "number"}), "protobuf", value).id == "n-1"


def test_files_may_import_others() -> None:
    """References in the registry are a file's imports, at any depth."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415  # the same

    client = mock_registry()
    client.register_schema("inner", Schema(base64.b64encode(proto_file().SerializeToString()).decode(), "PROTOBUF"))
    outer = descriptor_pb2.FileDescriptorProto(name="o", syntax="proto3", dependency=["news/article.proto"])
    whole = outer.message_type.add(name="Whole")
    whole.field.add(name="inner", number=1, type=11, type_name=".news.Outer.Article", label=1)
    reference = SchemaReference("news/article.proto", "inner", 1)
    key = register(client, "PROTOBUF", base64.b64encode(outer.SerializeToString()).decode(), reference)
    inner = message_class()(id="n-1", body=BODY).SerializeToString()
    value = struct.pack(">BI", 0, key) + b"\0" + b"\x0a" + bytes([len(inner)]) + inner
    fields = {"body": "inner.body", "id": "inner.id"}
    assert article(decoder(client, fields=fields), "protobuf", value).id == "n-1"
