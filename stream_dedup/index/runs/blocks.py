"""Blocks: the postings of all keys with the same uppermost bits, packed in rows, with a checksum.

Knows how postings are packed and found in a block; knows nothing of files or of what is looked for.

Keys are spread evenly over 64 bits, so that their uppermost bits say in which block each is, and those behind about
where there. A block is its postings in ascending order of their keys, and of entries under one key, and the checksum.
A posting is a row: the rest of its key, its entry's distance from the first of the run, and what it carries, each of
as many bytes as the largest needs, little-endian. So nothing but a key's own postings is looked at, and these are side
by side. How many rows are before each block is known in memory: its fence.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled.hashing import U64, in_proportion, mix64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import prefetch
from stream_dedup.compiled.unaligned import WORD, put_word, word_at

Bytes = NDArray[np.uint8]

LEAST_POSTINGS = 48  # of a block in the mean; of twice as many two blocks are made
CHECKED = np.uint64(1 << 63)  # in the fence of a block: it was found sound since the run was opened
_KEY_BITS = 64
_1, _4 = np.uint64(1), np.uint64(4)
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


class Layout(NamedTuple):
    """How the postings of a section are packed.

    Attributes:
        block_bits: uppermost bits of a key, which say in which of 2^block_bits blocks it is.
        idle_bits: lowest bits of a key, which are zero in all.
        first_entry: no entry has a smaller number.
        key_bytes: of a key's bits between those.
        entry_bytes: of an entry's distance from the first.
        detail_bytes: of what a posting carries; its upper bytes are left out.
    """

    block_bits: int
    idle_bits: int
    first_entry: int
    key_bytes: int
    entry_bytes: int
    detail_bytes: int


def no_postings() -> Flat:
    """Return no postings."""
    return Flat(*np.empty((3, 0), np.uint64))


def layout_of(entries: tuple[int, int], block_bits: int, idle_bits: int, detail_bytes: int) -> Layout:
    """Return how the postings of a section are packed.

    Args:
        entries: number of the first, and number behind the last.
        block_bits: uppermost bits of a key that say in which block it is.
        idle_bits: lowest bits that are zero in all keys; at most 63.
        detail_bytes: of what a posting carries.
    """
    first, stop = entries
    key_bytes = _bytes_of(max(0, _KEY_BITS - block_bits - idle_bits))
    return Layout(
        block_bits, idle_bits, first, key_bytes, max(1, _bytes_of((stop - first - 1).bit_length())), detail_bytes
    )


def block_bits_of(postings: int) -> int:
    """Return how many uppermost bits of a key say in which block it is, where there are so many postings."""
    return max(0, (postings // LEAST_POSTINGS).bit_length() - 1)


def idle_bits_of(keys: U64) -> int:
    """Return how many of the lowest bits are zero in all keys: at most 63."""
    together = int(np.bitwise_or.reduce(keys, initial=np.uint64(1 << (_KEY_BITS - 1))))
    return (together & -together).bit_length() - 1


def _bytes_of(bits: int) -> int:
    return -(-bits // 8)


@kernel
def rows_before(fences: U64, block: int) -> int:
    """Return how many rows are before a block."""
    return np.int64(fences[block] & ~CHECKED)  # type: ignore[return-value]  # compiled code has no Python integers


@kernel
def row_bytes(layout: Layout) -> int:
    """Return the bytes of a posting."""
    return layout.key_bytes + layout.entry_bytes + layout.detail_bytes


@kernel
def block_start(layout: Layout, rows: int, block: int) -> int:
    """Return the byte at which a block begins, counted from the first of its section.

    Args:
        layout: of the section.
        rows: how many are before it.
        block: its number.
    """
    return rows * row_bytes(layout) + block * WORD


@kernel
def block_of(layout: Layout, key: np.uint64) -> int:
    """Return the number of the block in which a key is, if it is anywhere."""
    # A shift by 64 would be none: so it is made in two steps.
    return np.int64(key >> _1 >> np.uint64(_KEY_BITS - 1 - layout.block_bits))  # type: ignore[return-value]  # compiled


@kernel
def pack_rows(flat: Flat, layout: Layout, first: int, fences: U64) -> Bytes:
    """Pack the postings of some blocks that follow one another.

    Args:
        flat: of all their keys.
        layout: of the section.
        first: number of the first block.
        fences: how many postings of the section are before each of them, and behind the last; only the first is given.
    """
    packed = np.empty(len(flat.keys) * row_bytes(layout) + len(fences) * WORD, np.uint8)
    at = row = 0
    for block in range(len(fences) - 1):
        start = at
        while row < len(flat.keys) and block_of(layout, flat.keys[row]) == first + block:
            # What is written of a field beyond its bytes the next one overwrites, or the checksum.
            put_word(packed, at, _rest(layout, flat.keys[row]))
            put_word(packed, at + layout.key_bytes, flat.entries[row] - np.uint64(layout.first_entry))
            put_word(packed, at + layout.key_bytes + layout.entry_bytes, flat.details[row])
            at += row_bytes(layout)
            row += 1
        fences[block + 1] = fences[0] + np.uint64(row)
        put_word(packed, at, _checksum(packed, start, at))
        at += WORD
    return packed[:at]


@kernel
def unpack_rows(packed: Bytes, fences: U64, first: int, layout: Layout) -> tuple[Flat, bool]:
    """Return the postings of some blocks that follow one another, and whether all are sound.

    Args:
        packed: their bytes.
        fences: how many postings of the section are before each of them, and behind the last.
        first: number of the first.
        layout: of the section.
    """
    rows = rows_before(fences, len(fences) - 1) - rows_before(fences, 0)
    flat = Flat(np.empty(rows, np.uint64), np.empty(rows, np.uint64), np.empty(rows, np.uint64))
    at = row = 0
    for block in range(len(fences) - 1):
        stop = rows_before(fences, block + 1) - rows_before(fences, 0)
        if not sound(packed, at, at + (stop - row) * row_bytes(layout)):
            return Flat(flat.keys[:0], flat.entries[:0], flat.details[:0]), False
        upper = np.uint64(first + block) << np.uint64(_KEY_BITS - 1 - layout.block_bits) << _1
        while row < stop:
            flat.keys[row] = upper | _get(packed, at, layout.key_bytes) << np.uint64(layout.idle_bits)
            flat.entries[row], flat.details[row] = posting_at(packed, at, layout)
            at += row_bytes(layout)
            row += 1
        at += WORD
    return flat, True


@kernel
def posting_at(data: Bytes, at: int, layout: Layout) -> tuple[np.uint64, np.uint64]:
    """Return entry and detail of the row that begins at a byte."""
    entry = _get(data, at + layout.key_bytes, layout.entry_bytes)
    detail = _get(data, at + layout.key_bytes + layout.entry_bytes, layout.detail_bytes)
    return np.uint64(layout.first_entry) + entry, detail


@kernel
def guess_of(layout: Layout, key: np.uint64, rows: int) -> int:
    """Return about which of a block's rows is the first of a key; there is one, or none at all."""
    return in_proportion(key << np.uint64(layout.block_bits), rows)


