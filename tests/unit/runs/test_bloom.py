"""Filters never report an added key as absent, and rarely report an absent key as present."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import U64
from stream_dedup.index.lookup.keys import spread
from stream_dedup.index.runs import bloom
from stream_dedup.index.runs.bloom import empty_filter, keep_possibly_present, put_in_filter
from stream_dedup.index.runs.section import mark_present

_KEYS = st.lists(st.integers(0, 300) | st.integers(0, 2**64 - 1), max_size=300).map(
    lambda keys: np.array(keys, np.uint64)
)


def _present(words: U64, keys: U64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    may_be = np.zeros(len(keys), np.bool_)
    mark_present(np.frombuffer(words.tobytes(), np.uint64), keys, may_be)
    return may_be


def _filter(keys: U64, of: int | None = None) -> U64:
    words = empty_filter(len(keys) if of is None else of)
    put_in_filter(words, keys)
    return words


@given(_KEYS, st.integers(0, 400))
def test_no_key_is_missed(keys: U64, expected: int) -> None:
    """No added key is reported as absent, even if more were added than expected."""
    assert _present(_filter(keys, expected), keys).all()


def test_no_key_of_very_many_is_missed() -> None:
    """The same holds for a million keys over all lines."""
    keys = np.random.default_rng(1).integers(0, 2**64, 1_000_000, np.uint64, endpoint=False)
    assert _present(_filter(keys), keys).all()


@given(_KEYS)
def test_an_empty_filter_holds_nothing(keys: U64) -> None:
    """An empty filter reports every key as absent."""
    assert not _present(empty_filter(len(keys)), keys).any()


def test_what_is_marked_stays_marked() -> None:
    """A key that is already marked stays marked, even if the filter does not have it."""
    keys, may_be = np.arange(4, dtype=np.uint64), np.array([True, False, True, False])
    mark_present(np.frombuffer(empty_filter(4).tobytes(), np.uint64), keys, may_be)
    assert may_be.tolist() == [True, False, True, False]


@given(_KEYS, st.lists(st.integers(0, 2**64 - 1), max_size=60), st.randoms(use_true_random=False))
def test_of_some_places_those_stay_whose_keys_may_be_there(keys: U64, others: list[int], random: Random) -> None:
    """The places of possibly present keys come first, in order: exactly those marked when all keys are asked for."""
    words, asked = _filter(keys), np.array([*keys.tolist(), *others], np.uint64)
    wanted = [place for place in range(len(asked)) if random.random() < 0.7]
    places = np.array(wanted, np.int64)
    kept = keep_possibly_present(words, asked, places)
    present = _present(words, asked)
    assert places[:kept].tolist() == [place for place in wanted if present[place]]


@pytest.mark.parametrize(
    ("keys", "bits"), [(1, 16), (1 << 20, 16), ((1 << 20) + 1, 12), (1 << 23, 12), ((1 << 23) + 1, 9), (1 << 24, 9)]
)
def test_filters_take_the_bits_that_are_stated(keys: int, bits: int) -> None:
    """16 bits per key up to a million keys, 12 up to eight million, then 9, in whole lines of 512 bits."""
    size = 64 * len(empty_filter(keys))
    assert size % 512 == 0
    assert 0 <= size - keys * bits < 512


@pytest.mark.parametrize(("bits", "most"), [(16, 0.0015), (12, 0.005), (9, 0.017)])
@pytest.mark.slow
def test_few_absent_keys_are_called_present(monkeypatch: pytest.MonkeyPatch, bits: int, most: float) -> None:
    """Of a million absent keys, about 0.1% are reported with 16 bits per key, at most 1.7% with 9 bits.

    In theory 0.12%, 0.44% and 1.47%: the mean over Poisson-distributed keys per line (Putze et al. 2007, section 3).
    Keys that are spread-out consecutive numbers, with the same lowest bits, do no worse than random ones.
    """
    monkeypatch.setattr(bloom, "_GENEROUS", ())
    monkeypatch.setattr(bloom, "_SPARING", bits)
    rng = np.random.default_rng(bits)
    numbers, scope = np.arange(800_000, dtype=np.uint64), np.uint64(0x123456789ABCDEF)
    random = np.unique(rng.integers(0, 2**64, 800_000, np.uint64, endpoint=False))
    for keys in (rng.permutation(random), spread(numbers, 33), spread(numbers, 40) ^ scope):
        words = _filter(keys[:400_000])
        assert _present(words, keys[400_000:]).mean() <= most
        assert _present(words, rng.integers(0, 2**64, 600_000, np.uint64, endpoint=False)).mean() <= most


def test_lines_are_those_of_the_cache() -> None:
    """Filters are aligned to 64 bytes, so that each of their lines is one cache line."""
    for keys in (1, 1000, 1_000_000):
        assert empty_filter(keys).ctypes.data % 64 == 0
