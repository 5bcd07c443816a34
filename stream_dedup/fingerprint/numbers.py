"""The numbers of a text as a small sketch: what tells two bulletins of one template apart.

Knows runs of digits; knows nothing of what they count.
"""

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.fingerprint.sketch import PAD
from stream_dedup.hashing import I64, U32, hash_span
from stream_dedup.text.normal import word_table

NUMBER_BITS = 32  # of a value: two numbers must not be taken for one

_ZERO, _NINE = np.uint32(ord("0")), np.uint32(ord("9"))
_INNER = (np.uint32(ord(".")), np.uint32(ord(",")), np.uint32(ord(":")))


@kernel
def _is_digit(point: np.uint32) -> bool:
    return bool(_ZERO <= point <= _NINE)


@kernel
def number_sketch(points: U32, k: int, is_word: NDArray[np.bool_]) -> tuple[U32, int, int]:
    """Return the bottom-k sketch of the distinct numbers of a normal text.

    A number is a run of digits, with single `.`, `,` or `:` inside, together with the letter behind it, if there is
    one: 6月 and 6日 differ.

    Args:
        points: of the text.
        k: sketch size.
        is_word: for each code point whether it is part of words.

    Returns:
        Sketch, ascending, padded, shape (k,); how many values are used; how many distinct numbers there are.
    """
    hashes = np.empty(len(points), np.uint32)
    used, i, n = 0, 0, len(points)
    while i < n:
        if not _is_digit(points[i]):
            i += 1
            continue
        start = i
        while i < n and (_is_digit(points[i]) or _joins(points, i)):
            i += 1
        stop = i + 1 if i < n and is_word[points[i]] else i
        hashes[used] = np.uint32(hash_span(points, start, stop) >> np.uint64(64 - NUMBER_BITS))
        used += 1
    distinct = np.unique(hashes[:used])
    sketch = np.full(k, PAD, np.uint32)
    kept = min(k, len(distinct))
    sketch[:kept] = distinct[:kept]
    return sketch, kept, len(distinct)


@kernel
def _joins(points: U32, i: int) -> bool:
    inner = points[i] == _INNER[0] or points[i] == _INNER[1] or points[i] == _INNER[2]
    return bool(inner) and i + 1 < len(points) and _is_digit(points[i + 1])


def number_sketches(texts: list[U32], k: int) -> tuple[U32, I64, I64]:
    """Return the number sketches of normal texts: values (n, k), used lengths (n,), distinct numbers (n,)."""
    values = np.full((len(texts), k), PAD, np.uint32)
    lengths = np.zeros(len(texts), np.int64)
    sizes = np.zeros(len(texts), np.int64)
    for i, points in enumerate(texts):
        values[i], lengths[i], sizes[i] = number_sketch(points, k, word_table())
    return values, lengths, sizes
