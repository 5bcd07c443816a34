"""Ids that were seen before: the same message again, or a new text under an old id.

Knows article records; knows nothing of candidates or thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_dedup.article import Article
from stream_dedup.hashing import U64
from stream_dedup.index.records import ArticleRecord
from stream_dedup.index.store import Family, Store
from stream_dedup.judge import JUDGE, SKIP

_CONTENTS_KEPT = 8  # texts of an id that count as seen, the newest


@dataclass(frozen=True, slots=True)
class Version:
    """How an article stands to what was seen before under its id.

    Attributes:
        mode: `SKIP` for a text that was seen under the id, a redelivery; else `JUDGE`.
        revised: whether it is a new text under an id that was seen.
        contents: content hashes of the texts seen under the id, this one first.
        earlier: place in this batch of the text before it, None if that was in an earlier batch or there is none.
        record: what became of the id in earlier batches, None if it was in none.
    """

    mode: int
    revised: bool
    contents: tuple[int, ...]
    earlier: int | None = None
    record: ArticleRecord | None = None


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
    versions: list[Version] = []
    for place, (article, content) in enumerate(zip(articles, contents.tolist(), strict=True)):
        earlier, record = newest.get(article.id), records.get(article.id)
        seen = _seen_before(versions[earlier] if earlier is not None else None, record)
        if content in seen:
            versions.append(Version(SKIP, False, seen, earlier, record))
        else:
            versions.append(Version(JUDGE, bool(seen), (content, *seen)[:_CONTENTS_KEPT], earlier, record))
            newest[article.id] = place
    return versions


def _seen_before(version: Version | None, record: ArticleRecord | None) -> tuple[int, ...]:
    if version is not None:
        return version.contents
    return record.contents if record is not None else ()
