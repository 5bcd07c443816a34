"""CloudEvents on Kafka, in binary and in structured mode: attributes alongside the data.

Knows the protocol binding (https://github.com/cloudevents/spec, Kafka, 1.0.2); knows nothing of what attributes are
used for.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stream_dedup.decode.fields import Fields
from stream_dedup.decode.parse import exact_object, kind_of
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.decode.scope import Header

_PREFIX = "ce_"
_STRUCTURED = "application/cloudevents"  # the content type of an event in structured mode begins with this
_JSON = "application/cloudevents+json"
_REQUIRED = ("id", "source", "type")
_VERSION = "1."


@dataclass(frozen=True, slots=True)
class Event:
    """A CloudEvent.

    Attributes:
        attributes: its context, under names that begin with `ce_`.
        data: bytes in the topic's format, or the object itself.
    """

    attributes: Fields
    data: bytes | Fields


def event_of(value: bytes, headers: Sequence[Header]) -> Event | None:
    """Return the event in a message, None if it is not an event.

    If the content type says that the value is an event, the headers `ce_...` are ignored: they are copies.

    Raises:
        UndecodableError: it claims to be one, but violates the specification.
    """
    known = {name: content for name, content in dict(headers).items() if content is not None}
    media = known.get("content-type", b"").split(b";")[0].strip().lower().decode("utf-8", "replace")
    if media.startswith(_STRUCTURED):
        return _structured(value, media)
    return _binary(value, known) if _PREFIX + "specversion" in known else None


def _binary(value: bytes, headers: Mapping[str, bytes]) -> Event:
    named = {name: content for name, content in headers.items() if name.startswith(_PREFIX)}
    try:
        attributes = {name: content.decode() for name, content in named.items()}
    except UnicodeDecodeError as error:
        raise _broken(f"an attribute is not valid UTF-8: {error}") from None
    return Event(_checked(attributes), value)


def _structured(value: bytes, media: str) -> Event:
    if media != _JSON:
        raise _broken(f"{media}: in structured mode only {_JSON} is supported")
    members = exact_object(value)
    data, encoded = members.pop("data", None), members.pop("data_base64", None)
    attributes = _checked({_PREFIX + name: content for name, content in members.items()})
    if data is not None and encoded is not None:
        raise _broken("data and data_base64: only one of them is allowed")
    if encoded is not None:
        return Event(attributes, _decoded(encoded))
    if not isinstance(data, Mapping):
        raise UndecodableError(Reason.NOT_AN_OBJECT, f"the event's data is {kind_of(data)}, not an object")
    return Event(attributes, data)


def _decoded(encoded: object) -> bytes:
    if not isinstance(encoded, str):
        raise _broken(f"data_base64 is {kind_of(encoded)}, not a string")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _broken(f"data_base64: {error}") from None


def _checked(attributes: Fields) -> Fields:
    version = attributes.get(_PREFIX + "specversion")
    if not isinstance(version, str) or not version.startswith(_VERSION):
        raise _broken(f"specversion is {str(version)[:20]!r}, only 1.x is supported")
    for name in _REQUIRED:
        content = attributes.get(_PREFIX + name)
        if not isinstance(content, str) or not content:
            raise _broken(f"the attribute {name} is missing")
    return attributes


def _broken(how: str) -> UndecodableError:
    return UndecodableError(Reason.INVALID_EVENT, f"not a CloudEvent: {how}")
