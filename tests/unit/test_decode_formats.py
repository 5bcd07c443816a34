"""What reading Avro, Protobuf and JSON Schema has in common: frames, schemas by number, values that do not fit.

Expected values are what was given to the serializers, or bytes built by hand from the formats' specifications.
"""

import errno
import json
import struct
import uuid
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from cachetools import TTLCache
from confluent_kafka.schema_registry import SchemaRegistryClient
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.article import Article, Withdrawal
from stream_dedup.decode import Reason, UndecodableError
from stream_dedup.decode import schemas as schemas_
from stream_dedup.decode.schemas import Schemas
from stream_dedup.registry.client import Registry
from tests.unit.registered import (
    BODY,
    NAMES,
    NOON_MS,
    article,
    decoded,
    decoder,
    mock_registry,
    record_of,
    refusal,
    register,
    sample,
)

_EMPTY = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}


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
    assert refusal(one, "news.a", b'{"body": "a"}').reason is Reason.INVALID_FRAME


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\0", b'{"id": "n-1"}', b"\x01" + bytes(15), b"\x02" + bytes(20)])
def test_value_without_a_frame_is_a_dead_letter(name: str, value: bytes) -> None:
    """If it is too short, or has no magic byte or only half a GUID, the registry is not asked."""
    assert refusal(decoder(mock_registry()), name, value).reason is Reason.INVALID_FRAME


@pytest.mark.parametrize("name", NAMES)
def test_unknown_schema_is_a_dead_letter(name: str) -> None:
    """An id that the registry does not know, or whose schema is of another format, is refused."""
    client = mock_registry()
    payload = b"{}" if name == "json-schema" else b"\0\0"
    assert refusal(decoder(client), name, struct.pack(">BI", 0, 77) + payload).reason is Reason.UNKNOWN_SCHEMA
    other = "json-schema" if name != "json-schema" else "avro"
    value = sample(client, other)
    value = value[:5] + (b"{}" if name == "json-schema" else b"\0" + value[5:])
    refused = refusal(decoder(client), name, value)
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
        ("avro", "AVRO", record_of({"type": "array", "items": "null"})),
        ("avro", "AVRO", record_of(["null", {"type": "map", "values": {"type": "array", "items": _EMPTY}}])),
        ("avro", "AVRO", record_of({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}})),
        ("avro", "AVRO", record_of({"type": "array", "items": ["null", _of_nulls(101)]})),
        ("avro", "AVRO", record_of(_doubling(30))),
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
    refused = refusal(decoder(client), name, value)
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
    assert refusal(decoder(client), name, spoil(sample(client, name))).reason is Reason.INVALID_RECORD


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
