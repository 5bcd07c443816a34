"""Runs of characters (K-grams) and of words (shingles), counted.

Knows their length; knows nothing of weights.
"""

from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.feature import Texts
from stream_dedup.evaluate.features.sequences import characters_in_order


def grams(texts: Texts, length: int) -> Bags:
    """Count the runs of `length` characters, without blanks, punctuation and symbols; a shorter text is one run."""
    return characters_in_order(texts.articles).runs(length).counted()


def shingles(texts: Texts, length: int) -> Bags:
    """Count the runs of `length` words, keeping all words; a shorter text is one run (Broder 1997, w-shingling)."""
    return texts.sequences().runs(length).counted()
