"""Verdicts to decisions: which article matched, which one is canonical, and what is remembered of each.

Knows names, clusters and article records; knows nothing of how a verdict is reached.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stream_dedup.article import Article, Decision, Link, Relation, Source, SuccessionReason
from stream_dedup.fingerprint.features import Features
from stream_dedup.index.candidates import NO_ROW, Candidates
from stream_dedup.index.entries import (
    BARE,
    COMPARABLE,
    RESERVE,
    UNSEGMENTED,
    WEIGHED,
    EntryFormat,
    Rows,
    rows_of_entries,
)
from stream_dedup.index.records import NOT_INDEXED, ArticleRecord, key_of, outlived, seen_ms
from stream_dedup.index.store import Family, Store
from stream_dedup.judge import RELATIONS, SKIP, SOURCES, Limits, Match, Verdicts, compare
from stream_dedup.members import ClusterBook, NewEntries, member_of
from stream_dedup.scope import id_of
from stream_dedup.versions import Version
from stream_dedup.window import Times

_ENTRIES_KEPT = 8  # of the texts of an id, the newest


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run of n articles and all that is known of it.

    Attributes:
        articles: n of them.
        versions: how each stands to its id.
        features: of them.
        candidates: what they may match.
        verdicts: what they do match.
        times: of each.
        epoch: number of the IDF epoch of their fingerprints.
    """

    articles: Sequence[Article]
    versions: Sequence[Version]
    features: Features
    candidates: Candidates
    verdicts: Verdicts
    times: Times
    epoch: int

    @property
    def stored(self) -> int:
        """How many rows are stored entries; the rows of the run follow them."""
        return len(self.candidates.names)


class Linker:
    """Turns verdicts into decisions.

    Args:
        layout: of the entries.
        limits: thresholds, for comparing a revision with its earlier version.
        duplicates: relations that make an article a duplicate.
    """

    def __init__(self, layout: EntryFormat, limits: Limits, duplicates: Collection[Relation]) -> None:
        self._format = layout
        self._limits = limits
        self._duplicates = duplicates

    def decide(self, store: Store, run: JudgedRun, book: ClusterBook, entries: NewEntries) -> list[Decision]:
        """Return the decisions on the first articles of a run: up to the first that changes the index for the next.

        Args:
            store: the state.
            run: judged.
            book: the clusters; changed in order.
            entries: filled with those that the articles add.
        """
        return _Linking(self._format, self._limits, self._duplicates, store, run, book, entries).decisions()


