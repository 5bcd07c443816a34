"""Document counts are exact, frozen in epochs, bounded, and survive being stored."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import U64
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.index.records.counts import delta_puts, epoch_puts, load_counts
from stream_dedup.index.stores.store import Family, MemoryStore
from stream_dedup.text.idf import Counts, DocumentCounts, Epoch, document_delta, look_up

_ARTICLES = st.lists(st.sets(st.integers(1, 40), max_size=12), max_size=30)


def _hashes(words: list[int]) -> U64:
    return hash_words([f"词{word}" for word in words])


def _delta(articles: list[set[int]]) -> Counts:
    return document_delta(_hashes([word for article in articles for word in sorted(article)]))


def _looked_up(epoch: Epoch, words: list[int]) -> list[int]:
    found: list[int] = look_up(epoch.keys, epoch.counts, _hashes(words)).tolist()
    return found


def _pairs(counts: Counts) -> dict[int, int]:
    return dict(zip(counts["word"].tolist(), counts["documents"].tolist(), strict=True))


def _numbered(first: int, words: int, times: int) -> Counts:
    return document_delta(np.repeat(_hashes(list(range(first, first + words))), times))


@given(batches=st.lists(_ARTICLES, max_size=5))
def test_counts_are_those_of_a_counter(batches: list[list[set[int]]]) -> None:
    """However articles are batched, a word's count is the number of articles that contain it."""
    counts, model = DocumentCounts(1000), Counter[int]()
    for batch in batches:
        counts.add(len(batch), _delta(batch))
        model.update(word for article in batch for word in article)
    epoch = counts.freeze(1)
    assert _looked_up(epoch, list(range(1, 50))) == [model[word] for word in range(1, 50)]
    assert (epoch.documents, counts.words) == (sum(map(len, batches)), len(model))


@given(articles=_ARTICLES, least=st.integers(1, 6))
def test_only_words_counted_often_enough_are_packed(articles: list[set[int]], least: int) -> None:
    """Words in fewer articles are left out, the others keep their counts, also just after the rarest were forgotten."""
    counts, model = DocumentCounts(20), Counter(word for article in articles for word in article)
    counts.add(len(articles), _delta(articles))
    kept = _pairs(counts.packed())
    assert _pairs(counts.packed(least)) == {word: count for word, count in kept.items() if count >= least}
    if len(model) <= 20:
        hashes = _hashes([*model]).tolist()
        assert kept == dict(zip(hashes, model.values(), strict=True))
    counts.make_room()
    assert counts.words == len(counts.packed()) == (10 if len(model) >= 20 else len(model))


def test_count_stays_at_its_bound() -> None:
    """A word of more than four billion articles is still one of the commonest, not one of the rarest."""
    counts, delta = DocumentCounts(10), _delta([{1}])
    delta["documents"] = 2**32 - 10
    counts.add(2**32 - 10, delta)
    delta["documents"] = 30
    counts.add(30, delta)
    assert _looked_up(counts.freeze(1), [1]) == [2**32 - 1]


def test_delta_counts_each_word_once_an_article_in_order_of_occurrence() -> None:
    """A delta holds the distinct words in order of occurrence, each with its number of articles."""
    delta = document_delta(_hashes([7, 2, 2, 9, 1, 2]))
    assert delta["word"].tolist() == _hashes([7, 2, 9, 1]).tolist()
    assert delta["documents"].tolist() == [1, 3, 1, 1]
    assert len(_delta([])) == 0


@given(articles=_ARTICLES, cut=st.integers(0, 30))
def test_full_vocabulary_takes_the_same_words_however_they_are_cut(articles: list[set[int]], cut: int) -> None:
    """Which words still fit into a nearly full table does not depend on how the articles were batched."""
    whole, cut_up = DocumentCounts(10), DocumentCounts(10)
    whole.add(len(articles), _delta(articles))
    for part in (articles[:cut], articles[cut:]):
        cut_up.add(len(part), _delta(part))
    assert _pairs(whole.packed()) == _pairs(cut_up.packed())


