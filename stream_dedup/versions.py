"""Ids that were seen before: the same message again, or a new text under an old id.

Knows article records; knows nothing of candidates or thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_dedup.article import Article
from stream_dedup.hashing import U64
from stream_dedup.index.records import ArticleRecord
from stream_dedup.index.store import Family, Store
from stream_dedup.judge import INDEX, JUDGE, SKIP


@dataclass(frozen=True, slots=True)
class Version:
    """How an article stands to what was seen before under its id.

    Attributes:
        mode: `JUDGE` a new id, `SKIP` a redelivery, `INDEX` a revision.
        earlier: place in this batch of the text before it, None if that was in an earlier batch or there is none.
        record: what became of the id in earlier batches, None if it was in none.
    """

    mode: int
    earlier: int | None = None
    record: ArticleRecord | None = None


_NEW = Version(JUDGE)


def find_versions(store: Store, articles: Sequence[Article], contents: U64) -> list[Version]:
    """Return how each article of a batch stands to its id.

    Args:
        store: the state.
        articles: the batch of n.
        contents: content hash of each, shape (n,).
    """
    ids = sorted({article.id for article in articles})
    stored = store.get_many(Family.ARTICLES, [name.encode() for name in ids])
    records = {name: ArticleRecord.unpack(value) for name, value in zip(ids, stored, strict=True) if value is not None}
    newest: dict[str, int] = {}
    versions = []
    hashes = contents.tolist()
    for place, article in enumerate(articles):
        versions.append(_version(newest.get(article.id), records.get(article.id), hashes, place))
        if versions[-1].mode != SKIP:
            newest[article.id] = place
    return versions


def _version(earlier: int | None, record: ArticleRecord | None, contents: Sequence[int], place: int) -> Version:
    if earlier is not None:
        before = contents[earlier]
    elif record is not None:
        before = record.content
    else:
        return _NEW
    return Version(SKIP if before == contents[place] else INDEX, earlier, record)
