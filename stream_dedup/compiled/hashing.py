"""64-bit hashes of code points and open-addressing tables keyed by them, compiled by numba.

Knows code points and integers; knows nothing of words, articles or storage. It never uses Python's `hash`, which
differs from process to process.
"""

import numpy as np

from stream_dedup.arrays import I32, I64, U32, U64, Bool
from stream_dedup.compiled.kernel import kernel

CODE_POINTS = 0x110000  # how many Unicode has
HASH_OF_NONE = np.uint64(0xCBF29CE484222325)  # the offset basis of FNV-1a
FNV_PRIME = np.uint64(0x100000001B3)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
EMPTY = np.uint64(0)


@kernel
def mix64(value: np.uint64) -> np.uint64:
    """Apply the finaliser of splitmix64 (Steele, Lea and Flood 2014): each output bit depends on all input bits."""
    value = (value ^ (value >> _30)) * MIX_1
    value = (value ^ (value >> _27)) * MIX_2
    return value ^ (value >> _31)


@kernel
def hash_span(code_points: U32, start: int, stop: int) -> np.uint64:
    """Return the hash of code_points[start:stop]: FNV-1a over code points, then `mix64`; never `EMPTY`."""
    value = HASH_OF_NONE
    for i in range(start, stop):
        value = hash_step(value, code_points[i])
    return hash_end(value)


@kernel
def hash_step(value: np.uint64, code_point: np.uint32) -> np.uint64:
    """Extend the running value of a span's hash by one code point; the value of an empty span is `HASH_OF_NONE`."""
    return (value ^ np.uint64(code_point)) * FNV_PRIME


@kernel
def hash_end(value: np.uint64) -> np.uint64:
    """Return the hash of a span from its last running value; see `hash_step`."""
    value = mix64(value)
    return value if value != EMPTY else np.uint64(1)


@kernel
def hash_marked(code_points: U32, marked: Bool) -> tuple[np.uint64, int]:
    """Return the hash of the marked code points of a text, as `hash_span` computes it, and how many there are.

    Args:
        code_points: the text.
        marked: whether each code point is marked, shape (0x110000,).
    """
    value, count = HASH_OF_NONE, 0
    for point in code_points:
        if marked[point]:
            value = hash_step(value, point)
            count += 1
    return hash_end(value), count


@kernel
def upper_half(value: np.uint64) -> np.uint32:
    """Return the upper 32 bits of a hash."""
    return np.uint32(value >> _32)


def code_points(text: str) -> U32:
    """Return the code points of a text, shape (len(text),); lone surrogates are kept."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def hash_words(words: list[str]) -> U64:
    """Return the hash of each word, shape (len(words),)."""
    stops = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
    return hash_spans(code_points("".join(words)), stops)


@kernel
def hash_spans(points: U32, stops: I64) -> U64:
    """Return the hash of each word, shape of `stops`: a word ends at its stop and begins where the one before ends."""
    hashes = np.empty(len(stops), np.uint64)
    start = 0
    for i in range(len(stops)):
        hashes[i] = hash_span(points, start, stops[i])
        start = stops[i]
    return hashes


@kernel
def hash_prefixes(code_points: U32, parents: I32, roots: int) -> U64:
    """Return the hash of each prefix in a prefix tree, as `hash_span` computes it, shape of `parents`.

    Args:
        code_points: last code point of each prefix.
        parents: index of each prefix without its last code point; a parent comes before its children.
        roots: number of prefixes of one code point; they come first and have no parent.
    """
    values = np.empty(len(parents), np.uint64)
    for i in range(len(parents)):
        values[i] = hash_step(HASH_OF_NONE if i < roots else values[parents[i]], code_points[i])
    for i in range(len(values)):
        values[i] = hash_end(values[i])
    return values


@kernel
def find_slot(keys: U64, key: np.uint64) -> int:
    """Return the slot of a key in an open-addressing table, or of the free slot where it belongs.

    Args:
        keys: the table, a power of two long, `EMPTY` where free, never full.
        key: a hash other than `EMPTY`.
    """
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)  # type: ignore[return-value]  # compiled code has no Python integers


@kernel
def number_slot(number: np.uint64, last: int) -> int:
    """Return the first slot to probe for a number in an open-addressing table; consecutive numbers spread evenly.

    Fibonacci hashing (Knuth 1973, The Art of Computer Programming 3, 6.4).

    Args:
        number: up to 64 bits.
        last: index of the table's last slot: its size, a power of two up to 2^32, minus one.
    """
    return np.int64((number * GOLDEN) >> _32) & last  # type: ignore[return-value]  # compiled


@kernel
def range_of_key(key: np.uint64, parts: int) -> int:
    """Map a 64-bit key to one of `parts` equal ranges, from 0 on; ascending keys map to ascending ranges.

    Uses a multiplication instead of a division (Lemire 2019, "Fast random integer generation in an interval").

    Args:
        key: only its upper 32 bits count.
        parts: number of ranges, less than 2^32.
    """
    return np.int64(((key >> _32) * np.uint64(parts)) >> _32)  # type: ignore[return-value]  # compiled


@kernel
def place_all(keys: U64, wanted: U64) -> I64:
    """Put keys into a table that has room for them and return their slots, shape of `wanted`."""
    slots = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        slot = find_slot(keys, wanted[i])
        keys[slot] = wanted[i]
        slots[i] = slot
    return slots


@kernel
def table_size(entries: int) -> int:
    """Return how long a table must be to be at most half full with `entries` keys: a power of two."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


def empty_table(entries: int) -> U64:
    """Return an empty table at most half full once it holds `entries` keys."""
    return np.zeros(table_size(entries), np.uint64)
