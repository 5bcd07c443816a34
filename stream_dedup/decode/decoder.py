"""A message to an article or a withdrawal, within the configured bounds.

Knows what each field means and how large it may be; knows nothing of paths, of JSON's grammar or of Kafka.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from stream_dedup.article import EARLIEST_MS, Article, Origin, Withdrawal
from stream_dedup.decode.fields import Fields, NameRule, Paths, checked_name, encodable
from stream_dedup.decode.format import json_fields
from stream_dedup.decode.moment import milliseconds_of
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.decode.scope import Header, ScopeReader
from stream_dedup.settings import InputSettings
from stream_dedup.text.blank import is_blank

_LONGEST_NAME = 2_000  # characters of a URL or a source that links repeat; some URLs contain a whole picture


class Decoder:
    """Turns messages into articles and withdrawals.

    Args:
        settings: field paths and bounds.
        max_output_bytes: what the outputs accept, value, key and headers together; None for no bound.
    """

    def __init__(self, settings: InputSettings, max_output_bytes: int | None = None) -> None:
        self._settings = settings
        self._max_output_bytes = max_output_bytes
        self._paths = Paths(settings.fields.model_dump())
        self._id_rule = NameRule("id", Reason.INVALID_ID, settings.max_id_bytes, "input.max_id_bytes")
        self._scopes = ScopeReader(settings, self._paths)

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
        """Return the article in a message, or the withdrawal of one.

        Args:
            value: in the decoder's format; None withdraws the article whose id is the key.
            now_ms: the clock, milliseconds since 1970 in UTC.
            origin: where the message came from.
            key: of the message; used if there is no value.
            headers: of the message, one of which may hold the scope; if a name occurs several times, the last counts.
            beside: bytes of the message other than its value: those of its key and headers.

        Raises:
            UndecodableError: it holds neither, or one that is out of bounds.
            RegistryError: the format needs a schema registry, and that refuses or was closed.
        """
        if origin is not None and not self._is_time(origin.timestamp_ms, now_ms):
            origin = replace(origin, timestamp_ms=None)
        if value is None:
            return Withdrawal(self._id_of_key(key), origin=origin, scope=self._scopes.scope({}, headers))
        self._check_size(len(value), beside)
        return self.article(self._fields(value, origin, headers), now_ms, origin, headers)

    def _fields(self, value: bytes, _origin: Origin | None, _headers: Sequence[Header]) -> Fields:
        """Return the object in a value; here JSON in UTF-8."""
        return json_fields(value, self._paths)

    def _is_time(self, timestamp_ms: int | None, now_ms: int) -> bool:
        """Return whether a message can have been sent then: otherwise it must not move the stream's time there.

        Microseconds taken for milliseconds would age everything that is remembered.
        """
        return timestamp_ms is None or EARLIEST_MS <= timestamp_ms <= now_ms + 1000 * self._settings.max_future_seconds

    def _check_size(self, size: int, beside: int) -> None:
        most, most_out = self._settings.max_message_bytes, self._max_output_bytes
        if size > most:
            raise _too_large(f"the message has {size} bytes", "max_message_bytes", most)
        if most_out is not None and size + beside > most_out:
            raise UndecodableError(
                Reason.TOO_LARGE,
                f"the message has {size} bytes, and {beside} of key and headers: the topic of unique articles takes "
                f"{most_out} in all",
            )

    def article(
        self, fields: Fields, now_ms: int, origin: Origin | None = None, headers: Sequence[Header] = ()
    ) -> Article | Withdrawal:
        """Return the article in an object, or the withdrawal of one; see `decode`."""
        scope = self._scopes.scope(fields, headers)
        if self._paths.flag(fields, "deleted"):
            return self._withdrawal(fields, origin, scope)
        body = self._paths.text(fields, "body")
        if body is None:
            raise UndecodableError(Reason.MISSING_FIELD, f"no {self._paths.path('body')}")
        if len(body) > self._settings.max_body_chars:
            raise _too_large(f"the body has {len(body)} characters", "max_body_chars", self._settings.max_body_chars)
        if is_blank(body):
            raise UndecodableError(Reason.EMPTY_BODY, "the body is empty or blank")
        title = self._paths.text(fields, "title") or ""
        if len(title) > self._settings.max_title_chars:
            raise _too_large(
                f"the title has {len(title)} characters", "max_title_chars", self._settings.max_title_chars
            )
        url = self._url(fields)
        source = encodable(self._paths.text(fields, "source") or "")
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

    def _id_of_key(self, key: bytes | None) -> str:
        try:
            name = (key or b"").decode()
        except UnicodeDecodeError:
            name = ""
        if not 0 < len(name.strip().encode()) <= self._settings.max_id_bytes:
            raise UndecodableError(
                Reason.NULL_VALUE,
                "the message has no value; to withdraw an article, its key must be the article's id, "
                f"1 to {self._settings.max_id_bytes} bytes of UTF-8",
            )
        return checked_name(name, self._id_rule)

    def _withdrawal(self, fields: Fields, origin: Origin | None, scope: str) -> Withdrawal:
        name, url = self._id(fields), self._url(fields)
        if not name and not url:
            paths = f"{self._paths.path('id')} and no {self._paths.path('url')}"
            raise UndecodableError(Reason.MISSING_FIELD, f"no {paths}: one of them must name the article to withdraw")
        return Withdrawal(name or _id_after_url(url), url[:_LONGEST_NAME], origin, scope)

    def _id(self, fields: Fields) -> str:
        return self._paths.name(fields, self._id_rule)

    def _url(self, fields: Fields) -> str:
        return encodable(self._paths.text(fields, "url") or "").strip()

    def _published_ms(self, fields: Fields, now_ms: int) -> int | None:
        value = self._paths.value(fields, "published_at")
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        path = self._paths.path("published_at")
        milliseconds = milliseconds_of(value, path, self._settings.utc_offset)
        if milliseconds - now_ms > 1000 * self._settings.max_future_seconds:
            raise UndecodableError(
                Reason.FUTURE_TIME,
                f"{path} = {value!r} is more than {self._settings.max_future_seconds} s ahead of the clock",
            )
        return milliseconds


def _too_large(told: str, setting: str, most: int) -> UndecodableError:
    return UndecodableError(Reason.TOO_LARGE, f"{told}: input.{setting} = {most} is the limit")


def _derived_id(url: str, source: str, title: str, body: str) -> str:
    """Return an id for an article without one: from its URL, else from its content and source."""
    return _id_after_url(url) if url else "content:" + _digest(f"{source}\n{title}\n{body}")


def _id_after_url(url: str) -> str:
    return "url:" + _digest(url)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
