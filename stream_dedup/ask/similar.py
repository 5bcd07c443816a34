"""Finds the judged articles that a text is similar to, with the engine's own search and verdict; stores nothing.

Knows features, candidates and verdicts; knows nothing of how clusters are looked up.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.article import Article, Relation
from stream_dedup.ask.follower import View
from stream_dedup.engine.compare import RELATIONS, Match, compare, duplicates_of, limits_of
from stream_dedup.engine.judge import judge
from stream_dedup.engine.matching import JUDGE, JudgingInput, Siblings
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.index.entries.entries import UNSEGMENTED
from stream_dedup.index.lookup.candidates import Candidates, Search
from stream_dedup.index.records.records import has_expired
from stream_dedup.scope import scope_hash
from stream_dedup.settings import EngineSettings

_NOBODY = np.zeros(1, np.bool_)


@dataclass(frozen=True, slots=True)
class SimilarArticle:
    """An article that a text is similar to.

    Attributes:
        name: its id, preceded by its scope if it has one.
        cluster: number of its cluster.
        relation: what the text is to it; None if the text is not a copy.
        jaccard: estimate.
        containment: estimate.
        hamming: distance of the fingerprints; None if the stored one was not segmented into words.
        smallest: n-grams of the text with fewer of them.
    """

    name: str
    cluster: int
    relation: Relation | None
    jaccard: float
    containment: float
    hamming: int | None
    smallest: int

    @property
    def overlap(self) -> float:
        """|A and B| / sqrt(|A| |B|), which decides between several matches: see `matching`."""
        # With sizes a <= b, J = i / (a + b - i) and C = i / a: so b / a = C (1 / J + 1) - 1.
        if self.jaccard <= 0.0:
            return 0.0
        ratio = max(1.0, self.containment * (1.0 / self.jaccard + 1.0) - 1.0)
        return float(self.containment / np.sqrt(ratio))


@dataclass(frozen=True, slots=True)
class SimilarArticles:
    """What a text is similar to.

    Attributes:
        articles: the one that it would be linked to, then the others, most similar first; each is ranked by its most
            similar text.
        is_duplicate: whether the text would be a duplicate.
    """

    articles: list[SimilarArticle]
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class Query:
    """An article that is asked about, with everything computed from it alone.

    Attributes:
        article: the article.
        features: its features.
        fingerprints: shape (1,).
        sums: bit sums, shape (1, 64).
    """

    article: Article
    features: Features
    fingerprints: U64
    sums: I64


def query_of(article: Article, view: View, fingerprinter: Fingerprinter) -> Query:
    """Compute everything about an article that does not depend on the index."""
    features = fingerprinter.features([article], view.learnt)
    return Query(article, features, *fingerprinter.fingerprints(features, view.epoch))


def similar_articles(
    query: Query, view: View, settings: EngineSettings, cutoff_ms: int, left_out: str | None = None
) -> SimilarArticles:
    """Return the articles that an article is similar to, and what would be decided on it.

    The state must not change meanwhile.

    Args:
        query: the article.
        view: the state.
        settings: settings of the engine.
        cutoff_ms: beginning of the window, milliseconds since 1970 in UTC; anything older is treated as forgotten.
        left_out: name of an article to leave out of the decision.
    """
    candidates, limits, duplicates = _candidates(query, view), limits_of(settings), duplicates_of(settings)
    rows, own = candidates.rows, len(candidates.names)  # the query's row follows those of the candidates
    owners = np.array([*(0 if name.decode() == left_out else -1 for name in candidates.names), 0])
    cutoffs = np.array([cutoff_ms])
    cases = JudgingInput(np.array([JUDGE]), owners, Siblings.none(own + 1, 1), cutoffs, cutoffs)
    verdicts = judge(candidates, cases, view.index.caps(), limits, duplicates)
    matched = int(verdicts.rows[0])
    unsegmented = (rows.flags & UNSEGMENTED) != 0
    found = {
        row: _similar_article(candidates, row, compare(rows, own, row, limits), segmented=not unsegmented[row])
        for row in range(own)
        if not has_expired(int(rows.times[row]), cutoff_ms)
    }
    most_similar: dict[str, SimilarArticle] = {}
    for _, one in sorted(found.items(), key=lambda pair: (pair[0] != matched, *_order(pair[1]))):
        most_similar.setdefault(one.name, one)
    return SimilarArticles(list(most_similar.values()), bool(duplicates[verdicts.relations[0]]))


def _order(one: SimilarArticle) -> tuple[bool, float]:
    return one.relation is None, -one.overlap


def _candidates(query: Query, view: View) -> Candidates:
    times = np.array([view.progress.stream_ms])
    scopes = np.array([scope_hash(query.article.scope)], np.uint64)
    floor = view.progress.floor
    search = Search(view.index, view.store, query.features, times, scopes, floor, None)
    search.look_up_other_landmarks(_NOBODY)
    search.look_up_tables(query.fingerprints, query.sums, _NOBODY, ~_NOBODY)
    return search.candidates()


def _similar_article(candidates: Candidates, row: int, match: Match, *, segmented: bool) -> SimilarArticle:
    return SimilarArticle(
        candidates.names[row].decode(),
        int(candidates.clusters[row]),
        RELATIONS[match.relation],
        float(match.jaccard),
        float(match.containment),
        int(match.hamming) if segmented else None,
        int(candidates.rows.sizes[[row, len(candidates.names)]].min()),
    )
