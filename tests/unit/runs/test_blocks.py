"""Promises of blocks: what is packed is unpacked, found by its key, and heard where a byte of it is wrong."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.hashing import U64
from stream_dedup.index.runs.blocks import (
    BLOCK_POSTINGS,
    Bytes,
    PackedBlocks,
    Widths,
    find_in_block,
    pack_blocks,
    sound,
    take_postings,
    unpack_blocks,
    widths_of,
)
from tests.unit.runs.plain import Posting, flat_of, lists_of_rows, rows_of, sorted_rows

_MOST = 2**64 - 1
_KEYS = st.integers(0, 5) | st.integers(2**40, 2**40 + 3000) | st.integers(0, _MOST) | st.just(_MOST)
_LENGTHS = st.sampled_from([1, 2, 3, 127, 128, 129, 400])


@st.composite
def _packable(draw: st.DrawFn) -> tuple[dict[int, list[Posting]], Widths]:
    """Draw lists and how they are packed: entries anywhere between the first and the last, details of all widths."""
    first, span = draw(st.sampled_from([0, 7, 2**40])), draw(st.sampled_from([1, 256, 257, 2**24 + 1]))
    detail_bytes = draw(st.sampled_from([0, 1, 8]))
    lengths = draw(st.dictionaries(_KEYS, _LENGTHS, max_size=12))
    # Keys close together too: a block then has hundreds of them.
    begin, count = draw(st.tuples(_KEYS, st.sampled_from([0, 1, 130, 700])))
    lengths |= {min(_MOST, begin + place): 1 for place in range(count)}
    seed = draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    lists = {}
    for key, length in lengths.items():
        entries = np.unique(first + rng.integers(0, span, length)).tolist()
        details = rng.integers(0, 2**63, len(entries)).tolist()
        lists[key] = [(entry, detail % 256**detail_bytes) for entry, detail in zip(entries, details, strict=True)]
    return lists, widths_of(first, first + span, detail_bytes)


def _unpacked(block: bytes, first_key: int, widths: Widths) -> list[tuple[int, int, int]]:
    """Unpack a block in plain Python, as the module's first lines describe it."""
    count, key_bytes = int.from_bytes(block[:4], "little"), block[4]
    at, columns = 5, []
    for width in (key_bytes, widths.entry_bytes, widths.detail_bytes):
        columns.append([int.from_bytes(block[at + n * width : at + (n + 1) * width], "little") for n in range(count)])
        at += count * width
    assert len(block) == _whole_words(at) + 8
    assert not any(block[at : _whole_words(at)])
    return [(first_key + key, widths.first_entry + entry, detail) for key, entry, detail in zip(*columns, strict=True)]


