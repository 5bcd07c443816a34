"""Blocks: some hundred postings in ascending order of their keys, packed, with a checksum.

Knows how postings are packed and found in a block; knows nothing of files or of what is looked for.

A block is the number of its postings and the bytes of a key, then three columns: of each posting its key's distance
from the smallest of the block, its entry's distance from the first of the run, and what it carries; and the checksum.
All are of as many bytes as the largest needs, little-endian. So a key is found by bisection, and nothing is decoded
but its own postings. All postings of a key are in one block, and blocks are of whole words of 8 bytes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64, mix64
from stream_dedup.prefetch import prefetch

Bytes = NDArray[np.uint8]

BLOCK_POSTINGS = 128  # a block ends with the key that reaches so many
_HEADER_BYTES = 5  # 4 of the number of postings, 1 of the bytes of a key
_WORD = 8  # bytes
_EIGHT, _LOWEST = np.uint64(8), np.uint64(0xFF)
_1, _3, _4, _7, _63 = np.uint64(1), np.uint64(3), np.uint64(4), np.uint64(7), np.uint64(63)
_PRIME, _OFFSET = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)


class Flat(NamedTuple):
    """Postings with their keys, in ascending order of these, and of entries under one key.

    Attributes:
        keys: shape (n,).
        entries: shape (n,).
        details: what the postings carry, shape (n,).
    """

    keys: U64
    entries: U64
    details: U64


class Widths(NamedTuple):
    """How postings of a section are packed.

    Attributes:
        first_entry: no entry has a smaller number.
        entry_bytes: of an entry's distance from that.
        detail_bytes: of what a posting carries; its upper bytes are left out.
    """

    first_entry: int
    entry_bytes: int
    detail_bytes: int


class PackedBlocks(NamedTuple):
    """Some blocks one behind the other.

    Attributes:
        packed: their bytes.
        first_keys: smallest key of each, shape (blocks,).
        stops: byte behind each, shape (blocks,).
        keys: how many keys they hold.
    """

    packed: Bytes
    first_keys: U64
    stops: I64
    keys: int


class Found(NamedTuple):
    """Where a key's postings are in a block.

    Attributes:
        first: number of the first posting.
        stop: number behind the last.
        postings: how many the block has.
        key_bytes: of each key.
    """

    first: int
    stop: int
    postings: int
    key_bytes: int


def widths_of(first_entry: int, stop_entry: int, detail_bytes: int) -> Widths:
    """Return how the postings of entries from one up to, not including, another are packed."""
    return Widths(first_entry, max(1, -(-(stop_entry - first_entry - 1).bit_length() // 8)), detail_bytes)


def block_bytes(postings: int, key_bytes: int, widths: Widths) -> int:
    """Return the bytes of a block.

    Args:
        postings: how many it has.
        key_bytes: of each key.
        widths: of all else.
    """
    return _words(_HEADER_BYTES + postings * (key_bytes + widths.entry_bytes + widths.detail_bytes)) + _WORD


@kernel
def pack_blocks(flat: Flat, widths: Widths) -> PackedBlocks:
    """Pack postings."""
    postings = len(flat.keys)
    most = postings // BLOCK_POSTINGS + 1
    packed = np.empty(_words(postings * (8 + widths.entry_bytes + widths.detail_bytes)) + most * 4 * _WORD, np.uint8)
    first_keys, stops = np.empty(most, np.uint64), np.empty(most, np.int64)
    blocks = keys = used = first = 0
    stop = 0
    while first < postings:
        while stop < postings and stop - first < BLOCK_POSTINGS:
            stop += 1
            while stop < postings and flat.keys[stop] == flat.keys[stop - 1]:
                stop += 1
            keys += 1
        used = _pack_block(flat, first, stop, widths, packed, used)
        first_keys[blocks], stops[blocks] = flat.keys[first], used
        blocks, first = blocks + 1, stop
    return PackedBlocks(packed[:used].copy(), first_keys[:blocks].copy(), stops[:blocks].copy(), keys)


@kernel
def _pack_block(flat: Flat, first: int, stop: int, widths: Widths, packed: Bytes, start: int) -> int:
    """Pack a block of some postings from a byte on, and return the byte behind it."""
    span, key_bytes = flat.keys[stop - 1] - flat.keys[first], 0
    while span > 0:
        span, key_bytes = span >> _EIGHT, key_bytes + 1
    at = _put(packed, start, np.uint64(stop - first), _HEADER_BYTES - 1)
    at = _put(packed, at, np.uint64(key_bytes), 1)
    for posting in range(first, stop):
        at = _put(packed, at, flat.keys[posting] - flat.keys[first], key_bytes)
    for posting in range(first, stop):
        at = _put(packed, at, flat.entries[posting] - np.uint64(widths.first_entry), widths.entry_bytes)
    for posting in range(first, stop):
        at = _put(packed, at, flat.details[posting], widths.detail_bytes)
    stop = _words(at)
    packed[at:stop] = 0
    return _put(packed, stop, _checksum(packed[start:stop].view(np.uint64)), _WORD)


@kernel
def _words(size: int) -> int:
    """Return how many bytes the words have that so many bytes need."""
    return (size + _WORD - 1) // _WORD * _WORD


@kernel
def unpack_blocks(words: U64, stops: I64, first_keys: U64, widths: Widths) -> tuple[Flat, bool]:
    """Return the postings of some blocks, and whether all are sound.

    Args:
        words: of the blocks.
        stops: byte behind each, shape (blocks,).
        first_keys: smallest key of each, shape (blocks,).
        widths: as they were packed with.
    """
    room, start = 0, 0
    for stop in stops:
        if not sound(words, start, stop):
            nothing = np.empty(0, np.uint64)
            return Flat(nothing, nothing, nothing), False
        room += _header(words, start)[0]
        start = stop
    flat = Flat(np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint64))
    used, start = 0, 0
    for block in range(len(stops)):
        postings, key_bytes = _header(words, start)
        for posting in range(postings):
            flat.keys[used + posting] = first_keys[block] + _key(words, start, posting, key_bytes)
        all_of_it = Found(0, postings, postings, key_bytes)
        used = take_postings(words, start, all_of_it, widths, flat.entries, flat.details, used)
        start = stops[block]
    return flat, True


@kernel
def find_in_block(words: U64, start: int, distance: np.uint64, share: float) -> Found:
    """Return where the postings of a key are in the block that begins at a byte.

    Args:
        words: of blocks.
        start: where the block begins.
        distance: of the key from the smallest of the block.
        share: about how much of the block is before the key: the search begins there.
    """
    postings, key_bytes = _header(words, start)
    first = min(max(int(share * postings), 0), postings - 1)
    while first < postings and _key(words, start, first, key_bytes) < distance:
        first += 1
    while first > 0 and _key(words, start, first - 1, key_bytes) >= distance:
        first -= 1
    stop = first
    while stop < postings and _key(words, start, stop, key_bytes) == distance:
        stop += 1
    return Found(first, stop, postings, key_bytes)


@kernel
def ask_for(words: U64, start: int, widths: Widths, share: float) -> None:
    """Ask for the memory that a search in the block that begins at a byte will read; see `find_in_block`."""
    postings, key_bytes = _header(words, start)
    column, posting = start + _HEADER_BYTES, int(share * postings)
    for width in (key_bytes, widths.entry_bytes, widths.detail_bytes):
        prefetch(words, (column + posting * width) // _WORD)
        column += postings * width


@kernel
def take_postings(words: U64, start: int, found: Found, widths: Widths, entries: U64, details: U64, place: int) -> int:
    """Unpack postings of the block that begins at a byte from a place of arrays on, and return the place behind."""
    entry_column = start + _HEADER_BYTES + found.postings * found.key_bytes
    detail_column = entry_column + found.postings * widths.entry_bytes
    for posting in range(found.first, found.stop):
        entry = _get(words, entry_column + posting * widths.entry_bytes, widths.entry_bytes)
        entries[place] = np.uint64(widths.first_entry) + entry
        details[place] = _get(words, detail_column + posting * widths.detail_bytes, widths.detail_bytes)
        place += 1
    return place


@kernel
def sound(words: U64, start: int, stop: int) -> bool:
    """Tell whether the checksum at the end of a block is that of its bytes."""
    behind = stop - _WORD
    return (
        behind > start
        and (stop - start) % _WORD == 0
        and _checksum(words[start // _WORD : behind // _WORD]) == words[behind // _WORD]
    )


@kernel
def _header(words: U64, start: int) -> tuple[int, int]:
    """Return how many postings a block has, and the bytes of a key."""
    return np.int64(_get(words, start, _HEADER_BYTES - 1)), np.int64(_get(words, start + _HEADER_BYTES - 1, 1))  # type: ignore[return-value]  # compiled


@kernel
def _key(words: U64, start: int, posting: int, key_bytes: int) -> np.uint64:
    """Return how far the key of a posting is from the smallest of its block."""
    return _get(words, start + _HEADER_BYTES + posting * key_bytes, key_bytes)


@kernel
def _get(words: U64, at: int, count: int) -> np.uint64:
    """Return a number of up to 8 bytes that begins at a byte, before the last word."""
    place, shift = np.uint64(at) >> _3, _EIGHT * (np.uint64(at) & _7)
    # A shift by 64 would be none: so what is above comes up in two steps, as does the mask.
    value = words[place] >> shift | (words[place + _1] << _1) << (_63 - shift)
    half = _4 * np.uint64(count)
    return value & ((_1 << half << half) - _1)  # type: ignore[no-any-return]  # compiled


@kernel
def _put(packed: Bytes, at: int, value: np.uint64, count: int) -> int:
    for _ in range(count):
        packed[at] = np.uint8(value & _LOWEST)
        value >>= _EIGHT
        at += 1
    return at


@kernel
def _checksum(words: U64) -> np.uint64:
    """Return a checksum of words: FNV-1a over every other one, twice, so that two are multiplied at a time."""
    even, odd = _OFFSET ^ np.uint64(_WORD * len(words)), _OFFSET
    for place in range(0, len(words) - 1, 2):
        even, odd = (even ^ words[place]) * _PRIME, (odd ^ words[place + 1]) * _PRIME
    if len(words) % 2:
        even = (even ^ words[len(words) - 1]) * _PRIME
    return mix64(even) ^ mix64(odd + _PRIME)
