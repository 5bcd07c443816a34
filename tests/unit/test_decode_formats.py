"""The decoder reads Avro, Protobuf and JSON Schema messages as written by confluent-kafka's serializers.

Expected values are what was given to the serializers, or bytes built by hand from the formats' specifications.
"""

import base64
import errno
import json
import math
import struct
import uuid
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any
from unittest.mock import Mock

import fastavro
import pytest
from cachetools import TTLCache
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from stream_dedup.article import Article, Withdrawal
from stream_dedup.decode import Reason, UndecodableError, WireDecoder, json_schema_rules
from stream_dedup.decode import schemas as schemas_
from stream_dedup.decode.json_schema_rules import multiple_of, unique_items, with_our_rules
from stream_dedup.decode.schemas import Schemas, references
from stream_dedup.registry.client import Registry
from tests.unit.registered import (
    AVRO,
    BODY,
    NAMES,
    NOON,
    NOON_MS,
    article,
    avro,
    decoded,
    decoder,
    json_schema,
    message_class,
    mock_registry,
    proto_file,
    protobuf,
    register,
    sample,
)


def _refused(one: WireDecoder, topic: str, value: bytes) -> UndecodableError:
    with pytest.raises(UndecodableError) as raised:
        decoded(one, topic, value)
    assert str(raised.value)
    return raised.value


_EMPTY = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}


def _record_of(kind: object) -> str:
    """Return an Avro schema of articles that hold such a value as well."""
    fields = [{"name": "body", "type": "string"}, {"name": "more", "type": kind}]
    return json.dumps({"type": "record", "name": "A", "fields": fields})


def _of_nulls(count: int) -> dict[str, Any]:
    """Return a record in Avro whose values take no bytes."""
    fields = [{"name": f"n{number}", "type": "null"} for number in range(count)]
    return {"type": "record", "name": "N", "fields": fields}


def _doubling(levels: int) -> dict[str, Any]:
    """Return a record in Avro that holds another one twice, and that one the next."""
    if not levels:
        return {"type": "record", "name": "D0", "fields": [{"name": "a", "type": "null"}]}
    fields = [{"name": "a", "type": _doubling(levels - 1)}, {"name": "b", "type": f"D{levels - 1}"}]
    return {"type": "record", "name": f"D{levels}", "fields": fields}


def _nested(levels: int) -> dict[str, Any]:
    """Return objects nested this deep."""
    return {"a": _nested(levels - 1)} if levels else {}


def _of_one_field(kind: Any, value: object, path: str = "value") -> Article:  # noqa: ANN401  # Avro
    """Return the article from a record whose field has this Avro type and value, read at a path."""
    client = mock_registry()
    fields = [{"name": "id", "type": "string"}, {"name": "body", "type": "string"}, {"name": "value", "type": kind}]
    record = {"id": "n-1", "body": BODY, "value": value}
    one = decoder(client, fields={path: "value"})
    return article(one, "avro", avro(client, record, {"type": "record", "name": "A", "fields": fields}))


# Values that Python and JSON compare differently are among them.
_JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 0.0, 1.0, -0.0, "", "a", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("name", NAMES)
def test_whole_message_is_an_article(name: str) -> None:
    """All formats give the same article; its time comes from a logical type, a Timestamp or a string."""
    client = mock_registry()
    found = article(decoder(client), name, sample(client, name))
    assert (found.id, found.title, found.body, found.published_ms) == ("n-1", "夜市重开", BODY, NOON_MS)


@pytest.mark.parametrize("name", NAMES)
def test_flag_withdraws_and_a_message_without_value_too(name: str) -> None:
    """What holds for JSON holds for every format."""
    client = mock_registry()
    assert decoded(decoder(client), name, sample(client, name, deleted=True)) == Withdrawal(
        "n-1", origin=decoded(decoder(client), name, sample(client, name)).origin
    )
    withdrawn = decoded(decoder(client), name, None)
    assert isinstance(withdrawn, Withdrawal)
    assert withdrawn.id == "key"


@pytest.mark.parametrize("name", NAMES)
def test_topics_have_formats_of_their_own(name: str) -> None:
    """One decoder reads all topics; those without a format of their own use the default."""
    client = mock_registry()
    one = decoder(client, topics=["^news\\..*"], formats={"^news\\..*": name, "news.plain": "json"})
    assert article(one, "news.a", sample(client, name)).id == "n-1"
    assert article(one, "news.plain", json.dumps({"id": 2**70, "body": BODY}).encode()).id == str(2**70)
    assert _refused(one, "news.a", b'{"body": "a"}').reason is Reason.INVALID_FRAME


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\0", b'{"id": "n-1"}', b"\x01" + bytes(15), b"\x02" + bytes(20)])
def test_value_without_a_frame_is_a_dead_letter(name: str, value: bytes) -> None:
    """If it is too short, or has no magic byte or only half a GUID, the registry is not asked."""
    assert _refused(decoder(mock_registry()), name, value).reason is Reason.INVALID_FRAME


