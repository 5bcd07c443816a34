"""CloudEvents on Kafka: both modes of the protocol binding, and which value takes precedence.

The messages are the binding's own examples, with an article as data.
"""

import base64
import json

import pytest

from stream_dedup.article import Article, Withdrawal
from stream_dedup.decode import Decoder, Header, Reason, UndecodableError, WireDecoder
from stream_dedup.settings import InputSettings
from tests.unit.registered import BODY, NOON_MS, NOW, article, decoder, mock_registry, sample

_EARLIER_MS = NOON_MS - 3_600_000
_DATA = {"id": "n-1", "body": BODY, "published_at": "2026-10-18T20:00:00+08:00", "ce_subject": "of the data"}
_ATTRIBUTES = {
    "specversion": "1.0",
    "type": "news.published",
    "source": "//crawler/7",
    "id": "e-1",
    "time": "2026-10-18T11:00:00Z",
    "tenant": "甲",
}
_BY_EVENT = {"fields": {"id": "ce_id", "published_at": "ce_time", "source": "ce_source", "scope": "ce_tenant"}}
_STRUCTURED: Header = ("content-type", b"application/cloudevents+json; charset=UTF-8")


def _accepting(**settings: object) -> WireDecoder:
    return WireDecoder(InputSettings.model_validate({"cloudevents": "accept", **settings}))


def _binary(**changes: str | None) -> list[Header]:
    named = {**_ATTRIBUTES, **changes}
    headers = [(f"ce_{name}", value.encode()) for name, value in named.items() if value is not None]
    return [("content-type", b"application/json"), *headers]