def _whole_words(size: int) -> int:
    return -(-size // 8) * 8


def _blocks(packed: PackedBlocks) -> list[bytes]:
    return [packed.packed[start:stop].tobytes() for start, stop in pairwise([0, *packed.stops.tolist()])]


def _readable(packed: Bytes | bytes) -> U64:
    """Return bytes as they come from a file."""
    return np.frombuffer(bytes(packed), np.uint64)


def _first_keys(packed: PackedBlocks) -> U64:
    return np.frombuffer(packed.first_keys.tobytes(), np.uint64)


@given(_packable())
def test_blocks_are_what_they_are_described_as(drawn: tuple[dict[int, list[Posting]], Widths]) -> None:
    """A reader in plain Python gets all postings back in order; each block has the keys that 128 postings take."""
    lists, widths = drawn
    packed = pack_blocks(flat_of(sorted_rows(lists)), widths)
    blocks = [
        _unpacked(block, key, widths) for block, key in zip(_blocks(packed), packed.first_keys.tolist(), strict=True)
    ]
    assert [row for block in blocks for row in block] == sorted_rows(lists)
    assert packed.keys == len(lists)
    assert [block[0][0] for block in blocks] == packed.first_keys.tolist()
    keys = [[key for key, _, _ in block] for block in blocks]
    assert all(len(own) - own.count(own[-1]) < BLOCK_POSTINGS for own in keys)
    assert all(len(own) >= BLOCK_POSTINGS and own[-1] < following[0] for own, following in pairwise(keys))


@given(_packable())
def test_unpacking_gives_what_was_packed(drawn: tuple[dict[int, list[Posting]], Widths]) -> None:
    """All blocks at once, and each alone, are the postings that went in, and sound."""
    lists, widths = drawn
    packed = pack_blocks(flat_of(sorted_rows(lists)), widths)
    flat, whole = unpack_blocks(_readable(packed.packed), packed.stops, _first_keys(packed), widths)
    assert whole
    assert rows_of(flat) == sorted_rows(lists)
    each = []
    for place, block in enumerate(_blocks(packed)):
        stops = np.array([len(block)], np.int64)
        flat, whole = unpack_blocks(_readable(block), stops, _first_keys(packed)[place : place + 1], widths)
        assert whole
        each += rows_of(flat)
    assert each == sorted_rows(lists)


@given(_packable(), st.lists(_KEYS, max_size=4))
def test_a_key_is_found_in_its_block(drawn: tuple[dict[int, list[Posting]], Widths], others: list[int]) -> None:
    """Wherever a search begins: of a key that a block has all its postings are taken, of any other key none."""
    lists, widths = drawn
    packed = pack_blocks(flat_of(sorted_rows(lists)), widths)
    words = _readable(packed.packed)
    starts = [0, *packed.stops.tolist()]
    for place, first_key in enumerate(packed.first_keys.tolist()):
        held = lists_of_rows(_unpacked(_blocks(packed)[place], first_key, widths))
        asked = {*[*held][:3], *[*held][-3:], *(key + 1 for key in [*held][:2]), *others}
        for key in asked:
            if not first_key <= key <= _MOST:
                continue
            for share in (0.0, 0.4, 1.0):
                found = find_in_block(words, starts[place], np.uint64(key - first_key), share)
                count = found.stop - found.first
                entries, details = np.zeros((2, count + 2), np.uint64)
                assert take_postings(words, starts[place], found, widths, entries, details, 1) == count + 1
                taken = list(zip(entries[1:-1].tolist(), details[1:-1].tolist(), strict=True))
                assert taken == held.get(key, [])


def test_nothing_makes_no_block() -> None:
    """No postings are no blocks, no bytes and no keys, and are unpacked as none."""
    widths = widths_of(0, 10, 8)
    packed = pack_blocks(flat_of([]), widths)
    assert (len(packed.packed), len(packed.first_keys), len(packed.stops), packed.keys) == (0, 0, 0, 0)
    flat, whole = unpack_blocks(_readable(packed.packed), packed.stops, _first_keys(packed), widths)
    assert (rows_of(flat), whole) == ([], True)


def test_a_key_with_thousands_of_postings_has_a_block_of_its_own_size() -> None:
    """One key is one block, however many postings it has; its keys take no byte."""
    rows = [(_MOST, entry, entry % 251) for entry in range(5000)]
    packed = pack_blocks(flat_of(rows), widths_of(0, 5000, 1))
    assert (len(packed.stops), packed.keys) == (1, 1)
    assert len(packed.packed) == _whole_words(5 + 5000 * (0 + 2 + 1)) + 8
    assert _unpacked(packed.packed.tobytes(), _MOST, widths_of(0, 5000, 1)) == rows


def test_keys_as_far_apart_as_can_be_share_a_block() -> None:
    """The smallest and the largest key of all take eight bytes each, and are both found."""
    widths = widths_of(0, 2, 0)
    packed = pack_blocks(flat_of([(0, 0, 0), (_MOST, 1, 0)]), widths)
    assert len(packed.packed) == _whole_words(5 + 2 * (8 + 1)) + 8
    words = _readable(packed.packed)
    assert find_in_block(words, 0, np.uint64(0), 0.5)[:2] == (0, 1)
    assert find_in_block(words, 0, np.uint64(_MOST), 0.5)[:2] == (1, 2)
    assert find_in_block(words, 0, np.uint64(_MOST - 1), 0.5)[:2] == (1, 1)


@pytest.mark.parametrize(
    ("first", "stop", "entry_bytes"),
    [(0, 1, 1), (0, 256, 1), (0, 257, 2), (10, 266, 1), (10, 267, 2), (2**40, 2**40 + 2**24, 3), (0, 2**40, 5)],
)
def test_entries_take_the_bytes_of_the_largest_distance(first: int, stop: int, entry_bytes: int) -> None:
    """The last entry is at a distance of one less than there are entries: 256 of them fit into a byte."""
    assert widths_of(first, stop, 8) == Widths(first, entry_bytes, 8)


def test_every_flipped_byte_is_heard() -> None:
    """Whichever byte of a block is another one: its checksum is not that of its bytes, alone and among others."""
    rng = np.random.default_rng(4)
    keys = np.sort(rng.integers(0, 2**64, 200, np.uint64, endpoint=False)).tolist()
    widths = widths_of(0, 1000, 1)
    packed = pack_blocks(flat_of((key, place, place % 7) for place, key in enumerate(keys)), widths)
    stops = packed.stops.tolist()
    assert len(stops) == 2
    for place, bits in zip(range(len(packed.packed)), rng.integers(1, 256, len(packed.packed)).tolist(), strict=True):
        damaged = packed.packed.copy()
        damaged[place] ^= bits
        assert [sound(_readable(damaged), start, stop) for start, stop in pairwise([0, *stops])] == [
            not start <= place < stop for start, stop in pairwise([0, *stops])
        ]
        flat, whole = unpack_blocks(_readable(damaged), packed.stops, _first_keys(packed), widths)
        assert (len(flat.keys), whole) == (0, False)


@given(st.integers(-40, 40).filter(bool))
def test_a_block_of_another_length_is_not_sound(more: int) -> None:
    """Bytes that are missing at the end, or are too many, are heard, as is what is too short to have a checksum."""
    packed = pack_blocks(flat_of((key, key, 0) for key in range(100)), widths_of(0, 100, 1)).packed
    longer = _readable(np.concatenate([packed, np.zeros(40, np.uint8)]))
    assert sound(longer, 0, len(packed))
    assert not sound(longer, 0, len(packed) + more)
    assert not any(sound(longer, 0, stop) for stop in range(5))
