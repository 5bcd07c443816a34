"""Blocks unpack to what was packed, are found by key, and detect any wrong byte."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import U64, Bytes
from stream_dedup.index.runs.blocks import (
    LEAST_POSTINGS,
    Layout,
    block_bits_of,
    block_of,
    find_rows,
    layout_of,
    pack_rows,
    posting_at,
    row_bytes,
    sound,
    unpack_rows,
    zero_bits_of,
)
from tests.unit.runs.plain import Posting, flat_of, lists_of_rows, rows_of, sorted_rows, u64

_MOST = 2**64 - 1
_KEYS = st.integers(0, 5) | st.integers(2**40, 2**40 + 3000) | st.integers(0, _MOST) | st.just(_MOST)
_LENGTHS = st.sampled_from([1, 2, 3, 127, 128, 129, 400])
_CHECKSUM = 8  # bytes

Lists = dict[int, list[Posting]]


@st.composite
def _packable(draw: st.DrawFn) -> tuple[Lists, Layout]:
    """Draw lists and a layout for them: entries anywhere between first and last, details of all widths."""
    first, span = draw(st.sampled_from([0, 7, 2**40])), draw(st.sampled_from([1, 256, 257, 2**24 + 1]))
    detail_bytes, zero_bits = draw(st.sampled_from([0, 1, 8])), draw(st.sampled_from([0, 24, 63]))
    lengths = draw(st.dictionaries(_KEYS, _LENGTHS, max_size=12))
    # Also keys close together, so that a block has hundreds of them.
    begin, count = draw(st.tuples(_KEYS, st.sampled_from([0, 1, 130, 700])))
    lengths |= {min(_MOST, begin + place): 1 for place in range(count)}
    seed = draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    lists = {}
    for key, length in lengths.items():
        entries = np.unique(first + rng.integers(0, span, length)).tolist()
        details = rng.integers(0, 2**63, len(entries)).tolist()
        lists[key >> zero_bits << zero_bits] = [
            (entry, detail % 256**detail_bytes) for entry, detail in zip(entries, details, strict=True)
        ]
    return lists, layout_of((first, first + span), draw(st.sampled_from([0, 1, 5, 11])), zero_bits, detail_bytes)


def _packed(lists: Lists, layout: Layout) -> tuple[Bytes, U64]:
    """Return all blocks, and the number of postings before each."""
    fences = np.zeros((1 << layout.block_bits) + 1, np.uint64)
    return pack_rows(flat_of(sorted_rows(lists)), layout, 0, fences), fences


def _blocks(packed: Bytes, fences: U64, layout: Layout) -> list[bytes]:
    """Return the bytes of each block."""
    size = layout.key_bytes + layout.entry_bytes + layout.detail_bytes
    bounds = [rows * size + block * _CHECKSUM for block, rows in enumerate(fences.tolist())]
    assert bounds[-1] == len(packed)
    return [packed[start:stop].tobytes() for start, stop in pairwise(bounds)]


def _unpacked(block: bytes, number: int, layout: Layout) -> list[tuple[int, int, int]]:
    """Unpack a block in plain Python, as described at the top of the module."""
    widths = (layout.key_bytes, layout.entry_bytes, layout.detail_bytes)
    rows = []
    for start in range(0, len(block) - _CHECKSUM, sum(widths)):
        fields, at = [], start
        for width in widths:
            fields.append(int.from_bytes(block[at : at + width], "little"))
            at += width
        key = (number << 64 - layout.block_bits) + (fields[0] << layout.zero_bits)
        rows.append((key, layout.first_entry + fields[1], fields[2]))
    return rows


def _readable(packed: Bytes | bytes) -> Bytes:
    """Return bytes as if read from a file."""
    return np.frombuffer(bytes(packed), np.uint8)


@given(_packable())
def test_blocks_are_what_they_are_described_as(drawn: tuple[Lists, Layout]) -> None:
    """A plain Python reader gets all postings back in order, each in the block given by its key's upper bits."""
    lists, layout = drawn
    blocks = _blocks(*_packed(lists, layout), layout)
    rows = [_unpacked(block, number, layout) for number, block in enumerate(blocks)]
    assert [row for own in rows for row in own] == sorted_rows(lists)
    assert all(key >> 64 - layout.block_bits == number for number, own in enumerate(rows) for key, _, _ in own)
    assert all(block_of(layout, np.uint64(key)) == key >> 64 - layout.block_bits for key in lists)


@given(_packable(), st.data())
def test_unpacking_gives_what_was_packed(drawn: tuple[Lists, Layout], data: st.DataObject) -> None:
    """All blocks together, and any consecutive ones, unpack to the postings that were packed, and are sound."""
    lists, layout = drawn
    packed, fences = _packed(lists, layout)
    first = data.draw(st.integers(0, len(fences) - 1))
    stop = data.draw(st.integers(first, len(fences) - 1))
    for begin, end in ((0, len(fences) - 1), (first, stop)):
        some = b"".join(_blocks(packed, fences, layout)[begin:end])
        keyed, whole = unpack_rows(_readable(some), fences[begin : end + 1], begin, layout)
        assert whole
        assert rows_of(keyed) == [row for row in sorted_rows(lists) if begin <= row[0] >> 64 - layout.block_bits < end]


@given(_packable(), st.lists(_KEYS, max_size=4))
def test_a_key_is_found_in_its_block(drawn: tuple[Lists, Layout], others: list[int]) -> None:
    """All postings of a key in the block are returned, and none of any other key."""
    lists, layout = drawn
    packed, fences = _packed(lists, layout)
    data, held = _readable(packed), lists_of_rows(sorted_rows(lists))
    starts = np.cumsum([0, *map(len, _blocks(packed, fences, layout))]).tolist()
    asked = {*[*held][:3], *[*held][-3:], *others, *(key ^ 1 for key in [*held][:1])}
    for key in asked:
        block = key >> 64 - layout.block_bits
        first, stop = find_rows(data, starts[block], int(fences[block + 1] - fences[block]), np.uint64(key), layout)
        found = [posting_at(data, starts[block] + row * row_bytes(layout), layout) for row in range(first, stop)]
        assert [(int(entry), int(detail)) for entry, detail in found] == held.get(key, [])


