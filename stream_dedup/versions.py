"""Ids and URLs that were seen before: the same message again, or a new text of an old article.

Knows article records; knows nothing of candidates or thresholds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import orjson

from stream_dedup.article import Article
from stream_dedup.hashing import U64
from stream_dedup.index.generations import newest
from stream_dedup.index.records import ArticleRecord, key_of, outlived
from stream_dedup.index.store import Family, Store
from stream_dedup.judge import JUDGE, SKIP
from stream_dedup.scope import scope_hash
from stream_dedup.window import Times

_CONTENTS_KEPT = 8  # texts of an id that count as seen, the newest
URL_NAMES = 8  # articles that a URL is known to have, the newest


@dataclass(frozen=True, slots=True)
class Version:
    """How an article stands to what was seen before under its id or its URL.

    Attributes:
        mode: `SKIP` for a text that was seen under the id, a redelivery; else `JUDGE`.
        contents: content hashes of the texts seen under the id, this one first.
        earlier: place in this run of the same text under the id, None if there is none.
        record: what became of the id before this run, None where it was not seen in the window.
        siblings: names of the other articles of the same URL, if none of them has this text, the newest first.
        url: hash of the URL, 0 if there is none.
        url_names: names of the articles that were known under the URL before this run, the newest first.
    """

    mode: int
    contents: tuple[int, ...]
    earlier: int | None
    record: ArticleRecord | None
    siblings: tuple[str, ...]
    url: int
    url_names: Sequence[str]

    @property
    def revised(self) -> bool:
        """Whether it is a new text of an article that was seen."""
        return self.mode == JUDGE and (self.record is not None or bool(self.siblings))


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
        urls = [url_hash(article.url, article.scope) if self._same_url else 0 for article in articles]
        siblings = _siblings(store, live, urls)
        names = [article.name for article in articles]
        records = load_records(store, live, set(names).union(*siblings.values()))
        run = _Run(siblings, records, times.stream.tolist())
        for one in zip(names, urls, contents.tolist(), times.floors.tolist(), strict=True):
            version = run.version(*one)
            if version is None:
                break
            run.versions.append(version)
        return run.versions


class _Run:
    """Articles one after the other, beside what was seen before them.

    Args:
        siblings: names of the articles that were known under each URL before, the newest first.
        records: what became of the articles of some names before.
        decided: the stream's time at each article, milliseconds since 1970 in UTC.
    """

    def __init__(
        self, siblings: Mapping[int, Sequence[str]], records: Mapping[str, ArticleRecord], decided: Sequence[int]
    ) -> None:
        self._siblings = siblings
        self._records = records
        self._decided = decided
        self._firsts: dict[str, int] = {}  # place of the text to be judged of each name
        self._owners: dict[int, int] = {}  # and of each URL
        self._revised: set[str] = set()
        self.versions: list[Version] = []

    def version(self, own: str, url: int, content: int, floor: int) -> Version | None:
        """Return how the next article stands, None if it has to wait.

        Args:
            own: its name.
            url: hash of its URL, 0 for none.
            content: its content hash.
            floor: what was decided before this is forgotten.
        """
        earlier, beside = self._firsts.get(own), self._owners.get(url)
        named = self._siblings.get(url, ())
        if own not in self._records and earlier is None and beside is None and not named:
            # Nearly all articles: nobody has seen the id or the URL.
            return self._judged(own, Version(JUDGE, (content,), None, None, (), url, named))
        others = [name for name in named if name != own] if beside is None else []
        if self._has_to_wait(own, content, floor, [place for place in (earlier, beside) if place is not None], others):
            return None
        record = since(self._records.get(own), floor)
        seen = self.versions[earlier].contents if earlier is not None else record.contents if record else ()
        if content in seen:
            return Version(SKIP, seen, earlier, record, (), url, named)
        beside_it = _of_url(url, [(name, since(self._records.get(name), floor)) for name in others])
        known = any(content in other.contents for other in beside_it.values())
        kept = (content, *seen)[:_CONTENTS_KEPT]
        return self._judged(own, Version(JUDGE, kept, None, record, () if known else tuple(beside_it), url, named))

    def _has_to_wait(self, own: str, content: int, floor: int, before: Sequence[int], others: Sequence[str]) -> bool:
        """Tell whether an article revises another of this run, or may be remembered for longer because of one."""
        if any(self._outlived(place, floor) or content not in self.versions[place].contents for place in before):
            return True
        if own in self._revised or any(name in self._firsts for name in others):
            return True
        return bool(self.versions) and any(_ended(self._records.get(name), floor) for name in (own, *others))

    def _outlived(self, place: int, floor: int) -> bool:
        return outlived(self._decided[place], floor)

    def _judged(self, own: str, version: Version) -> Version:
        """Note an article that is judged."""
        self._firsts[own] = place = len(self.versions)
        if version.url:
            self._owners[version.url] = place
        self._revised.update(version.siblings)
        return version


def load_records(store: Store, live: Sequence[int], names: set[str]) -> dict[str, ArticleRecord]:
    """Return what became of the articles of some names, of those that were seen."""
    ordered = sorted(names)
    stored = newest(store, Family.ARTICLES, [name.encode() for name in ordered], live)
    return {name: ArticleRecord.unpack(value) for name, value in zip(ordered, stored, strict=True) if value is not None}


def url_hash(url: str, scope: str = "") -> int:
    """Return the hash that a URL is known by within a scope, 0 for none."""
    if not url:
        return 0
    return int.from_bytes(
        blake2b(url.encode(), digest_size=8, key=key_of(scope_hash(scope)) if scope else b"").digest()
    )


def packed_names(names: Sequence[str]) -> bytes | None:
    """Return the names of a URL's articles as bytes, at most `URL_NAMES` of them; None of none."""
    return orjson.dumps(names) if names else None


def unpacked_names(value: bytes | None) -> list[str]:
    """Return the names that bytes hold."""
    return orjson.loads(value) if value is not None else []


def _siblings(store: Store, live: Sequence[int], urls: Sequence[int]) -> dict[int, list[str]]:
    distinct = sorted({url for url in urls if url})
    found = newest(store, Family.URLS, [key_of(url) for url in distinct], live)
    return {url: unpacked_names(value) for url, value in zip(distinct, found, strict=True)}


def _ended(record: ArticleRecord | None, floor: int) -> bool:
    return record is not None and since(record, floor) is None


def _of_url(url: int, records: Iterable[tuple[str, ArticleRecord | None]]) -> dict[str, ArticleRecord]:
    """Return the articles that are of a URL still: one that has another by now has left this one to others."""
    return {name: record for name, record in records if record is not None and record.url == url}


def since(record: ArticleRecord | None, floor: int) -> ArticleRecord | None:
    """Return a record unless it was decided before a time."""
    return None if record is None or outlived(record.decided_ms, floor) else record
