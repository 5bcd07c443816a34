"""Blocks: the postings of all keys with the same uppermost bits, packed in rows, with a checksum.

Knows how postings are packed and found in a block; knows nothing of files or of what is searched for.

Keys are spread evenly over 64 bits, so a key's uppermost bits give its block, and the next bits roughly its place in
it. A block is its postings in ascending order of key, then of entry, followed by the checksum. A posting is a row: the
rest of its key, its entry's distance from the first entry of the run, and its detail, each little-endian in as many
bytes as the largest needs. So a search looks at little but the key's own postings, which are adjacent. The number of
rows before each block, its fence, is kept in memory.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import U64, Bytes
from stream_dedup.compiled.hashing import FNV_PRIME, HASH_OF_NONE, mix64, range_of_key
from stream_dedup.compiled.kernel import kernel
from stream_dedup.compiled.prefetch import prefetch
from stream_dedup.compiled.unaligned import WORD, put_word, word_at

LEAST_POSTINGS = 48  # per block on average; twice as many are split into two blocks
CHECKED = np.uint64(1 << 63)  # in the fence of a block: it was found sound since the run was opened
KEY_BITS = 64
_1, _4 = np.uint64(1), np.uint64(4)


class KeyedPostings(NamedTuple):
    """Postings with their keys, in ascending order of key, then of entry.

    Attributes:
        keys: shape (n,).
        entries: shape (n,).
        details: see `PostingKind`, shape (n,).
    """

    keys: U64
    entries: U64
    details: U64


class Layout(NamedTuple):
    """How the postings of a section are packed.

    Attributes:
        block_bits: number of uppermost bits of a key, which say in which of 2^block_bits blocks it is.
        zero_bits: number of lowest bits, which are zero in all keys.
        first_entry: no entry has a smaller number.
        key_bytes: bytes for a key's bits between those.
        entry_bytes: bytes for an entry's distance from `first_entry`.
        detail_bytes: bytes for a detail; its upper bytes are left out.
    """

    block_bits: int
    zero_bits: int
    first_entry: int
    key_bytes: int
    entry_bytes: int
    detail_bytes: int


def no_postings() -> KeyedPostings:
    """Return no postings."""
    return KeyedPostings(*np.empty((3, 0), np.uint64))


def layout_of(entries: tuple[int, int], block_bits: int, zero_bits: int, detail_bytes: int) -> Layout:
    """Return how the postings of a section are packed.

    Args:
        entries: number of the first, and number after the last.
        block_bits: number of uppermost bits of a key that say in which block it is.
        zero_bits: number of lowest bits that are zero in all keys; at most 63.
        detail_bytes: bytes of a posting's detail.
    """
    first, stop = entries
    key_bytes = _bytes_of(max(0, KEY_BITS - block_bits - zero_bits))
    return Layout(
        block_bits, zero_bits, first, key_bytes, max(1, _bytes_of((stop - first - 1).bit_length())), detail_bytes
    )


def block_bits_of(postings: int) -> int:
    """Return how many uppermost bits of a key say in which block it is, given the number of postings."""
    return max(0, (postings // LEAST_POSTINGS).bit_length() - 1)


def zero_bits_of(keys: U64) -> int:
    """Return how many of the lowest bits are zero in all keys: at most 63."""
    together = int(np.bitwise_or.reduce(keys, initial=np.uint64(1 << (KEY_BITS - 1))))
    return (together & -together).bit_length() - 1


def _bytes_of(bits: int) -> int:
    return -(-bits // 8)


@kernel
def rows_before(fences: U64, block: int) -> int:
    """Return how many rows are before a block."""
    return np.int64(fences[block] & ~CHECKED)  # type: ignore[return-value]  # compiled code has no Python integers


@kernel
def row_bytes(layout: Layout) -> int:
    """Return the size of a posting in bytes."""
    return layout.key_bytes + layout.entry_bytes + layout.detail_bytes


@kernel
def block_start(layout: Layout, rows: int, block: int) -> int:
    """Return the byte at which a block begins, counted from the start of its section.

    Args:
        layout: layout of the section.
        rows: how many rows are before it.
        block: its number.
    """
    return rows * row_bytes(layout) + block * WORD


@kernel
def block_of(layout: Layout, key: np.uint64) -> int:
    """Return the number of the block that a key is in, if it is in the section."""
    # In two steps, since a shift by 64 would do nothing.
    return np.int64(key >> _1 >> np.uint64(KEY_BITS - 1 - layout.block_bits))  # type: ignore[return-value]  # compiled


@kernel
def pack_rows(keyed: KeyedPostings, layout: Layout, first: int, fences: U64) -> Bytes:
    """Pack the postings of consecutive blocks.

    Args:
        keyed: the postings of all their keys.
        layout: layout of the section.
        first: number of the first block.
        fences: how many postings of the section are before each of them, and after the last; all but the first of
            these are filled in.
    """
    packed = np.empty(len(keyed.keys) * row_bytes(layout) + len(fences) * WORD, np.uint8)
    at = row = 0
    for block in range(len(fences) - 1):
        start = at
        while row < len(keyed.keys) and block_of(layout, keyed.keys[row]) == first + block:
            # What is written beyond the bytes of a field is overwritten by the next field or by the checksum.
            put_word(packed, at, _rest(layout, keyed.keys[row]))
            put_word(packed, at + layout.key_bytes, keyed.entries[row] - np.uint64(layout.first_entry))
            put_word(packed, at + layout.key_bytes + layout.entry_bytes, keyed.details[row])
            at += row_bytes(layout)
            row += 1
        fences[block + 1] = fences[0] + np.uint64(row)
        put_word(packed, at, _checksum(packed, start, at))
        at += WORD
    return packed[:at]


@kernel
def unpack_rows(packed: Bytes, fences: U64, first: int, layout: Layout) -> tuple[KeyedPostings, bool]:
    """Return the postings of consecutive blocks, and whether all blocks are sound.

    Args:
        packed: their bytes.
        fences: how many postings of the section are before each of them, and after the last.
        first: number of the first.
        layout: layout of the section.
    """
    rows = rows_before(fences, len(fences) - 1) - rows_before(fences, 0)
    keyed = KeyedPostings(np.empty(rows, np.uint64), np.empty(rows, np.uint64), np.empty(rows, np.uint64))
    at = row = 0
    for block in range(len(fences) - 1):
        stop = rows_before(fences, block + 1) - rows_before(fences, 0)
        if not sound(packed, at, at + (stop - row) * row_bytes(layout)):
            return KeyedPostings(keyed.keys[:0], keyed.entries[:0], keyed.details[:0]), False
        upper = np.uint64(first + block) << np.uint64(KEY_BITS - 1 - layout.block_bits) << _1
        while row < stop:
            keyed.keys[row] = upper | _get(packed, at, layout.key_bytes) << np.uint64(layout.zero_bits)
            keyed.entries[row], keyed.details[row] = posting_at(packed, at, layout)
            at += row_bytes(layout)
            row += 1
        at += WORD
    return keyed, True


@kernel
def posting_at(data: Bytes, at: int, layout: Layout) -> tuple[np.uint64, np.uint64]:
    """Return the entry and detail of the row that begins at byte `at`."""
    entry = _get(data, at + layout.key_bytes, layout.entry_bytes)
    detail = _get(data, at + layout.key_bytes + layout.entry_bytes, layout.detail_bytes)
    return np.uint64(layout.first_entry) + entry, detail


@kernel
def estimated_row(layout: Layout, key: np.uint64, rows: int) -> int:
    """Return roughly which of a block's rows is the first of a key, whether or not the key has any."""
    return range_of_key(key << np.uint64(layout.block_bits), rows)