class _Linking:
    """One run on its way to decisions."""

    def __init__(
        self,
        layout: EntryFormat,
        limits: Limits,
        duplicates: Collection[Relation],
        store: Store,
        run: JudgedRun,
        book: ClusterBook,
        entries: NewEntries,
    ) -> None:
        self._format = layout
        self._limits = limits
        self._duplicates = duplicates
        self._store = store
        self._run = run
        self._book = book
        self._entries = entries
        self._clusters: list[int] = []
        self._numbers: list[int] = []
        self._fixed = layout.entries(
            run.candidates.rows,
            np.arange(len(run.articles)) + run.stored,
            run.features.sketches.landmarks,
            run.epoch,
        )

    def decisions(self) -> list[Decision]:
        self._prefetch()
        decisions: list[Decision] = []
        for place, article in enumerate(self._run.articles):
            self._book.place = place
            link = self._link(place)
            unique = link is None or link.relation not in self._duplicates
            indexed = bool(self._run.verdicts.indexed[place])
            if self._run.versions[place].mode == SKIP:
                self._clusters.append(self._redelivered_cluster(place))
                self._numbers.append(NOT_INDEXED)
            else:
                indexed = self._remember(place, link, unique=unique, indexed=indexed)
            decisions.append(
                Decision(
                    article,
                    unique=unique,
                    fingerprint=self._fingerprint(place),
                    epoch=self._run.epoch,
                    link=link,
                    indexed=indexed,
                )
            )
            if self._book.reindexed:
                break
        return decisions

    def _fingerprint(self, place: int) -> int | None:
        rows, row = self._run.candidates.rows, self._run.stored + place
        return int(rows.fingerprints[row]) if _is_segmented(rows, row) else None

    def _prefetch(self) -> None:
        """Read the clusters of all matches and of all redelivered or revised articles at once."""
        run = self._run
        rows = [int(row) for row in run.verdicts.rows.tolist() if 0 <= row < run.stored]
        clusters = {int(run.candidates.clusters[row]) for row in rows}
        clusters |= {version.record.cluster for version in run.versions if version.record}
        self._book.prefetch(clusters, {run.candidates.names[row].decode() for row in rows})

    # ------------------------------------------------------------------------------------------------ links

    def _link(self, place: int) -> Link | None:
        version = self._run.versions[place]
        if version.mode == SKIP:
            article = self._run.articles[place]
            canonical = self._book.canonical(self._redelivered_cluster(place), article.name)
            return Link(id_of(canonical), article.id, Relation.REDELIVERY, 1.0, 1.0, 0, Source.ID)
        link = self._match_link(place)
        if self._own_cluster(place) is not None:
            # What matched is a copy of this article's earlier text: no article is a duplicate of itself.
            return self._revision(place)
        return self._revision(place) if link is None and version.revised else link

    def _redelivered_cluster(self, place: int) -> int:
        version = self._run.versions[place]
        if version.earlier is not None:
            return self._clusters[version.earlier]
        return version.record.cluster if version.record else NOT_INDEXED

    def _match_link(self, place: int) -> Link | None:
        verdicts = self._run.verdicts
        relation = RELATIONS[verdicts.relations[place]]
        if relation is None:
            return None
        cluster, matched, _ = self._matched(place)
        return Link(
            id_of(self._book.canonical(cluster, matched)),
            id_of(matched),
            relation,
            float(verdicts.jaccard[place]),
            float(verdicts.containment[place]),
            self._hamming(place),
            SOURCES[verdicts.sources[place]],
        )

    def _hamming(self, place: int) -> int | None:
        """Return the distance of the fingerprints of an article and of what matched, None where one has none."""
        rows, verdicts = self._run.candidates.rows, self._run.verdicts
        both = self._run.stored + place, int(verdicts.rows[place])
        return int(verdicts.hamming[place]) if all(_is_segmented(rows, row) for row in both) else None

    def _matched(self, place: int) -> tuple[int, str, int]:
        """Return the cluster, the name and the entry number of the article that matched."""
        row, candidates = int(self._run.verdicts.rows[place]), self._run.candidates
        if row < self._run.stored:
            return int(candidates.clusters[row]), candidates.names[row].decode(), int(candidates.numbers[row])
        earlier = row - self._run.stored
        return self._clusters[earlier], self._run.articles[earlier].name, self._numbers[earlier]

    def _own_cluster(self, place: int) -> int | None:
        """Return the cluster of the article that matched, if it is called by the very article at hand."""
        if self._run.verdicts.rows[place] == NO_ROW:
            return None
        cluster, matched, _ = self._matched(place)
        return cluster if self._book.canonical(cluster, matched) == self._run.articles[place].name else None

    def _revision(self, place: int) -> Link:
        """Link a text that is no copy of another id's to the text before it, of which it need not have anything."""
        version, before = self._run.versions[place], self._earlier_version(place)
        sibling = version.record is None and version.siblings
        name = id_of(version.siblings[0]) if sibling else self._run.articles[place].id
        if before is None:
            return Link(name, name, Relation.REVISION, None, None, None, Source.ID)
        last = len(before.fingerprints) - 1
        match = Match(*compare(before, self._run.stored + place, last, self._limits))
        hamming = match.hamming if _is_segmented(before, last) else None
        return Link(name, name, Relation.REVISION, match.jaccard, match.containment, hamming, Source.ID)

    def _earlier_version(self, place: int) -> Rows | None:
        """Return all rows and behind them that of the text before a revision, if that is kept and in the window."""
        version = self._run.versions[place]
        record = version.record or (self._book.record(version.siblings[0]) if version.siblings else None)
        if record is None or not record.entries:
            return None
        (stored,) = self._store.get_many(Family.ENTRIES, [key_of(record.entries[0])])
        if stored is None:
            return None
        before = self._format.fixed([stored])
        forgotten = outlived(int(before["window_ms"][0]), self._run.times.moment(place).floor_ms)
        if forgotten or before["content"][0] != record.contents[0]:
            return None
        return self._run.candidates.rows.followed_by(rows_of_entries(before))

    # ------------------------------------------------------------------------------------------------ memory

    def _remember(self, place: int, link: Link | None, *, unique: bool, indexed: bool) -> bool:
        """Write down what became of an article; return whether it is in the index."""
        article, book, old = self._run.articles[place], self._book, self._run.versions[place].record
        moment = self._run.times.moment(place)
        own = link is None or link.relation is Relation.REVISION or unique
        if own and RELATIONS[self._run.verdicts.relations[place]] in self._duplicates:
            # A copy of nothing but its own copies is indexed after all, as the text of any article that goes on.
            indexed = book.reindexed = True
            self._fixed["flags"][place] &= np.uint8(COMPARABLE | WEIGHED | BARE | UNSEGMENTED)
        if old is not None and not self._stays(place, old, own=own):
            book.leave(article.name, old, SuccessionReason.MOVED, moment)
            old = None
        cluster, founder, founding = self._cluster(place, old, own=own)
        known = book.cluster(cluster)
        before = known.member(article.name) if known is not None and old is not None else None
        reserve = before is not None and before.entry != NOT_INDEXED and not before.active
        if old is not None and before is not None and reserve:
            # Whoever is to stand in stands in with its newest text.
            book.removed.append(before.entry)
            old = replace(old, entries=tuple(entry for entry in old.entries if entry != before.entry))
        number = NOT_INDEXED
        if indexed or reserve or (book.wants_reserve(cluster) and (before is None or before.entry == NOT_INDEXED)):
            number = self._entry(place, cluster, indexed=indexed)
        record = self._record(place, link, cluster, number, old)
        member = member_of(article.name, record, number, active=indexed)
        if before is not None and number == NOT_INDEXED:
            member = replace(member, entry=before.entry, active=before.active)
        if own:
            book.revise(cluster, member, old, moment)
        else:
            book.join(cluster, founder, founding, member, old, moment)
        book.note(article.name, record, self._run.versions[place].url_names)
        if indexed:
            book.seal(cluster)
        self._clusters.append(cluster)
        self._numbers.append(number)
        return indexed

    def _stays(self, place: int, old: ArticleRecord, *, own: bool) -> bool:
        """Tell whether an article with a new text stays in the cluster that it was in."""
        if own and self._own_cluster(place) != old.cluster:
            return old.relation in {None, Relation.REVISION} or old.relation not in self._duplicates
        return own or self._matched(place)[0] == old.cluster

    def _cluster(self, place: int, old: ArticleRecord | None, *, own: bool) -> tuple[int, str, int]:
        """Return the number of an article's cluster, and the article it was founded by with its entry number."""
        if not own:
            return self._matched(place)
        number = old.cluster if old is not None else self._entries.next
        return number, self._run.articles[place].name, number

    def _entry(self, place: int, cluster: int, *, indexed: bool) -> int:
        fixed = self._fixed[place : place + 1]
        fixed["cluster"] = cluster
        if not indexed:
            fixed["flags"] |= np.uint8(RESERVE)
        return self._entries.add(fixed, self._run.articles[place].name.encode())

    def _record(
        self, place: int, link: Link | None, cluster: int, number: int, old: ArticleRecord | None
    ) -> ArticleRecord:
        article, version = self._run.articles[place], self._run.versions[place]
        entries = (*([number] if number != NOT_INDEXED else []), *(old.entries if old else ()))
        if len(entries) > _ENTRIES_KEPT:
            self._book.removed += entries[_ENTRIES_KEPT:]
            self._book.reindexed = True
        return ArticleRecord(
            version.contents,
            entries[:_ENTRIES_KEPT],
            int(self._run.times.stream[place]),
            old.first_ms if old is not None else seen_ms(article.origin, article.published_ms),
            article.published_ms,
            len(article.body),
            link.relation if link else None,
            cluster,
            version.url,
            article.source,
            article.origin,
        )


def _is_segmented(rows: Rows, row: int) -> bool:
    """Tell whether a text was cut into words: else it has no fingerprint."""
    return not int(rows.flags[row]) & UNSEGMENTED
