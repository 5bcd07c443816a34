"""The likeliest way through the dictionary's words.

Knows the words as a double array; knows nothing of characters that are left over.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled.hashing import I32, I64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.precise.alphabet import OUTSIDE, U16
from stream_dedup.text.precise.double_array import BASE_BITS, NUMBER_BITS, PARENT_SHIFT
from stream_dedup.text.precise.model import larger

F64 = NDArray[np.float64]
_NUMBERS, _BASES = (1 << NUMBER_BITS) - 1, (1 << BASE_BITS) - 1
BEHIND = (
    3  # characters behind a text's last one that are looked at: those of the words that are looked up without asking
)


class Prefixes(NamedTuple):
    """The words of a dictionary.

    Attributes:
        cells: the double array of their prefixes. A character that is no word has the last number but one, what ends a
            block the last.
        scores: logarithm of each word's probability by its number. At 0, of what is no word, -infinity; at the last
            number but one that of a character by itself; at the last infinity.
    """

    cells: I64
    scores: F64


class Ways(NamedTuple):
    """The likeliest ways through a text of n characters; each array has room for n + `BEHIND` of them.

    Attributes:
        codes: of the characters, `OUTSIDE` behind the last.
        scores: of the way from each place to its block's end.
        lengths: of the first word of that way.
        numbers: of that word; one of the last two where it is a character that is no word.
        pairs: cell of each place's first two characters, 0 where these begin no word.
        triples: of its first three, likewise.
        seconds: where the cell of the two would lie in the double array.
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
        cells: of `double_array`.
        alphabet: how many codes there are.
        scores: logarithm of each word's probability by its number; at 0 that of a character by itself.
    """
    alone, outside = len(scores), len(scores) + 1
    own = cells[:alphabet]
    own |= np.where(own & _NUMBERS == 0, alone, 0)
    own[OUTSIDE] += outside - alone
    return Prefixes(cells, np.concatenate([[-np.inf], scores[1:], scores[:1], [np.inf]]))


@kernel
def room_for(length: int) -> Ways:
    """Return room for the ways through texts of up to so many characters."""
    size = length + BEHIND
    return Ways(
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
def find_ways(length: int, words: Prefixes, ways: Ways) -> None:
    """Find for each place of a text the word that begins there on the likeliest way to the block's end.

    Which words of up to three characters there are, nearly all, is looked up first, and chosen from without any branch:
    it cannot be foretold, so the processor would guess wrong at every third character.

    Args:
        length: characters.
        words: to choose from.
        ways: with the codes; the others are written.
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
        # A character that is no word goes by itself only where no word begins.
        own = np.int64(0) if first == alone and (second | third) != 0 else first
        one, two, three = values[own] + after_one, ways.pair_scores[i] + after_two, values[third] + after_three
        # Of equal ways that with the longer word, as in jieba.
        is_three = np.int64(three >= two)
        two = larger(two, three)
        is_longer = np.int64(two >= one)
        lengths[i] = 1 + (1 + is_three) * is_longer
        numbers[i] = first + (second + (third - second) * is_three - first) * is_longer
        best = _smaller(larger(one, two), 0.0)  # above 0 is what ends a block alone, and no way goes on from there
        if triples[i] >> NUMBER_BITS & _BASES:
            found = _longer_words(i, words, ways, -np.inf if own == alone else best)
            best = best if found == -np.inf else found
        scores[i] = best
        after_one, after_two, after_three = best, after_one, after_two


@kernel
def _look_up(length: int, words: Prefixes, ways: Ways) -> None:
    """Find what there is of each place's first two and three characters.

    Nothing else is done, so that the processor fetches many cells at a time.
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
def _longer_words(i: int, words: Prefixes, ways: Ways, best: float) -> float:
    """Choose among the words of four characters or more as well, and return the best score; -infinity where none is."""
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
    """Tell whether codes[start:stop], at least two, is a word."""
    place = np.int64(codes[start])
    cell = cells[place]
    for i in range(start + 1, stop):
        following = (cell >> NUMBER_BITS & _BASES) + np.int64(codes[i])
        cell = cells[following]
        if cell >> PARENT_SHIFT != place:
            return False
        place = following
    return bool(cell & _NUMBERS)
