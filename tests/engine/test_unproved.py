"""Copies that are proved without words: they lack only their distances and fingerprints."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stream_dedup import Deduplicator
from stream_dedup.article import Article, Decision, Relation, Source, Withdrawal
from stream_dedup.settings import EngineSettings
from tests.engine.model import BEGIN, HOUR, article
from tests.engine.samples import LIGHT, WIDE, articles, bodies, settings


def _decisions(stream: Sequence[Article], size: int, engine_settings: EngineSettings) -> list[Decision]:
    with Deduplicator(settings=engine_settings) as engine:
        return [one for at in range(0, len(stream), size) for one in engine.add_batch(stream[at : at + size])]


def _wordless(decision: Decision) -> Decision:
    """Return a decision without what depends on words."""
    link = decision.link and replace(decision.link, hamming=None)
    return replace(decision, fingerprint=None, link=link)


@pytest.mark.parametrize("size", [7, 100, 1000])
def test_links_are_the_same_without_the_words_of_copies(size: int) -> None:
    """In batches of any size the sample stream has the same outcomes, and unique articles have a fingerprint."""
    usual = _decisions(articles(), 1000, settings())
    unproved = _decisions(articles(), size, settings(text={"segment": "unproved"}))
    assert [_wordless(one) for one in unproved] == [_wordless(one) for one in usual]
    for with_words, without in zip(usual, unproved, strict=True):
        assert without.fingerprint in (with_words.fingerprint, None)
        if without.unique:
            assert without.fingerprint == with_words.fingerprint
    copies = [one for one in unproved if one.link and not one.indexed]
    near = [one for one in copies if one.link and one.link.relation in (Relation.NEAR, Relation.EXACT)]
    assert len(near) > 50
    assert all(one.fingerprint is None and one.link and one.link.hamming is None for one in near)


@pytest.mark.parametrize(("segment", "known"), [("all", True), ("unproved", False)])
def test_revision_of_a_copy_without_words_has_no_distance_from_it(segment: str, *, known: bool) -> None:
    """What is kept of the copy's text has no fingerprint; how many n-grams both have is known all the same."""
    stream = [Article("original", bodies()[0]), Article("copy", bodies()[0]), Article("copy", bodies()[1])]
    link = _decisions(stream, 3, settings(text={"segment": segment}))[-1].link
    assert link is not None
    assert (link.relation, link.jaccard is not None, link.hamming is not None) == (Relation.REVISION, True, known)


@pytest.mark.parametrize(("segment", "known"), [("all", True), ("unproved", False)])
def test_copy_of_a_copy_without_words_has_no_distance_from_it(segment: str, *, known: bool) -> None:
    """A copy that succeeds a withdrawn original has no fingerprint, though what is cut into words has its own."""
    chosen = LIGHT.model_copy(update={"text": settings(text={"segment": segment}).text})
    with Deduplicator(settings=chosen) as engine:
        engine.process([article("original"), article("copy"), Withdrawal("original")])
        decision = engine.add(article("drifted", variant=3))
    assert decision.fingerprint is not None
    assert decision.link is not None
    assert (decision.link.matched, decision.link.hamming is not None) == ("copy", known)


@pytest.mark.parametrize("size", [1, 100])
def test_copies_that_renew_a_text_are_found_by_the_tables_too(size: int) -> None:
    """A text that later articles must find is cut into words, even if its content proves that it is a copy."""
    body, tables = bodies()[0], settings(landmarks={"enabled": False}, window={"days": 2}, simhash=WIDE)
    stream = [Article(f"n{n}", body, published_ms=BEGIN + n * 12 * HOUR) for n in range(9)]
    stream.append(Article("near", "本报讯" + body, published_ms=BEGIN + 97 * HOUR))
    unproved = tables.model_copy(update={"text": tables.text.model_copy(update={"segment": "unproved"})})
    link = _decisions(stream, size, unproved)[-1].link
    assert link is not None
    assert (link.duplicate_of, link.source) == ("n0", Source.SIMHASH)


def _crowded() -> tuple[EngineSettings, list[Article]]:
    """Return settings, an article, and parts of it that are no duplicates there but displace all of its landmarks."""
    text = bodies()[0]
    parts = [text[start : start + len(text) * 2 // 5] for start in range(0, len(text), len(text) // 5)]
    crowded = settings(landmarks={"cap": 1}, verify={"duplicates": ["exact", "near"]}, text={"segment": "unproved"})
    return crowded, [Article("original", text), *(Article(f"part {number}", part) for number, part in enumerate(parts))]


def test_copy_of_a_copy_that_the_tables_alone_prove_is_cut_into_words_after_all() -> None:
    """Landmarks make it a copy of the previous one in the batch, which is not indexed once the tables are asked."""
    text, (crowded, stored) = bodies()[0], _crowded()
    batch = [Article("copy", text + "完"), Article("copy of the copy", "讯" + text + "完")]
    alone = _decisions([*stored, *batch], 1, crowded)
    assert [one.link and one.link.source for one in alone[-2:]] == [Source.SIMHASH, Source.SIMHASH]
    with Deduplicator(settings=crowded) as engine:
        assert [*engine.add_batch(stored), *engine.add_batch(batch)] == alone


def test_copy_of_what_its_own_batch_displaces_is_looked_up_in_the_tables() -> None:
    """What is stored would prove it to be a copy, but when its turn comes other articles are in the way."""
    crowded, (original, *parts) = _crowded()
    batch = [*parts, Article("copy", bodies()[0] + "完")]
    with Deduplicator(settings=crowded) as engine:
        assert [engine.add(original), *engine.add_batch(batch)] == _decisions([original, *batch], 1, crowded)


@pytest.mark.parametrize("size", [1, 3])
def test_revisions_that_are_like_copies_of_their_own_article_are_cut_into_words(size: int) -> None:
    """They are unique and go into the index, though their contents prove that they are the text of a copy."""
    chosen = LIGHT.model_copy(update={"text": settings(text={"segment": "unproved"}).text})
    stream = [article("a"), article("b", variant=3), article("a", variant=3)]
    *_, revision = _decisions(stream, size, chosen)
    assert revision.link is not None
    assert (revision.link.relation, revision.unique, revision.indexed) == (Relation.REVISION, True, True)
    assert revision.fingerprint is not None


@pytest.mark.parametrize("size", [1, 2])
def test_redelivered_articles_are_not_cut_into_words(size: int) -> None:
    """What became of them is known by their ids."""
    _, again = _decisions([article("a")] * 2, size, settings(text={"segment": "unproved"}))
    assert again.link is not None
    assert (again.link.relation, again.fingerprint) == (Relation.REDELIVERY, None)
