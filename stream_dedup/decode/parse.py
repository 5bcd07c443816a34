"""Bytes to a JSON object, including JSON that orjson refuses.

Knows JSON and what crawlers make of it; knows nothing of fields.
"""

import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any
from uuid import UUID

import orjson

from stream_dedup.decode.reason import Reason, UndecodableError

_LONGEST_INTEGER = 1_000  # digits
_KINDS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    type(None): "null",
    bytes: "bytes",
    Mapping: "an object",
    list: "an array",
    date: "a time",
    time: "a time of day",
    UUID: "a UUID",
}


def json_object(value: bytes) -> dict[str, Any]:
    """Return the JSON object in some bytes.

    Raises:
        UndecodableError: they contain none.
    """
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        fields = _lenient_json(value)
    return _checked_object(fields)


def exact_object(value: bytes) -> dict[str, Any]:
    """Return the JSON object in some bytes, with integers of any length kept exactly; see `json_object`."""
    return _checked_object(_lenient_json(value))


def _lenient_json(value: bytes) -> Any:  # noqa: ANN401  # any JSON
    r"""Parse JSON that orjson refuses: with half of an emoji such as \ud83d, huge integers or a byte order mark.

    Crawlers cut a text anywhere, and Windows editors begin a file with such a mark.

    Raises:
        UndecodableError: it is not JSON.
    """
    try:
        return json.loads(value.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise UndecodableError(Reason.INVALID_UTF8, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise UndecodableError(Reason.INVALID_JSON, str(error)) from None


def kind_of(value: object) -> str:
    """Return what a value is, in JSON's terms if it has one for it."""
    for kind, words in _KINDS.items():
        if isinstance(value, kind):
            return words
    return "a number"


def _checked_object(fields: object) -> dict[str, Any]:
    if not isinstance(fields, dict):
        raise UndecodableError(Reason.NOT_AN_OBJECT, f"the message is {kind_of(fields)}, not an object")
    return fields


def _integer(digits: str) -> int | float:
    """Parse an integer; one of thousands of digits, which Python refuses to parse, counts as infinite."""
    return int(digits) if len(digits) < _LONGEST_INTEGER else math.inf


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
