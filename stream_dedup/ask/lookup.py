"""Looks up articles and clusters of a state by id.

Knows records and how they refer to each other; knows nothing of texts or measures.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from stream_dedup.article import Origin, Relation
from stream_dedup.ask.answers import (
    ArticleAnswer,
    ClusterAnswer,
    LinkAnswer,
    MemberAnswer,
    MessageLocation,
    SourceAnswer,
)
from stream_dedup.ask.bounds import quoted
from stream_dedup.ask.follower import View
from stream_dedup.ask.timeline import timeline_of
from stream_dedup.counted import most_first
from stream_dedup.engine.clusters import Cluster
from stream_dedup.engine.members import member_of
from stream_dedup.engine.versions import load_records, packed_records_of, since
from stream_dedup.index.records.generations import newest
from stream_dedup.index.records.joins import Join, join_key, of_join_key, renumbered_key
from stream_dedup.index.records.records import (
    NOT_INDEXED,
    ArticleRecord,
    Sighting,
    generation_prefix,
    has_expired,
    key_of,
)
from stream_dedup.index.stores.store import Family
from stream_dedup.output_fields import iso, rounded
from stream_dedup.scope import id_of, scope_of

_MOST_JOINS = 10_000  # of a cluster: the newest are read


class UnknownArticleError(LookupError):
    """No article with this id is known, or it no longer is."""


class Joined(NamedTuple):
    """How one copy joined its cluster.

    Attributes:
        decided_ms: the stream's time at the decision, milliseconds since 1970 in UTC.
        packed: its link as it is stored: of ten thousand copies, only those on one page are looked at.
    """

    decided_ms: int
    packed: bytes

    @property
    def join(self) -> Join:
        """Its link."""
        return Join.unpack(self.packed)


class Lookup:
    """Answers queries about articles and clusters, as of one moment.

    An article is named by its id, preceded by its scope if it has one.

    Args:
        view: the state.
        duplicates: relations that make an article a duplicate.
        cutoff_ms: beginning of the window, milliseconds since 1970 in UTC; anything older is treated as forgotten.
        scoped: whether articles can have a scope.
        from_files: whether the articles came from files: they have no time of arrival.
    """

    def __init__(
        self,
        view: View,
        duplicates: Iterable[Relation],
        cutoff_ms: int,
        *,
        scoped: bool = False,
        from_files: bool = False,
    ) -> None:
        self._view = view
        self._live = view.progress.live
        self._cutoff_ms = cutoff_ms
        self._duplicates = frozenset(duplicates)
        self._scoped = scoped
        self._from_files = from_files

    def record(self, name: str) -> ArticleRecord:
        """Return the record of an article.

        Raises:
            UnknownArticleError: the article is not known.
        """
        record = self.known(name)
        if record is None:
            raise UnknownArticleError(
                f"no article {quoted(id_of(name))} is known{self._in_scope(scope_of(name))}: it was never judged, was "
                "withdrawn, or is older than the window"
            )
        return record

    def _in_scope(self, scope: str) -> str:
        if scope:
            return f" in the scope {scope!r}"
        return " without a scope" if self._scoped else ""

    def known(self, name: str) -> ArticleRecord | None:
        """Return the record of an article by its name, None if it is not known."""
        return self._records({name}).get(name)

    def article(self, name: str) -> ArticleAnswer:
        """Return what was decided on an article.

        Raises:
            UnknownArticleError: the article is not known.
        """
        record = self.record(name)
        cluster = self._cluster(record.cluster)
        return ArticleAnswer(
            id=id_of(name),
            scope=scope_of(name),
            decision="duplicate" if record.relation in self._duplicates else "unique",
            relation=record.relation,
            cluster=record.cluster,
            canonical=id_of(name if cluster is None else cluster.canonical),
            link=self.link(self.joined(name, record)),
            source=record.source,
            published_at=iso(record.published_ms),
            received_at=self._received_at(record),
            stream_time=iso(record.decided_ms),
            characters=record.characters,
            texts=len(record.contents),
            message=message_location(record.origin),
        )

    def link(self, joined: Joined | None) -> LinkAnswer | None:
        """Return why an article is a copy, from how it joined its cluster; None if it is not a copy."""
        if joined is None:
            return None
        return _link_answer(joined, self._known_names([joined.join.matched]))

    def is_revised(self, joined: Joined, matched: ArticleRecord) -> bool:
        """Return whether the text of the article that a copy was linked to has changed since.

        Args:
            joined: how the copy joined its cluster.
            matched: record of the article that it was linked to.
        """
        entries, _ = self._view.index.format.unpack([*self._stored([joined.join.matched]).values()])
        return any(content != matched.contents[0] for content in entries["content"].tolist())

    def cluster(self, name: str, most: int, skipped: int = 0) -> ClusterAnswer:
        """Return the cluster of an article.

        Args:
            name: name of the article.
            most: the largest number of members to return.
            skipped: number of members to skip.

        Raises:
            UnknownArticleError: the article is not known.
        """
        asked = self.record(name)
        number, joins = asked.cluster, dict(self._joins(asked.cluster))
        if name not in joins and (joined := self._joined_last(name, asked)) is not None:
            joins[name] = joined
        cluster, names = self._cluster(number), {name}
        if cluster is None:
            # Also the case for a remnant of a cluster that has ended: there is no canonical article any more.
            cluster = Cluster.founded(number, member_of(name, asked, NOT_INDEXED, active=False), asked.first_ms)
        else:
            names |= {*joins, *(member.id for member in cluster.members), *self._names([number]).values()}
        packed = packed_records_of(self._view.store, self._live, names)
        sightings = self._sightings(packed, number)
        ordered = sorted(sightings, key=lambda name: (sightings[name].moment_ms, name))
        shown = ordered[skipped : skipped + most]
        records = {name: ArticleRecord.unpack(packed[name]) for name in shown}
        links = {name: joins[name] for name in shown if name in joins and _is_of(joins[name], records[name])}
        matched = self._known_names([joined.join.matched for joined in links.values()])
        stretch, timeline = timeline_of([(sightings[name].moment_ms, sightings[name].source) for name in ordered])
        return ClusterAnswer(
            number=number,
            scope=scope_of(cluster.canonical),
            canonical=id_of(cluster.canonical),
            copies=cluster.copies,
            first_seen=iso(cluster.first_ms),
            last_seen=iso(cluster.last_ms),
            distinct_sources=len(cluster.sources),
            sources=[SourceAnswer(source=source, articles=count) for source, count in most_first(cluster.sources)],
            other_sources_articles=cluster.other_members,
            known=len(sightings),
            members=[self._member(name, cluster.canonical, records[name], links.get(name), matched) for name in shown],
            stretch_seconds=stretch,
            timeline=timeline,
        )

    def canonicals(self, numbers: Sequence[int], singles: Sequence[str]) -> list[str]:
        """Return the names of the canonical articles of clusters.

        Args:
            numbers: numbers of the clusters.
            singles: for each, the name to return if no cluster is stored, because the article is its only member.
        """
        values = newest(self._view.store, Family.CLUSTERS, list(map(key_of, numbers)), self._live)
        return [
            Cluster.unpack(value).canonical if value is not None else single
            for value, single in zip(values, singles, strict=True)
        ]

    def _records(self, names: set[str]) -> dict[str, ArticleRecord]:
        """Return the records of articles, without those that have expired but are still stored, as the engine does."""
        records = load_records(self._view.store, self._live, names)
        return {name: record for name, record in records.items() if since(record, self._cutoff_ms) is not None}

    def _sightings(self, packed: Mapping[str, bytes], number: int) -> dict[str, Sighting]:
        """Return when and where those of some articles were seen that are in a cluster, without expired ones.

        Args:
            packed: their records, by name, as they are stored.
            number: number of the cluster.
        """
        seen = {name: Sighting.unpack(value) for name, value in packed.items()}
        return {
            name: sighting
            for name, sighting in seen.items()
            if sighting.cluster == number and not has_expired(sighting.decided_ms, self._cutoff_ms)
        }

    def _cluster(self, number: int) -> Cluster | None:
        (value,) = newest(self._view.store, Family.CLUSTERS, [key_of(number)], self._live)
        return Cluster.unpack(value) if value is not None else None

    def joined(self, name: str, record: ArticleRecord) -> Joined | None:
        """Return how an article joined its cluster with its newest text; None if that is no copy, or too long ago."""
        joined = self._joined_last(name, record)
        if joined is None and record.relation is not None:
            # Each copy renews the time of the canonical article, which may itself have joined as a copy earlier.
            joined = next((joined for copy, joined in self._joins(record.cluster) if copy == name), None)
        return joined if joined is not None and _is_of(joined, record) else None

    def _joined_last(self, name: str, record: ArticleRecord) -> Joined | None:
        """Return how an article joined its cluster in the last decision on it."""
        key = join_key(record.cluster, record.decided_ms, name)
        (packed,) = newest(self._view.store, Family.MEMBERS, [key], self._live)
        return Joined(record.decided_ms, packed) if packed is not None else None

    def _joins(self, number: int) -> Iterator[tuple[str, Joined]]:
        """Yield the names of a cluster's copies and how they joined, newest first, each once.

        Of an article that joined again and again, each time counts towards `_MOST_JOINS`.
        """
        seen: set[str] = set()
        left = _MOST_JOINS
        for generation in reversed(self._live):
            prefix = generation_prefix(generation)
            joins = self._view.store.items(Family.MEMBERS, prefix + key_of(number), descending=True)
            for key, value in islice(joins, left):
                left -= 1
                _, decided_ms, name = of_join_key(key[len(prefix) :])
                if name not in seen:
                    seen.add(name)
                    yield name, Joined(decided_ms, value)

    def _known_names(self, entries: Sequence[int]) -> dict[int, str]:
        """Return the same as `_names`, but only of articles that are still known: entries are dropped later."""
        names = self._names(entries)
        known = self._records({*names.values()})
        return {entry: name for entry, name in names.items() if name in known}

    def _names(self, entries: Sequence[int]) -> dict[int, str]:
        """Return the names of the articles of those entries that are still stored."""
        stored = self._stored(sorted({entry for entry in entries if entry >= 0}))
        _, names = self._view.index.format.unpack([*stored.values()])
        return {entry: name.decode() for entry, name in zip(stored, names, strict=True)}

    def _stored(self, entries: Sequence[int]) -> dict[int, bytes]:
        """Return the stored form of those entries that still exist, including renumbered ones."""
        store = self._view.store
        found = dict(zip(entries, store.get_many(Family.ENTRIES, list(map(key_of, entries))), strict=True))
        missing = [entry for entry, value in found.items() if value is None]
        numbers = newest(store, Family.MEMBERS, list(map(renumbered_key, missing)), self._live)
        moved = [(entry, key) for entry, key in zip(missing, numbers, strict=True) if key is not None]
        values = store.get_many(Family.ENTRIES, [key for _, key in moved])
        found |= {entry: value for (entry, _), value in zip(moved, values, strict=True)}
        return {entry: value for entry, value in found.items() if value is not None}

    def _member(
        self, name: str, canonical: str, record: ArticleRecord, joined: Joined | None, matched: dict[int, str]
    ) -> MemberAnswer:
        return MemberAnswer(
            id=id_of(name),
            canonical=name == canonical,
            source=record.source,
            published_at=iso(record.published_ms),
            received_at=self._received_at(record),
            characters=record.characters,
            link=_link_answer(joined, matched) if joined is not None else None,
        )

    def _received_at(self, record: ArticleRecord) -> str | None:
        return None if self._from_files else iso(record.first_ms)


def message_location(origin: Origin | None) -> MessageLocation | None:
    """Return where a message is."""
    if origin is None:
        return None
    return MessageLocation(topic=origin.topic, partition=origin.partition, offset=origin.offset)


def _is_of(joined: Joined, record: ArticleRecord) -> bool:
    """Return whether an article joined with its newest text: a canonical one may have joined with an earlier text."""
    return joined.join.relation is record.relation


def _link_answer(joined: Joined, matched: dict[int, str]) -> LinkAnswer:
    join = joined.join
    name = matched.get(join.matched)
    return LinkAnswer(
        matched=id_of(name) if name is not None else None,
        relation=join.relation,
        jaccard=rounded(join.jaccard),
        containment=rounded(join.containment),
        hamming=join.hamming,
        candidate_source=join.source,
        idf_epoch=join.epoch,
        stream_time=iso(joined.decided_ms),
    )
