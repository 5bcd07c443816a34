"""The modes of jieba and of its Rust port.

Knows jieba and rjieba; knows nothing of user dictionaries.
"""

from functools import cache

import rjieba

from stream_dedup.evaluate.segmenters.cutting import Cut
from stream_dedup.text.uncached import UncachedTokenizer


def jieba_precise() -> Cut:
    """Return a cutter by the likeliest path through the dictionary's words, and a hidden Markov model for the rest."""
    cut: Cut = _jieba().lcut
    return cut


def jieba_full() -> Cut:
    """Return a cutter into all words of the dictionary that occur, overlapping."""
    return lambda text: _jieba().lcut(text, cut_all=True)


def jieba_search() -> Cut:
    """Return a cutter into the words of the precise mode, each preceded by the shorter words in it."""
    cut: Cut = _jieba().lcut_for_search
    return cut


def rjieba_precise() -> Cut:
    """Return the precise mode of the Rust port."""
    cut: Cut = rjieba.Jieba().cut
    return cut


def rjieba_full() -> Cut:
    """Return the full mode of the Rust port: every word of every length, single characters as well."""
    cut: Cut = rjieba.Jieba().cut_all
    return cut


def rjieba_search() -> Cut:
    """Return the search mode of the Rust port."""
    cut: Cut = rjieba.Jieba().cut_for_search
    return cut


@cache
def _jieba() -> UncachedTokenizer:
    return UncachedTokenizer()
