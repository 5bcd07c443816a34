"""Promises of the numbers: what counts as one, and the sketch of them."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.fingerprint.numbers import number_sketch, number_sketches
from stream_dedup.fingerprint.sketch import PAD
from stream_dedup.hashing import U32, code_points
from stream_dedup.text.normal import word_table


def _points(text: str) -> U32:
    """Return code points in memory of their own, as the normal form has them."""
    return code_points(text).copy()


def _numbers(text: str) -> set[str]:
    """Find digits with single `.`, `,` or `:` between, each with the letter behind it, if there is one."""
    return {found.group() for found in re.finditer(r"[0-9]+(?:[.,:][0-9]+)*[^\W\d_]?", text)}


@given(text=st.text(st.sampled_from("0123456789.,:月日%a "), max_size=60), k=st.sampled_from([1, 4, 16]))
def test_numbers_are_those_of_a_regular_expression(hash_of: Callable[[str], int], text: str, k: int) -> None:
    """The sketch holds the smallest upper half hashes of the distinct numbers; their count is exact."""
    expected = sorted({hash_of(number) >> 32 for number in _numbers(text)})
    values, used, distinct = number_sketch(_points(text), k, word_table())
    assert distinct == len(expected)
    assert used == min(k, distinct)
    assert values.tolist() == expected[:k] + [int(PAD)] * (k - used)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("没有数字", 0),
        ("上涨3.5%，成交1,234,567元，12:30收盘", 3),
        ("6月6日", 2),
        ("6月，6月，6月", 1),
        ("12.", 1),
        ("1..2", 2),
        ("v1.2.3", 1),
        ("第１２届", 0),
    ],
)
def test_worked_counts_of_numbers(text: str, count: int) -> None:
    """Separators inside belong to a number, 6月 and 6日 differ; full-width digits are for the normal form."""
    assert number_sketch(_points(text), 16, word_table())[2] == count


def test_number_sketches_of_a_batch_are_those_one_by_one() -> None:
    """A batch gives a row a text."""
    texts = [_points(text) for text in ("1个2个3个", "", "2026年10月18日")]
    values, lengths, sizes = number_sketches(texts, 4)
    for i, text in enumerate(texts):
        row, used, distinct = number_sketch(text, 4, word_table())
        assert (values[i].tolist(), lengths[i], sizes[i]) == (row.tolist(), used, distinct)
