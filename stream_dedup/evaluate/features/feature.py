"""What a feature is: a named function from texts to bags.

Knows the contract; knows no feature.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto

from stream_dedup.article import Article
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.sequences import Sequences, words_in_order


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts to extract features from.

    Attributes:
        articles: the n articles.
        words: the words of each body, as cut by a segmenter; empty lists if the feature works on characters.
    """

    articles: Sequence[Article]
    words: Sequence[Sequence[str]]

    def sequences(self) -> Sequences:
        """Return their words in order."""
        return words_in_order(self.words)


class Kind(Flag):
    """What the members of a bag are, and whether their weights are informative.

    Attributes:
        WORDS: words, all of the same weight.
        WEIGHTED: words with weights.
        SHINGLES: runs of words, counted.
        GRAMS: runs of characters, counted.
    """

    WORDS = auto()
    WEIGHTED = auto()
    SHINGLES = auto()
    GRAMS = auto()


@dataclass(frozen=True, slots=True)
class Feature:
    """A named function from texts to bags.

    Attributes:
        name: as in `--features` and in reports.
        source: paper and equation.
        extract: the function; can be pickled.
        kind: the kind of its bags.
    """

    name: str
    source: str
    extract: Callable[[Texts], Bags]
    kind: Kind