@pytest.mark.parametrize("name", NAMES)
def test_unknown_schema_is_a_dead_letter(name: str) -> None:
    """An id that the registry does not know, or whose schema is of another format, is refused."""
    client = mock_registry()
    payload = b"{}" if name == "json-schema" else b"\0\0"
    assert _refused(decoder(client), name, struct.pack(">BI", 0, 77) + payload).reason is Reason.UNKNOWN_SCHEMA
    other = "json-schema" if name != "json-schema" else "avro"
    value = sample(client, other)
    value = value[:5] + (b"{}" if name == "json-schema" else b"\0" + value[5:])
    refused = _refused(decoder(client), name, value)
    assert refused.reason is Reason.UNKNOWN_SCHEMA
    assert "this topic's values" in str(refused)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("avro", "AVRO", "no JSON"),
        ("avro", "AVRO", "null"),
        ("avro", "AVRO", '{"type": "record", "name": 5, "fields": 7}'),
        ("avro", "AVRO", 5_000 * '{"type": "array", "items": ' + '"string"' + 5_000 * "}"),
        ("avro", "AVRO", '{"type": "record", "fields": []}'),
        ("avro", "AVRO", _record_of({"type": "array", "items": "null"})),
        ("avro", "AVRO", _record_of(["null", {"type": "map", "values": {"type": "array", "items": _EMPTY}}])),
        ("avro", "AVRO", _record_of({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}})),
        ("avro", "AVRO", _record_of({"type": "array", "items": ["null", _of_nulls(101)]})),
        ("avro", "AVRO", _record_of(_doubling(30))),
        ("avro", "AVRO", '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "missing.B"}]}'),
        ("protobuf", "PROTOBUF", 'syntax = "proto3"; message A { string body = 1; }'),
        ("protobuf", "PROTOBUF", "AAAA"),
        ("json-schema", "JSON", "no JSON"),
        ("json-schema", "JSON", "[]"),
        ("json-schema", "JSON", '{"type": "no type"}'),
        ("json-schema", "JSON", '{"pattern": "("}'),
    ],
)
def test_useless_schema_is_told_by_its_number(name: str, kind: str, text: str) -> None:
    """Its messages are dead letters that name the schema, and no other error occurs."""
    client = mock_registry()
    key = register(client, kind, text)
    value = struct.pack(">BI", 0, key) + (b'{"id": "a"}' if name == "json-schema" else b"\0\0")
    refused = _refused(decoder(client), name, value)
    assert refused.reason is Reason.UNKNOWN_SCHEMA
    assert f"schema {key}" in str(refused)


def test_a_fault_of_the_machine_is_not_the_schemas() -> None:
    """It ends the reading; once it is over, the schema is prepared."""
    client = mock_registry()
    key = register(client, "JSON", "{}")
    ready = Mock(side_effect=[OSError(errno.EMFILE, "Too many open files"), "ready"])
    schemas: Schemas[str] = Schemas(Registry(client), "JSON", ready)
    with pytest.raises(OSError, match="Too many open files"):
        schemas.ready(key)
    assert schemas.ready(key) == "ready"


def test_useless_schema_is_asked_for_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each of its messages; but what it refers to may be registered later."""
    now = [1_000.0]
    monkeypatch.setattr(schemas_, "TTLCache", partial(TTLCache, timer=lambda: now[0]))
    client = mock_registry()
    key = register(client, "JSON", "{}")
    ready = Mock(side_effect=[ValueError("it refers to nothing"), "ready"])
    schemas: Schemas[str] = Schemas(Registry(client), "JSON", ready)
    for _ in range(3):
        with pytest.raises(UndecodableError, match=f"schema {key}: it refers to nothing"):
            schemas.ready(key)
    assert ready.call_count == 1
    now[0] += schemas_._USELESS_SECONDS  # noqa: SLF001  # the while
    assert schemas.ready(key) == "ready"


@pytest.mark.parametrize("fault", [MemoryError(), OSError(errno.EMFILE, "Too many open files")])
@pytest.mark.parametrize("name", ["avro", "json-schema"])
def test_a_fault_of_the_machine_is_not_the_values(name: str, fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound value is no dead letter because memory is short while it is read."""
    client = mock_registry()
    failing = Mock(side_effect=fault)
    monkeypatch.setattr("stream_dedup.decode.avro.fastavro.schemaless_reader", failing)
    monkeypatch.setattr("stream_dedup.decode.json_schema_rules._as_written", failing)
    key = register(client, "JSON", '{"properties": {"n": {"multipleOf": 2}}}')
    value = sample(client, "avro") if name == "avro" else struct.pack(">BI", 0, key) + b'{"body": "a", "n": 4}'
    with pytest.raises(type(fault)):
        decoded(decoder(client), name, value)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("avro", lambda value: value[:-10]),
        ("avro", lambda value: value + b"\0"),
        ("avro", lambda value: value[:5] + b"\x09" + value[6:]),
        ("protobuf", lambda value: value[:-1]),
        ("protobuf", lambda value: value.replace("摊".encode(), b"\xff\xfe\xfd")),
        ("json-schema", lambda value: value.replace(b'"n-1"', b"null")),
    ],
)
def test_value_that_is_not_of_its_schema_is_a_dead_letter(name: str, spoil: Any) -> None:  # noqa: ANN401  # a function
    """Truncated, followed by extra bytes, a union branch that does not exist, invalid UTF-8, or a violated rule."""
    client = mock_registry()
    assert _refused(decoder(client), name, spoil(sample(client, name))).reason is Reason.INVALID_RECORD


