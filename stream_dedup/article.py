"""What comes in and what goes out: articles, decisions, links and what a link tells.

Knows their fields; knows nothing of how an article is decoded, a decision is reached or a link is written.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from stream_dedup.arguments import check_encodable, check_texts, check_type, check_whole
from stream_dedup.scope import check_name, name_of
from stream_dedup.trace import Trace

EARLIEST_MS = -2_208_988_800_000  # 1900: times before it, and from the year 10000 on, are taken for mistakes
LATEST_MS = 253_402_300_800_000
_MAX_NAME_BYTES = 65_535  # of scope and id
_TEXTS = ("id", "body", "title", "url", "source", "scope")  # of an article
_STORED = ("url", "source")  # as UTF-8; so are id and scope, while title and body may hold half an emoji
_SECONDS_KEPT = 1 << 12  # in words: articles of a moment come together
_NO_LINK = dict.fromkeys(
    (
        "id",
        "duplicate_of",
        "matched",
        "relation",
        "jaccard",
        "containment",
        "hamming",
        "fingerprint",
        "idf_epoch",
        "candidate_source",
        "source",
        "url",
        "topic",
        "partition",
        "offset",
        "published_at",
        "received_at",
        "decided_at",
    )
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message came from.

    Attributes:
        topic: of the input.
        partition: of the topic.
        offset: in the partition.
        timestamp_ms: the message's own time, milliseconds since 1970 in UTC; None where it has none that can be.
        trace: the trace context that it came with; no part of what is remembered.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None = None
    trace: Trace | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Article:
    """One article to judge.

    Raises:
        TypeError: a field is of another type.
        ValueError: the id is empty, or the body is blank; id or scope is too long or holds a U+001F; one of these, the
            URL or the source cannot be UTF-8; the event time is not between 1900 and 10000.

    Attributes:
        id: unique name within the scope, 1 to 65,535 bytes of UTF-8 with that; the same id again is a redelivery or a
            revision.
        body: the text that is compared; not blank.
        title: words of it count in profiles with a title factor.
        url: where it was published.
        source: who published it.
        published_ms: event time, milliseconds since 1970 in UTC, from 1900 to 10000; None where unknown.
        origin: the message that carried it.
        scope: within which alone it is compared, at most 256 bytes of UTF-8; those without one are one of their own.
    """

    id: str
    body: str
    title: str = ""
    url: str = ""
    source: str = ""
    published_ms: int | None = None
    origin: Origin | None = None
    scope: str = ""

    def __post_init__(self) -> None:
        check_texts(self, _TEXTS)
        check_whole(self, "published_ms", "a whole number, milliseconds since 1970 in UTC,")
        if self.published_ms is not None and not EARLIEST_MS <= self.published_ms < LATEST_MS:
            raise ValueError(f"published_ms of article {self.id!r} is {self.published_ms}, not between 1900 and 10000")
        check_type(self, "origin", Origin, "an Origin")
        check_name(self.scope, self.id, _MAX_NAME_BYTES)
        check_encodable(self, _STORED)
        if not self.body or self.body.isspace():
            raise ValueError(f"the body of article {self.id!r} is blank")

    @property
    def name(self) -> str:
        """What it is known by: its id, behind its scope if it has one."""
        return name_of(self.scope, self.id)

    @property
    def site(self) -> str:
        """Who puts lines around it: its source, else the host of its URL; empty where neither is known."""
        return self.source or _host(self.url)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A request to forget an article: a message without a value under its id, or with a flag that says so.

    Raises:
        TypeError: a field is of another type.
        ValueError: the id is empty; id or scope is too long or holds a U+001F; one of these or the URL cannot be UTF-8.

    Attributes:
        id: of the article, or the one that an article without id would have after its URL.
        url: of the article; used where no article of the id is known.
        origin: the message that carried it.
        scope: of the article.
    """

    id: str
    url: str = ""
    origin: Origin | None = None
    scope: str = ""

    def __post_init__(self) -> None:
        check_texts(self, ("id", "url", "scope"))
        check_type(self, "origin", Origin, "an Origin")
        check_name(self.scope, self.id, _MAX_NAME_BYTES)
        check_encodable(self, ("url",))

    @property
    def name(self) -> str:
        """What the article is known by: its id, behind its scope if it has one."""
        return name_of(self.scope, self.id)


class Relation(StrEnum):
    """What a copy is to the article that it copies."""

    EXACT = "exact"  # the same text but for case, punctuation, width, script and invisible characters
    NEAR = "near"  # nearly the same text
    CONTAINED = "contained"  # a cut copy: most of it stands in the other article
    CONTAINS = "contains"  # a round-up: most of the other article stands in it
    REVISION = "revision"  # the same id again with another text
    REDELIVERY = "redelivery"  # the same id again with the same text


class Ground(StrEnum):
    """Why two texts are, or are not, copies."""

    EXACT = "exact"  # as the relation of the same name, and so the next three
    NEAR = "near"
    CONTAINED = "contained"
    CONTAINS = "contains"
    TOO_SHORT = "too_short"  # one is so short that it is compared as a whole only
    TEMPLATE = "template"  # alike, but numbers or names of places differ
    TOO_LITTLE = "too_little"  # is in both


class Announcement(StrEnum):
    """What the topic of duplicates tells beside links, in the same field."""

    WITHDRAWN = "withdrawn"  # the article was withdrawn; `duplicate_of` is what its cluster is called by now
    SUCCESSION = "succession"  # the cluster of that canonical article is called by another one now


