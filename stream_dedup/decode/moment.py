"""Publication times as crawlers write them.

Knows ISO 8601, the forms of Chinese sites and of RSS, seconds and milliseconds, and the times of typed formats; knows
nothing of clocks.
"""

import math
import re
from datetime import date, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime

from stream_dedup.article import EARLIEST_MS, LATEST_MS
from stream_dedup.decode.parse import kind_of
from stream_dedup.decode.reason import Reason, UndecodableError

_DATE = re.compile(r"\d{8}")
# 2026/1/5, 2026.1.5 8:30, 2026年1月5日8时30分, and ISO 8601 with single digits or with a space before the offset.
_OF_SITES = re.compile(
    r"([0-9]{4}) ?[-/.年] ?([0-9]{1,2}) ?[-/.月] ?([0-9]{1,2})(?: ?日|(?![0-9]))"
    r"(?:[T ]{0,2}([0-9]{1,2})[:：时] ?([0-9]{1,2})(?:[:：分] ?([0-9]{1,2})(\.[0-9]{1,9})?秒?|分)?)?"
    r" ?(Z|[-+][0-9]{2}:?[0-9]{2})?"
)
# Sat, 28 Nov 2026 08:30:00 +0800. Other names of zones are ambiguous: CST is China's, and America's.
_OF_RSS = re.compile(
    r"(?:[A-Z]{3}, ?)?[0-9]{1,2} [A-Z]{3} [0-9]{4} [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: (?:GMT|UTC?|Z|[-+][0-9]{4}))?"
)
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this would be the year 5138, as milliseconds 1973


def milliseconds_of(value: object, path: str, utc_offset: str) -> int:
    """Return a time as milliseconds since 1970 in UTC: from a text, a number of seconds or milliseconds, or a date.

    Args:
        value: of the field; a date may have a time of day.
        path: of the field, for errors.
        utc_offset: of times that do not name their own.

    Raises:
        UndecodableError: it is not a time.
    """
    number = _number(value)
    if number is not None and math.isfinite(number):
        milliseconds = round(number if abs(number) >= _MILLISECONDS_FROM else number * 1000)
    elif isinstance(value, str):
        milliseconds = _written_milliseconds(value, path, utc_offset)
    elif isinstance(value, date):  # a datetime is one as well
        milliseconds = _written_milliseconds(value.isoformat(), path, utc_offset)
    elif isinstance(value, Decimal) and value.is_finite():
        return milliseconds_of(float(value), path, utc_offset)
    else:
        raise UndecodableError(Reason.WRONG_TYPE, f"{path} is {kind_of(value)}, not a time")
    if not EARLIEST_MS <= milliseconds < LATEST_MS:
        raise UndecodableError(Reason.INVALID_TIME, f"{path} = {value!r} is not between the years 1900 and 10000")
    return milliseconds


def _number(value: object) -> float | None:
    """Return a number that represents a time, even in a string; but eight digits in a string are a date.

    An underscore, which Python allows within numbers, stands between a date and a time of day.
    """
    if isinstance(value, bool) or (isinstance(value, str) and ("_" in value or _DATE.fullmatch(value.strip()))):
        return None
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None


def _written_milliseconds(text: str, path: str, utc_offset: str) -> int:
    try:
        moment = _moment(text.strip().upper())  # RFC 3339 allows t and z
        if moment.tzinfo is None:
            moment = datetime.fromisoformat(moment.isoformat() + utc_offset)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        known = "ISO 8601, 2026/1/5 8:30, 2026年1月5日, the form of RSS, or a number"
        raise UndecodableError(Reason.INVALID_TIME, f"{path} = {text[:40]!r} has no known form: {known}") from None


def _moment(text: str) -> datetime:
    """Return a time of any known form; without a time zone if it names none.

    Raises:
        ValueError: it is not a time.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        if found := _OF_SITES.fullmatch(text):
            return _moment_of_site(*(part or "" for part in found.groups()))
        if _OF_RSS.fullmatch(text):
            # -0000 is UTC too, RFC 5322, section 3.3; for the library it is no zone.
            return parsedate_to_datetime(text.replace("-0000", "+0000"))
        raise


def _moment_of_site(
    year: str, month: str, day: str, hour: str, minute: str, second: str, fraction: str, offset: str
) -> datetime:
    on, at = f"{year}-{month:0>2}-{day:0>2}", f"{hour:0>2}:{minute:0>2}:{second:0>2}{fraction}"
    return datetime.fromisoformat(f"{on}T{at}{offset}")