@given(st.binary(max_size=200), st.sampled_from(NAMES))
@pytest.mark.slow
def test_any_bytes_behind_a_frame_are_decoded_or_refused(payload: bytes, name: str) -> None:
    """The result is an article, a withdrawal or a reason, and nothing else."""
    client = mock_registry()
    frame = sample(client, name)[: 8 if name == "protobuf" else 5]
    try:
        assert isinstance(decoded(decoder(client), name, frame + payload), (Article, Withdrawal))
    except UndecodableError as error:
        assert error.reason in Reason  # noqa: PT017  # both ends are allowed


# ------------------------------------------------------------------------------------------------ Avro


def test_bytes_made_by_hand_are_read() -> None:
    """Magic byte, id, then the record by Avro's specification: unions by index, zigzag lengths, UTF-8."""
    client = mock_registry()
    key = register(client, "AVRO", json.dumps(AVRO))
    body = BODY.encode()
    head, length = b"\0" + key.to_bytes(4, "big"), bytes([2 * len(body)])
    assert len(body) < 64
    record = b"\x02\x06n-1" + b"\x00" + length + body + b"\x00" + b"\x00"
    found = article(decoder(client), "avro", head + record)
    assert (found.id, found.title, found.body, found.published_ms) == ("n-1", "", BODY, None)


def test_each_record_is_read_by_the_schema_it_was_written_with() -> None:
    """Fields may come, go and change their types from one message to the next."""
    client, before = mock_registry(), {**AVRO, "fields": AVRO["fields"][:3]}
    after = {**AVRO, "fields": [*AVRO["fields"], {"name": "source", "type": "string"}]}
    number = {**AVRO, "fields": [{"name": "id", "type": "long"}, AVRO["fields"][2]]}
    common, one = {"id": "n-1", "body": BODY}, decoder(client)
    old = avro(client, {**common, "title": None}, before)
    new = avro(client, {**common, "title": None, "published_at": NOON, "deleted": False, "source": "石桥网"}, after)
    for _ in range(2):
        assert article(one, "avro", old).source == ""
        assert article(one, "avro", new).source == "石桥网"
        assert article(one, "avro", avro(client, {"id": 12, "body": BODY}, number)).id == "12"


def test_schemas_may_refer_to_others() -> None:
    """Named types may come from other subjects, even by two routes; a missing reference is reported."""
    client = mock_registry()
    text = {"type": "record", "name": "Text", "namespace": "news", "fields": [{"name": "body", "type": "string"}]}
    page = {"type": "record", "name": "Page", "namespace": "news", "fields": [{"name": "text", "type": "news.Text"}]}
    fields = [{"name": "id", "type": "string"}, {"name": "page", "type": "news.Page"}]
    whole = {"type": "record", "name": "A", "fields": [*fields, {"name": "summary", "type": "news.Text"}]}
    of_text, of_page = SchemaReference("news.Text", "text", 1), SchemaReference("news.Page", "page", 1)
    client.register_schema("text", Schema(json.dumps(text), "AVRO"))
    client.register_schema("page", Schema(json.dumps(page), "AVRO", [of_text]))
    key = register(client, "AVRO", json.dumps(whole), of_page, of_text)
    names: dict[str, Any] = {}
    for one in (text, page):
        fastavro.parse_schema(one, names)
    record = {"id": "n-1", "page": {"text": {"body": BODY}}, "summary": {"body": "短"}}
    value = struct.pack(">BI", 0, key) + _written(fastavro.parse_schema(whole, names), record)
    assert article(decoder(client, fields={"body": "page.text.body"}), "avro", value).body == BODY
    lost = register(client, "AVRO", json.dumps(whole), SchemaReference("news.Page", "nowhere", 1))
    assert _refused(decoder(client), "avro", struct.pack(">BI", 0, lost)).reason is Reason.UNKNOWN_SCHEMA


