"""Turns verdicts into links: which article matched, which is canonical, and how a new text relates to the previous one.

Knows names, clusters and verdicts; knows nothing of how a verdict is reached, or of what is remembered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import U64
from stream_dedup.article import Article, Link, Relation, Source
from stream_dedup.engine.compare import RELATIONS, Limits, compare
from stream_dedup.engine.matching import SOURCES, Verdicts
from stream_dedup.engine.members import ClusterChanges
from stream_dedup.engine.versions import PriorVersions, Version
from stream_dedup.engine.window import Times
from stream_dedup.fingerprint.features import Features
from stream_dedup.index.entries.entries import UNSEGMENTED, Entries, EntryFormat, Rows, rows_of_entries
from stream_dedup.index.lookup.candidates import NO_ROW, Candidates
from stream_dedup.index.records.records import NOT_INDEXED, ArticleRecord, has_expired
from stream_dedup.scope import id_of


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run of n articles and all that is known about it.

    Attributes:
        articles: the articles.
        prior_versions: how they relate to what was seen before under their ids and URLs.
        features: their features.
        candidates: what they may match.
        verdicts: what they do match.
        times: their times.
        epoch: number of the IDF epoch of their fingerprints.
    """

    articles: Sequence[Article]
    prior_versions: PriorVersions
    features: Features
    candidates: Candidates
    verdicts: Verdicts
    times: Times
    epoch: int

    @property
    def stored(self) -> int:
        """How many rows are stored entries; the rows of the run follow them."""
        return len(self.candidates.names)

    @property
    def fingerprints(self) -> U64:
        """Fingerprints of the articles, shape (n,); meaningless for those that were not segmented."""
        return self.candidates.rows.fingerprints[self.stored :]

    def texts(self, layout: EntryFormat) -> Entries:
        """Return the articles as the fixed parts of entries, without clusters, shape (n,)."""
        places = np.arange(len(self.articles)) + self.stored
        return layout.entries(self.candidates.rows, places, self.features.sketches.landmarks, self.epoch)


class Matched(NamedTuple):
    """The article that an article of the run is a copy of.

    Attributes:
        cluster: number of its cluster.
        name: its name.
        number: number of its entry.
        canonical: name of the cluster's current canonical article.
    """

    cluster: int
    name: str
    number: int
    canonical: str


