"""The likeliest way through the dictionary's words.

Knows the words as a double array; knows nothing of characters that are left over.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64
from stream_dedup.text.precise.alphabet import OUTSIDE, U16
from stream_dedup.text.precise.double_array import BASE_BITS, PARENT_SHIFT, RANK_BITS
from stream_dedup.text.precise.nodes import I32

F64 = NDArray[np.float64]
_RANKS, _BASES = (1 << RANK_BITS) - 1, (1 << BASE_BITS) - 1


class Prefixes(NamedTuple):
    """The words of a dictionary.

    Attributes:
        cells: the double array of their prefixes.
        scores: logarithm of a word's probability by the rank of its frequency; at 0 that of a character by itself.
    """

    cells: I64
    scores: F64


@kernel
def find_route(codes: U16, length: int, words: Prefixes, scores: F64, route: I32) -> None:
    """Find for each place of a text where the word ends that begins there on the likeliest way to the block's end.

    Args:
        codes: of the text's characters, `OUTSIDE` behind the last, shape (length + 1,) or more.
        length: characters.
        words: to choose from.
        scores: written: of the way from each place, shape of `codes`.
        route: written: where each word ends, shape of `codes`.
    """
    cells = words.cells
    scores[length] = 0.0
    for i in range(length - 1, -1, -1):
        if codes[i] == OUTSIDE:
            scores[i], route[i] = 0.0, i + 1
            continue
        best, best_stop = -np.inf, i
        place, stop = np.int64(codes[i]), i + 1
        cell = cells[place]
        while True:
            rank = cell & _RANKS
            if rank:
                score = words.scores[rank] + scores[stop]
                if score >= best:  # of equal ways that with the longer word, as in jieba
                    best, best_stop = score, stop
            base = cell >> RANK_BITS & _BASES
            if base == 0:
                break
            following = base + np.int64(codes[stop])
            cell = cells[following]
            if cell >> PARENT_SHIFT != place:
                break
            place, stop = following, stop + 1
        if best_stop == i:
            best, best_stop = words.scores[0] + scores[i + 1], i + 1
        scores[i], route[i] = best, best_stop


@kernel
def is_word(codes: U16, start: int, stop: int, cells: I64) -> bool:
    """Tell whether codes[start:stop], at least one, is a word."""
    place = np.int64(codes[start])
    cell = cells[place]
    for i in range(start + 1, stop):
        base = cell >> RANK_BITS & _BASES
        following = base + np.int64(codes[i])
        cell = cells[following]
        if base == 0 or cell >> PARENT_SHIFT != place:
            return False
        place = following
    return bool(cell & _RANKS)