@pytest.mark.parametrize("name", NAMES)
def test_references_by_many_routes_are_asked_for_once(name: str) -> None:
    """Each of twenty schemas refers to the next one twice: that is a million routes, but twenty questions."""
    asked: list[str] = []

    class _Asked(Registry):
        def version(self, subject: str, version: int, form: str | None = None) -> Schema:
            asked.append(subject)
            assert (version, form) == (1, None)
            return Schema("{}", name, _twice(int(subject) - 1))

    def _twice(level: int) -> list[SchemaReference]:
        return [SchemaReference(f"{level}{side}", str(level), 1) for side in "ab"] if level else []

    found = references(Schema("{}", name, _twice(20)), _Asked(mock_registry()))
    assert len(found) == len(asked) == 40
    assert [*found][-1] == "20b"


def test_references_that_never_end_are_refused() -> None:
    """A schema may refer to one that refers back to it, or the registry may always name another."""
    asked: list[str] = []

    class _Endless(Registry):
        def version(self, subject: str, version: int, form: str | None = None) -> Schema:
            asked.append(f"{subject}, {version}, {form}")
            after = "a" if subject == "b" else "b" if subject == "a" else f"{int(subject) + 1}"
            return Schema("{}", "JSON", [SchemaReference(after, after, 1)])

    for first, questions in (("a", 2), ("1", 100)):
        asked.clear()
        with pytest.raises(ValueError, match="never end: "):
            references(Schema("{}", "JSON", [SchemaReference(first, first, 1)]), _Endless(mock_registry()))
        assert len(asked) == questions


def _written(schema: Any, record: object) -> bytes:  # noqa: ANN401  # a schema of Avro
    import io  # noqa: PLC0415  # here alone

    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, record)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("kind", "moment", "milliseconds"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, NOON, NOON_MS),
        ({"type": "long", "logicalType": "timestamp-micros"}, NOON.replace(microsecond=1999), NOON_MS + 2),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, datetime(2026, 10, 18, 20), NOON_MS),  # noqa: DTZ001  # local
        ({"type": "int", "logicalType": "date"}, date(2026, 10, 18), NOON_MS - 20 * 3_600_000),
        ("long", NOON_MS, NOON_MS),
        ("long", NOON_MS // 1000, NOON_MS),
        ("double", NOON_MS / 1000, NOON_MS),
        ({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}, Decimal("1792324800.000"), NOON_MS),
        ("string", "2026-10-18T20:00:00+08:00", NOON_MS),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], None, None),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime.fromtimestamp(60, NOON.tzinfo), 60_000),
    ],
)
def test_times_of_avro(kind: object, moment: object, milliseconds: int | None) -> None:
    """Logical types are times, even in 1970; local ones and dates are in the zone `input.utc_offset` (+08:00)."""
    assert _of_one_field(kind, moment, "published_at").published_ms == milliseconds


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, 2**63 - 1),
        ({"type": "long", "logicalType": "timestamp-micros"}, -(2**63)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, 2**63 - 1),
        ({"type": "int", "logicalType": "date"}, 2**31 - 1),
    ],
)
def test_time_that_python_lacks_is_refused_only_where_it_is_read(kind: dict[str, str], value: int) -> None:
    """A time Python cannot represent does no harm in an unused field; as the publication time it is invalid."""
    client = mock_registry()
    schema = {
        "type": "record",
        "name": "A",
        "fields": [{"name": "body", "type": "string"}, {"name": "until", "type": kind}],
    }
    message = avro(client, {"body": BODY, "until": value}, schema)
    assert article(decoder(client), "avro", message).body == BODY
    refused = _refused(decoder(client, fields={"body": "body", "published_at": "until"}), "avro", message)
    assert (refused.reason, str(value) in str(refused)) == (Reason.INVALID_TIME, True)


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("long", 1024, "1024"),
        ("string", "n-1", "n-1"),
        ("bytes", "标题".encode(), "标题"),
        ({"type": "fixed", "name": "F", "size": 4}, b"abcd", "abcd"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), str(uuid.UUID(int=7))),
        ({"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 0}, Decimal(10**25), "1" + 25 * "0"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}, Decimal("12.00"), "12"),
    ],
)
def test_names_of_avro(kind: object, name: object, told: str) -> None:
    """An id may have any type that can name something."""
    assert _of_one_field(kind, name, "id").id == told


