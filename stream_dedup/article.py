"""What comes in and what goes out: articles, withdrawals, decisions and links.

Knows what they are made of; knows nothing of how an article is decoded, a decision is reached or a link is told.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from stream_dedup.arguments import check_encodable, check_texts, check_type, check_whole
from stream_dedup.scope import check_name, name_of
from stream_dedup.trace import Trace

EARLIEST_MS = -2_208_988_800_000  # 1900: times before it, and from the year 10000 on, are taken for mistakes
LATEST_MS = 253_402_300_800_000
_MAX_NAME_BYTES = 65_519  # of scope and id: with what a key of the changelog has beside them 65,535
_MAX_SOURCE_CHARACTERS = 16_383  # of which any take 65,535 bytes at most
_TEXTS = ("id", "body", "title", "url", "source", "scope")  # of an article
_STORED = ("url", "source")  # as UTF-8; so are id and scope, while title and body may hold half an emoji


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
        ValueError: the id is empty, or the body is blank; id, scope or source is too long; id or scope holds a U+001F;
            one of these, the URL or the source cannot be UTF-8; the event time is not between 1900 and 10000.

    Attributes:
        id: unique name within the scope, 1 to 65,519 bytes of UTF-8 with that; the same id again is a redelivery or a
            revision.
        body: the text that is compared; not blank.
        title: words of it count in profiles with a title factor.
        url: where it was published.
        source: who published it, at most 16,383 characters.
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
        if len(self.source) > _MAX_SOURCE_CHARACTERS:
            raise ValueError(
                f"the source of article {self.id!r} has {len(self.source)} characters, at most {_MAX_SOURCE_CHARACTERS}"
            )
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
    NO_CONTENT = "no_content"  # of one nothing is left but what sites put around articles
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
