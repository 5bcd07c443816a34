"""Publication times as crawlers write them.

Knows ISO 8601, seconds and milliseconds, and the times of typed formats; knows nothing of clocks.
"""

import math
import re
from datetime import date, datetime
from decimal import Decimal

from stream_dedup.article import EARLIEST_MS, LATEST_MS
from stream_dedup.decode.parse import kind_of
from stream_dedup.decode.reason import Reason, UndecodableError

_DATE = re.compile(r"\d{8}")
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this would be the year 5138, as milliseconds 1973


def milliseconds_of(value: object, path: str, utc_offset: str) -> int:
    """Return a time as milliseconds since 1970 in UTC: from ISO 8601, a number of seconds or milliseconds, or a date.

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
        milliseconds = _iso_milliseconds(value, path, utc_offset)
    elif isinstance(value, date):  # a datetime is one as well
        milliseconds = _iso_milliseconds(value.isoformat(), path, utc_offset)
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


def _iso_milliseconds(text: str, path: str, utc_offset: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip().upper())  # RFC 3339 allows t and z
        if moment.tzinfo is None:
            moment = datetime.fromisoformat(moment.isoformat() + utc_offset)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UndecodableError(
            Reason.INVALID_TIME, f"{path} = {text[:40]!r} is neither ISO 8601 nor a number"
        ) from None
