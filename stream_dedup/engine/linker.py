"""Turns links into decisions, and into what is remembered of each article.

Knows article records, clusters and new entries; knows nothing of how a link is found.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property

import numpy as np

from stream_dedup.article import Decision, Link, Relation, SuccessionReason
from stream_dedup.engine.clusters import Member
from stream_dedup.engine.compare import RELATIONS
from stream_dedup.engine.links import JudgedRun, Links, Matched
from stream_dedup.engine.matching import SKIP
from stream_dedup.engine.members import ClusterChanges, member_of
from stream_dedup.engine.versions import Version
from stream_dedup.engine.window import Moment
from stream_dedup.index.entries.entries import BARE, COMPARABLE, IN_TABLES, UNSEGMENTED
from stream_dedup.index.entries.new_entries import NewEntries
from stream_dedup.index.lookup.candidates import NO_ROW
from stream_dedup.index.records.joins import join_key, packed_join
from stream_dedup.index.records.new_records import NewRecord
from stream_dedup.index.records.records import NOT_INDEXED, ArticleRecord, seen_ms
from stream_dedup.scope import id_of

_ENTRIES_KEPT = 8  # per id: those of its newest texts
_OF_NO_COPY = np.uint8(COMPARABLE | IN_TABLES | BARE | UNSEGMENTED)  # flags that do not imply a copy


class Linker:
    """Turns the verdicts of one run into decisions.

    Args:
        duplicates: relations that make an article a duplicate.
        run: the judged run.
        links: its links.
        book: the clusters; changed in order.
        entries: receives the entries that the articles add.
    """

    def __init__(
        self, duplicates: Collection[Relation], run: JudgedRun, links: Links, book: ClusterChanges, entries: NewEntries
    ) -> None:
        self._duplicates = frozenset(duplicates)
        self._run = run
        self._links = links
        self._book = book
        self._entries = entries
        self._indexed: list[bool] = run.verdicts.indexed.tolist()
        self._decided: list[int] = run.times.stream.tolist()
        self._cutoffs: list[int] = run.times.cutoffs.tolist()
        self._remembered: list[int] = run.times.window.tolist()

    def decisions(self) -> list[Decision]:
        """Return the decisions on the first articles, through the first that changes the index for later ones."""
        self._links.prefetch()
        links: list[Link | None] = []
        known = self._run.prior_versions.versions
        for place, row in enumerate(self._run.verdicts.rows.tolist()):
            if row == NO_ROW and place not in known:
                self._note_founder(place)
                links.append(None)
                continue
            self._book.place = place
            links.append(self._linked(place))
            if self._book.reindexed:
                break
        return self._decisions(links)

    def _decisions(self, links: list[Link | None]) -> list[Decision]:
        columns = zip(self._run.articles, links, self._links.fingerprints(), self._indexed, strict=False)
        epoch, is_unique = self._run.epoch, self._is_unique
        return [
            Decision(article, link is None or is_unique(link), fingerprint, epoch, link, indexed)
            for article, link, fingerprint, indexed in columns
        ]

    def _is_unique(self, link: Link) -> bool:
        return link.relation not in self._duplicates

    def _note_founder(self, place: int) -> None:
        """Record an article that matches no other and whose id was not seen before: it founds a cluster."""
        number = self._add(place, self._entries.next, indexed=self._indexed[place])
        self._note_new(place, number, number, None)

    def _linked(self, place: int) -> Link | None:
        """Record any other article and return its link."""
        version = self._run.prior_versions.versions.get(place)
        if version is not None and version.mode == SKIP:
            cluster = self._links.redelivered_cluster(version)
            self._links.places.append((cluster, NOT_INDEXED))
            return self._links.redelivery(place, cluster)
        match = self._links.matched(place)
        link = self._links.link(place, match)
        if link is None or self._is_unique(link):
            self._remember(place, self._run.prior_versions.version(place), match, link, own=True)
        elif link.relation is Relation.REVISION:
            return self._revised(place, link)
        elif match is not None and version is None:
            self._copied(place, match, link)
        else:
            self._remember(place, self._run.prior_versions.version(place), match, link, own=False)
        return link

    def _revised(self, place: int, link: Link) -> Link:
        """Record a revision that is a duplicate: whatever its text, it belongs to the article that it revises."""
        revised, version = self._links.revised(place), self._run.prior_versions.version(place)
        if revised is not None:
            link = replace(link, duplicate_of=id_of(revised.canonical))
        self._remember(place, version, revised, link, own=revised is None)
        return link

    def _copied(self, place: int, match: Matched, link: Link) -> None:
        """Record a copy whose id was not seen before: nearly all copies are of this kind."""
        article, cluster, indexed = self._run.articles[place], match.cluster, self._indexed[place]
        number = NOT_INDEXED
        if indexed or self._wants_reserve(place, cluster):
            number = self._add(place, cluster, indexed=indexed)
        seen, characters = seen_ms(article.origin, article.published_ms), len(article.body)
        name = self._run.prior_versions.names[place]
        member = Member(name, number, indexed, article.published_ms, seen, characters, article.source)
        self._book.join(cluster, match.name, match.number, member, None, self._moment(place))
        self._note_new(place, cluster, number, link.relation)
        self._note_join(place, match, link)
        if indexed:
            self._book.seal(cluster)

    def _note_new(self, place: int, cluster: int, number: int, relation: Relation | None) -> None:
        prior_versions, article = self._run.prior_versions, self._run.articles[place]
        content, url, decided = prior_versions.contents[place], prior_versions.urls[place], self._decided[place]
        self._book.records.note_new(
            prior_versions.names[place], NewRecord(article, content, url, decided, cluster, number, relation)
        )
        self._links.places.append((cluster, number))

    def _note_join(self, place: int, match: Matched, link: Link) -> None:
        key = join_key(match.cluster, self._decided[place], self._run.prior_versions.names[place])
        self._book.note_join(key, packed_join(link, match.number, self._run.epoch))

    def _remember(self, place: int, version: Version, match: Matched | None, link: Link | None, *, own: bool) -> None:
        """Record any article: a copy, or one that stands on its own (`own`)."""
        name, book, moment = self._run.prior_versions.names[place], self._book, self._moment(place)
        if link is not None and link.relation is Relation.REVISION:
            self._index_after_all(place)
        old = self._staying(name, version.record, match, moment, own=own)
        cluster, founder, founding = self._cluster(name, old, match, own=own)
        before = self._member(cluster, name) if old is not None else None
        if old is not None and before is not None and _in_reserve(before):
            old = self._without_reserve(old, before.entry)
        number = NOT_INDEXED
        if self._wants_entry(place, cluster, before):
            number = self._add(place, cluster, indexed=self._indexed[place])
        record = self._record(place, version, link, cluster, self._kept(place, number, old), old)
        member = member_of(name, record, number, active=self._indexed[place])
        if before is not None and number == NOT_INDEXED:
            member = member._replace(entry=before.entry, active=before.active)
        if own or founder == name:
            book.revise(cluster, member, old, moment)
        else:
            book.join(cluster, founder, founding, member, old, moment)
            if match is not None and link is not None:
                self._note_join(place, match, link)
        book.records.note(name, record, version.url_names)
        if self._indexed[place]:
            book.seal(cluster)
        self._links.places.append((cluster, number))

    def _moment(self, place: int) -> Moment:
        return Moment(self._decided[place], self._cutoffs[place])

    def _index_after_all(self, place: int) -> None:
        """Index a revision that the judge has left out of the index, since it matched copies of its own article."""
        if RELATIONS[self._run.verdicts.relations[place]] not in self._duplicates:
            return
        self._indexed[place] = self._book.reindexed = True
        self._entries.texts["flags"][place] &= _OF_NO_COPY

    def _staying(
        self, name: str, old: ArticleRecord | None, match: Matched | None, moment: Moment, *, own: bool
    ) -> ArticleRecord | None:
        """Return the earlier record if the article stays in its cluster; otherwise remove it from the cluster."""
        if old is None or self._stays(name, old, match, own=own):
            return old
        self._book.leave(name, old, SuccessionReason.MOVED, moment)
        return None

    def _stays(self, name: str, old: ArticleRecord, match: Matched | None, *, own: bool) -> bool:
        """Tell whether an article with a new text stays in its cluster.

        One that stands on its own stays only as the canonical article, whose name the cluster has: it is unique, and
        must not count as a copy of another.
        """
        same = match is not None and match.cluster == old.cluster
        if not own:
            return same
        founded = old.relation not in self._duplicates
        return (same or founded) and self._book.canonical(old.cluster, name) == name

    def _cluster(
        self, name: str, old: ArticleRecord | None, match: Matched | None, *, own: bool
    ) -> tuple[int, str, int]:
        """Return an article's cluster, and the name and entry number of its founder if it is not stored yet."""
        if match is not None and not own:
            return match.cluster, match.name, match.number
        number = old.cluster if old is not None else self._entries.next
        return number, name, number

    def _member(self, cluster: int, name: str) -> Member | None:
        known = self._book.cluster(cluster)
        return known.member(name) if known is not None else None

    def _without_reserve(self, old: ArticleRecord, entry: int) -> ArticleRecord:
        """Return the record without its entry in reserve, which is removed: the newest text takes its place."""
        self._book.removed.append(entry)
        return old._replace(entries=tuple([kept for kept in old.entries if kept != entry]))

    def _wants_entry(self, place: int, cluster: int, before: Member | None) -> bool:
        """Tell whether a text needs an entry, in the index or in reserve for its cluster.

        Args:
            place: index of the text in the run.
            cluster: number of its cluster.
            before: the article as a member of the cluster before this text, None if it was not a member.
        """
        if self._indexed[place] or (before is not None and _in_reserve(before)):
            return True
        kept = before is not None and before.entry != NOT_INDEXED
        return not kept and self._wants_reserve(place, cluster)

    def _wants_reserve(self, place: int, cluster: int) -> bool:
        return self._book.wants_reserve(cluster, self._remembered[place], self._moment(place))

    def _add(self, place: int, cluster: int, *, indexed: bool) -> int:
        """Add the entry of an article and return its number."""
        return self._entries.add(place, self._run.prior_versions.names[place].encode(), cluster, reserve=not indexed)

    def _kept(self, place: int, number: int, old: ArticleRecord | None) -> tuple[int, ...]:
        """Return the numbers of the entries that are kept for an article; remove the others."""
        entries: tuple[int, ...] = () if number == NOT_INDEXED else (number,)
        if old is None:
            return entries
        entries += old.entries
        needless = entries[_ENTRIES_KEPT:]
        if needless:
            self._book.removed += needless
            # Otherwise each text of a liveblog would end the run.
            if any(self._last_listed.get(entry, place) > place for entry in needless):
                self._book.reindexed = True
        return entries[:_ENTRIES_KEPT]

    @cached_property
    def _last_listed(self) -> dict[int, int]:
        """For each stored entry, by number, the last article that may be compared with it."""
        candidates = self._run.candidates
        return dict(
            zip(candidates.numbers.tolist(), candidates.keyed.last_listed(self._run.stored).tolist(), strict=True)
        )

    def _record(
        self,
        place: int,
        version: Version,
        link: Link | None,
        cluster: int,
        entries: tuple[int, ...],
        old: ArticleRecord | None,
    ) -> ArticleRecord:
        article = self._run.articles[place]
        return ArticleRecord(
            version.contents,
            entries,
            self._decided[place],
            old.first_ms if old is not None else seen_ms(article.origin, article.published_ms),
            article.published_ms,
            len(article.body),
            link.relation if link else None,
            cluster,
            version.url,
            article.source,
            article.origin,
        )


def _in_reserve(member: Member) -> bool:
    return member.entry != NOT_INDEXED and not member.active
