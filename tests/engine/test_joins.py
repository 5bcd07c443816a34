"""The state remembers why and when each copy joined its cluster, as its link says."""

import pytest

from stream_dedup import Decision, Deduplicator
from stream_dedup.article import Relation
from stream_dedup.index.records.joins import Join, of_join_key
from stream_dedup.index.records.records import ArticleRecord, key_of
from stream_dedup.index.stores.store import Family
from tests.engine.model import article, engine_settings
from tests.engine.samples import articles

_GENERATION_BYTES = 4
_OWN = {Relation.REVISION, Relation.REDELIVERY}


def _joins(engine: Deduplicator) -> dict[str, tuple[int, int, Join]]:
    pairs = engine.state.store.items(Family.MEMBERS)
    found = [(*of_join_key(key[_GENERATION_BYTES:]), Join.unpack(value)) for key, value in pairs]
    return {name: (cluster, decided_ms, join) for cluster, decided_ms, name, join in found}


def _matched(engine: Deduplicator, join: Join) -> str:
    (entry,) = engine.state.store.get_many(Family.ENTRIES, [key_of(join.matched)])
    assert entry is not None
    return engine.state.index.format.unpack([entry])[1][0].decode()


def _copies(decisions: list[Decision]) -> list[Decision]:
    return [one for one in decisions if one.link is not None and one.link.relation not in _OWN]


@pytest.mark.parametrize("batch", [1, 64])
def test_every_copy_is_remembered_with_what_its_link_said(batch: int) -> None:
    """Even if the article that matched came in the same batch."""
    decisions = []
    with Deduplicator() as engine:
        for start in range(0, len(articles()), batch):
            decisions += engine.process(articles()[start : start + batch]).decisions
        joins, copies = _joins(engine), _copies(decisions)
        assert set(joins) == {decision.article.id for decision in copies}
        assert copies
        for decision in copies:
            link, (cluster, decided_ms, join) = decision.link, joins[decision.article.id]
            assert link is not None
            assert (join.relation, join.hamming, join.source) == (link.relation, link.hamming, link.source)
            assert (join.jaccard, join.containment) == pytest.approx((link.jaccard, link.containment))
            assert (join.epoch, _matched(engine, join)) == (decision.epoch, link.matched)
            (record,) = [
                value
                for key, value in engine.state.store.items(Family.ARTICLES)
                if key[4:] == decision.article.id.encode()
            ]
            assert (ArticleRecord.unpack(record).cluster, ArticleRecord.unpack(record).decided_ms) == (
                cluster,
                decided_ms,
            )


@pytest.mark.parametrize("batch", [1, 3])
def test_revision_that_is_a_duplicate_joins_by_the_newest_text_of_its_page(batch: int) -> None:
    """Of the texts that the article of the page has had, this one was replaced."""
    stream = [article("a", url="https://u/1"), article("a", 1, url="https://u/1"), article("b", 2, url="https://u/1")]
    with Deduplicator(settings=engine_settings(2, revisions=True)) as engine:
        for start in range(0, len(stream), batch):
            engine.add_batch(stream[start : start + batch])
        cluster, _, join = _joins(engine)["b"]
    assert (cluster, join.relation, join.matched) == (0, Relation.REVISION, 1)


@pytest.mark.parametrize("batch", [1, 2])
def test_revision_that_is_a_duplicate_of_its_own_article_joins_nothing(batch: int) -> None:
    """It is where it was: alone, so that there is no cluster to tell of either."""
    stream = [article("a"), article("a", 1)]
    with Deduplicator(settings=engine_settings(2, revisions=True)) as engine:
        judged = [engine.process(stream[start : start + batch]) for start in range(0, len(stream), batch)]
        assert _joins(engine) == {}
    assert [one.unique for part in judged for one in part.decisions] == [True, False]
    assert [part.clusters for part in judged] == [{}] * len(judged)