class Links:
    """The links of a run, to be requested in order.

    Args:
        limits: thresholds, for comparing a revision with its earlier version.
        run: the judged run.
        book: the clusters, as of the article whose link is requested.

    Attributes:
        places: cluster number and entry number of each article so far; the caller appends to it as the run proceeds.
    """

    def __init__(self, limits: Limits, run: JudgedRun, book: ClusterChanges) -> None:
        self._limits = limits
        self._run = run
        self._book = book
        # As lists: reading numbers from arrays one by one would take longer than all the rest.
        self._stored = run.stored
        self._rows: list[int] = run.verdicts.rows.tolist()
        self._relations: list[int] = run.verdicts.relations.tolist()
        self._sources: list[int] = run.verdicts.sources.tolist()
        self._distances: list[int] = run.verdicts.hamming.tolist()
        self._jaccard: list[float] = run.verdicts.jaccard.tolist()
        self._containment: list[float] = run.verdicts.containment.tolist()
        self._segmented: list[bool] = ((run.candidates.rows.flags & UNSEGMENTED) == 0).tolist()
        self.places: list[tuple[int, int]] = []

    def prefetch(self) -> None:
        """Read the clusters of all matches and of all redelivered or revised articles at once."""
        run, names = self._run, self._run.prior_versions.names
        rows = [row for row in self._rows if NO_ROW < row < self._stored]
        clusters = run.candidates.clusters[rows].tolist()
        singles = dict(zip(clusters, [run.candidates.names[row].decode() for row in rows], strict=True))
        for place, version in run.prior_versions.versions.items():
            if version.record is not None:
                singles.setdefault(version.record.cluster, names[place])
        self._book.prefetch(singles)

    def fingerprints(self) -> list[int | None]:
        """Return the fingerprint of each article, None if it was not segmented."""
        segmented = self._segmented[self._stored :]
        return [one if known else None for one, known in zip(self._run.fingerprints.tolist(), segmented, strict=True)]

    def matched(self, place: int) -> Matched | None:
        """Return what an article is a copy of, None if there is no match."""
        row, run = self._rows[place], self._run
        if row == NO_ROW:
            return None
        earlier = row - self._stored
        if earlier < 0:
            cluster, number = int(run.candidates.clusters[row]), int(run.candidates.numbers[row])
            name = run.candidates.names[row].decode()
        else:
            (cluster, number), name = self.places[earlier], run.prior_versions.names[earlier]
        return Matched(cluster, name, number, self._book.canonical(cluster, name))

    def link(self, place: int, match: Matched | None) -> Link | None:
        """Return the link of an article that is judged, None if it has none.

        Args:
            place: index of the article in the run.
            match: what it is a copy of.
        """
        if match is not None and match.canonical != self._run.prior_versions.names[place]:
            return self._match_link(place, match)
        # What matched may be a copy of this article's earlier text: no article is a duplicate of itself.
        version = self._run.prior_versions.version(place)
        return self._revision(place, version) if match is not None or version.revised else None

    def revised(self, place: int) -> Matched | None:
        """Return the article that an article revises, None if there is no record of it."""
        version = self._run.prior_versions.version(place)
        name, record = self._earlier_name(place, version), self._earlier_record(version)
        if record is None:
            return None
        number = record.entries[0] if record.entries else NOT_INDEXED
        return Matched(record.cluster, name, number, self._book.canonical(record.cluster, name))

    def redelivered_cluster(self, version: Version) -> int:
        """Return the cluster of an article that was seen before."""
        if version.earlier is not None:
            return self.places[version.earlier][0]
        return version.record.cluster if version.record else NOT_INDEXED

    def redelivery(self, place: int, cluster: int) -> Link:
        """Return the link of an article of a cluster that was delivered again unchanged."""
        canonical = self._book.canonical(cluster, self._run.prior_versions.names[place])
        article = self._run.articles[place]
        return Link(id_of(canonical), article.id, Relation.REDELIVERY, 1.0, 1.0, 0, Source.ID)

    def _match_link(self, place: int, match: Matched) -> Link | None:
        relation = RELATIONS[self._relations[place]]
        if relation is None:
            return None
        return Link(
            id_of(match.canonical),
            id_of(match.name),
            relation,
            self._jaccard[place],
            self._containment[place],
            self._hamming(place),
            SOURCES[self._sources[place]],
        )

    def _hamming(self, place: int) -> int | None:
        """Return the distance between the fingerprints of an article and its match, None if either has none."""
        both = self._segmented[self._stored + place] and self._segmented[self._rows[place]]
        return self._distances[place] if both else None

    def _revision(self, place: int, version: Version) -> Link:
        """Link a text that is not a copy of another id's to the previous text, which it need not resemble."""
        before, name = self._earlier_version(place, version), id_of(self._earlier_name(place, version))
        if before is None:
            return Link(name, name, Relation.REVISION, None, None, None, Source.ID)
        match = compare(self._run.candidates.rows.only(self._stored + place).followed_by(before), 0, 1, self._limits)
        hamming = match.hamming if not int(before.flags[0]) & UNSEGMENTED else None
        return Link(name, name, Relation.REVISION, match.jaccard, match.containment, hamming, Source.ID)

    def _earlier_name(self, place: int, version: Version) -> str:
        """Return the name of the article that an article revises: its own, or else the newest of its URL."""
        sibling = version.record is None and version.siblings
        return version.siblings[0] if sibling else self._run.prior_versions.names[place]

    def _earlier_record(self, version: Version) -> ArticleRecord | None:
        """Return the record of the article that an article revises, None if there is none."""
        return version.record or (self._book.records.record(version.siblings[0]) if version.siblings else None)

    def _earlier_version(self, place: int, version: Version) -> Rows | None:
        """Return the row of the text before a revision; None if that is not kept, or too old."""
        record = self._earlier_record(version)
        if record is None or not record.entries:
            return None
        before = self._book.entry(record.entries[0])
        if before is None:
            return None
        forgotten = has_expired(int(before["window_ms"][0]), self._run.times.moment(place).cutoff_ms)
        if forgotten or before["content"][0] != record.contents[0]:
            return None
        return rows_of_entries(before)