def test_epoch_is_frozen_while_the_counts_grow() -> None:
    """Counts added after an epoch began do not change that epoch."""
    counts = DocumentCounts(1000)
    counts.add(1, _delta([{1}]))
    epoch = counts.freeze(7)
    counts.add(2, _delta([{1}, {1, 2}]))
    assert (epoch.number, epoch.documents, _looked_up(epoch, [1, 2])) == (7, 1, [1, 0])
    assert _looked_up(counts.freeze(8), [1, 2]) == [3, 1]


def test_copy_grows_apart() -> None:
    """What is added to a copy or to the original later is not shared."""
    counts = DocumentCounts(1000)
    counts.add(1, _delta([{1}]))
    copy = counts.copy()
    copy.add(1, _delta([{1}]))
    assert _looked_up(counts.freeze(1), [1]) == [1]
    assert _looked_up(copy.freeze(1), [1]) == [2]


def test_vocabulary_is_never_over_its_bound() -> None:
    """There are never more than `max_words` words, whatever is added."""
    counts = DocumentCounts(100)
    for first in range(0, 1000, 37):
        counts.add(1, _numbered(first, 50, 1))
        assert counts.words <= 100
        assert len(counts.packed()) == counts.words
    assert counts.words == 100


@pytest.mark.parametrize("words", [512, 513, 1024, 2048])
def test_table_is_at_most_half_full(words: int) -> None:
    """In a full one a missing word would be looked for without an end."""
    counts = DocumentCounts(10_000)
    counts.add(1, _numbered(0, words, 1))
    assert len(counts.freeze(1).keys) >= 2 * words


def test_words_that_come_while_the_vocabulary_is_full_are_not_counted() -> None:
    """Known words keep being counted; new ones wait for the next epoch."""
    counts = DocumentCounts(20)
    counts.add(3, _numbered(0, 20, 3))
    counts.add(1, _numbered(10, 20, 1))
    assert _looked_up(counts.copy().freeze(1), []) == []
    kept = _pairs(counts.packed())
    assert kept == dict(zip(_hashes(list(range(20))).tolist(), [3] * 10 + [4] * 10, strict=True))


def test_rarest_half_is_forgotten_when_an_epoch_finds_the_vocabulary_full() -> None:
    """The more frequent half stays, with its counts; then there is room again."""
    counts = DocumentCounts(20)
    counts.add(9, _numbered(0, 10, 9))
    counts.add(1, _numbered(10, 10, 1))
    epoch = counts.freeze(1)
    assert _pairs(epoch.packed()) == dict.fromkeys(_hashes(list(range(10))).tolist(), 9)
    counts.add(1, _numbered(30, 5, 1))
    assert counts.words == 15
    assert _looked_up(counts.freeze(2), [0, 10, 30]) == [9, 0, 1]


def test_ties_are_forgotten_alike_in_every_order_of_arrival() -> None:
    """Of equally rare words the same ones stay in any order, so a replay has the same weights."""
    kept = []
    for step in (1, -1):
        counts = DocumentCounts(20)
        for word in range(20)[::step]:
            counts.add(1, _numbered(word, 1, 1))
        kept.append(_pairs(counts.freeze(1).packed()))
    assert kept[0] == kept[1]
    assert len(kept[0]) == 10


def test_vocabulary_that_is_not_full_is_kept_whole() -> None:
    """An epoch forgets nothing while there is room."""
    counts = DocumentCounts(20)
    counts.add(1, _numbered(0, 19, 1))
    assert len(counts.freeze(1).packed()) == 19


@given(articles=_ARTICLES)
def test_packed_counts_restore_the_same_counts(articles: list[set[int]]) -> None:
    """Unpacking packed counts gives the same counts."""
    counts, restored = DocumentCounts(1000), DocumentCounts(1000)
    counts.add(len(articles), _delta(articles))
    restored.add(counts.documents, counts.packed())
    assert _pairs(restored.packed()) == _pairs(counts.packed())
    assert (restored.documents, restored.words) == (counts.documents, counts.words)


