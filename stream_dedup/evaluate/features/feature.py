"""What a feature is: a named way from texts to bags.

Knows the contract; knows none of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto

from stream_dedup.article import Article
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.sequences import Sequences, words_in_order


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts to take features of.

    Attributes:
        articles: n of them.
        words: of their bodies, as a segmenter cut them; empty where the feature takes characters.
    """

    articles: Sequence[Article]
    words: Sequence[Sequence[str]]

    def sequences(self) -> Sequences:
        """Return their words in order."""
        return words_in_order(self.words)


class Kind(Flag):
    """What the members of a bag are, and whether their weights tell anything.

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
    """A way from texts to bags.

    Attributes:
        name: as in `--features`, and in reports.
        source: paper and equation.
        extract: returns the bags; can be pickled.
        kind: of the bags.
    """

    name: str
    source: str
    extract: Callable[[Texts], Bags]
    kind: Kind
