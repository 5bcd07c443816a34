"""Values are read back as written, in the bit layout of the codes' authors."""

import math
from itertools import pairwise
from typing import SupportsInt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import U64
from stream_dedup.index.entries.bits import (
    MARGIN_BITS,
    ascending_bits,
    get,
    get_ascending,
    get_number,
    low_bits,
    put,
    put_ascending,
    put_number,
)

_ROOM = 2_000
_U64 = st.integers(0, 2**64 - 1)


def _u(value: SupportsInt) -> np.uint64:
    return np.uint64(int(value))


def _zeros() -> U64:
    return np.zeros(_ROOM, np.uint64)


def _text(words: U64, bits: int) -> str:
    """Return the first bits as text, lowest first."""
    return "".join(f"{word:064b}"[::-1] for word in words.tolist())[:bits]


@given(st.lists(st.integers(0, 64).flatmap(lambda width: st.tuples(st.integers(0, 2**width - 1), st.just(width)))))
def test_values_of_any_width_come_back(values: list[tuple[int, int]]) -> None:
    """A value's bits are exactly where it was written, and are read back from there."""
    words, at = _zeros(), _u(0)
    for value, width in values:
        at = _u(put(words, at, _u(value), _u(width)))
    written = "".join(f"{value:0{width}b}"[::-1] if width else "" for value, width in values)
    assert _text(words, int(at)) == written
    at = _u(0)
    for value, width in values:
        assert int(get(words, at, _u(width))) == value
        at += _u(width)


@pytest.mark.parametrize(("number", "packed"), [(0, "00"), (127, "7f"), (128, "8001"), (624_485, "e58e26")])
def test_numbers_are_leb128(number: int, packed: str) -> None:
    """Numbers are encoded as in the standard's example (DWARF 4, appendix C; its neighbours worked by hand)."""
    words = _zeros()
    end = put_number(words, _u(0), _u(number))
    assert words.tobytes()[: int(end) // 8].hex() == packed
    assert [int(part) for part in get_number(words, _u(0))] == [number, int(end)]


@given(st.lists(_U64), st.integers(0, 63))
def test_numbers_come_back(numbers: list[int], start: int) -> None:
    """Consecutive numbers are read back, wherever the first begins."""
    words, at = _zeros(), _u(start)
    for number in numbers:
        at = _u(put_number(words, at, _u(number)))
    at = _u(start)
    for number in numbers:
        value, end = get_number(words, at)
        assert value == number
        at = _u(end)


def test_number_without_an_end_ends() -> None:
    """If every group says that another follows, reading stops after the tenth."""
    assert int(get_number(np.full(4, 2**64 - 1, np.uint64), _u(0))[1]) == 80


@pytest.mark.parametrize(
    ("bits", "size", "low"), [(24, 0, 24), (24, 1, 23), (24, 800, 14), (24, 1023, 14), (24, 1024, 13), (8, 4000, 0)]
)
def test_low_bits_are_those_of_the_mean_gap(bits: int, size: int, low: int) -> None:
    """The smallest b with 2^b >= 2^bits / size / 2, by hand: 2^24 / 800 / 2 = 10,486 <= 2^14."""
    assert int(low_bits(_u(bits), _u(size))) == low


def test_gaps_by_hand() -> None:
    """3, 3 and 12 have the gaps 3, 0 and 9: two low bits each (11, 00, 01), then 0, 0 and 2 zeros before a one."""
    words, values = _zeros(), np.array([3, 3, 12, 99], np.uint32)
    end = put_ascending(words, _u(0), values, _u(3), _u(2))
    # Lowest bit first: 3 is 11, 0 is 00, 1 is 10.
    assert _text(words, int(end)) == "11001011001"


_ASCENDING = st.lists(st.integers(0, 2**32 - 1), max_size=300).map(sorted)


@given(_ASCENDING, st.integers(12, 32), st.integers(0, 63))
def test_ascending_values_come_back(values: list[int], low: int, start: int) -> None:
    """Ascending values are read back, wherever they begin, and take at most the predicted number of bits."""
    row = np.array([*values, 7], np.uint32)
    length = _u(len(values))
    most = int(ascending_bits(row, length, _u(low)))
    words = np.zeros((start + most + MARGIN_BITS) // 64 + 1, np.uint64)
    end = _u(put_ascending(words, _u(start), row, length, _u(low)))
    read = np.full(len(row), 7, np.uint32)
    assert get_ascending(words, _u(start), end, read, length, _u(low)) == end
    assert read.tolist() == row.tolist()
    gaps = [after - before for before, after in pairwise([0, *values])]
    assert int(end) - start == sum((gap >> low) + 1 + low for gap in gaps) <= most


def test_uniform_hashes_take_hardly_more_than_they_must() -> None:
    """The smallest 256 of 800 uniform values take at most 2% more than the log of the number of possible sets."""
    rng = np.random.default_rng(5)
    low, taken = _u(low_bits(_u(24), _u(800))), []
    for _ in range(50):
        smallest = np.sort(rng.integers(0, 2**24, 800).astype(np.uint32))[:256]
        words = _zeros()
        taken.append(int(put_ascending(words, _u(0), smallest, _u(256), low)))
    span = 2**24 * 256 / 800
    least = (math.lgamma(span + 1) - math.lgamma(257) - math.lgamma(span - 255)) / math.log(2)
    assert least < np.mean(taken) < 1.02 * least


def test_values_that_end_too_late_are_damaged() -> None:
    """If ones are missing or come too late, the end is beyond the given one, and nothing past the margin is read."""
    values = np.array([1, 2, 3], np.uint32)
    for words in (_zeros()[: 2 + MARGIN_BITS // 64], np.full(2 + MARGIN_BITS // 64, 2**63, np.uint64)):
        assert int(get_ascending(words, _u(0), _u(100), values, _u(3), _u(4))) > 100