@kernel
def find_rows(data: Bytes, start: int, rows: int, key: np.uint64, layout: Layout) -> tuple[int, int]:
    """Return the first row of a key in a block, and the row after its last.

    Args:
        data: holds the block.
        start: byte at which it begins.
        rows: how many rows it has.
        key: the key to find.
        layout: layout of the section.
    """
    if key & ((_1 << np.uint64(layout.zero_bits)) - _1):
        return 0, 0
    size, wanted, mask = row_bytes(layout), _rest(layout, key), _mask(layout.key_bytes)
    first = estimated_row(layout, key, rows)
    while first < rows and word_at(data, start + first * size) & mask < wanted:
        first += 1
    while first > 0 and word_at(data, start + (first - 1) * size) & mask >= wanted:
        first -= 1
    stop = first
    while stop < rows and word_at(data, start + stop * size) & mask == wanted:
        stop += 1
    return first, stop


@kernel
def prefetch_rows(data: Bytes, start: int, rows: int, key: np.uint64, layout: Layout) -> None:
    """Prefetch the memory that `find_rows` will read."""
    at = start + estimated_row(layout, key, rows) * row_bytes(layout)
    prefetch(data, at - 32)
    prefetch(data, at + 32)


@kernel
def sound(data: Bytes, start: int, stop: int) -> bool:
    """Tell whether the rows from byte `start` to `stop` match the checksum that follows them."""
    return bool(word_at(data, stop) == _checksum(data, start, stop))


@kernel
def _rest(layout: Layout, key: np.uint64) -> np.uint64:
    """Return the bits of a key that do not follow from its block."""
    upper = np.uint64(layout.block_bits)
    return (key << upper) >> upper >> np.uint64(layout.zero_bits)


@kernel
def _mask(count: int) -> np.uint64:
    """Return a number whose lowest `count` bytes, 0 to 8, are all ones."""
    half = _4 * np.uint64(count)
    return (_1 << half << half) - _1


@kernel
def _get(data: Bytes, at: int, count: int) -> np.uint64:
    """Return the number of `count` bytes, 0 to 8, that begins at byte `at`."""
    return word_at(data, at) & _mask(count)


@kernel
def _checksum(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return a checksum of bytes: two interleaved FNV-1a hashes, each over every other word, multiplied in parallel.

    The eight bytes after them must be readable.
    """
    even, odd = HASH_OF_NONE ^ np.uint64(stop - start), HASH_OF_NONE
    at = start
    while at + 2 * WORD <= stop:
        even, odd = (even ^ word_at(data, at)) * FNV_PRIME, (odd ^ word_at(data, at + WORD)) * FNV_PRIME
        at += 2 * WORD
    if at + WORD <= stop:
        even = (even ^ word_at(data, at)) * FNV_PRIME
        at += WORD
    odd = (odd ^ _get(data, at, stop - at)) * FNV_PRIME
    return mix64(even) ^ mix64(odd + FNV_PRIME)