@kernel
def find_rows(data: Bytes, start: int, rows: int, key: np.uint64, layout: Layout) -> tuple[int, int]:
    """Return the first row of a key in a block, and the row behind its last.

    Args:
        data: holds the block.
        start: byte at which it begins.
        rows: that it has.
        key: that is looked for.
        layout: of the section.
    """
    if key & ((_1 << np.uint64(layout.idle_bits)) - _1):
        return 0, 0
    size, wanted, mask = row_bytes(layout), _rest(layout, key), _mask(layout.key_bytes)
    first = guess_of(layout, key, rows)
    while first < rows and word_at(data, start + first * size) & mask < wanted:
        first += 1
    while first > 0 and word_at(data, start + (first - 1) * size) & mask >= wanted:
        first -= 1
    stop = first
    while stop < rows and word_at(data, start + stop * size) & mask == wanted:
        stop += 1
    return first, stop


@kernel
def ask_for_rows(data: Bytes, start: int, rows: int, key: np.uint64, layout: Layout) -> None:
    """Ask for the memory that `find_rows` will read."""
    at = start + guess_of(layout, key, rows) * row_bytes(layout)
    prefetch(data, at - 32)
    prefetch(data, at + 32)


@kernel
def sound(data: Bytes, start: int, stop: int) -> bool:
    """Tell whether the checksum behind the rows between two bytes is theirs."""
    return bool(word_at(data, stop) == _checksum(data, start, stop))


@kernel
def _rest(layout: Layout, key: np.uint64) -> np.uint64:
    """Return the bits of a key that its block does not tell."""
    upper = np.uint64(layout.block_bits)
    return (key << upper) >> upper >> np.uint64(layout.idle_bits)


@kernel
def _mask(count: int) -> np.uint64:
    """Return a number of so many bytes, 0 to 8, of ones."""
    half = _4 * np.uint64(count)
    return (_1 << half << half) - _1


@kernel
def _get(data: Bytes, at: int, count: int) -> np.uint64:
    """Return a number of so many bytes, 0 to 8, that begins in a row."""
    return word_at(data, at) & _mask(count)


@kernel
def _checksum(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return a checksum of bytes: FNV-1a over every other word, twice, so that two are multiplied at a time.

    Behind them eight more can be read.
    """
    even, odd = _OFFSET ^ np.uint64(stop - start), _OFFSET
    at = start
    while at + 2 * WORD <= stop:
        even, odd = (even ^ word_at(data, at)) * _PRIME, (odd ^ word_at(data, at + WORD)) * _PRIME
        at += 2 * WORD
    if at + WORD <= stop:
        even = (even ^ word_at(data, at)) * _PRIME
        at += WORD
    odd = (odd ^ _get(data, at, stop - at)) * _PRIME
    return mix64(even) ^ mix64(odd + _PRIME)
