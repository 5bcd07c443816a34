"""The words of texts, as the positions where they end.

Knows how words are laid out; knows nothing of how they were found.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stream_dedup.arrays import I32, I64, U32, U64
from stream_dedup.compiled.hashing import code_points
from stream_dedup.text.forms import SEPARATOR
from stream_dedup.text.texts import offsets_of


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The words that a segmenter knows by number, so that anything about a word is looked up only once.

    Attributes:
        hashes: of the words from number 1 on, shape (v,); `EMPTY` at 0, and for a word without a letter, digit or Han
            character.
    """

    hashes: U64


NO_VOCABULARY = Vocabulary(np.zeros(1, np.uint64))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of n texts, m in total. A word begins where the one before it ends: the words make up the whole text.

    Attributes:
        points: code points of all texts, concatenated.
        stops: where each word ends in `points`, shape (m,).
        offsets: the words of text i are those from offsets[i] up to, not including, offsets[i + 1], shape (n + 1,).
        numbers: of each word in the vocabulary, 0 if it is not there or was not looked up, shape (m,).
        vocabulary: the segmenter's.
    """

    points: U32
    stops: I64
    offsets: I64
    numbers: I32
    vocabulary: Vocabulary

    def of(self, text: int) -> list[str]:
        """Return the words of one text."""
        first, last = int(self.offsets[text]), int(self.offsets[text + 1])
        bounds = [int(self.stops[first - 1]) if first else 0, *self.stops[first:last].tolist()]
        whole = self.points[bounds[0] : bounds[-1]].tobytes().decode("utf-32-le")
        return [whole[start - bounds[0] : stop - bounds[0]] for start, stop in pairwise(bounds)]


def words_of(texts: Iterable[list[str]]) -> Words:
    """Return the words of texts given as strings.

    Args:
        texts: the words of each text, in normal form. A generator is best: the memory of words that are dropped at
            once is reused for the next text's while still in the processor's cache.
    """
    # A separator after each word: cheaper than the words' lengths, which Python would have to take one by one.
    marked = [code_points(SEPARATOR.join([*words, ""])) for words in texts]
    points = np.concatenate([np.empty(0, np.uint32), *marked])
    ends = points == ord(SEPARATOR)
    offsets = offsets_of([int(np.count_nonzero(text == ord(SEPARATOR))) for text in marked])
    stops = np.flatnonzero(ends)
    numbers = np.zeros(len(stops), np.int32)
    return Words(points[~ends], stops - np.arange(len(stops)), offsets, numbers, NO_VOCABULARY)