@given(before=_ARTICLES, deltas=st.lists(_ARTICLES, max_size=4))
def test_stored_epoch_and_deltas_load_as_they_were(before: list[set[int]], deltas: list[list[set[int]]]) -> None:
    """After a restart, the epoch is the committed one, and the live counts include each commit since."""
    store, counts = MemoryStore(), DocumentCounts(1000)
    store.write(list(delta_puts(0, 0, 5, _delta([{1}] * 5))))
    counts.add(len(before), _delta(before))
    epoch = counts.freeze(3)
    store.write(list(epoch_puts(store, epoch)))
    for number, articles in enumerate(deltas):
        counts.add(len(articles), _delta(articles))
        store.write(list(delta_puts(100 + number, 3, len(articles), _delta(articles))))
    loaded, loaded_epoch = load_counts(store, 1000)
    assert (loaded_epoch.number, loaded_epoch.documents) == (3, len(before))
    assert _pairs(loaded_epoch.packed()) == _pairs(epoch.packed())
    assert _pairs(loaded.packed()) == _pairs(counts.packed())
    assert loaded.documents == counts.documents


def test_delta_of_an_earlier_epoch_is_not_counted_again() -> None:
    """Deltas absorbed by an epoch count once, even if their deletion was not seen."""
    store, counts = MemoryStore(), DocumentCounts(1000)
    counts.add(2, _delta([{1}, {1, 2}]))
    store.write(list(epoch_puts(store, counts.freeze(1))))
    store.write(list(delta_puts(0, 0, 2, _delta([{1}, {1, 2}]))))
    loaded, _ = load_counts(store, 1000)
    assert (loaded.documents, _pairs(loaded.packed())) == (2, _pairs(counts.packed()))


def test_counts_larger_than_a_part_load_as_they_were() -> None:
    """Counts of more words than fit under one key are stored under several, and nothing of an earlier epoch is left."""
    store, counts = MemoryStore(), DocumentCounts(200_000)
    counts.add(3, _numbered(0, 70_000, 1))
    store.write(list(epoch_puts(store, counts.freeze(1))))
    assert len(list(store.items(Family.COUNTS))) == 3
    store.write(list(delta_puts(9, 1, 2, _numbered(60_000, 40_000, 2))))
    counts.add(2, _numbered(60_000, 40_000, 2))
    loaded, _ = load_counts(store, 200_000)
    assert (loaded.documents, _pairs(loaded.packed())) == (5, _pairs(counts.packed()))
    smaller = DocumentCounts(200_000)
    smaller.add(1, _numbered(0, 10, 1))
    store.write(list(epoch_puts(store, smaller.freeze(2))))
    assert len(list(store.items(Family.COUNTS))) == 1
    assert _pairs(load_counts(store, 200_000)[0].packed()) == _pairs(smaller.packed())


def test_counts_of_many_parts_load_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary may fill thousands of parts: their numbers take more than a byte."""
    monkeypatch.setattr("stream_dedup.index.records.counts._PART_WORDS", 1)
    store, counts = MemoryStore(), DocumentCounts(1000)
    counts.add(4, _numbered(0, 300, 1))
    store.write(list(epoch_puts(store, counts.freeze(1))))
    loaded, _ = load_counts(store, 1000)
    assert (loaded.documents, _pairs(loaded.packed())) == (4, _pairs(counts.packed()))


def test_new_state_has_no_counts() -> None:
    """A new state begins with epoch 0, which counts nothing."""
    counts, epoch = load_counts(MemoryStore(), 1000)
    assert (counts.documents, counts.words, epoch.number, epoch.documents) == (0, 0, 0, 0)
    assert _looked_up(epoch, [1, 2]) == [0, 0]
