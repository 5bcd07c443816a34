"""The decoder reads Avro messages as written by confluent-kafka's serializer.

Expected values are what was given to the serializer, or bytes built by hand from the format's specification.
"""

import json
import struct
import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from stream_dedup.article import Article
from stream_dedup.decode import Reason, UndecodableError
from stream_dedup.decode.schemas import references
from stream_dedup.registry.client import Registry
from tests.unit.registered import (
    AVRO,
    BODY,
    NAMES,
    NOON,
    NOON_MS,
    article,
    avro,
    decoder,
    mock_registry,
    record_of,
    refusal,
    register,
)


def _of_one_field(kind: Any, value: object, path: str = "value") -> Article:  # noqa: ANN401  # Avro
    """Return the article from a record whose field has this Avro type and value, read at a path."""
    client = mock_registry()
    fields = [{"name": "id", "type": "string"}, {"name": "body", "type": "string"}, {"name": "value", "type": kind}]
    record = {"id": "n-1", "body": BODY, "value": value}
    one = decoder(client, fields={path: "value"})
    return article(one, "avro", avro(client, record, {"type": "record", "name": "A", "fields": fields}))


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
    assert refusal(decoder(client), "avro", struct.pack(">BI", 0, lost)).reason is Reason.UNKNOWN_SCHEMA


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
    refused = refusal(decoder(client, fields={"body": "body", "published_at": "until"}), "avro", message)
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
    assert refusal(decoder(client), "avro", struct.pack(">BI", 0, key) + b"\x02a").reason is Reason.NOT_AN_OBJECT


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
    assert refusal(decoder(client), "avro", value[:5] + level * 1_000_000).reason is Reason.INVALID_RECORD


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
    key = register(client, "AVRO", record_of({"type": "array", "items": kind}))
    assert refusal(decoder(client), "avro", struct.pack(">BI", 0, key) + b"\0\0").reason is Reason.UNKNOWN_SCHEMA