def test_endless_decimal_is_read_in_no_time() -> None:
    """Python takes time in proportion to the square of its length: hours for 8 MB, even if nobody reads the field."""
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    with pytest.raises(UndecodableError, match="4000000 bytes as bytes-decimal"):
        _of_one_field(kind, b"\x01" * 4_000_000, "published_at")


def test_uuid_names_something_but_is_no_text() -> None:
    """The error calls it what it is."""
    with pytest.raises(UndecodableError, match=r"^value is a UUID, not a string$"):
        _of_one_field({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), "title")


@pytest.mark.parametrize(
    ("path", "kind", "value", "reason"),
    [
        ("id", "double", 1.5, Reason.WRONG_TYPE),
        (
            "id",
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            Decimal("1.50"),
            Reason.WRONG_TYPE,
        ),
        ("id", "bytes", b"\xff", Reason.INVALID_UTF8),
        ("title", "bytes", b"\xff", Reason.INVALID_UTF8),
        ("title", "long", 7, Reason.WRONG_TYPE),
        ("deleted", "string", "true", Reason.WRONG_TYPE),
        ("published_at", "boolean", True, Reason.WRONG_TYPE),
        ("published_at", {"type": "array", "items": "long"}, [1], Reason.WRONG_TYPE),
    ],
)
def test_types_that_do_not_fit_are_told(path: str, kind: object, value: object, reason: Reason) -> None:
    """A field of the wrong type is reported and never converted by guessing."""
    with pytest.raises(UndecodableError) as raised:
        _of_one_field(kind, value, path)
    assert raised.value.reason is reason


def test_body_may_be_bytes_of_text() -> None:
    """Bytes that are valid UTF-8 are accepted as text."""
    client = mock_registry()
    schema = {"type": "record", "name": "A", "fields": [{"name": "body", "type": "bytes"}]}
    assert article(decoder(client), "avro", avro(client, {"body": BODY.encode()}, schema)).body == BODY


def test_value_that_is_no_record_is_a_dead_letter() -> None:
    """A bare string has no fields."""
    client = mock_registry()
    key = register(client, "AVRO", '"string"')
    assert _refused(decoder(client), "avro", struct.pack(">BI", 0, key) + b"\x02a").reason is Reason.NOT_AN_OBJECT


@pytest.mark.parametrize(
    ("kind", "end", "within", "level"),
    [
        (["null", "Post"], None, lambda record: record, b"\0\x02"),
        ({"type": "array", "items": "Post"}, [], lambda record: [record], b"\0\x02"),
        ({"type": "map", "values": ["null", "Post"]}, {}, lambda record: {"": record}, b"\0\x02\0\x02"),
    ],
    ids=["union", "array", "map"],
)
def test_records_within_records_end_no_process(kind: object, end: object, within: Any, level: bytes) -> None:  # noqa: ANN401  # a function
    """Some levels of a recursive schema are read; a million of them give a dead letter, not a stack overflow.

    By Avro's specification each level is an empty body, then the branch of a union or the size of a block, both 1, and
    of a map the empty key.
    """
    client = mock_registry()
    inner = {"name": "reply", "type": kind}
    schema = {"type": "record", "name": "Post", "fields": [{"name": "body", "type": "string"}, inner]}
    record: dict[str, Any] = {"body": "末", "reply": end}
    for _ in range(20):
        record = {"body": BODY, "reply": within(record)}
    value = avro(client, record, schema)
    assert article(decoder(client), "avro", value).body == BODY
    assert _refused(decoder(client), "avro", value[:5] + level * 1_000_000).reason is Reason.INVALID_RECORD


def test_schemas_whose_types_are_shared_are_made_ready_in_no_time() -> None:
    """Each of thirty types uses the next one twice, which makes a billion paths; preparation must not follow all."""
    client = mock_registry()
    kind: object = "string"
    for n in range(30):
        first = {"name": "a", "type": ["null", kind]}
        again = {"name": "b", "type": ["null", "string" if n == 0 else f"T{n - 1}"]}
        kind = {"type": "record", "name": f"T{n}", "fields": [first, again]}
    fields = [{"name": "body", "type": "string"}, {"name": "more", "type": ["null", kind]}]
    value = avro(client, {"body": BODY}, {"type": "record", "name": "A", "fields": fields})
    assert article(decoder(client), "avro", value).body == BODY


def test_types_without_bytes_that_are_shared_are_told_in_no_time() -> None:
    """The same, for an array of what consists of nothing."""
    client = mock_registry()
    kind: object = "null"
    for n in range(30):
        again = {"name": "b", "type": "null" if n == 0 else f"T{n - 1}"}
        kind = {"type": "record", "name": f"T{n}", "fields": [{"name": "a", "type": kind}, again]}
    key = register(client, "AVRO", _record_of({"type": "array", "items": kind}))
    assert _refused(decoder(client), "avro", struct.pack(">BI", 0, key) + b"\0\0").reason is Reason.UNKNOWN_SCHEMA


