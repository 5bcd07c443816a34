"""Copies that are proved without words: nothing but distances and fingerprints of copies is missing then."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stream_dedup import Deduplicator
from stream_dedup.article import Article, Decision, Relation
from stream_dedup.settings import EngineSettings
from tests.engine.samples import articles, settings


def _decisions(stream: Sequence[Article], size: int, engine_settings: EngineSettings) -> list[Decision]:
    with Deduplicator(settings=engine_settings) as engine:
        return [one for at in range(0, len(stream), size) for one in engine.add_batch(stream[at : at + size])]


def _wordless(decision: Decision) -> Decision:
    """Return a decision without what follows from words alone."""
    link = decision.link and replace(decision.link, hamming=None)
    return replace(decision, fingerprint=None, link=link)


@pytest.mark.parametrize("size", [7, 100, 1000])
def test_links_are_the_same_without_the_words_of_copies(size: int) -> None:
    """In batches of any size the sample stream has the same outcomes; articles that are unique have a fingerprint."""
    usual = _decisions(articles(), 1000, settings())
    unproved = _decisions(articles(), size, settings(text={"segment": "unproved"}))
    assert [_wordless(one) for one in unproved] == [_wordless(one) for one in usual]
    for with_words, without in zip(usual, unproved, strict=True):
        assert without.fingerprint in (with_words.fingerprint, None)
        if without.unique:
            assert without.fingerprint == with_words.fingerprint
    near = [one for one in unproved if one.link and one.link.relation in (Relation.NEAR, Relation.EXACT)]
    assert len(near) > 50
    assert all(one.fingerprint is None and one.link and one.link.hamming is None for one in near)
