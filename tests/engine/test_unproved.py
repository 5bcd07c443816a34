"""Copies that are proved without words: they lack only their distances and fingerprints."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stream_dedup import Deduplicator
from stream_dedup.article import Article, Decision, Relation, Source
from stream_dedup.settings import EngineSettings
from tests.engine.model import BEGIN, HOUR
from tests.engine.samples import WIDE, articles, bodies, settings


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


def test_copy_of_a_copy_that_the_tables_alone_prove_is_cut_into_words_after_all() -> None:
    """Landmarks make it a copy of the previous one in the batch, which is not indexed once the tables are asked."""
    text = bodies()[0]
    # Parts of the original, which do not count as duplicates here, displace all of its landmarks.
    parts = [text[start : start + len(text) * 2 // 5] for start in range(0, len(text), len(text) // 5)]
    stored = [Article("original", text), *(Article(f"part {number}", part) for number, part in enumerate(parts))]
    batch = [Article("copy", text + "完"), Article("copy of the copy", "讯" + text + "完")]
    crowded = settings(landmarks={"cap": 1}, verify={"duplicates": ["exact", "near"]}, text={"segment": "unproved"})
    alone = _decisions([*stored, *batch], 1, crowded)
    assert [one.link and one.link.source for one in alone[-2:]] == [Source.SIMHASH, Source.SIMHASH]
    with Deduplicator(settings=crowded) as engine:
        assert [*engine.add_batch(stored), *engine.add_batch(batch)] == alone