# -------------------------------------------------------------------------------------------- Protobuf


def test_message_is_found_by_its_indexes() -> None:
    """The frame of the second message nested in the second one is count 2, then 1 and 1, as zigzag varints."""
    client = mock_registry()
    value = sample(client, "protobuf")
    assert value[5:8] == b"\x04\x02\x02"
    one = decoder(client)
    assert article(one, "protobuf", value).id == "n-1"
    refused = _refused(one, "protobuf", value[:5] + b"\x04\x02\x0c" + value[8:])
    assert refused.reason is Reason.INVALID_FRAME
    assert "[1, 6]" in str(refused)
    assert _refused(one, "protobuf", value[:5] + b"\x03" + value[6:]).reason is Reason.INVALID_FRAME
    assert _refused(one, "protobuf", value[:5] + b"\x02\x01" + value[6:]).reason is Reason.INVALID_FRAME
    assert _refused(one, "protobuf", value[:5] + b"\xff" * 9).reason is Reason.INVALID_FRAME


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
    assert _refused(decoder(client), "protobuf", protobuf(client, kind(id="a"))).reason is Reason.MISSING_FIELD


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
        refused = _refused(decoder(client, fields={"id": f"meta.{name}"}), "protobuf", value)
        assert (refused.reason, wrong in str(refused)) == (Reason.WRONG_TYPE, True)
    assert article(decoder(client, fields={"id": "meta.nothing"}), "protobuf", value).id.startswith("content:")


def test_timestamp_out_of_bounds_is_a_dead_letter() -> None:
    """This holds only if the field is read."""
    client, kind = mock_registry(), message_class()
    message = kind(id="n-1", body=BODY)
    message.published_at.seconds = 2**60
    value = protobuf(client, message)
    assert _refused(decoder(client), "protobuf", value).reason is Reason.INVALID_TIME
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


# ----------------------------------------------------------------------------------------- JSON Schema


def test_json_is_checked_against_its_schema_unless_told_not_to() -> None:
    """A fault is reported with its place; without validation, no schema is fetched, and any schema id is accepted."""
    client = mock_registry()
    value = json_schema(client, {"id": "n-1", "body": BODY})
    wrong = value.replace(b'"n-1"', b"[]")
    assert "$.id" in str(_refused(decoder(client), "json-schema", wrong))
    long = json.dumps({"id": "n-1", "body": BODY, "title": "长" * 101}).encode()
    refused = _refused(decoder(client), "json-schema", value[:5] + long)
    assert (refused.reason, len(str(refused)) < 400) == (Reason.INVALID_RECORD, True)
    loose = decoder(client, validate=False)
    assert article(loose, "json-schema", b"\0\0\0\0\x63" + long).title == "长" * 101
    assert _refused(loose, "json-schema", wrong).reason is Reason.WRONG_TYPE


@given(st.lists(_JSON, max_size=6))
@example([True, 1])
@example([{"a": [False]}, {"a": [0]}])
def test_items_are_unique_as_jsonschema_has_it(items: list[Any]) -> None:
    """Compared with its own check, which takes quadratic time."""
    found = [*unique_items(Draft7Validator({}), True, items, {})]  # as jsonschema calls it
    assert bool(found) == (not Draft7Validator({"uniqueItems": True}).is_valid(items))


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**4), st.integers(0, 3), st.integers(0, 3))
@example(1999, 1, 2, 2)
@example(3, 1, 1, 1)
def test_multiples_are_those_of_the_numbers_as_written(value: int, factor: int, places: int, more: int) -> None:
    """Compared with whole numbers: 19.99 is a multiple of 0.01 as 1999 is one of 1, whatever their floats are."""
    numbers = json.loads(f"[{value}e-{places}, {factor}e-{more}]")
    found = [*multiple_of(Draft7Validator({}), numbers[1], numbers[0], {})]  # as jsonschema calls it
    assert bool(found) == (value * 10**more % (factor * 10**places) != 0)


def test_a_number_beyond_any_float_is_a_multiple_or_not() -> None:
    """There, the own check of jsonschema fails."""
    assert not [*multiple_of(Draft7Validator({}), 0.1, 10**400, {})]  # as jsonschema calls it
    assert [*multiple_of(Draft7Validator({}), 0.3, 10**400, {})]  # the same


@pytest.mark.parametrize(("schema", "sound"), [("true", True), ("false", False)])
def test_a_schema_may_be_a_boolean(schema: str, sound: bool) -> None:  # noqa: FBT001  # a parameter of the test
    """JSON Schema, draft 6 and later: `true` allows everything, `false` nothing."""
    client = mock_registry()
    value = struct.pack(">BI", 0, register(client, "JSON", schema)) + json.dumps({"id": "n-1", "body": BODY}).encode()
    if sound:
        assert article(decoder(client), "json-schema", value).body == BODY
    else:
        assert _refused(decoder(client), "json-schema", value).reason is Reason.INVALID_RECORD


