"""What the evaluation expects of an algorithm: texts in, similarities of all pairs out.

Knows the contract that all algorithms keep; knows no algorithm.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from stream_dedup.arrays import F32
from stream_dedup.article import Article


class NotAvailable(Exception):  # noqa: N818  # it is a result, not an error
    """What an algorithm needs is not installed; the message says what, and how to get it."""


class Segmenter(Protocol):
    """Cuts texts into words. It can be pickled before its first use: workers load their own resources.

    Attributes:
        name: as in `--segmenters` and in reports.
        source: the paper or project it comes from.
        slow: whether it takes about a minute or more on 3,000 articles.
    """

    name: str
    source: str
    slow: bool

    def missing(self) -> str | None:
        """Return why it cannot be used here and what to do about it; None if it can."""

    def versions(self) -> list[str]:
        """Return what its words depend on besides the code of this package: releases of its libraries, its model."""

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of each text, in order, without those that are only punctuation or blanks.

        Raises:
            NotAvailable: it cannot be used here.
        """


Features = Any
"""What an algorithm extracts from texts: whatever its `similarities` needs; can be pickled."""


class Algorithm(Protocol):
    """Compares texts pair by pair.

    Attributes:
        name: unique, as in `--algorithms` and in reports.
        family: `jaccard`, `cosine`, `simhash`, `minhash`, `shingling`, `kgram`: what a report groups by.
        segmenter: name of its segmenter; empty if it works on characters.
        feature: name of its feature.
        source: paper and equation.
        threshold: similarity at or above which a pair counts as copies, unless the user sets another.
    """

    name: str
    family: str
    segmenter: str
    feature: str
    source: str
    threshold: float

    def features(self, articles: Sequence[Article], words: Sequence[Sequence[str]]) -> Features:
        """Return the features of articles; `words` are those of their bodies, as cut by its segmenter."""

    def similarities(self, features: Features, rows: slice) -> F32:
        """Return the similarities of some texts to all, from 0 to 1, shape (rows, n)."""
