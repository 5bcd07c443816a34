"""What comes in and what goes out: articles, decisions, links and a link's JSON.

Knows their fields; knows nothing of how an article is decoded or a decision is reached.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import orjson

EARLIEST_MS = -2_208_988_800_000  # 1900: times before it, and from the year 10000 on, are taken for mistakes
LATEST_MS = 253_402_300_800_000
_MAX_ID_BYTES = 65_535


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message came from.

    Attributes:
        topic: of the input.
        partition: of the topic.
        offset: in the partition.
        timestamp_ms: the message's own time, milliseconds since 1970 in UTC; None where it has none.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Article:
    """One article to judge.

    Raises:
        ValueError: the id is empty or cannot be UTF-8, or the body is blank.

    Attributes:
        id: unique name, 1 to 65,535 bytes of UTF-8; the same id again is a redelivery or a revision.
        body: the text that is compared; not blank.
        title: words of it count in profiles with a title factor.
        url: where it was published.
        source: who published it.
        published_ms: event time, milliseconds since 1970 in UTC; None where unknown.
        origin: the message that carried it.
    """

    id: str
    body: str
    title: str = ""
    url: str = ""
    source: str = ""
    published_ms: int | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.id.encode()) <= _MAX_ID_BYTES:
            raise ValueError(f"the id {self.id[:40]!r} has {len(self.id.encode())} bytes, not 1 to {_MAX_ID_BYTES}")
        if not self.body or self.body.isspace():
            raise ValueError(f"the body of article {self.id!r} is blank")


class Relation(StrEnum):
    """What a copy is to the article that it copies."""

    EXACT = "exact"  # the same text but for case, punctuation, width, script and invisible characters
    NEAR = "near"  # nearly the same text
    CONTAINED = "contained"  # a cut copy: most of it stands in the other article
    CONTAINS = "contains"  # a round-up: most of the other article stands in it
    REVISION = "revision"  # the same id again with another text
    REDELIVERY = "redelivery"  # the same id again with the same text


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
        fingerprint: 64-bit SimHash.
        epoch: number of the IDF epoch that the fingerprint's weights come from.
        link: the relation to an earlier article, if there is one.
        indexed: whether later articles can be found to be copies of this one.
    """

    article: Article
    unique: bool
    fingerprint: int
    epoch: int
    link: Link | None
    indexed: bool

    @property
    def canonical(self) -> str:
        """Id of the canonical article of the cluster: its own where it is unique."""
        return self.article.id if self.unique or self.link is None else self.link.duplicate_of


def fingerprint_hex(fingerprint: int) -> str:
    """Return a fingerprint as 16 hexadecimal digits."""
    return f"{fingerprint:016x}"


def link_json(decision: Decision, link: Link, decided_ms: int) -> bytes:
    """Return the link of a decision as JSON: the value of a message on the topic of duplicates.

    Args:
        decision: what was decided.
        link: its link.
        decided_ms: when, milliseconds since 1970 in UTC.
    """
    article = decision.article
    origin = article.origin
    return orjson.dumps(
        {
            "id": article.id,
            "duplicate_of": link.duplicate_of,
            "matched": link.matched,
            "relation": link.relation,
            "jaccard": _rounded(link.jaccard),
            "containment": _rounded(link.containment),
            "hamming": link.hamming,
            "fingerprint": fingerprint_hex(decision.fingerprint),
            "idf_epoch": decision.epoch,
            "candidate_source": link.source,
            "source": article.source,
            "url": article.url,
            "topic": origin.topic if origin else None,
            "partition": origin.partition if origin else None,
            "offset": origin.offset if origin else None,
            "published_at": _iso(article.published_ms),
            "received_at": _iso(origin.timestamp_ms if origin else None),
            "decided_at": _iso(decided_ms),
        }
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _iso(milliseconds: int | None) -> str | None:
    if milliseconds is None or not EARLIEST_MS <= milliseconds < LATEST_MS:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