def test_unique_items_of_a_large_message_are_checked_in_no_time() -> None:
    """With jsonschema's own check, these 50,000 objects would take hours."""
    items = [{"n": number} for number in range(50_000)]
    assert not [*unique_items(Draft7Validator({}), True, items, {})]  # as jsonschema calls it


def test_a_pattern_that_takes_ages_is_a_dead_letter() -> None:
    """Python's own engine would take twice as long for each letter more, and hold up every thread meanwhile."""
    client = mock_registry()
    schema = {"properties": {"mail": {"pattern": r"^(\w|[a-z])*$"}}}
    head = struct.pack(">BI", 0, register(client, "JSON", json.dumps(schema)))
    one, sound = decoder(client), {"id": "n-1", "body": BODY, "mail": "ab"}
    assert article(one, "json-schema", head + json.dumps(sound).encode()).id == "n-1"
    refused = _refused(one, "json-schema", head + json.dumps({**sound, "mail": "a" * 60 + "!"}).encode())
    assert (refused.reason, "cannot be told within 1 s" in str(refused)) == (Reason.INVALID_RECORD, True)


@pytest.mark.parametrize(
    ("rules", "mistaken"),
    [
        ({"properties": {"title": {"pattern": r"^\p{Han}+$"}}}, {"title": "abc"}),
        ({"patternProperties": {r"^x\p{L}": {"type": "string"}}}, {"x长": 1}),
        ({"patternProperties": {r"^x\p{L}": True}, "properties": {"title": True}}, {"x1": "a"}),
        ({"properties": {"title": {"pattern": "^(?<year>[0-9]{4})?长"}}}, {"title": "2026"}),
    ],
)
def test_patterns_are_those_of_ecma(rules: dict[str, Any], mistaken: dict[str, object]) -> None:
    """Classes such as those of letters and scripts, and groups with names, as other languages write them."""
    client = mock_registry()
    properties = {"id": True, "body": True, **rules.get("properties", {})}
    schema = {"additionalProperties": False, **rules, "properties": properties}
    head = struct.pack(">BI", 0, register(client, "JSON", json.dumps(schema)))
    one, sound = decoder(client), {"id": "n-1", "body": BODY}
    whole = {**sound, "title": "长"} if "title" in properties else {**sound, "x长": "a"}
    assert article(one, "json-schema", head + json.dumps(whole).encode()).id == "n-1"
    refused = _refused(one, "json-schema", head + json.dumps({**sound, **mistaken}).encode())
    assert refused.reason is Reason.INVALID_RECORD


_NAMES = st.sampled_from(["a", "b1", "xy", "y", "长"])


@given(
    st.dictionaries(_NAMES, _JSON, max_size=4),
    st.dictionaries(st.sampled_from(["^a", "[0-9]", "y$"]), st.sampled_from([{"type": "string"}, True, False])),
    st.sampled_from([True, False, {"type": "integer"}]),
    st.dictionaries(_NAMES, st.just({}), max_size=2),
)
def test_properties_are_those_of_jsonschema(
    value: dict[str, Any], patterns: dict[str, Any], others: object, named: dict[str, Any]
) -> None:
    """Compared with its own checks, for patterns that both know."""
    schema = {"properties": named, "patternProperties": patterns, "additionalProperties": others}
    ours = with_our_rules(Draft7Validator)
    assert ours(schema).is_valid(value) == Draft7Validator(schema).is_valid(value)


@pytest.mark.parametrize("own", [{}, {"$id": "http://127.0.0.1:1/schemas/article.json"}])
def test_json_schemas_may_refer_to_others_and_to_nothing_else(own: dict[str, str]) -> None:
    """References in the registry are followed, beside an address of the schema too; no URL is ever fetched."""
    client = mock_registry()
    client.register_schema("text", Schema('{"type": "string", "maxLength": 20}', "JSON"))
    whole = {**own, "type": "object", "properties": {"body": {"$ref": "text.json"}}}
    key = register(client, "JSON", json.dumps(whole), SchemaReference("text.json", "text", 1))
    head = struct.pack(">BI", 0, key)
    one = decoder(client)
    assert article(one, "json-schema", head + json.dumps({"body": BODY}).encode()).body == BODY
    assert _refused(one, "json-schema", head + json.dumps({"body": "长" * 21}).encode()).reason is Reason.INVALID_RECORD
    far = register(client, "JSON", '{"properties": {"body": {"$ref": "http://127.0.0.1:1/schema.json"}}}')
    refused = _refused(one, "json-schema", struct.pack(">BI", 0, far) + b'{"body": "a"}')
    assert refused.reason is Reason.UNKNOWN_SCHEMA


