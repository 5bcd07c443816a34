"""Finds ids and URLs that were seen before: the same message again, or a new text of an old article.

Knows article records; knows nothing of candidates or thresholds.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
import orjson

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.article import Article
from stream_dedup.engine.matching import JUDGE, SKIP
from stream_dedup.engine.window import Times
from stream_dedup.index.records.generations import newest
from stream_dedup.index.records.records import ArticleRecord, has_expired, key_of
from stream_dedup.index.stores.store import Family, Store
from stream_dedup.scope import scope_hash

_Value = TypeVar("_Value", int, str)

_CONTENTS_KEPT = 8  # newest texts of an id that count as seen
URL_NAMES = 8  # newest articles that are remembered for a URL


class Version(NamedTuple):
    """How an article relates to what was seen before under its id or its URL.

    Attributes:
        contents: content hashes of the texts seen under the id, this one first.
        url: hash of the URL, 0 if there is none.
        mode: `SKIP` for a redelivery, a text already seen under the id; otherwise `JUDGE`.
        earlier: index in this run of the same text under the id, None if there is none.
        record: record of the id before this run, None if it was not seen in the window.
        siblings: names of the other articles of the same URL, the newest first; empty if one of them has this text.
        url_names: names of the articles known under the URL before this run, the newest first.
        order: how many articles of this run come before it under the URL.
    """

    contents: tuple[int, ...]
    url: int
    mode: int = JUDGE
    earlier: int | None = None
    record: ArticleRecord | None = None
    siblings: tuple[str, ...] = ()
    url_names: Sequence[str] = ()
    order: int = 0

    @property
    def revised(self) -> bool:
        """Whether it is a new text of an article that was seen before."""
        return self.mode == JUDGE and (self.record is not None or bool(self.siblings))


@dataclass(frozen=True, slots=True)
class PriorVersions:
    """How n articles relate to what was seen before.

    Attributes:
        names: names of the articles, n of them.
        contents: content hashes, n of them.
        urls: hash of the URL of each, 0 if there is none, n of them.
        versions: by index, those whose id or URL was seen before, in the window or in this run.
        modes: what to do with each, shape (n,).
        revised: which are new texts of articles that were seen before, shape (n,).
    """

    names: Sequence[str]
    contents: Sequence[int]
    urls: Sequence[int]
    versions: Mapping[int, Version]
    modes: I64
    revised: Bool

    def __len__(self) -> int:
        """Return the number of articles."""
        return len(self.names)

    def version(self, place: int) -> Version:
        """Return how the article at an index relates to what was seen before."""
        return self.versions.get(place) or Version((self.contents[place],), self.urls[place])

    def places_of_revised(self) -> dict[str, int]:
        """Return the names of the articles that are new texts of others, with their indices."""
        return {self.names[place]: place for place, version in self.versions.items() if version.revised}

    def orders_of_siblings(self) -> dict[str, tuple[int, int]]:
        """Return the names that share a URL under which one revises others, each with a number for the URL.

        With it is the name's place in the order in which they came; those from before the run have negative places.
        """
        came = {self.names[place]: version.order for place, version in self.versions.items() if version.mode == JUDGE}
        numbers: dict[int, int] = {}
        orders: dict[str, tuple[int, int]] = {}
        for place, version in self.versions.items():
            if version.siblings:
                number = numbers.setdefault(version.url, len(numbers))
                orders |= {
                    name: (number, came[name] if name in came else -1 - version.url_names.index(name))
                    for name in (self.names[place], *version.siblings)
                }
        return orders


def find_prior_versions(
    store: Store, live: Sequence[int], articles: Sequence[Article], contents: U64, times: Times, *, same_url: bool
) -> PriorVersions:
    """Return how the first articles of a batch relate to earlier ones: up to the first that has to wait.

    A new text of an id of the batch has to wait until the other one is part of the state, and so has an article that
    comes after another has expired. New ids under one URL need not wait for one another.

    Args:
        store: the state.
        live: generations that have not expired, the newest last.
        articles: the batch of n articles.
        contents: content hash of each, shape (n,).
        times: their times.
        same_url: whether articles with the same URL are the same article.
    """
    names = [article.name for article in articles]
    urls = [url_hash(article.url, article.scope) if same_url else 0 for article in articles]
    texts, cutoffs, stop = contents.tolist(), times.cutoffs.tolist(), len(articles)
    siblings = _siblings(store, live, urls)
    records = load_records(store, live, {*names, *chain.from_iterable(siblings.values())})
    run = _Run(siblings, records, times.stream.tolist())
    for place in _seen(names, urls, siblings, records):
        if not run.take(place, names[place], urls[place], texts[place], cutoffs[place]):
            stop = place
            break
    return _standings(names[:stop], texts[:stop], urls[:stop], run.versions)


def _seen(
    names: Sequence[str], urls: Sequence[int], siblings: Mapping[int, Sequence[str]], records: Collection[str]
) -> list[int]:
    """Return the indices of the articles whose ids or URLs were seen before, or occur again in the same run.

    All others, which are nearly all, do not affect one another.
    """
    seen_names = {*records, *chain.from_iterable(siblings.values()), *_repeated(names)}
    seen_urls = {*siblings, *_repeated([url for url in urls if url])}
    if not seen_names and not seen_urls:
        return []
    both = enumerate(zip(names, urls, strict=True))
    return [place for place, (name, url) in both if name in seen_names or url in seen_urls]


def _repeated(values: Sequence[_Value]) -> list[_Value]:
    """Return the values that occur more than once."""
    if len({*values}) == len(values):
        return []
    return [value for value, times in Counter(values).items() if times > 1]


def _standings(
    names: Sequence[str], contents: Sequence[int], urls: Sequence[int], versions: Mapping[int, Version]
) -> PriorVersions:
    modes, revised = np.full(len(names), JUDGE, np.int64), np.zeros(len(names), np.bool_)
    for place, version in versions.items():
        modes[place], revised[place] = version.mode, version.revised
    return PriorVersions(names, contents, urls, versions, modes, revised)


class _Run:
    """Relates the articles of a run, one after another, to what was seen before them.

    Args:
        siblings: names of the articles known under each URL before the run, the newest first.
        records: records from before the run, by name.
        decided: stream time at each article, milliseconds since 1970 in UTC.
    """

    def __init__(
        self, siblings: Mapping[int, Sequence[str]], records: Mapping[str, ArticleRecord], decided: Sequence[int]
    ) -> None:
        self._siblings = siblings
        self._records = records
        self._decided = decided
        self._firsts: dict[str, int] = {}  # index of the text to judge, by name
        self._lines: dict[int, list[str]] = {}  # names of these by URL, in order
        self._revised: set[str] = set()
        self.versions: dict[int, Version] = {}

    def take(self, place: int, own: str, url: int, content: int, cutoff: int) -> bool:
        """Find out how the next article relates to earlier ones; return False if it has to wait.

        Args:
            place: index of the article.
            own: its name.
            url: hash of its URL, 0 for none.
            content: its content hash.
            cutoff: anything decided before this is forgotten.
        """
        line, named, earlier = self._lines.get(url, []), self._siblings.get(url, ()), self._firsts.get(own)
        recent = line[: -URL_NAMES - 1 : -1]
        others = [name for name in named[: URL_NAMES - len(recent)] if name != own]
        if place and self._has_to_wait(own, content, cutoff, recent, others):
            return False
        record = since(self._records.get(own), cutoff)
        seen = self.versions[earlier].contents if earlier is not None else record.contents if record else ()
        if content in seen:
            self.versions[place] = Version(seen, url, SKIP, earlier, record, (), named)
            return True
        beside_it = with_url(url, [(name, since(self._records.get(name), cutoff)) for name in others])
        texts = [*map(self._contents, recent), *(other.contents for other in beside_it.values())]
        siblings = () if any(content in known for known in texts) else (*recent, *beside_it)
        kept = (content, *seen)[:_CONTENTS_KEPT]
        self._judge(place, own, Version(kept, url, JUDGE, None, record, siblings, named, len(line)))
        return True

    def _has_to_wait(self, own: str, content: int, cutoff: int, recent: Sequence[str], others: Sequence[str]) -> bool:
        """Tell whether an article is a new text of an id of this run, or meets what the run may have renewed or moved.

        Args:
            own: its name.
            content: its content hash.
            cutoff: anything decided before this is forgotten.
            recent: names of the articles of this run under its URL.
            others: names of the other articles known under its URL before the run.
        """
        if own in self._firsts and content not in self._contents(own):
            return True
        if any(self._outlived(self._firsts[name], cutoff) for name in (own, *recent) if name in self._firsts):
            return True
        # An id that was known under the URL moves ahead of those that came under it later.
        if recent and any(name in self._records for name in (own, *recent)):
            return True
        if own in self._revised or any(name in self._firsts for name in others):
            return True
        return any(_ended(self._records.get(name), cutoff) for name in (own, *others))

    def _contents(self, name: str) -> tuple[int, ...]:
        return self.versions[self._firsts[name]].contents

    def _outlived(self, place: int, cutoff: int) -> bool:
        return has_expired(self._decided[place], cutoff)

    def _judge(self, place: int, own: str, version: Version) -> None:
        """Record an article that is to be judged."""
        self.versions[place] = version
        self._firsts[own] = place
        if version.url:
            self._lines.setdefault(version.url, []).append(own)
        self._revised.update(version.siblings)


def load_records(store: Store, live: Sequence[int], names: set[str]) -> dict[str, ArticleRecord]:
    """Return the records of articles by name, of those that were seen before."""
    return {name: ArticleRecord.unpack(value) for name, value in packed_records_of(store, live, names).items()}


def packed_records_of(store: Store, live: Sequence[int], names: set[str]) -> dict[str, bytes]:
    """Return the same records as `load_records`, as they are stored."""
    ordered = sorted(names)
    stored = newest(store, Family.ARTICLES, [name.encode() for name in ordered], live)
    return {name: value for name, value in zip(ordered, stored, strict=True) if value is not None}


def url_hash(url: str, scope: str = "") -> int:
    """Return the hash by which a URL is known within a scope, 0 for no URL."""
    if not url:
        return 0
    return int.from_bytes(
        blake2b(url.encode(), digest_size=8, key=key_of(scope_hash(scope)) if scope else b"").digest()
    )


def packed_names(names: Sequence[str]) -> bytes | None:
    """Return the names of a URL's articles, at most `URL_NAMES`, as bytes; None if there are none."""
    return orjson.dumps(names) if names else None


def unpacked_names(value: bytes | None) -> list[str]:
    """Return the names that were packed into bytes, none for None."""
    return orjson.loads(value) if value is not None else []


def _siblings(store: Store, live: Sequence[int], urls: Sequence[int]) -> dict[int, list[str]]:
    """Return the names of the articles of some URLs, of those that were seen before."""
    distinct = sorted({url for url in urls if url})
    found = newest(store, Family.URLS, list(map(key_of, distinct)), live)
    return {url: unpacked_names(value) for url, value in zip(distinct, found, strict=True) if value is not None}


def _ended(record: ArticleRecord | None, cutoff: int) -> bool:
    return record is not None and since(record, cutoff) is None


def with_url(url: int, records: Iterable[tuple[str, ArticleRecord | None]]) -> dict[str, ArticleRecord]:
    """Return the articles that still have this URL: one that has since been given another no longer owns it."""
    return {name: record for name, record in records if record is not None and record.url == url}


def since(record: ArticleRecord | None, cutoff: int) -> ArticleRecord | None:
    """Return a record, None if it was decided before a time."""
    return None if record is None or has_expired(record.decided_ms, cutoff) else record
