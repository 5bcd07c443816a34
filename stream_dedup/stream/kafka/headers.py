"""Headers of messages, as they arrive and as they are passed on, and how large a message is with them.

Knows librdkafka's form of them and which are the service's own; knows nothing of what those say.
"""

from collections.abc import Sequence
from typing import cast

from confluent_kafka import Message

from stream_dedup.article import Origin
from stream_dedup.decode import Header, Reason, UndecodableError
from stream_dedup.settings import OWN_HEADERS

Headers = list[tuple[str, str | bytes | None]]

_LENGTHS_BYTES = 6  # of a header's name and content, each below 2^20


def message_size(value: bytes | None, key: bytes | None, headers: Sequence[Header]) -> int:
    """Return the bytes that a message takes in a topic, or a few more."""
    named = sum(len(name.encode()) + len(content or b"") + _LENGTHS_BYTES for name, content in headers)
    return len(value or b"") + len(key or b"") + named


def size_of(message: Message) -> int:
    """Return the bytes of a message as it arrived: value, key and headers, unless these are unreadable."""
    size = len(message) + len(message.key() or b"")
    headers = _headers_of(message)
    return message_size(None, None, headers) + size if headers else size


def trace_headers(origin: Origin | None) -> Headers:
    """Return the trace context of the message that caused an output, as headers for the output."""
    return [*origin.trace.headers()] if origin is not None and origin.trace is not None else []


def incoming_headers(message: Message) -> list[Header] | None:
    """Return the headers as they arrived, without those of an earlier run over the article; None if unreadable."""
    headers = _headers_of(message)
    if headers is None:
        return None
    return [(name, value) for name, value in headers if not name.startswith(OWN_HEADERS)]


def own_headers(message: Message) -> dict[str, str]:
    """Return the headers that the service has added to an output, by name without prefix; none if unreadable."""
    return {
        name.removeprefix(OWN_HEADERS): value.decode("utf-8", "replace")
        for name, value in _headers_of(message) or []
        if name.startswith(OWN_HEADERS) and value is not None
    }


def readable_headers(message: Message) -> list[Header]:
    """Return the headers of a message, as far as an output repeats them.

    Raises:
        UndecodableError: one cannot be read.
    """
    headers = incoming_headers(message)
    if headers is None:
        raise UndecodableError(Reason.INVALID_HEADERS, "the name of a header is not valid UTF-8")
    return headers


def _headers_of(message: Message) -> list[Header] | None:
    """Return all headers; None if the name of one is not valid UTF-8."""
    try:
        # The consumer hands over a list, though its types allow a dictionary.
        return cast("list[Header]", message.headers() or [])
    except (SystemError, UnicodeDecodeError):
        return None
