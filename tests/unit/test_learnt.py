"""Counts of site lines: what counts, when a line is learnt, and what is forgotten."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import I64, U64
from stream_dedup.index.records.counts import line_delta_puts, line_epoch_puts, load_lines
from stream_dedup.index.stores.store import MemoryStore
from stream_dedup.text.idf import COUNT_DTYPE, Counts, document_delta
from stream_dedup.text.learnt import LearnRule, LineCounts, learnt_lines, with_decay
from stream_dedup.text.lines import EndLines, site_number

_RULE = LearnRule(20, 0.1, 1000)
_SITE, _OTHER = site_number("甲报"), site_number("乙报")
_ARTICLES = st.lists(st.lists(st.integers(1, 12), unique=True, max_size=4), max_size=25)


def _line(number: int, site: int = _SITE) -> int:
    """Return a number as used for a line of a site."""
    return site >> 32 << 32 | number


def _lines(articles: list[list[int]]) -> EndLines:
    keys = [[_SITE, *map(_line, article)] if article else [] for article in articles]
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    flat = np.array([key for own in keys for key in own], np.uint64)
    return EndLines(offsets, flat, np.zeros(len(articles), np.bool_))


def _counts(pairs: dict[int, int]) -> Counts:
    return np.array(sorted(pairs.items()), COUNT_DTYPE)


def _pairs(counts: Counts) -> dict[int, int]:
    return dict(zip(counts["word"].tolist(), counts["documents"].tolist(), strict=True))


def _delta(lines: EndLines, articles: I64 | list[int]) -> Counts:
    empty: list[U64] = [np.empty(0, np.uint64)]
    return document_delta(np.concatenate([*empty, *(lines.of(place) for place in articles)]))


@pytest.mark.parametrize(
    ("of_line", "of_site", "learnt"),
    [(20, 200, True), (19, 190, False), (20, 201, False), (21, 201, True), (300, 3000, True), (300, 3001, False)],
)
def test_line_of_twenty_articles_and_a_tenth_is_learnt(of_line: int, of_site: int, *, learnt: bool) -> None:
    """By hand: 20 are a tenth of 200 but not of 201, and 19 are too few whatever their share."""
    frozen = _counts({_SITE: of_site, _line(7): of_line, _OTHER: 10_000, _line(7, _OTHER): 19})
    assert learnt_lines(frozen, _RULE).tolist() == ([_line(7)] if learnt else [])


def test_line_of_a_site_that_is_not_counted_is_not_learnt() -> None:
    """Without the number of the site's articles, there is no share."""
    assert learnt_lines(_counts({_line(7): 500}), _RULE).tolist() == []


def test_an_eighth_is_forgotten() -> None:
    """By hand: each epoch forgets an eighth, rounded up; a line counted once is gone."""
    before = {1: 1, 2: 2, 3: 8, 4: 9, 5: 16, 6: 800}
    assert _pairs(with_decay(_counts(before))) == {2: 1, 3: 7, 4: 7, 5: 14, 6: 700}


def test_line_that_a_site_gave_up_is_forgotten_in_time() -> None:
    """With 80 articles per epoch that have another line, the old line stays learnt until below a tenth."""
    counts, epochs = LineCounts(_RULE, _counts({_SITE: 800, _line(1): 800})), list[int]()
    for epoch in range(30):
        counts.add(_counts({_SITE: 80, _line(2): 80}))
        counts = counts.followed_by(counts.freeze([]))
        epochs += [epoch] if _line(1) in counts.learnt.tolist() else []
        assert _line(2) in counts.learnt.tolist()
    # After n epochs, 800 r of 640 + 160 r articles have it, r = (7/8)^n: a tenth at n = 18.8, less by rounding up.
    assert epochs == list(range(len(epochs)))
    assert 16 <= len(epochs) <= 18


@given(articles=_ARTICLES, cuts=st.sets(st.integers(1, 24)), most=st.sampled_from([3, 6, 1000]))
def test_articles_with_a_new_line_count_however_they_are_cut(
    articles: list[list[int]], cuts: set[int], most: int
) -> None:
    """In plain Python, one by one: an article counts if one of its lines is not yet known of its site."""
    known, expected = set[int](), list[int]()
    for place, article in enumerate(articles):
        if any(_line(line) not in known for line in article):
            expected.append(place)
            for key in (_SITE, *map(_line, article)):
                known |= {key} if len(known) < most else set()
    lines, fresh = _lines(articles), list[int]()
    counts, since = LineCounts(LearnRule(20, 0.1, most)), list[Counts]()
    for start, stop in pairwise([0, *sorted(cut for cut in cuts if cut < len(articles)), len(articles)]):
        found = counts.fresh(lines, np.arange(start, stop), since)
        fresh += found.tolist()
        since.append(_delta(lines, found))
        if start % 2:  # a batch of several runs ends here
            for delta in since:
                counts.add(delta)
            since = []
    assert fresh == expected


def test_known_lines_take_no_room() -> None:
    """Of four places three are taken, by a site and two lines: a new line gets the last, and is known from then on."""
    counts = LineCounts(LearnRule(20, 0.1, 4))
    counts.add(_counts({_SITE: 1, _line(1): 1, _line(2): 1}))
    assert counts.fresh(_lines([[1, 5], [1, 5]]), np.arange(2), []).tolist() == [0]


def test_epoch_begins_without_what_was_counted_once() -> None:
    """By hand, with the articles counted since."""
    counts = LineCounts(_RULE)
    counts.add(_counts({1: 1, 2: 2, 3: 1}))
    assert _pairs(counts.freeze([_counts({3: 1, 4: 1})])) == {2: 2, 3: 2}


@given(runs=st.lists(_ARTICLES, max_size=4), before=_ARTICLES)
def test_stored_counts_load_as_they_were(runs: list[list[list[int]]], before: list[list[int]]) -> None:
    """After a restart, learnt lines and live counts are the committed ones, whatever an earlier epoch left behind."""
    rule, store = LearnRule(2, 0.0, 1000), MemoryStore()
    store.write(list(line_delta_puts(1, 2, 1, _counts({_line(99): 50}))))
    counts = LineCounts(rule)
    frozen = counts.freeze([_delta(_lines(before), list(range(len(before))))])
    store.write([*line_epoch_puts(store, 3, frozen)])
    counts = counts.followed_by(frozen)
    for step, articles in enumerate(runs):
        delta = _delta(_lines(articles), list(range(len(articles))))
        counts.add(delta)
        store.write(list(line_delta_puts(10 + step, 3, len(articles), delta)))
    store.write(list(line_delta_puts(2, 2, 1, _counts({_line(98): 50}))))
    loaded = load_lines(store, rule, 3)
    assert _pairs(loaded.packed()) == _pairs(counts.packed())
    assert (loaded.lines, sorted(loaded.learnt.tolist())) == (counts.lines, sorted(counts.learnt.tolist()))


def test_counts_are_bounded() -> None:
    """There are never more than `most` lines; when full, the rarest half is forgotten at the end of the epoch."""
    counts = LineCounts(LearnRule(2, 0.0, 20))
    for first in range(0, 100, 10):
        counts.add(_counts({_line(first + number): 1 + number for number in range(10)}))
        assert len(counts.packed()) <= 20
    kept = _pairs(counts.freeze([]))
    assert sorted(kept.values()) == [6, 6, 7, 7, 8, 8, 9, 9, 10, 10]