def test_patterns_are_those_of_ecma_in_documents_that_name_their_version() -> None:
    """The rules hold wherever references lead to: there jsonschema would go on with its own."""
    client, version = mock_registry(), {"$schema": "http://json-schema.org/draft-07/schema#"}
    text = {
        **version,
        "definitions": {"text": {"type": "string", "pattern": r"^\p{Han}+。$"}},
        "$ref": "#/definitions/text",
    }
    client.register_schema("text", Schema(json.dumps(text), "JSON"))
    whole = {**version, "properties": {"body": {"$ref": "text.json"}}}
    key = register(client, "JSON", json.dumps(whole), SchemaReference("text.json", "text", 1))
    one, head = decoder(client), struct.pack(">BI", 0, key)
    assert article(one, "json-schema", head + json.dumps({"body": BODY}).encode()).body == BODY
    refused = _refused(one, "json-schema", head + json.dumps({"body": "abc。"}).encode())
    assert "violates 'pattern'" in str(refused)


def test_rules_that_cannot_be_followed_are_told() -> None:
    """Here, nesting is too deep for a self-referencing schema."""
    client = mock_registry()
    key = register(client, "JSON", json.dumps({"additionalProperties": {"$ref": "#"}}))
    value = struct.pack(">BI", 0, key) + json.dumps({"id": "n-1", "body": BODY, "a": _nested(400)}).encode()
    refused = _refused(decoder(client), "json-schema", value)
    assert refused.reason is Reason.INVALID_RECORD
    assert "cannot be checked" in str(refused)


@pytest.mark.parametrize(
    ("version", "reference", "anchor"),
    [
        ("http://json-schema.org/draft-07/schema#", {"$ref": "#"}, {}),
        ("https://json-schema.org/draft/2019-09/schema", {"$recursiveRef": "#"}, {"$recursiveAnchor": True}),
        ("https://json-schema.org/draft/2020-12/schema", {"$dynamicRef": "#part"}, {"$dynamicAnchor": "part"}),
    ],
)
def test_values_that_would_be_checked_for_ever_are_refused(
    version: str, reference: dict[str, str], anchor: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two alternatives that refer to the same rule, each further level takes twice as long."""
    monkeypatch.setattr(json_schema_rules, "_VALUE_SECONDS", 0.2)
    client = mock_registry()
    either = {"anyOf": [reference, reference]}
    part = {"type": "object", "properties": {"part": either, "end": False}, **anchor}
    key = register(client, "JSON", json.dumps({"$schema": version, **part}))
    one, head = decoder(client), struct.pack(">BI", 0, key)

    def value(levels: int) -> bytes:
        inner = '{"part": ' * levels + '{"end": 1}' + "}" * levels
        return head + json.dumps({"id": "n-1", "body": BODY}).encode()[:-1] + f', "part": {inner}}}'.encode()

    assert "violates 'anyOf'" in str(_refused(one, "json-schema", value(2)))
    refused = _refused(one, "json-schema", value(40))
    assert refused.reason is Reason.INVALID_RECORD
    assert "cannot be checked against" in str(refused)
    assert "it takes more than" in str(refused)


def test_long_integers_stay_what_they_are() -> None:
    """An id over 64 bits is not turned into a float."""
    client = mock_registry()
    value = json_schema(client, {"id": 1, "body": BODY}).replace(b'"id":1,', b'"id":%d,' % 2**70)
    assert article(decoder(client), "json-schema", value).id == str(2**70)


# ---------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("name", NAMES)
def test_schema_may_stand_in_a_header(name: str) -> None:
    """Newer producers write a GUID and the indexes into `__value_schema_id`, and leave the value unframed."""
    client: SchemaRegistryClient = mock_registry()
    value = sample(client, name)
    key = int.from_bytes(value[1:5], "big")
    subject = next(one for one in client.get_subjects() if client.get_latest_version(one).schema_id == key)
    guid = uuid.UUID(client.get_latest_version(subject).guid).bytes
    end = 8 if name == "protobuf" else 5
    header = ("__value_schema_id", b"\x01" + guid + value[5:end])
    assert article(decoder(client), name, value[end:], [("other", None), header]).id == "n-1"
    # Whoever passes a message on may keep its headers and add its own: Confluent's Java client takes the last.
    earlier = ("__value_schema_id", b"\x01" + bytes(16))
    assert article(decoder(client), name, value[end:], [earlier, header]).id == "n-1"
    assert article(decoder(client), name, b"\x01" + guid + value[5:]).id == "n-1"
