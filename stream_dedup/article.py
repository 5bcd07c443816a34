"""What comes in and what goes out: articles, withdrawals, decisions and links.

Knows what they consist of; knows nothing of how an article is decoded, a decision reached or a link published.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from stream_dedup.arguments import check_encodable, check_texts, check_type, check_whole
from stream_dedup.scope import check_name, name_of
from stream_dedup.trace import Trace

EARLIEST_MS = -2_208_988_800_000  # 1900: earlier times, and those from the year 10000 on, are errors
LATEST_MS = 253_402_300_800_000
_MAX_SOURCE_CHARACTERS = 16_383  # which take at most 65,535 bytes, whatever they are
_TEXTS = ("id", "body", "title", "url", "source", "scope")  # of an article
_STORED = ("url", "source")  # as UTF-8, like id and scope; title and body may contain half an emoji


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message came from.

    Raises:
        TypeError: a field is of another type.

    Attributes:
        topic: input topic.
        partition: of the topic.
        offset: in the partition.
        timestamp_ms: the message's timestamp, milliseconds since 1970 in UTC; None if missing or impossible.
        trace: the trace context that it came with; not stored.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None = None
    trace: Trace | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_texts(self, ("topic",))
        for name in ("partition", "offset"):
            check_whole(self, name, "a whole number", optional=False)
        check_whole(self, "timestamp_ms", "a whole number, milliseconds since 1970 in UTC,")


@dataclass(frozen=True, slots=True)
class Article:
    """One article to judge.

    Raises:
        TypeError: a field is of another type.
        ValueError: the id is empty, or the body is blank; id, scope or source is too long; id or scope contains U+001F;
            id, scope, URL or source cannot be encoded as UTF-8; the event time is not between the years 1900 and 10000.

    Attributes:
        id: unique within the scope, 1 to 65,519 bytes of UTF-8 together with it; the same id again is a redelivery or a
            revision.
        body: the text that is compared; not blank.
        title: its words count in weight profiles with a title factor.
        url: where it was published; blanks around it are removed, so a blank one is none.
        source: who published it, at most 16,383 characters.
        published_ms: event time, milliseconds since 1970 in UTC, from 1900 to 10000; None if unknown. The newest so
            far, but none after its message's time, is the stream's, from which the window is counted back.
        origin: the message that carried it.
        scope: at most 256 bytes of UTF-8; an article is compared only with those of the same scope. Articles without
            one form a scope of their own.
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
        _strip_url(self)
        check_whole(self, "published_ms", "a whole number, milliseconds since 1970 in UTC,")
        if self.published_ms is not None and not EARLIEST_MS <= self.published_ms < LATEST_MS:
            raise ValueError(
                f"published_ms of the article {self.id!r} is {self.published_ms}, not between the years 1900 and 10000"
            )
        check_type(self, "origin", Origin, "an Origin")
        check_name(self.scope, self.id)
        check_encodable(self, _STORED)
        if len(self.source) > _MAX_SOURCE_CHARACTERS:
            raise ValueError(
                f"the source of the article {self.id!r} has {len(self.source)} characters, "
                f"more than the maximum of {_MAX_SOURCE_CHARACTERS}"
            )
        if not self.body or self.body.isspace():
            raise ValueError(f"the body of the article {self.id!r} is blank")

    @property
    def name(self) -> str:
        """The name it is stored under: its id, preceded by its scope if it has one."""
        return name_of(self.scope, self.id)

    @property
    def site(self) -> str:
        """The site whose boilerplate surrounds it: its source, else the host of its URL; empty if neither is known."""
        return self.source or _host(self.url)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A request to forget an article: a message with its id as the key and no value, or with the flag for deletion.

    Raises:
        TypeError: a field is of another type.
        ValueError: the id is empty; id or scope is too long or contains U+001F; id, scope or URL cannot be encoded as
            UTF-8.

    Attributes:
        id: of the article, or the id that an article without one gets from its URL.
        url: of the article, likewise; used if no article with the id is known.
        origin: the message that carried it.
        scope: of the article.
    """

    id: str
    url: str = ""
    origin: Origin | None = None
    scope: str = ""

    def __post_init__(self) -> None:
        check_texts(self, ("id", "url", "scope"))
        _strip_url(self)
        check_type(self, "origin", Origin, "an Origin")
        check_name(self.scope, self.id)
        check_encodable(self, ("url",))

    @property
    def name(self) -> str:
        """The name the article is stored under: its id, preceded by its scope if it has one."""
        return name_of(self.scope, self.id)


class Relation(StrEnum):
    """What a copy is to the article that it copies."""

    EXACT = "exact"  # the same text except for case, punctuation, width, script and invisible characters
    NEAR = "near"  # nearly the same text
    CONTAINED = "contained"  # a cut copy: most of it is in the other article
    CONTAINS = "contains"  # a round-up: most of the other article is in it
    REVISION = "revision"  # the same id again with a different text
    REDELIVERY = "redelivery"  # the same id again with the same text


class VerdictReason(StrEnum):
    """Why two texts are, or are not, copies."""

    EXACT = "exact"  # like the relation of the same name, as are the next three
    NEAR = "near"
    CONTAINED = "contained"
    CONTAINS = "contains"
    NO_CONTENT = "no_content"  # one consists only of what sites put around articles
    TOO_SHORT = "too_short"  # one is so short that it is only compared as a whole
    TEMPLATE = "template"  # alike, but numbers or place names differ
    TOO_LITTLE = "too_little"  # of the text is in both


class Announcement(StrEnum):
    """What the topic of duplicates announces besides links, in the field `relation`."""

    WITHDRAWN = "withdrawn"  # the article was withdrawn; `duplicate_of` is now its cluster's canonical article
    SUCCESSION = "succession"  # the cluster of that canonical article now has a different one


class SuccessionReason(StrEnum):
    """Why a cluster has a new canonical article."""

    WITHDRAWN = "withdrawn"  # the canonical article was withdrawn
    POLICY = "policy"  # an article arrived that `cluster.canonical` prefers
    MOVED = "moved"  # the canonical article was revised, and its new text belongs elsewhere


class UnjudgedReason(StrEnum):
    """Why there is nothing to decide about a valid message."""

    UNKNOWN_ARTICLE = "unknown_article"  # a withdrawal of an article that is not known in the window
    TOO_LATE = "too_late"  # an article older than the window, while `window.late = "dead"`


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
        jaccard: estimated Jaccard similarity of the two sets of n-grams, 0 to 1; None if an earlier version of the
            same id was itself a copy, so that nothing was kept to compare with. The same holds for the next two.
        containment: estimated share of the smaller set that is in the other, 0 to 1.
        hamming: number of bits in which the two fingerprints differ, 0 to 64.
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
        unique: whether it is passed on as new; False if the relation of `link` counts as a duplicate.
        fingerprint: 64-bit SimHash; None for a copy that was not segmented into words.
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

    @property
    def verdict(self) -> Literal["unique", "duplicate"]:
        """The decision in a word, as metrics and traces have it."""
        return "unique" if self.unique else "duplicate"


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What became of a withdrawal.

    Attributes:
        withdrawal: the request.
        id: of the article that was withdrawn.
        canonical: id of its cluster's canonical article from now on; None if nothing is left of the cluster.
    """

    withdrawal: Withdrawal
    id: str
    canonical: str | None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A valid message about which there is nothing to decide.

    Attributes:
        item: the article or withdrawal in it.
        reason: why.
        detail: the same in words.
    """

    item: Article | Withdrawal
    reason: UnjudgedReason
    detail: str


@dataclass(frozen=True, slots=True)
class Succession:
    """A cluster has a different canonical article from now on.

    Attributes:
        old: id of the previous canonical article.
        new: id of the new one.
        reason: why.
        scope: of both.
    """

    old: str
    new: str
    reason: SuccessionReason
    scope: str = ""


def _strip_url(of: Article | Withdrawal) -> None:
    if (url := of.url.strip()) != of.url:
        object.__setattr__(of, "url", url)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # a truncated IPv6 address
        return ""
