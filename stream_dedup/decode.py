"""Message bytes to articles and withdrawals, or to the reason why they are neither.

Knows JSON, field paths and bounds; knows nothing of Kafka or of what becomes of an article.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

import orjson

from stream_dedup.article import EARLIEST_MS, LATEST_MS, Article, Origin, Withdrawal
from stream_dedup.scope import MAX_SCOPE_BYTES, SEPARATOR
from stream_dedup.settings import InputSettings
from stream_dedup.text.normal import Normaliser

_MILLISECONDS_FROM = 100_000_000_000  # as seconds this would be the year 5138, as milliseconds 1973
_LONGEST_INTEGER = 1_000  # digits
_LONGEST_NAME = 2_000  # characters of a URL or a source that links repeat; some URLs hold a whole picture

Header = tuple[str, bytes | None]  # of a message


class Reason(StrEnum):
    """Why a message cannot be judged."""

    NULL_VALUE = "null_value"
    TOO_LARGE = "too_large"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    INVALID_HEADERS = "invalid_headers"
    INTERNAL = "internal"
    EMPTY_BODY = "empty_body"
    INVALID_ID = "invalid_id"
    INVALID_SCOPE = "invalid_scope"
    MISSING_SCOPE = "missing_scope"
    INVALID_TIME = "invalid_time"
    FUTURE_TIME = "future_time"
    UNKNOWN_ARTICLE = "unknown_article"
    TOO_LATE = "too_late"


class UndecodableError(Exception):
    """A message that is no article and no withdrawal, or one that nothing can be done with.

    Args:
        reason: which rule it breaks.
        detail: how, in words.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Decoder:
    """Turns messages into articles and withdrawals.

    Args:
        settings: field paths and bounds.
        max_output_bytes: what the outputs take, value, key and headers together; None for no bound.
    """

    def __init__(self, settings: InputSettings, max_output_bytes: int | None = None) -> None:
        self._settings = settings
        self._max_output_bytes = max_output_bytes
        self._paths = {name: tuple(path.split(".")) for name, path in settings.fields.model_dump().items() if path}

    def decode(
        self,
        value: bytes | None,
        now_ms: int,
        origin: Origin | None = None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        beside: int = 0,
    ) -> Article | Withdrawal:
        """Return the article that a message holds, or the withdrawal of one.

        Args:
            value: JSON in UTF-8; None withdraws the article whose id is the key.
            now_ms: the clock, milliseconds since 1970 in UTC.
            origin: where the message came from.
            key: of the message; looked at where there is no value.
            headers: of the message, of which one may hold the scope; of several of one name the last one counts.
            beside: bytes of the message beside its value: those of its key and headers.

        Raises:
            UndecodableError: it holds neither, or one that is out of bounds.
        """
        if value is None:
            return Withdrawal(self._id_of_key(key), origin=origin, scope=self._scope({}, headers))
        self._check_size(len(value), beside)
        fields = _json_object(value)
        if isinstance(self._value(fields, "id"), float):
            # orjson makes floats of integers over 64 bits.
            fields = cast("dict[str, Any]", _lenient_json(value))
        return self.article(fields, now_ms, origin, headers)

    def _check_size(self, size: int, beside: int) -> None:
        most, most_out = self._settings.max_message_bytes, self._max_output_bytes
        if size > most:
            raise UndecodableError(Reason.TOO_LARGE, f"{size} bytes, at most {most} are decoded")
        if most_out is not None and size + beside > most_out:
            raise UndecodableError(
                Reason.TOO_LARGE, f"{size} bytes, {beside} with them: the topic of unique articles takes {most_out}"
            )

    def article(
        self, fields: Mapping[str, Any], now_ms: int, origin: Origin | None = None, headers: Sequence[Header] = ()
    ) -> Article | Withdrawal:
        """Return the article that a JSON object holds, or the withdrawal of one; see `decode`."""
        scope = self._scope(fields, headers)
        if self._deleted(fields):
            return self._withdrawal(fields, origin, scope)
        body = self._text(fields, "body")
        if body is None:
            raise UndecodableError(Reason.MISSING_FIELD, f"no {'.'.join(self._paths['body'])}")
        if len(body) > self._settings.max_body_chars:
            raise UndecodableError(
                Reason.TOO_LARGE, f"a body of {len(body)} characters, at most {self._settings.max_body_chars}"
            )
        if _blank(body):
            raise UndecodableError(Reason.EMPTY_BODY, "the body is empty or blank")
        title = self._text(fields, "title") or ""
        if len(title) > self._settings.max_title_chars:
            raise UndecodableError(
                Reason.TOO_LARGE,
                f"a title of {len(title)} characters, at most {self._settings.max_title_chars}",
            )
        url = _encodable(self._text(fields, "url") or "")
        source = _encodable(self._text(fields, "source") or "")
        return Article(
            id=self._id(fields) or _derived_id(url, source, title, body),
            body=body,
            title=title,
            url=url[:_LONGEST_NAME],
            source=source[:_LONGEST_NAME],
            published_ms=self._published_ms(fields, now_ms),
            origin=origin,
            scope=scope,
        )

    def _scope(self, fields: Mapping[str, Any], headers: Sequence[Header]) -> str:
        """Return the scope that a header holds, or else the field; empty where there is none."""
        scope = self._scope_of_header(headers) or self._scope_of_field(fields)
        if not scope and self._settings.scope_missing == "dead":
            raise UndecodableError(Reason.MISSING_SCOPE, "neither a header nor a field holds a scope")
        if len(scope.encode()) > MAX_SCOPE_BYTES:
            raise UndecodableError(
                Reason.INVALID_SCOPE, f"a scope of {len(scope.encode())} bytes, at most {MAX_SCOPE_BYTES}"
            )
        if SEPARATOR in scope:
            raise UndecodableError(Reason.INVALID_SCOPE, "the scope has a U+001F, which stands between scope and id")
        return scope

    def _scope_of_header(self, headers: Sequence[Header]) -> str:
        wanted = self._settings.scope_header
        values = [value for name, value in headers if name == wanted] if wanted else []
        try:
            return values[-1].decode().strip() if values and values[-1] is not None else ""
        except UnicodeDecodeError:
            raise UndecodableError(Reason.INVALID_SCOPE, f"the header {wanted} is no UTF-8") from None

    def _scope_of_field(self, fields: Mapping[str, Any]) -> str:
        scope = self._name(fields, "scope") if "scope" in self._paths else ""
        if scope != _encodable(scope):
            raise UndecodableError(Reason.INVALID_SCOPE, "the scope has half of a surrogate pair")
        return scope

    def _id_of_key(self, key: bytes | None) -> str:
        try:
            name = (key or b"").decode().strip()
        except UnicodeDecodeError:
            name = ""
        if not 0 < len(name.encode()) <= self._settings.max_id_bytes:
            raise UndecodableError(
                Reason.NULL_VALUE,
                "the message has no value; to withdraw an article its key must be the article's id, "
                f"1 to {self._settings.max_id_bytes} bytes of UTF-8",
            )
        return _separate(name)

    def _deleted(self, fields: Mapping[str, Any]) -> bool:
        value = self._value(fields, "deleted")
        if value is None or isinstance(value, bool):
            return bool(value)
        raise UndecodableError(
            Reason.WRONG_TYPE, f"{'.'.join(self._paths['deleted'])} is {_kind(value)}, not a boolean"
        )

    def _withdrawal(self, fields: Mapping[str, Any], origin: Origin | None, scope: str) -> Withdrawal:
        name, url = self._id(fields), _encodable(self._text(fields, "url") or "")
        if not name and not url:
            paths = f"{'.'.join(self._paths['id'])} and no {'.'.join(self._paths['url'])}"
            raise UndecodableError(Reason.MISSING_FIELD, f"no {paths}: which article is withdrawn?")
        return Withdrawal(name or _id_after_url(url), url[:_LONGEST_NAME], origin, scope)

    def _value(self, fields: Mapping[str, Any], name: str) -> object:
        value: object = fields
        for part in self._paths[name]:
            if not isinstance(value, Mapping):
                return None
            value = value.get(part)
        return value

    def _text(self, fields: Mapping[str, Any], name: str) -> str | None:
        value = self._value(fields, name)
        if value is None or isinstance(value, str):
            return value
        raise UndecodableError(Reason.WRONG_TYPE, f"{'.'.join(self._paths[name])} is {_kind(value)}, not a string")

    def _name(self, fields: Mapping[str, Any], field: str) -> str:
        """Return what a field names, a string or an integer; empty where it is missing."""
        value = self._value(fields, field)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise UndecodableError(
                Reason.WRONG_TYPE, f"{'.'.join(self._paths[field])} is {_kind(value)}, not a string or an integer"
            )
        return str(value).strip()

    def _id(self, fields: Mapping[str, Any]) -> str:
        name = self._name(fields, "id")
        if name != _encodable(name):
            raise UndecodableError(Reason.INVALID_ID, "the id has half of a surrogate pair")
        if len(name.encode()) > self._settings.max_id_bytes:
            raise UndecodableError(
                Reason.INVALID_ID,
                f"an id of {len(name.encode())} bytes, at most {self._settings.max_id_bytes}",
            )
        return _separate(name)

    def _published_ms(self, fields: Mapping[str, Any], now_ms: int) -> int | None:
        value = self._value(fields, "published_at")
        if value is None or value == "":
            return None
        milliseconds = _milliseconds(value, self._settings.utc_offset)
        if milliseconds - now_ms > 1000 * self._settings.max_future_seconds:
            raise UndecodableError(
                Reason.FUTURE_TIME,
                f"published_at = {value!r} is over {self._settings.max_future_seconds} s ahead of the clock",
            )
        return milliseconds


