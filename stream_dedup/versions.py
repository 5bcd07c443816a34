"""Ids and URLs that were seen before: the same message again, or a new text of an old article.

Knows article records; knows nothing of candidates or thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from stream_dedup.article import Article
from stream_dedup.hashing import U64
from stream_dedup.index.generations import newest
from stream_dedup.index.records import ArticleRecord, key_of
from stream_dedup.index.store import Family, Store
from stream_dedup.judge import JUDGE, SKIP
from stream_dedup.window import Times

_CONTENTS_KEPT = 8  # texts of an id that count as seen, the newest


@dataclass(frozen=True, slots=True)
class Version:
    """How an article stands to what was seen before under its id or its URL.

    Attributes:
        mode: `SKIP` for a text that was seen under the id, a redelivery; else `JUDGE`.
        contents: content hashes of the texts seen under the id, this one first.
        earlier: place in this run of the same text under the id, None if there is none.
        record: what became of the id before this run, None where it was not seen in the window.
        sibling: id of another article of the same URL, with other texts; None if there is none.
        url: hash of the URL, 0 if there is none.
    """

    mode: int
    contents: tuple[int, ...]
    earlier: int | None
    record: ArticleRecord | None
    sibling: str | None
    url: int

    @property
    def revised(self) -> bool:
        """Whether it is a new text of an article that was seen."""
        return self.mode == JUDGE and (self.record is not None or self.sibling is not None)


class Versions:
    """Finds how articles stand to those before them.

    Args:
        same_url: whether articles of one URL are the same article.
    """

    def __init__(self, *, same_url: bool) -> None:
        self._same_url = same_url

    def find(
        self, store: Store, live: Sequence[int], articles: Sequence[Article], contents: U64, times: Times
    ) -> list[Version]:
        """Return how the first articles of a batch stand: up to one that revises another of them, or has outlived it.

        That one has to wait until the other is part of the state.

        Args:
            store: the state.
            live: generations that have not expired, the newest last.
            articles: the batch of n.
            contents: content hash of each, shape (n,).
            times: of them.
        """
        urls = [url_hash(article.url) if self._same_url else 0 for article in articles]
        siblings = _siblings(store, live, urls)
        names = {article.id for article in articles}
        records = load_records(store, live, names.union(siblings.values()))
        firsts: dict[str, int] = {}
        owners: dict[int, int] = {}
        versions: list[Version] = []
        decided = times.stream.tolist()
        for place, (article, url, content, floor) in enumerate(
            zip(articles, urls, contents.tolist(), times.floors.tolist(), strict=True)
        ):
            earlier, beside = firsts.get(article.id), owners.get(url) if url else None
            before = [other for other in (earlier, beside) if other is not None]
            if any(decided[other] < floor or content not in versions[other].contents for other in before):
                break
            sibling = siblings.get(url, article.id) if beside is None else article.id
            if sibling != article.id and sibling in firsts:
                break
            record = since(records.get(article.id), floor)
            seen = versions[earlier].contents if earlier is not None else record.contents if record else ()
            if content in seen:
                versions.append(Version(SKIP, seen, earlier, record, None, url))
                continue
            other = since(records.get(sibling), floor) if sibling != article.id else None
            # An article that has another URL by now has left this one to others.
            revises = other is not None and other.url == url and content not in other.contents
            kept = (content, *seen)[:_CONTENTS_KEPT]
            versions.append(Version(JUDGE, kept, None, record, sibling if revises else None, url))
            firsts[article.id] = place
            if url:
                owners[url] = place
        return versions


def load_records(store: Store, live: Sequence[int], names: set[str]) -> dict[str, ArticleRecord]:
    """Return what became of some ids, of those that were seen."""
    ordered = sorted(names)
    stored = newest(store, Family.ARTICLES, [name.encode() for name in ordered], live)
    return {name: ArticleRecord.unpack(value) for name, value in zip(ordered, stored, strict=True) if value is not None}


def url_hash(url: str) -> int:
    """Return the hash that a URL is known by, 0 for none."""
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest()) if url else 0


def _siblings(store: Store, live: Sequence[int], urls: Sequence[int]) -> dict[int, str]:
    distinct = sorted({url for url in urls if url})
    found = newest(store, Family.URLS, [key_of(url) for url in distinct], live)
    return {url: value.decode() for url, value in zip(distinct, found, strict=True) if value is not None}


def since(record: ArticleRecord | None, floor: int) -> ArticleRecord | None:
    """Return a record unless it was decided before a time."""
    return record if record is not None and record.decided_ms >= floor else None
