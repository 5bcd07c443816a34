"""The likeliest path through the dictionary's words.

Knows the words as a double array; knows nothing of characters that are left over.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import F64, I32, I64, U16
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.precise.alphabet import OUTSIDE
from stream_dedup.text.precise.double_array import BASE_BITS, NUMBER_BITS, PARENT_SHIFT
from stream_dedup.text.precise.model import larger

_NUMBERS, _BASES = (1 << NUMBER_BITS) - 1, (1 << BASE_BITS) - 1
BEHIND = 3  # characters read past a text's end: words of up to three characters are looked up without a check


class Prefixes(NamedTuple):
    """The words of a dictionary.

    Attributes:
        cells: the double array of their prefixes. A character that is not a word has the last number but one, one that
            ends a block has the last.
        scores: logarithm of each word's probability by its number: -infinity at 0 (not a word), that of a single
            character at the last number but one, infinity at the last.
    """

    cells: I64
    scores: F64


class BestPaths(NamedTuple):
    """The likeliest paths through a text of n characters; each array has room for n + `BEHIND` of them.

    Attributes:
        codes: of the characters, `OUTSIDE` after the last.
        scores: of the path from each position to the end of its block.
        lengths: of the first word on that path.
        numbers: of that word; one of the last two if it is a character that is not a word.
        pairs: cell of the two characters from each position, 0 if no word begins with them.
        triples: of the three characters, likewise.
        seconds: index in the double array where the cell of the two would be.
        pair_scores: of the two as a word.
    """

    codes: U16
    scores: F64
    lengths: I32
    numbers: I32
    pairs: I64
    triples: I64
    seconds: I32
    pair_scores: F64


def prefixes_of(cells: I64, alphabet: int, scores: F64) -> Prefixes:
    """Return the words of a dictionary.

    Args:
        cells: from `double_array`; the numbers of single characters are filled in.
        alphabet: how many codes there are.
        scores: logarithm of each word's probability by its number; at 0 that of a single character.
    """
    alone, outside = len(scores), len(scores) + 1
    own = cells[:alphabet]
    own |= np.where(own & _NUMBERS == 0, alone, 0)
    own[OUTSIDE] += outside - alone
    return Prefixes(cells, np.concatenate([[-np.inf], scores[1:], scores[:1], [np.inf]]))


@kernel
def room_for(length: int) -> BestPaths:
    """Return room for the paths through texts of up to `length` characters."""
    size = length + BEHIND
    return BestPaths(
        np.empty(size, np.uint16),
        np.empty(size, np.float64),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.float64),
    )


@kernel
def find_best_paths(length: int, words: Prefixes, ways: BestPaths) -> None:
    """Find for each position of a text the word that begins there on the likeliest path to the end of the block.

    Words of up to three characters, which nearly all are, are looked up first and chosen from without any branch: the
    processor could not predict it and would guess wrong at every third character.

    Args:
        length: of the text, in characters.
        words: to choose from.
        ways: with `codes` filled in; the other arrays are written.
    """
    _look_up(length, words, ways)
    cells, values, codes = words.cells, words.scores, ways.codes
    scores, lengths, numbers, pairs, triples = ways.scores, ways.lengths, ways.numbers, ways.pairs, ways.triples
    alone = len(values) - 2
    for i in range(length, length + BEHIND):
        scores[i] = 0.0
    after_one = after_two = after_three = 0.0
    for i in range(length - 1, -1, -1):
        first, second, third = cells[codes[i]] & _NUMBERS, pairs[i] & _NUMBERS, triples[i] & _NUMBERS
        # A character that is not a word stands alone only where no word begins.
        own = np.int64(0) if first == alone and (second | third) != 0 else first
        one, two, three = values[own] + after_one, ways.pair_scores[i] + after_two, values[third] + after_three
        # Of equally likely paths the one with the longer word, as in jieba.
        is_three = np.int64(three >= two)
        two = larger(two, three)
        is_longer = np.int64(two >= one)
        lengths[i] = 1 + (1 + is_three) * is_longer
        numbers[i] = first + (second + (third - second) * is_three - first) * is_longer
        best = _smaller(larger(one, two), 0.0)  # only what ends a block scores above 0, and paths stop there
        if triples[i] >> NUMBER_BITS & _BASES:
            found = _longer_words(i, words, ways, -np.inf if own == alone else best)
            best = best if found == -np.inf else found
        scores[i] = best
        after_one, after_two, after_three = best, after_one, after_two


@kernel
def _look_up(length: int, words: Prefixes, ways: BestPaths) -> None:
    """Find the cells of the two and of the three characters from each position.

    Nothing else is done here, so that the processor fetches many cells at a time.
    """
    cells, codes, pairs, seconds = words.cells, ways.codes, ways.pairs, ways.seconds
    for i in range(length):
        first = np.int64(codes[i])
        second = (cells[first] >> NUMBER_BITS & _BASES) + np.int64(codes[i + 1])
        cell = cells[second]
        pairs[i] = cell if cell >> PARENT_SHIFT == first else np.int64(0)
        seconds[i] = second
    triples, scores, pair_scores = ways.triples, words.scores, ways.pair_scores
    for i in range(length):
        third = (pairs[i] >> NUMBER_BITS & _BASES) + np.int64(codes[i + 2])
        cell = cells[third]
        triples[i] = cell if cell >> PARENT_SHIFT == np.int64(seconds[i]) else np.int64(0)
        pair_scores[i] = scores[pairs[i] & _NUMBERS]


@kernel
def _longer_words(i: int, words: Prefixes, ways: BestPaths, best: float) -> float:
    """Consider words of four characters or more as well, and return the best score; -infinity if there is none."""
    place, cell, end = (ways.pairs[i] >> NUMBER_BITS & _BASES) + np.int64(ways.codes[i + 2]), ways.triples[i], i + 3
    while True:
        following = (cell >> NUMBER_BITS & _BASES) + np.int64(ways.codes[end])
        cell = words.cells[following]
        if cell >> PARENT_SHIFT != place:
            return best
        place, end = following, end + 1
        score = words.scores[cell & _NUMBERS] + ways.scores[end]
        if cell & _NUMBERS and score >= best:
            best, ways.lengths[i], ways.numbers[i] = score, end - i, cell & _NUMBERS


@kernel
def _smaller(one: float, other: float) -> float:
    return one if one < other else other  # noqa: FURB136  # see `larger`


@kernel
def is_word(codes: U16, start: int, stop: int, cells: I64) -> bool:
    """Return whether codes[start:stop], at least two codes, is a word."""
    place = np.int64(codes[start])
    cell = cells[place]
    for i in range(start + 1, stop):
        following = (cell >> NUMBER_BITS & _BASES) + np.int64(codes[i])
        cell = cells[following]
        if cell >> PARENT_SHIFT != place:
            return False
        place = following
    return bool(cell & _NUMBERS)
