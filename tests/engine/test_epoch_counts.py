"""What an epoch counts: the words of the articles that are unique, each article once.

Knows counts and epochs; the drift from one epoch to the next is tested in test_epochs.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_dedup import Article, Deduplicator, Relation
from stream_dedup.article import Withdrawal
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.text.lexicon import read_words, shipped_list
from tests.engine.one_by_one import EPOCH, REPOST, SETTINGS, one_by_one
from tests.engine.samples import articles, bodies, settings


def _expected_counts(stream: Sequence[Article]) -> Counter[int]:
    """Count in plain Python how many unique articles contain each word."""
    fingerprinter = Fingerprinter(SETTINGS)
    stop_words = set(read_words(shipped_list("stop_words.txt")))
    decided = dict(zip(range(len(stream)), one_by_one(), strict=False))
    counts: Counter[int] = Counter()
    for place, article in enumerate(stream):
        if decided[place].unique:
            words = set(fingerprinter.words(article.body)) - stop_words
            spoken = [word for word in words if any(character.isalnum() for character in word)]
            counts.update(hash_words(spoken).tolist())
    return counts


@pytest.mark.parametrize("size", [1, 30, 512])
def test_epochs_hold_the_counts_of_unique_articles(size: int) -> None:
    """Each epoch's counts equal a plain Counter over the words of the unique articles before it."""
    with Deduplicator(settings=SETTINGS) as engine:
        assert (engine.epoch.number, engine.epoch.documents) == (0, 0)
        for start in range(0, 300, size):
            engine.add_batch(articles()[start : min(start + size, 300)])
            assert engine.epoch.number == engine.progress.judged // EPOCH
        expected = _expected_counts(articles()[:300])
        packed = engine.epoch.packed()
        assert dict(zip(packed["word"].tolist(), packed["documents"].tolist(), strict=True)) == expected
        assert engine.epoch.documents == sum(decision.unique for decision in one_by_one()[:300])


def test_fingerprints_carry_the_epoch_they_were_made_in() -> None:
    """The epoch of a decision is the number of complete epochs before it."""
    assert [decision.epoch for decision in one_by_one()] == [n // EPOCH for n in range(len(articles()))]


def test_copies_are_not_counted() -> None:
    """A story on forty sites counts once: its words keep their weight."""
    with Deduplicator(settings=settings(idf={"epoch_articles": 41})) as engine:
        engine.add_batch([Article(str(n), bodies()[0]) for n in range(40)])
        engine.add(Article("near", REPOST + bodies()[0]))
        assert engine.epoch.number == 1
        assert engine.epoch.documents == 1
        assert set(engine.epoch.packed()["documents"].tolist()) == {1}


@pytest.mark.parametrize("cuts", [(), (5,)], ids=["the epoch ends in the batch", "the epoch ends later"])
def test_batch_that_is_judged_in_parts_counts_all_of_them(cuts: tuple[int, ...]) -> None:
    """A withdrawal cuts a batch in two: what came before it is counted as well as what comes after it."""
    stories = [Article(str(number), bodies()[number]) for number in range(10)]
    items = [stories[0], Withdrawal("0"), *stories[1:]]
    with Deduplicator(settings=settings(idf={"epoch_articles": 10})) as engine:
        for part in np.split(np.arange(len(items)), cuts):
            engine.process([items[place] for place in part])
        assert (engine.epoch.number, engine.epoch.documents) == (1, 10)


@pytest.mark.parametrize("segment", ["all", "unproved"])
def test_copies_that_go_on_as_unique_are_counted(segment: str) -> None:
    """If near copies count as articles, they are in the corpus; a later text of an article adds no article."""
    groups: dict[str, Any] = {"verify": {"duplicates": ["exact"]}, "text": {"segment": segment}}
    with Deduplicator(settings=settings(idf={"epoch_articles": 10}, **groups)) as engine:
        story, repost = Article("story", bodies()[0]), Article("near", REPOST + bodies()[0])
        first, near = engine.add_batch([story, repost])
        revision = engine.add(Article("story", bodies()[1]))
        redelivery = engine.add(Article("story", bodies()[1]))
        copies = [engine.add(Article(str(n), bodies()[0])) for n in range(6)]
        assert [one.link and one.link.relation for one in (first, near, revision, redelivery)] == [
            None,
            Relation.NEAR,
            Relation.REVISION,
            Relation.REDELIVERY,
        ]
        assert [one.unique for one in (first, near, revision, redelivery, *copies)] == [True] * 4 + [False] * 6
        assert (engine.epoch.number, engine.epoch.documents) == (1, 2)
        assert set(engine.epoch.packed()["documents"].tolist()) <= {1, 2}


def test_words_are_counted_across_reopening(tmp_path: Path) -> None:
    """Counts since the last epoch survive closing: the next epoch equals that of an uninterrupted run."""
    with Deduplicator(settings=SETTINGS) as engine:
        engine.add_batch(articles()[:200])
        expected = np.sort(engine.epoch.packed())
    for start in range(0, 200, 23):
        with Deduplicator(tmp_path, SETTINGS) as engine:
            words = engine.vocabulary()
            engine.add_batch(articles()[start : min(start + 23, 200)])
            assert engine.vocabulary() >= words
    with Deduplicator(tmp_path, SETTINGS) as engine:
        assert (engine.epoch.number, engine.epoch.documents) == (2, engine.epoch.documents)
        assert np.array_equal(np.sort(engine.epoch.packed()), expected)