class SuccessionReason(StrEnum):
    """Why a cluster is called by another article."""

    WITHDRAWN = "withdrawn"  # the canonical article was withdrawn
    POLICY = "policy"  # a better one by `cluster.canonical` has come
    MOVED = "moved"  # the canonical article has another text now, which belongs elsewhere


class Source(StrEnum):
    """Which index found the article that matched."""

    CONTENT = "content"  # the hash of the whole text
    LANDMARK = "landmark"  # a shared landmark
    SIMHASH = "simhash"  # a SimHash table
    ID = "id"  # the same id


@dataclass(frozen=True, slots=True)
class Link:
    """Why an article is a copy, and of what.

    Attributes:
        duplicate_of: id of the cluster's canonical article.
        matched: id of the article that matched.
        relation: what the copy is to the matched article.
        jaccard: estimated Jaccard of the two sets of n-grams, 0 to 1; None where an earlier version of the same id
            was itself a copy, so that nothing is kept to compare with. So for the next two.
        containment: estimated share of the smaller set that is in the other, 0 to 1.
        hamming: bits in which the two fingerprints differ, 0 to 64.
        source: which index found it.
    """

    duplicate_of: str
    matched: str
    relation: Relation
    jaccard: float | None
    containment: float | None
    hamming: int | None
    source: Source


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an article.

    Attributes:
        article: the article.
        unique: whether it goes on as new; False where `link` is of a relation that counts as a duplicate.
        fingerprint: 64-bit SimHash; None for a copy that was not cut into words.
        epoch: number of the IDF epoch that the fingerprint's weights come from.
        link: the relation to an earlier article, if there is one.
        indexed: whether later articles can be found to be copies of this one.
    """

    article: Article
    unique: bool
    fingerprint: int | None
    epoch: int
    link: Link | None
    indexed: bool


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What became of a withdrawal.

    Attributes:
        withdrawal: the request.
        id: of the article that was withdrawn.
        canonical: id of the article that its cluster is called by now; None where nothing is left of it.
    """

    withdrawal: Withdrawal
    id: str
    canonical: str | None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A message that is sound, but about which there is nothing to decide.

    Attributes:
        item: what it asked for.
        reason: `unknown_article` or `too_late`.
        detail: the same in words.
    """

    item: Article | Withdrawal
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Succession:
    """A cluster is called by another canonical article from now on.

    Attributes:
        old: id of the canonical article until now.
        new: id of that from now on.
        reason: why.
        scope: of both.
    """

    old: str
    new: str
    reason: SuccessionReason
    scope: str = ""


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # half an address of IPv6
        return ""


def fingerprint_hex(fingerprint: int | None) -> str | None:
    """Return a fingerprint as 16 hexadecimal digits, None where there is none."""
    return f"{fingerprint:016x}" if fingerprint is not None else None


def link_fields(decision: Decision, link: Link, decided_ms: int) -> dict[str, Any]:
    """Return the link of a decision: what a message on the topic of duplicates tells.

    Args:
        decision: what was decided.
        link: its link.
        decided_ms: when, milliseconds since 1970 in UTC.
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
        "source": article.source,
        "url": article.url,
        "topic": origin.topic if origin else None,
        "partition": origin.partition if origin else None,
        "offset": origin.offset if origin else None,
        "published_at": iso(article.published_ms),
        "received_at": iso(origin.timestamp_ms if origin else None),
        "decided_at": iso(decided_ms),
        **scope_json(article.scope),
    }


def scope_json(scope: str) -> dict[str, str]:
    """Return the field that tells a scope: none where there is no scope."""
    return {"scope": scope} if scope else {}


def withdrawal_fields(
    withdrawn: str, withdrawal: Withdrawal, duplicate_of: str | None, decided_ms: int
) -> dict[str, Any]:
    """Return what is told of a withdrawn article, with the fields of a link, on the same topic.

    Args:
        withdrawn: id under which the article was known.
        withdrawal: the request.
        duplicate_of: id of its cluster's canonical article by now; None where nothing is left of the cluster.
        decided_ms: when, milliseconds since 1970 in UTC.
    """
    origin = withdrawal.origin
    return {
        **_NO_LINK,
        "id": withdrawn,
        "duplicate_of": duplicate_of,
        "relation": Announcement.WITHDRAWN,
        "url": withdrawal.url or None,
        "topic": origin.topic if origin else None,
        "partition": origin.partition if origin else None,
        "offset": origin.offset if origin else None,
        "received_at": iso(origin.timestamp_ms if origin else None),
        "decided_at": iso(decided_ms),
        **scope_json(withdrawal.scope),
    }


def succession_fields(succession: Succession, decided_ms: int) -> dict[str, Any]:
    """Return what is told of a change of the canonical article: the fields of a link, and `reason`.

    Args:
        succession: what changed.
        decided_ms: when, milliseconds since 1970 in UTC.
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


def rounded(share: float | None) -> float | None:
    """Return a share as it is told, None where it is unknown."""
    return None if share is None else round(share, 4)


def iso(milliseconds: int | None, precision: str = "milliseconds") -> str | None:
    """Return a time as ISO 8601 in UTC; None for one that is unknown or out of bounds.

    Args:
        milliseconds: since 1970 in UTC.
        precision: `milliseconds` or `seconds`.
    """
    if milliseconds is None or not EARLIEST_MS <= milliseconds < LATEST_MS:
        return None
    second, rest = divmod(milliseconds, 1000)
    return f"{_iso_second(second)}.{rest:03d}Z" if precision == "milliseconds" else f"{_iso_second(second)}Z"


@lru_cache(_SECONDS_KEPT)
def _iso_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
