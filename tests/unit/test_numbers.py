"""What counts as a number, in digits and in Chinese numerals."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.compiled.hashing import code_points
from stream_dedup.fingerprint.numbers import number_hashes, number_kinds

_DIGITS = "〇一二三四五六七八九"


def _hashes(text: str) -> list[int]:
    """Return the number hashes of a text without spaces, from a fresh array of code points."""
    return [int(value) for value in number_hashes(code_points(text).copy(), number_kinds())]


def _chinese(number: int) -> str:
    """Write a number below 10,000 in Chinese, as it is spoken."""
    written, gap = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // unit % 10
        if digit:
            written += ("零" if gap and written else "") + _DIGITS[digit] + name
        gap = not digit
    return written.removeprefix("一") if written.startswith("一十") else written


@given(text=st.text(st.sampled_from("0123456789.,,:月日%a"), max_size=60))
def test_numbers_are_those_of_a_regular_expression(hash_of: Callable[[str], int], text: str) -> None:
    """Digits with single `.`, `,` or `:` between them are a number, together with a letter that follows.

    A comma before exactly three digits is left out.
    """
    found = [re.sub(r",(?=\d{3}(?!\d))", "", number) for number in re.findall(r"[0-9]+(?:[.,:][0-9]+)*[^\W\d_]?", text)]
    assert _hashes(text) == [hash_of(number) >> 32 for number in found]


@given(number=st.integers(2, 9999), counted=st.sampled_from("年月日号时届次期轮场"))
def test_chinese_numerals_are_the_numbers_that_they_write(number: int, counted: str) -> None:
    """A date, an ordinal or a count is the same number whether written in digits or in characters."""
    digits = _hashes(f"在{number}{counted}。")
    assert len(digits) == 1
    assert _hashes(f"在{_chinese(number)}{counted}。") == digits
    assert _hashes(f"在{''.join(_DIGITS[int(digit)] for digit in str(number))}{counted}。") == digits or number < 10


@given(number=st.integers(1, 9999))
def test_ordinals_count_whatever_they_number(number: int) -> None:
    """After 第, a numeral is a number whatever letter follows it, if any."""
    assert _hashes(f"第{_chinese(number)}条") == _hashes(f"{number}条")
    assert _hashes(f"第{_chinese(number)}，") == _hashes(f"{number}，")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("两万五千年", "25000年"),
        ("三十一日", "31日"),
        ("二〇二六年", "2026年"),
        ("十二亿三千万场", "1230000000场"),
        ("一百二十亿五千万场", "12050000000场"),
        ("一万二千亿轮", "1200000000000轮"),
        ("百万年", "1000000年"),
        ("万号", "10000号"),
        ("第五十九次", "59次"),
        ("1,234,567元", "1234567元"),
        ("12,500.5吨", "12500.5吨"),
    ],
)
def test_worked_numerals(text: str, same: str) -> None:
    """Numerals with units, by digit and after 第, next to the digits they stand for."""
    assert _hashes(text) == _hashes(same)
    assert len(_hashes(text)) == 1


@given(
    text=st.lists(
        st.sampled_from(["0", "1", "2", "01", "12", "129"]).flatmap(lambda n: st.sampled_from([n + "/", n + "，"]))
    )
    .map("".join)
    .flatmap(lambda text: st.sampled_from([text, text[:-1], "/" + text]))
)
def test_marks_of_pages_are_no_numbers(hash_of: Callable[[str], int], text: str) -> None:
    """Page a of b: below 100 both, a not above b nor written longer, and no further slash around as in 2026/11/09."""

    def left(mark: re.Match[str]) -> str:
        page, pages = mark.groups()
        return "" if len(page) <= len(pages) and 0 < int(page) <= int(pages) else mark.group()

    rest = re.sub(r"(?<![0-9/])([0-9]{1,2})/([0-9]{1,2})(?![0-9/])", left, text)
    assert _hashes(text) == [hash_of(number) >> 32 for number in re.findall(r"[0-9]+", rest)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("没有数字", 0),
        ("上涨3.5%，成交1,234,567元，12:30收盘", 3),
        ("6月6日", 2),
        ("12.", 1),
        ("1..2", 2),
        ("v1.2.3", 1),
        ("第１２届", 0),
        ("一些人十分高兴，万一，一次会议，统一，三分球", 0),
        ("十四届二次会议", 2),
        ("1/6开头2/6中间", 0),
        ("2026/11/09", 3),
        ("9/3", 2),
        ("123/456", 2),
        ("亿" * 15 + "年", 1),
        ("亿" * 16 + "年", 0),
    ],
)
def test_worked_counts_of_numbers(text: str, count: int) -> None:
    """Numerals within words do not count, nor do page numbers; full-width digits are left to the normal form."""
    assert len(_hashes(text)) == count
