"""Packs numbers into as few bits as they need, one after another in 64-bit words, lowest bits first.

Knows fixed widths, numbers of variable length and ascending hashes; knows nothing of what they mean.

Bit positions are uint64: for a signed index, compiled code would first check whether it is negative.
"""

import numpy as np

from stream_dedup.arrays import U32, U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.simhash import popcount

MARGIN_BITS = 192  # reading may access this many bits beyond the end of the data
LONGEST_NUMBER = 80  # bits
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_0, _1, _6, _63 = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
_WORD = np.uint64(64)
_GROUP_BITS, _MORE = np.uint64(7), np.uint64(0x80)
_GROUP = _MORE - _1


@kernel
def put(words: U64, at: np.uint64, value: np.uint64, width: np.uint64) -> np.uint64:
    """Write a value of at most `width` bits at bit `at`, where all bits are still zero; return where it ends."""
    word, shift = at >> _6, at & _63
    words[word] |= value << shift
    # In two steps, since a shift by 64 would do nothing.
    words[word + _1] |= (value >> _1) >> (_63 - shift)
    return at + width


@kernel
def get(words: U64, at: np.uint64, width: np.uint64) -> np.uint64:
    """Return the value of `width` bits, 0 to 64, at bit `at`."""
    return _window(words, at) & ~((_ALL << (width >> _1)) << (width - (width >> _1)))


@kernel
def _window(words: U64, at: np.uint64) -> np.uint64:
    """Return the 64 bits at bit `at`."""
    word, shift = at >> _6, at & _63
    return np.uint64((words[word] >> shift) | ((words[word + _1] << _1) << (_63 - shift)))


@kernel
def put_number(words: U64, at: np.uint64, value: np.uint64) -> np.uint64:
    """Write a number in groups of 7 bits, the lowest first, each with a bit that says whether more follow (LEB128)."""
    while value > _GROUP:
        at = put(words, at, (value & _GROUP) | _MORE, _GROUP_BITS + _1)
        value >>= _GROUP_BITS
    return put(words, at, value, _GROUP_BITS + _1)


@kernel
def get_number(words: U64, at: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return a number that `put_number` wrote, and where it ends."""
    value, shift = _0, _0
    while shift < _WORD:
        group = get(words, at, _GROUP_BITS + _1)
        value |= (group & _GROUP) << shift
        at, shift = at + _GROUP_BITS + _1, shift + _GROUP_BITS
        if group < _MORE:
            break
    return value, at


@kernel
def low_bits(bits: np.uint64, size: np.uint64) -> np.uint64:
    """Return how many low bits of each gap between neighbours among `size` uniform hashes are written verbatim.

    The gaps are nearly geometric with mean g = 2^bits / size, for which the best parameter of a Golomb-Rice code is the
    smallest b with 2^b >= 0.48 g (Kiely 2004, "Selecting the Golomb parameter in Rice coding"); with 0.5 instead, no
    logarithm is needed. A gap then takes log2(g) + 1.5 bits; its entropy is log2(g) + 1.44 bits.

    Args:
        bits: width of each hash.
        size: number of hashes, of which only the smallest are written.
    """
    low = bits
    while size > _0 and low > _0:
        size, low = size >> _1, low - _1
    return low


@kernel
def ascending_bits(values: U32, length: np.uint64, low: np.uint64) -> np.uint64:
    """Return the most bits that `put_ascending` may take."""
    return length * (low + _1) + (np.uint64(values[length - _1]) >> low) if length > _0 else _0


@kernel
def put_ascending(words: U64, at: np.uint64, values: U32, length: np.uint64, low: np.uint64) -> np.uint64:
    """Write the first `length` values of an ascending array as gaps in a Golomb-Rice code; return where they end.

    The `low` lower bits of all gaps come first; then, for each gap, as many zeros as its upper bits say, and a one.
    Separated like this, they are read twice as fast.
    """
    before, one = _0, at + length * low
    for i in range(length):
        gap = np.uint64(values[i]) - before
        before += gap
        upper = gap >> low
        at = put(words, at, gap ^ (upper << low), low)
        one += upper
        words[one >> _6] |= _1 << (one & _63)
        one += _1
    return one


@kernel
def get_ascending(
    words: U64, at: np.uint64, stop: np.uint64, values: U32, length: np.uint64, low: np.uint64
) -> np.uint64:
    """Read what `put_ascending` wrote into the first `length` values; return where it ends: after `stop` if damaged."""
    start = at + length * low
    window_at, end, used, lower = start, start, _0, _0
    while used < length and window_at <= stop:
        window = _window(words, window_at)
        while window != _0 and used < length:
            zeros = np.uint64(popcount(~window & (window - _1)))
            window &= window - _1
            end = window_at + zeros + _1
            lower += get(words, at, low)
            at, used = at + low, used + _1
            values[used - _1] = np.uint32(((end - start - used) << low) + lower)
        window_at += _WORD
    return end if used == length else stop + _1
