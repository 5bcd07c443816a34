"""The decoder checks JSON against its JSON Schema, by rules that are ECMA's and take no time.

Knows schemas and values; expected values are given by hand, or by the package `jsonschema` with its own rules.
"""

import json
import struct
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from stream_dedup.decode import Reason, json_schema_rules
from stream_dedup.decode.json_schema_rules import multiple_of, unique_items, with_our_rules
from tests.unit.registered import (
    BODY,
    article,
    decoder,
    json_schema,
    mock_registry,
    refusal,
    register,
)

# Values that Python and JSON compare differently are among them.
_JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 0.0, 1.0, -0.0, "", "a", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def _nested(levels: int) -> dict[str, Any]:
    """Return objects nested this deep."""
    return {"a": _nested(levels - 1)} if levels else {}


def test_json_is_checked_against_its_schema_unless_told_not_to() -> None:
    """A fault is reported with its place; without validation, no schema is fetched, and any schema id is accepted."""
    client = mock_registry()
    value = json_schema(client, {"id": "n-1", "body": BODY})
    wrong = value.replace(b'"n-1"', b"[]")
    assert "$.id" in str(refusal(decoder(client), "json-schema", wrong))
    long = json.dumps({"id": "n-1", "body": BODY, "title": "长" * 101}).encode()
    refused = refusal(decoder(client), "json-schema", value[:5] + long)
    assert (refused.reason, len(str(refused)) < 400) == (Reason.INVALID_RECORD, True)
    loose = decoder(client, validate=False)
    assert article(loose, "json-schema", b"\0\0\0\0\x63" + long).title == "长" * 101
    assert refusal(loose, "json-schema", wrong).reason is Reason.WRONG_TYPE


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
        assert refusal(decoder(client), "json-schema", value).reason is Reason.INVALID_RECORD


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
    refused = refusal(one, "json-schema", head + json.dumps({**sound, "mail": "a" * 60 + "!"}).encode())
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
    refused = refusal(one, "json-schema", head + json.dumps({**sound, **mistaken}).encode())
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
    assert refusal(one, "json-schema", head + json.dumps({"body": "长" * 21}).encode()).reason is Reason.INVALID_RECORD
    far = register(client, "JSON", '{"properties": {"body": {"$ref": "http://127.0.0.1:1/schema.json"}}}')
    refused = refusal(one, "json-schema", struct.pack(">BI", 0, far) + b'{"body": "a"}')
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
    refused = refusal(one, "json-schema", head + json.dumps({"body": "abc。"}).encode())
    assert "violates 'pattern'" in str(refused)


def test_rules_that_cannot_be_followed_are_told() -> None:
    """Here, nesting is too deep for a self-referencing schema."""
    client = mock_registry()
    key = register(client, "JSON", json.dumps({"additionalProperties": {"$ref": "#"}}))
    value = struct.pack(">BI", 0, key) + json.dumps({"id": "n-1", "body": BODY, "a": _nested(400)}).encode()
    refused = refusal(decoder(client), "json-schema", value)
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

    assert "violates 'anyOf'" in str(refusal(one, "json-schema", value(2)))
    refused = refusal(one, "json-schema", value(40))
    assert refused.reason is Reason.INVALID_RECORD
    assert "cannot be checked against" in str(refused)
    assert "it takes more than" in str(refused)


def test_long_integers_stay_what_they_are() -> None:
    """An id over 64 bits is not turned into a float."""
    client = mock_registry()
    value = json_schema(client, {"id": 1, "body": BODY}).replace(b'"id":1,', b'"id":%d,' % 2**70)
    assert article(decoder(client), "json-schema", value).id == str(2**70)
