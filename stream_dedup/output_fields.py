"""Links and announcements as they are published: on the topic of duplicates, in files and in answers to queries.

Knows the names and values of fields; knows nothing of topics, or of the format that the fields are written in.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, overload

from stream_dedup.article import EARLIEST_MS, LATEST_MS, Announcement, Decision, Link, Origin, Succession, Withdrawn
from stream_dedup.output_shapes import LINK, ONLY_WHERE_TOLD

_DAY_MS, _MINUTE_MS, _SECOND_MS = 86_400_000, 60_000, 1_000
_DAYS_KEPT = 1 << 10  # cached as text, since all else follows from tables
_MINUTES = tuple([f"T{minute // 60:02d}:{minute % 60:02d}:" for minute in range(_DAY_MS // _MINUTE_MS)])
_SECONDS = tuple([f"{second:02d}" for second in range(60)])
_FRACTIONS = tuple([f".{millisecond:03d}Z" for millisecond in range(_SECOND_MS)])
_NO_LINK = dict.fromkeys(field.name for field in LINK.fields if field.name not in ONLY_WHERE_TOLD)


@overload
def fingerprint_hex(fingerprint: int) -> str: ...
@overload
def fingerprint_hex(fingerprint: int | None) -> str | None: ...
def fingerprint_hex(fingerprint: int | None) -> str | None:
    """Return a fingerprint as 16 hexadecimal digits, None if there is none."""
    return f"{fingerprint:016x}" if fingerprint is not None else None


def link_fields(decision: Decision, link: Link, decided_ms: int) -> dict[str, Any]:
    """Return the link of a decision as the fields of a message on the topic of duplicates.

    Args:
        decision: what was decided.
        link: its link.
        decided_ms: time of the decision, milliseconds since 1970 in UTC.
    """
    article = decision.article
    origin = article.origin
    return {
        "id": article.id,
        "duplicate_of": link.duplicate_of,
        "matched": link.matched,
        "relation": link.relation,
        "jaccard": rounded(link.jaccard),
        "containment": rounded(link.containment),
        "hamming": link.hamming,
        "fingerprint": fingerprint_hex(decision.fingerprint),
        "idf_epoch": decision.epoch,
        "candidate_source": link.source,
        "source": article.source or None,
        "url": article.url or None,
        **origin_json(origin),
        "published_at": iso(article.published_ms),
        "received_at": iso(origin.timestamp_ms if origin else None),
        "decided_at": iso(decided_ms),
        **scope_json(article.scope),
    }


def origin_json(origin: Origin | None) -> dict[str, Any]:
    """Return the fields for where a message is, each None if that is unknown."""
    return {
        "topic": origin.topic if origin else None,
        "partition": origin.partition if origin else None,
        "offset": origin.offset if origin else None,
    }


def scope_json(scope: str) -> dict[str, str]:
    """Return the field for a scope; none if there is no scope."""
    return {"scope": scope} if scope else {}


def withdrawal_fields(withdrawn: Withdrawn, decided_ms: int) -> dict[str, Any]:
    """Return the announcement of a withdrawn article, with the fields of a link, for the same topic.

    Args:
        withdrawn: what became of the request.
        decided_ms: time of the decision, milliseconds since 1970 in UTC.
    """
    withdrawal = withdrawn.withdrawal
    origin = withdrawal.origin
    return {
        **_NO_LINK,
        "id": withdrawn.id,
        "duplicate_of": withdrawn.canonical,
        "relation": Announcement.WITHDRAWN,
        "url": withdrawal.url or None,
        **origin_json(origin),
        "received_at": iso(origin.timestamp_ms if origin else None),
        "decided_at": iso(decided_ms),
        **scope_json(withdrawal.scope),
    }


def succession_fields(succession: Succession, decided_ms: int) -> dict[str, Any]:
    """Return the announcement of a change of canonical article: the fields of a link, and `reason`.

    Args:
        succession: what changed.
        decided_ms: time of the decision, milliseconds since 1970 in UTC.
    """
    return {
        **_NO_LINK,
        "id": succession.old,
        "duplicate_of": succession.new,
        "relation": Announcement.SUCCESSION,
        "decided_at": iso(decided_ms),
        "reason": succession.reason,
        **scope_json(succession.scope),
    }


@overload
def rounded(share: float) -> float: ...
@overload
def rounded(share: float | None) -> float | None: ...
def rounded(share: float | None) -> float | None:
    """Return a share as it is published, with four decimal places; None if it is unknown."""
    return None if share is None else round(share, 4)


def iso(milliseconds: int | None, precision: str = "milliseconds") -> str | None:
    """Return a time as ISO 8601 in UTC; None if it is unknown or out of bounds.

    Args:
        milliseconds: since 1970 in UTC.
        precision: `milliseconds` or `seconds`.
    """
    if milliseconds is None or not EARLIEST_MS <= milliseconds < LATEST_MS:
        return None
    day, rest = divmod(milliseconds, _DAY_MS)
    minute, rest = divmod(rest, _MINUTE_MS)
    second, rest = divmod(rest, _SECOND_MS)
    end = _FRACTIONS[rest] if precision == "milliseconds" else "Z"
    return f"{_iso_day(day)}{_MINUTES[minute]}{_SECONDS[second]}{end}"


@lru_cache(_DAYS_KEPT)
def _iso_day(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_MS // _SECOND_MS, UTC).date().isoformat()