def test_no_postings_are_blocks_of_nothing() -> None:
    """A block without postings consists of its checksum."""
    layout = layout_of((0, 10), 2, 0, 8)
    packed, fences = _packed({}, layout)
    assert (len(packed), fences.tolist()) == (4 * _CHECKSUM, [0] * 5)
    keyed, whole = unpack_rows(_readable(packed), fences, 0, layout)
    assert (rows_of(keyed), whole) == ([], True)


def test_a_key_with_thousands_of_postings_has_a_block_of_its_own_size() -> None:
    """All postings of a key are in one block, however many there are."""
    rows = [(_MOST, entry, entry % 251) for entry in range(5000)]
    layout = layout_of((0, 5000), 6, 0, 1)
    packed, fences = _packed(lists_of_rows(rows), layout)
    assert len(packed) == 5000 * (8 + 2 + 1) + 64 * _CHECKSUM
    assert _unpacked(_blocks(packed, fences, layout)[63], 63, layout) == rows


def test_keys_as_far_apart_as_can_be_share_a_block() -> None:
    """The smallest and the largest possible key take eight bytes each, and both are found."""
    layout = layout_of((0, 2), 0, 0, 0)
    packed, _ = _packed({0: [(0, 0)], _MOST: [(1, 0)]}, layout)
    assert len(packed) == 2 * (8 + 1) + _CHECKSUM
    data = _readable(packed)
    assert find_rows(data, 0, 2, np.uint64(0), layout) == (0, 1)
    assert find_rows(data, 0, 2, np.uint64(_MOST), layout) == (1, 2)
    assert find_rows(data, 0, 2, np.uint64(_MOST - 1), layout) == (1, 1)


@pytest.mark.parametrize(
    ("first", "stop", "entry_bytes"),
    [(0, 1, 1), (0, 256, 1), (0, 257, 2), (10, 266, 1), (10, 267, 2), (2**40, 2**40 + 2**24, 3), (0, 2**40, 5)],
)
def test_entries_take_the_bytes_of_the_largest_distance(first: int, stop: int, entry_bytes: int) -> None:
    """The last of n entries is at distance n - 1, so 256 entries fit into a byte."""
    assert layout_of((first, stop), 0, 0, 8) == Layout(0, 0, first, 8, entry_bytes, 8)


@pytest.mark.parametrize(
    ("block_bits", "zero_bits", "key_bytes"), [(0, 0, 8), (1, 0, 8), (8, 0, 7), (20, 24, 3), (16, 24, 3), (1, 63, 0)]
)
def test_keys_take_the_bytes_that_their_block_does_not_tell(block_bits: int, zero_bits: int, key_bytes: int) -> None:
    """Neither the bits given by the block nor those that are zero in every key are stored."""
    assert layout_of((0, 1), block_bits, zero_bits, 0).key_bytes == key_bytes


@pytest.mark.parametrize(
    ("keys", "zero_bits"), [([], 63), ([0], 63), ([2**63], 63), ([1], 0), ([2**24], 24), ([2**24, 2**30, 2**7], 7)]
)
def test_zero_bits_are_those_that_no_key_has(keys: list[int], zero_bits: int) -> None:
    """They are counted from the lowest bit up, at most 63."""
    assert zero_bits_of(u64(keys)) == zero_bits


@given(st.integers(0, 10**9))
def test_blocks_have_a_number_of_postings_in_the_mean(postings: int) -> None:
    """The mean is between the minimum and twice that, if there are enough postings for one block."""
    blocks = 1 << block_bits_of(postings)
    assert postings / blocks < 2 * LEAST_POSTINGS
    assert blocks == 1 or postings / blocks >= LEAST_POSTINGS


def test_every_flipped_byte_is_heard() -> None:
    """If any byte of a block changes, its checksum no longer matches, alone or among other blocks."""
    rng = np.random.default_rng(4)
    keys = np.sort(rng.integers(0, 2**64, 200, np.uint64, endpoint=False)).tolist()
    layout = layout_of((0, 1000), 1, 0, 1)
    packed, fences = _packed({key: [(place, place % 7)] for place, key in enumerate(keys)}, layout)
    bounds = np.cumsum([0, *map(len, _blocks(packed, fences, layout))]).tolist()
    for place, bits in zip(range(len(packed)), rng.integers(1, 256, len(packed)).tolist(), strict=True):
        damaged = packed.copy()
        damaged[place] ^= bits
        assert [sound(_readable(damaged), start, stop - _CHECKSUM) for start, stop in pairwise(bounds)] == [
            not start <= place < stop for start, stop in pairwise(bounds)
        ]
        keyed, whole = unpack_rows(_readable(damaged), fences, 0, layout)
        assert (len(keyed.keys), whole) == (0, False)


@given(st.integers(-40, 40).filter(bool))
def test_a_block_of_another_length_is_not_sound(more: int) -> None:
    """Missing or extra bytes at the end are detected."""
    layout = layout_of((0, 100), 0, 0, 1)
    packed, _ = _packed({key: [(key, 0)] for key in range(100)}, layout)
    longer = _readable(np.concatenate([packed, np.zeros(40, np.uint8)]))
    assert sound(longer, 0, len(packed) - _CHECKSUM)
    assert not sound(longer, 0, len(packed) - _CHECKSUM + more)
