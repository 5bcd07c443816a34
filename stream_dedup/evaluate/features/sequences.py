"""Texts as sequences of hashes: of their words, of their characters, or of runs of either.

Knows the order of words and characters; knows nothing of weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.article import Article
from stream_dedup.compiled.hashing import hash_words, mix64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.evaluate.features.bags import Bags, bags
from stream_dedup.text.normal import Normaliser, word_table
from stream_dedup.text.texts import offsets_of


@dataclass(frozen=True, slots=True)
class Sequences:
    """The items of n texts in order, m in total, those of text i at offsets[i]:offsets[i + 1].

    Attributes:
        offsets: int64, shape (n + 1,).
        items: hash of each word, or code point of each character, uint64, shape (m,).
    """

    offsets: I64
    items: U64

    def runs(self, length: int) -> "Sequences":
        """Return the hashes of all runs of `length` items; a shorter text, unless empty, is a single run."""
        return Sequences(*_runs(self.offsets, self.items, length))

    def counted(self) -> Bags:
        """Return how often each item occurs in each text."""
        return bags(self.offsets, self.items, np.ones(len(self.items)))


def words_in_order(words: Sequence[Sequence[str]]) -> Sequences:
    """Return the words of texts, as the engine's hashes."""
    return Sequences(offsets_of([*map(len, words)]), hash_words(list(chain.from_iterable(words))))


def characters_in_order(articles: Sequence[Article]) -> Sequences:
    """Return the characters of the normalised bodies, without blanks, punctuation and symbols."""
    characters = Normaliser().all([article.body for article in articles]).kept(word_table())
    return Sequences(characters.offsets, characters.points.astype(np.uint64))


@kernel
def _runs(offsets: I64, items: U64, length: int) -> tuple[I64, U64]:
    starts = np.zeros(len(offsets), np.int64)
    for text in range(len(offsets) - 1):
        size = offsets[text + 1] - offsets[text]
        starts[text + 1] = starts[text] + (max(1, size - length + 1) if size > 0 else 0)
    runs = np.empty(starts[-1], np.uint64)
    for text in range(len(offsets) - 1):
        for i in range(starts[text + 1] - starts[text]):
            first = offsets[text] + i
            value = np.uint64(0)
            for place in range(first, min(first + length, offsets[text + 1])):
                # Mixed item by item, so that order matters.
                value = mix64(value + items[place] + np.uint64(1))
            runs[starts[text] + i] = value
    return starts, runs