def _structured(**changes: object) -> bytes:
    members = {**_ATTRIBUTES, "datacontenttype": "application/json", "data": _DATA, **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


def _seen(found: Article) -> tuple[str, int | None, str, str]:
    return found.id, found.published_ms, found.source, found.scope


def _refused(value: bytes, headers: list[Header]) -> UndecodableError:
    with pytest.raises(UndecodableError) as raised:
        _accepting(**_BY_EVENT).decode(value, NOW, headers=headers)
    return raised.value


@pytest.mark.parametrize(
    ("value", "headers"), [(json.dumps(_DATA).encode(), _binary()), (_structured(), [_STRUCTURED])], ids=["b", "s"]
)
def test_fields_may_be_those_of_the_event_or_of_the_data(value: bytes, headers: list[Header]) -> None:
    """The path decides: attributes are prefixed with `ce_`, and are not looked for anywhere else."""
    of_event = article(_accepting(**_BY_EVENT), "any", value, headers)
    assert _seen(of_event) == ("e-1", _EARLIER_MS, "//crawler/7", "甲")
    of_data = article(_accepting(), "any", value, headers)
    assert _seen(of_data) == ("n-1", NOON_MS, "", "")
    assert of_event.body == of_data.body == BODY


def test_of_an_attribute_that_occurs_twice_the_last_counts() -> None:
    """Even if it has no value: then the event lacks the attribute."""
    value = json.dumps(_DATA).encode()
    assert article(_accepting(**_BY_EVENT), "any", value, [*_binary(), ("ce_id", b"e-2")]).id == "e-2"
    assert _refused(value, [*_binary(), ("ce_id", None)]).reason is Reason.INVALID_EVENT


def test_attribute_goes_before_a_field_of_the_data_of_that_name() -> None:
    """Without the attribute, the data's field is used; a message that is not an event has only its own fields."""
    value = json.dumps(_DATA).encode()
    by_subject = _accepting(fields={"id": "ce_subject"})
    assert article(by_subject, "any", value, _binary(subject="of the event")).id == "of the event"
    assert article(by_subject, "any", value, _binary()).id == "of the data"
    assert article(by_subject, "any", value).id == "of the data"


def test_envelope_goes_before_headers() -> None:
    """In structured mode, headers are only copies of the attributes and are ignored."""
    headers = [*_binary(id="of the headers", specversion="9"), _STRUCTURED]
    assert article(_accepting(**_BY_EVENT), "any", _structured(), headers).id == "e-1"


def test_last_header_of_a_name_counts() -> None:
    """As with scopes."""
    headers = [*_binary(), ("ce_id", b"e-2")]
    assert article(_accepting(**_BY_EVENT), "any", json.dumps(_DATA).encode(), headers).id == "e-2"


def test_messages_that_are_no_events_are_read_as_ever() -> None:
    """Where events are not accepted, an event is an ordinary message, and its headers are like any others."""
    value = json.dumps(_DATA).encode()
    for one, headers in (
        (_accepting(), []),
        (_accepting(), [("ce_id", b"\xff")]),
        (Decoder(InputSettings()), _binary()),
    ):
        assert one.decode(value, NOW, headers=headers) == Decoder(InputSettings()).decode(value, NOW)
    with pytest.raises(UndecodableError) as raised:
        Decoder(InputSettings()).decode(_structured(), NOW, headers=[_STRUCTURED])
    assert raised.value.reason is Reason.MISSING_FIELD


@pytest.mark.parametrize("media", [b"Application/CloudEvents+JSON", b" application/cloudevents+json ;charset=utf-8"])
def test_content_type_is_told_in_either_case(media: bytes) -> None:
    """As RFC 9110 has media types, with parameters behind a semicolon and blanks around."""
    assert article(_accepting(**_BY_EVENT), "any", _structured(), [("content-type", media)]).id == "e-1"


def test_data_of_an_event_is_in_the_format_of_its_topic() -> None:
    """This holds in binary mode and for base64 data in structured mode; data that is a JSON object is used as it is."""
    client = mock_registry()
    one, value = decoder(client, cloudevents="accept", fields=_BY_EVENT["fields"]), sample(client, "avro")
    assert article(one, "avro", value, _binary()).body == BODY
    encoded = _structured(data=..., data_base64=base64.b64encode(value).decode())
    assert article(one, "avro", encoded, [_STRUCTURED]).id == "e-1"
    assert article(one, "avro", _structured(), [_STRUCTURED]).body == BODY
    wrong = _structured(data=..., data_base64=base64.b64encode(b"{}").decode())
    with pytest.raises(UndecodableError) as raised:
        article(one, "avro", wrong, [_STRUCTURED])
    assert raised.value.reason is Reason.INVALID_FRAME


def test_event_without_a_value_withdraws_by_its_key() -> None:
    """As does every message without a value."""
    withdrawn = _accepting(**_BY_EVENT).decode(None, NOW, key=b"n-1", headers=[("ce_tenant", "甲".encode())])
    assert isinstance(withdrawn, Withdrawal)
    assert withdrawn.id == "n-1"


def test_long_integers_of_an_envelope_stay_what_they_are() -> None:
    """An id over 64 bits is not turned into a float."""
    value = _structured(data={"id": 2**70, "body": BODY})
    assert article(_accepting(), "any", value, [_STRUCTURED]).id == str(2**70)


@pytest.mark.parametrize(
    ("value", "headers", "reason"),
    [
        (b"{}", _binary(id=None), Reason.INVALID_EVENT),
        (b"{}", _binary(source=""), Reason.INVALID_EVENT),
        (b"{}", _binary(type=None), Reason.INVALID_EVENT),
        (b"{}", _binary(specversion="0.3"), Reason.INVALID_EVENT),
        (b"{}", [*_binary(), ("ce_more", b"\xff")], Reason.INVALID_EVENT),
        (_structured(specversion=1), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(id=7), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(data_base64="e30="), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(data=..., data_base64="?"), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(data=..., data_base64=7), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(data=..., data_base64=1234), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(data=..., data_base64=True), [_STRUCTURED], Reason.INVALID_EVENT),
        (_structured(), [("content-type", b"application/cloudevents+avro")], Reason.INVALID_EVENT),
        (_structured(), [("content-type", b"application/cloudevents-batch+json")], Reason.INVALID_EVENT),
        (_structured(data="text"), [_STRUCTURED], Reason.NOT_AN_OBJECT),
        (_structured(data=...), [_STRUCTURED], Reason.NOT_AN_OBJECT),
        (b"[]", [_STRUCTURED], Reason.NOT_AN_OBJECT),
        (b"\xff", [_STRUCTURED], Reason.INVALID_UTF8),
        (b"{}", _binary(), Reason.MISSING_FIELD),
        (json.dumps(_DATA).encode(), _binary(time="yesterday"), Reason.INVALID_TIME),
        (json.dumps(_DATA).encode(), _binary(id="a\x1fb"), Reason.INVALID_ID),
    ],
)
def test_event_that_breaks_the_specification_is_a_dead_letter(
    value: bytes, headers: list[Header], reason: Reason
) -> None:
    """Nothing is guessed; a valid event whose data is not an article has the usual reasons."""
    assert _refused(value, headers).reason is reason
