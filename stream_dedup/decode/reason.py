"""Why a message cannot be judged.

Knows the reasons, as named in dead letters and metrics; knows nothing of how they are determined.
"""

from enum import StrEnum

from stream_dedup.article import UnjudgedReason
from stream_dedup.picklable import PicklableError


class Reason(StrEnum):
    """Why a message cannot be judged."""

    NULL_VALUE = "null_value"
    TOO_LARGE = "too_large"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    NOT_AN_OBJECT = "not_an_object"
    INVALID_FRAME = "invalid_frame"
    UNKNOWN_SCHEMA = "unknown_schema"
    INVALID_RECORD = "invalid_record"
    INVALID_EVENT = "invalid_event"
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
    UNKNOWN_ARTICLE = UnjudgedReason.UNKNOWN_ARTICLE
    TOO_LATE = UnjudgedReason.TOO_LATE


class UndecodableError(PicklableError):
    """A message is neither an article nor a withdrawal, or is one that cannot be processed.

    Args:
        reason: which rule it breaks.
        detail: how, in words.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def internal(error: Exception) -> UndecodableError:
    """Return the reason why a message that meets a fault of the service cannot be processed."""
    return UndecodableError(Reason.INTERNAL, f"{type(error).__name__}: {error}")
