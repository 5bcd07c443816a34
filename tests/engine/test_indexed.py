"""Which articles are indexed, what each index finds, and what its bounds leave out.

Knows decisions and posting lists; which texts are copies is tested in test_model.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from stream_dedup import Article, Decision, Deduplicator, EngineSettings, Relation, Source
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.lookup.candidates import CONTENT, LANDMARK, SIMHASH
from stream_dedup.index.stores.store import Family
from tests.engine.durable import shown_lists
from tests.engine.one_by_one import REPOST, SETTINGS, decisions_on, one_by_one
from tests.engine.samples import WIDE, articles, bodies, settings

_KEPT_OF_A_CLUSTER = 2  # entries: the canonical article's and one copy's


def test_canonical_articles_are_indexed_and_exact_copies_are_not() -> None:
    """The index grows with the stories: it has unique articles, but no exact copies or redeliveries.

    Except copies that come late in the window: without them the text would be forgotten with the original.
    """
    published = {article.id: article.published_ms or 0 for article in articles()}
    eighth, stream, late = round(SETTINGS.window.days * 86_400_000 / 8), 0, 0
    for decision in one_by_one():
        stream = max(stream, published[decision.article.id])
        if decision.unique:
            assert decision.indexed
            assert decision.link is None
        elif decision.link and decision.link.relation in {Relation.EXACT, Relation.REDELIVERY}:
            old = stream - published[decision.link.duplicate_of] > eighth
            assert old or not decision.indexed
            late += decision.indexed
    assert 0 < late < 20


def test_progress_counts_entries() -> None:
    """Progress counts the articles judged, and the entries of those that are indexed and of one copy per cluster."""
    with Deduplicator(settings=SETTINGS) as engine:
        engine.add_batch(articles()[:300])
        progress, lists = engine.progress, shown_lists(engine)
        entries = list(engine.state.store.items(Family.ENTRIES))
    assert progress.judged == 300
    decided = one_by_one()[:300]
    kept: Counter[str] = Counter()
    for decision in decided:
        cluster = decision.link.duplicate_of if decision.link else decision.article.id
        redelivered = decision.link is not None and decision.link.relation is Relation.REDELIVERY
        kept[cluster] += decision.indexed or (not redelivered and kept[cluster] < _KEPT_OF_A_CLUSTER)
    assert progress.entries == len(entries) == kept.total()
    found = {postings[0] for (place, _), postings in lists.items() if place == CONTENT}
    # The entry under each text is that of the newest article that has it.
    renewed = [one for one in decided if one.indexed and one.link and one.link.relation is Relation.EXACT]
    assert len(found) == sum(decision.indexed for decision in decided) - len(renewed)


@pytest.mark.parametrize("edit", [str, REPOST.__add__, lambda body: body[: len(body) * 7 // 10]])
def test_copies_within_a_batch_are_found_like_others(edit: Callable[[str], str]) -> None:
    """A copy in the same batch has the same decision, measures and source as one in the next batch."""
    stream = [Article("original", bodies()[0]), Article("other", bodies()[1]), Article("copy", edit(bodies()[0]))]
    within, across = decisions_on(stream, []), decisions_on(stream, [2])
    assert within == across
    link = within[2].link
    assert link is not None
    assert (link.duplicate_of, link.matched) == ("original", "original")


def test_links_lead_to_the_canonical_article() -> None:
    """A copy that matches a drifted copy names both: the cluster's canonical article and the article that matched."""
    first_versions = [
        decision
        for decision in one_by_one()
        if decision.link is None or decision.link.relation is not Relation.REDELIVERY
    ]
    decided = {decision.article.id: decision for decision in first_versions}
    for decision in first_versions:
        if decision.link:
            matched = decided[decision.link.matched]
            assert decided[decision.link.duplicate_of].unique
            assert matched.indexed
            assert (matched.link.duplicate_of if matched.link else matched.article.id) == decision.link.duplicate_of


@pytest.mark.parametrize(
    ("group", "source"),
    [("landmarks", Source.SIMHASH), ("simhash", Source.LANDMARK)],
)
def test_each_index_alone_finds_mild_reposts(group: str, source: Source) -> None:
    """With either index switched off, the other finds an article with a new beginning and end."""
    one_index = settings(simhash={**WIDE, "enabled": group != "simhash"}, landmarks={"enabled": group != "landmarks"})
    originals = [Article(f"o{n}", body) for n, body in enumerate(bodies()[:20])]
    reposts = [Article(f"r{n}", REPOST + body + "（完）") for n, body in enumerate(bodies()[:20])]
    found = [decision.link for decision in decisions_on(originals + reposts, [20], one_index)[20:]]
    assert [link and link.duplicate_of for link in found] == [article.id for article in originals]
    assert {link.source for link in found if link} == {source}


def test_without_any_index_equal_texts_are_still_found() -> None:
    """With both indexes off, the hash of the whole text finds exact copies and nothing else."""
    neither = settings(landmarks={"enabled": False}, simhash={"enabled": False})
    stream = [Article("a", bodies()[0]), Article("b", bodies()[0] + "！"), Article("c", REPOST + bodies()[0])]
    _, exact, near = decisions_on(stream, [], neither)
    assert exact.link is not None
    assert (exact.link.relation, exact.link.source) == (Relation.EXACT, Source.CONTENT)
    assert near.unique


@cache
def _variants() -> tuple[Article, ...]:
    """Return 40 articles that share nearly all of their text and all of their landmarks."""
    variants = [Article(str(n), f"{bodies()[0]}续{chr(0x4E00 + n)}") for n in range(80)]
    marks = Fingerprinter(EngineSettings()).features(variants).sketches.landmarks
    alike = [variant for variant, own in zip(variants, marks, strict=True) if np.array_equal(own, marks[0])]
    return tuple(Article(str(n), variant.body) for n, variant in enumerate(alike[:40]))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_capped_landmarks_show_the_newest(size: int) -> None:
    """With more articles under a landmark than `cap`, the newest are found, in any batches, and no more are shown."""
    capped = settings(landmarks={"cap": 3}, simhash={"enabled": False}, verify={"duplicates": []})
    found: list[Decision] = []
    with Deduplicator(settings=capped) as engine:
        for start in range(0, 40, size):
            found += engine.add_batch(_variants()[start : start + size])
        shown = shown_lists(engine)
    assert all(decision.indexed and decision.unique for decision in found)
    for place, decision in enumerate(found[1:], 1):
        assert decision.link is not None
        assert place - 3 <= int(decision.link.matched) < place
    assert max(len(postings) for (place, _), postings in shown.items() if place == LANDMARK) == 3


@pytest.mark.parametrize("size", [1, 7, 64])
def test_capped_tables_keep_working(size: int) -> None:
    """With more articles under a table's key than `bucket_cap`, the same copies are found in batches of any size."""
    capped = settings(
        landmarks={"enabled": False}, simhash={**WIDE, "bucket_cap": 2, "probes": 4}, verify={"duplicates": []}
    )
    found: list[Decision] = []
    with Deduplicator(settings=capped) as engine:
        for start in range(0, 40, size):
            found += engine.add_batch(_variants()[start : start + size])
        shown = shown_lists(engine)
    assert found == decisions_on(_variants(), [], capped)
    assert all(decision.link for decision in found[1:])
    assert max(len(postings) for (place, _), postings in shown.items() if place == SIMHASH) == 2
