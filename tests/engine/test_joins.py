"""The state remembers why and when each copy joined its cluster, as its link says."""

import pytest

from stream_dedup import Decision, Deduplicator
from stream_dedup.article import Relation
from stream_dedup.index.records.joins import Join, of_join_key
from stream_dedup.index.records.records import ArticleRecord, key_of
from stream_dedup.index.stores.store import Family
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
