"""Records of articles that were never seen before: nearly all of a run, so they are packed together.

Knows what such a record holds; knows nothing of who writes it. The layout is that of `ArticleRecord`.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.article import Article, Relation
from stream_dedup.index.records.records import (
    NO_ORIGIN,
    NOT_INDEXED,
    RELATION_NUMBERS,
    UNKNOWN_TIME,
    ArticleRecord,
    packed_text,
    seen_ms,
    time_number,
)

# One text was seen, and at most one entry is kept for it.
_LAYOUT = np.dtype(
    [
        ("decided_ms", "<i8"),
        ("first_ms", "<i8"),
        ("published_ms", "<i8"),
        ("cluster", "<u8"),
        ("characters", "<u4"),
        ("url", "<u8"),
        ("partition", "<i4"),
        ("offset", "<i8"),
        ("timestamp_ms", "<i8"),
        ("relation", "<u1"),
        ("contents", "<u1"),
        ("entries", "<u1"),
        ("content", "<u8"),
        ("entry", "<i8"),
    ]
)
_ENTRY_BYTES = 8


class NewRecord(NamedTuple):
    """What became of an article that was never seen before.

    Attributes:
        article: the article.
        content: hash of its content.
        url: hash of its URL, 0 if it has none.
        decided_ms: the stream's time at the decision.
        cluster: number of its cluster.
        entry: number of its entry, `NOT_INDEXED` if none is kept.
        relation: relation of its link, None if it has none.
    """

    article: Article
    content: int
    url: int
    decided_ms: int
    cluster: int
    entry: int
    relation: Relation | None

    def whole(self) -> ArticleRecord:
        """Return the record as an `ArticleRecord`."""
        article = self.article
        return ArticleRecord(
            (self.content,),
            () if self.entry == NOT_INDEXED else (self.entry,),
            self.decided_ms,
            seen_ms(article.origin, article.published_ms),
            article.published_ms,
            len(article.body),
            self.relation,
            self.cluster,
            self.url,
            article.source,
            article.origin,
        )


def packed_records(records: list[NewRecord]) -> list[bytes]:
    """Return each record as bytes, as `ArticleRecord.pack` does."""
    if not records:
        return []
    articles, contents, urls, decided, clusters, entries, relations = zip(*records, strict=True)
    origins = [article.origin or NO_ORIGIN for article in articles]
    numbers = np.zeros(len(records), _LAYOUT)
    numbers["decided_ms"], numbers["cluster"], numbers["url"] = decided, clusters, urls
    numbers["published_ms"] = [time_number(article.published_ms) for article in articles]
    numbers["timestamp_ms"] = [time_number(origin.timestamp_ms) for origin in origins]
    known = numbers["timestamp_ms"] != UNKNOWN_TIME
    numbers["first_ms"] = np.where(known, numbers["timestamp_ms"], numbers["published_ms"])
    numbers["characters"] = [len(article.body) for article in articles]
    numbers["partition"] = [origin.partition for origin in origins]
    numbers["offset"] = [origin.offset for origin in origins]
    numbers["relation"] = [RELATION_NUMBERS[relation] for relation in relations]
    numbers["contents"], numbers["content"], numbers["entry"] = 1, contents, entries
    numbers["entries"] = numbers["entry"] != NOT_INDEXED
    texts = [packed_text(one.source) + packed_text(origin.topic) for one, origin in zip(articles, origins, strict=True)]
    packed, size = numbers.tobytes(), _LAYOUT.itemsize
    stops = np.arange(size, len(packed) + size, size) - _ENTRY_BYTES * (numbers["entries"] == 0)
    return [
        packed[start:stop] + text
        for start, stop, text in zip(range(0, len(packed), size), stops.tolist(), texts, strict=True)
    ]