def _separate(name: str) -> str:
    """Return an id that can stand behind a scope."""
    if SEPARATOR in name:
        raise UndecodableError(Reason.INVALID_ID, "the id has a U+001F, which stands between scope and id")
    return name


def _json_object(value: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        fields = _lenient_json(value)
    if not isinstance(fields, dict):
        raise UndecodableError(Reason.NOT_AN_OBJECT, f"the message is {_kind(fields)}, not an object")
    return fields


def _lenient_json(value: bytes) -> object:
    r"""Parse JSON that orjson refuses: half of an emoji as \ud83d, which crawlers cut, or huge integers."""
    try:
        return json.loads(value.decode(), parse_constant=_refuse_constant, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise UndecodableError(Reason.INVALID_UTF8, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise UndecodableError(Reason.INVALID_JSON, str(error)) from None


def _integer(digits: str) -> int | float:
    """Parse an integer; one of thousands of digits, which Python refuses to parse, is as good as infinite."""
    return int(digits) if len(digits) < _LONGEST_INTEGER else math.inf


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _encodable(text: str) -> str:
    """Return a text with lone surrogates replaced, so that it can be written as UTF-8."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text


def _blank(body: str) -> bool:
    """Tell whether a body shows nothing: no character, or only invisible ones and tags."""
    if body.isspace() or not body:
        return True
    if not body.lstrip().startswith(("<", "&")) and any(map(str.isalnum, body)):
        return False
    text = Normaliser()(body).text
    return not text or text.isspace()


def _derived_id(url: str, source: str, title: str, body: str) -> str:
    """Name an article that has no id: after its URL, else after its content and source."""
    return _id_after_url(url) if url else "content:" + _digest(f"{source}\n{title}\n{body}")


def _id_after_url(url: str) -> str:
    return "url:" + _digest(url)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _milliseconds(value: object, utc_offset: str) -> int:
    """Return a time as milliseconds since 1970: ISO 8601, or a number of seconds or milliseconds."""
    number = _number(value)
    if number is not None and math.isfinite(number):
        milliseconds = round(number if abs(number) >= _MILLISECONDS_FROM else number * 1000)
    elif isinstance(value, str):
        milliseconds = _iso_milliseconds(value, utc_offset)
    else:
        raise UndecodableError(Reason.WRONG_TYPE, f"published_at is {_kind(value)}, not a time")
    if not EARLIEST_MS <= milliseconds < LATEST_MS:
        raise UndecodableError(Reason.INVALID_TIME, f"published_at = {value!r} is not between 1900 and 10000")
    return milliseconds


def _number(value: object) -> float | None:
    """Return a number that stands for a time, also in a string; eight digits in a string are a date."""
    if isinstance(value, bool) or (isinstance(value, str) and re.fullmatch(r"[0-9]{8}", value.strip())):
        return None
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None


def _iso_milliseconds(text: str, utc_offset: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = datetime.fromisoformat(moment.isoformat() + utc_offset)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UndecodableError(
            Reason.INVALID_TIME, f"published_at = {text[:40]!r} is neither ISO 8601 nor a number"
        ) from None


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
