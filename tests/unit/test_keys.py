"""A batch's keys are numbered and joined as plain loops would do it."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.lookup.keys import (
    NO_KEY,
    BatchKeys,
    articles_under,
    batch_ahead,
    interleaved,
    is_member,
    spread,
)

_ROWS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=3, max_size=3), max_size=8)
_FAMILIES = st.integers(0, 6).flatmap(
    lambda articles: st.lists(
        st.lists(st.lists(st.integers(0, 99), max_size=4), min_size=articles, max_size=articles),
        min_size=1,
        max_size=4,
    )
)


def _same(rows: list[list[tuple[int, bool]]]) -> BatchKeys:
    own = np.array([[key for key, _ in row] for row in rows], np.uint64).reshape(-1, 3)
    used = np.array([[flag for _, flag in row] for row in rows], np.bool_).reshape(-1, 3)
    return BatchKeys.same(own, used)


@given(_ROWS)
def test_articles_look_up_the_keys_that_they_are_indexed_under(rows: list[list[tuple[int, bool]]]) -> None:
    """Each article looks up its used keys, in order."""
    keys = _same(rows)
    for i, row in enumerate(rows):
        looked_up = keys.looked_up[keys.offsets[i] : keys.offsets[i + 1]].tolist()
        assert looked_up == [key for key, used in row if used]


@given(_ROWS, st.lists(st.integers(0, 40), max_size=5))
def test_distinct_keys_are_those_used_or_looked_up(rows: list[list[tuple[int, bool]]], others: list[int]) -> None:
    """All keys that are used or looked up occur once, in ascending order; unused ones do not."""
    same = _same(rows)
    keys = BatchKeys(same.own, same.used, np.array([0, len(others)]), np.array(others, np.uint64))
    expected = {key for row in rows for key, used in row if used} | set(others)
    assert keys.numbered().distinct.tolist() == sorted(expected)


@given(_ROWS)
def test_numbers_are_places_among_the_distinct_keys(rows: list[list[tuple[int, bool]]]) -> None:
    """A key's number is its position among the distinct keys; an unused key has none."""
    numbered = _same(rows).numbered()
    distinct = numbered.distinct.tolist()
    assert numbered.own.tolist() == [[distinct.index(key) if used else NO_KEY for key, used in row] for row in rows]
    assert numbered.looked_up.tolist() == [distinct.index(key) for row in rows for key, used in row if used]


@given(_ROWS)
def test_articles_of_a_batch_are_listed_under_their_keys(rows: list[list[tuple[int, bool]]]) -> None:
    """Under each key, in order; of those, all but one may come before the others' lists."""
    numbered = _same(rows).numbered()
    count = len(numbered.distinct)
    expected = [[i for i, row in enumerate(numbered.own.tolist()) for one in row if one == key] for key in range(count)]
    offsets, articles = articles_under(numbered.own, count)
    assert [articles[start:stop].tolist() for start, stop in pairwise(offsets.tolist())] == expected
    assert batch_ahead(numbered.own, count).tolist() == [len(some) - 1 for some in expected]


@given(_ROWS, st.data())
def test_only_some_are_looked_up(rows: list[list[tuple[int, bool]]], data: st.DataObject) -> None:
    """Of the keys that an article looks up, the wanted ones are kept, in order."""
    keys = _same(rows)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(keys.looked_up), max_size=len(keys.looked_up)))
    some = keys.only(np.array(wanted, np.bool_))
    for i in range(len(rows)):
        mine = slice(int(keys.offsets[i]), int(keys.offsets[i + 1]))
        expected = [key for key, want in zip(keys.looked_up[mine].tolist(), wanted[mine], strict=True) if want]
        assert some.looked_up[some.offsets[i] : some.offsets[i + 1]].tolist() == expected


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_among(keys: list[int], some: list[int]) -> None:
    """A key is found if it is one of the given ones; 0 is an ordinary key."""
    found = is_member(np.array(keys, np.uint64), np.array(some, np.uint64))
    assert found.tolist() == [key in some for key in keys]


@given(_FAMILIES)
def test_look_ups_are_joined_article_by_article(families: list[list[list[int]]]) -> None:
    """For each article, the first family's look-ups come first, then the second's, and so on."""
    offsets = [np.cumsum([0, *map(len, family)], dtype=np.int64) for family in families]
    keys = [np.array([key for article in family for key in article], np.int64) for family in families]
    joined, numbers = interleaved(offsets, keys)
    expected = [[key for family in families for key in family[i]] for i in range(len(families[0]))]
    assert [numbers[joined[i] : joined[i + 1]].tolist() for i in range(len(expected))] == expected
    assert len(numbers) == sum(map(len, keys))


@given(st.lists(st.integers(0, 20) | st.just(2**64 - 1)), st.lists(st.integers(0, 20) | st.just(2**64 - 1)))
def test_keys_among_others_are_those_of_a_set(keys: list[int], others: list[int]) -> None:
    """The result is that of Python's `in`, also for 0 and the largest key."""
    found = is_member(np.array(keys, np.uint64), np.array(others, np.uint64))
    assert found.tolist() == [key in set(others) for key in keys]


@given(_ROWS, st.randoms(use_true_random=False))
def test_only_some_keys_are_looked_up(rows: list[list[tuple[int, bool]]], random: Random) -> None:
    """Each article looks up its wanted keys, in order; the keys it is indexed under do not change."""
    same = _same(rows)
    wanted = [random.random() < 0.5 for _ in same.looked_up]
    keys = same.only(np.array(wanted, np.bool_))
    for i, (start, stop) in enumerate(pairwise(same.offsets.tolist())):
        expected = [
            key for key, flag in zip(same.looked_up[start:stop].tolist(), wanted[start:stop], strict=True) if flag
        ]
        assert keys.looked_up[keys.offsets[i] : keys.offsets[i + 1]].tolist() == expected
    assert keys.own is same.own


@pytest.mark.parametrize("bits", [2, 7, 12, 16])
def test_spread_numbers_stay_apart(bits: int) -> None:
    """Distinct numbers give distinct keys, which use only as many upper bits as the numbers have."""
    keys = spread(np.arange(2**bits, dtype=np.uint64), bits)
    assert sorted((keys >> np.uint64(64 - bits)).tolist()) == [*range(2**bits)]
    assert not (keys << np.uint64(bits)).any()


@pytest.mark.parametrize(("bits", "step"), [(40, 1), (40, 1 << 20), (33, 1), (33, 1 << 12), (64, 1), (64, 1 << 40)])
def test_spread_numbers_are_spread_evenly(bits: int, step: int) -> None:
    """Of 65,536 equidistant numbers, each 64th of the key space gets 1,024, within five standard deviations."""
    keys = spread(np.arange(65_536, dtype=np.uint64) * np.uint64(step), bits)
    counts = np.bincount((keys >> np.uint64(58)).astype(np.int64), minlength=64)
    assert abs(counts - 1024).max() <= 5 * 32


def test_many_keys_are_numbered_as_numpy_numbers_them() -> None:
    """Twenty thousand random keys, a third of them repeated, get the numbers that numpy gives."""
    chance = np.random.default_rng(3)
    own = chance.choice(chance.integers(0, 2**64, 15_000, np.uint64, endpoint=False), (20_000, 1))
    numbered = BatchKeys.same(own, np.ones_like(own, np.bool_)).numbered()
    distinct, numbers = np.unique(own, return_inverse=True)
    assert (numbered.distinct == distinct).all()
    assert (numbered.looked_up == numbers.ravel()).all()
