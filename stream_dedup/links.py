"""Verdicts to decisions: which article matched, and which one is canonical for its cluster.

Knows ids and clusters; knows nothing of how a verdict is reached.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stream_dedup.article import Article, Decision, Link, Relation, Source
from stream_dedup.index.candidates import Candidates
from stream_dedup.index.records import NOT_INDEXED, EntryFormat, key_of
from stream_dedup.index.store import Family, Store
from stream_dedup.judge import RELATIONS, SKIP, SOURCES, Limits, Match, Verdicts, compare
from stream_dedup.versions import Version


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """A batch of n articles and all that is known of it.

    Attributes:
        articles: n of them.
        versions: how each stands to its id.
        candidates: what they may match.
        verdicts: what they do match.
    """

    articles: Sequence[Article]
    versions: Sequence[Version]
    candidates: Candidates
    verdicts: Verdicts

    @property
    def stored(self) -> int:
        """How many rows are stored entries; the rows of the batch follow them."""
        return len(self.candidates.names)


class Linker:
    """Turns verdicts into decisions.

    Args:
        store: holds the earlier versions of revised articles.
        layout: of the entries.
        limits: thresholds, for comparing a revision with its earlier version.
        duplicates: relations that make an article a duplicate.
    """

    def __init__(self, store: Store, layout: EntryFormat, limits: Limits, duplicates: Collection[Relation]) -> None:
        self._store = store
        self._format = layout
        self._limits = limits
        self._duplicates = duplicates

    def decisions(self, batch: JudgedBatch, epoch: int) -> list[Decision]:
        """Return the decision on each article, in order.

        Args:
            batch: judged.
            epoch: number of the IDF epoch of its fingerprints.
        """
        decisions: list[Decision] = []
        for place, article in enumerate(batch.articles):
            link = self._link(batch, place, decisions)
            decisions.append(
                Decision(
                    article,
                    unique=link is None or link.relation not in self._duplicates,
                    fingerprint=int(batch.candidates.fingerprints[place]),
                    epoch=epoch,
                    link=link,
                    indexed=bool(batch.verdicts.indexed[place]),
                )
            )
        return decisions

    def _link(self, batch: JudgedBatch, place: int, before: Sequence[Decision]) -> Link | None:
        version = batch.versions[place]
        if version.mode == SKIP:
            return self._redelivery(batch, place, before)
        link = self._match_link(batch, place, before)
        return self._revision(batch, place) if link is None and version.revised else link

    def _match_link(self, batch: JudgedBatch, place: int, before: Sequence[Decision]) -> Link | None:
        verdicts = batch.verdicts
        relation = RELATIONS[verdicts.relations[place]]
        if relation is None:
            return None
        row = int(verdicts.rows[place])
        if row < batch.stored:
            names = batch.candidates.names[row]
            canonical, matched = names.canonical, names.article
        else:
            earlier = before[row - batch.stored]
            canonical, matched = earlier.canonical, earlier.article.id
        return Link(
            canonical,
            matched,
            relation,
            float(verdicts.jaccard[place]),
            float(verdicts.containment[place]),
            int(verdicts.hamming[place]),
            SOURCES[verdicts.sources[place]],
        )

    def _redelivery(self, batch: JudgedBatch, place: int, before: Sequence[Decision]) -> Link:
        version, name = batch.versions[place], batch.articles[place].id
        if version.earlier is not None:
            canonical = before[version.earlier].canonical
        else:
            canonical = version.record.canonical if version.record else name
        return Link(canonical, name, Relation.REDELIVERY, 1.0, 1.0, 0, Source.ID)

    def _revision(self, batch: JudgedBatch, place: int) -> Link:
        """Link a text that is no copy of another id's to the text before it, of which it need not have anything."""
        name, match = batch.articles[place].id, self._earlier_version(batch, place)
        if match is None:
            return Link(name, name, Relation.REVISION, None, None, None, Source.ID)
        return Link(name, name, Relation.REVISION, match.jaccard, match.containment, match.hamming, Source.ID)

    def _earlier_version(self, batch: JudgedBatch, place: int) -> Match | None:
        """Compare a revision with the text before it, if that is kept."""
        version, rows, row = batch.versions[place], batch.candidates.rows, batch.stored + place
        if version.earlier is not None:
            # As with an earlier batch, of which a copy's features are not kept.
            kept = batch.verdicts.indexed[version.earlier]
            return Match(*compare(rows, row, batch.stored + version.earlier, self._limits)) if kept else None
        if version.record is None or version.record.entry == NOT_INDEXED:
            return None
        (entry,) = self._store.get_many(Family.ENTRIES, [key_of(version.record.entry)])
        if entry is None:
            return None
        both = rows.followed_by(self._format.unpack([entry]))
        return Match(*compare(both, row, len(both.fingerprints) - 1, self._limits))
