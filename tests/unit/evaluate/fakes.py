"""An algorithm and a segmenter whose answers are known beforehand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_dedup.article import Article
from stream_dedup.evaluate.algorithm import F32, Features
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet

CALLS: Counter[str] = Counter()  # how often an algorithm took features of the whole set


@dataclass
class Table:
    """Similarities as a table says."""

    name: str
    rows: tuple[tuple[float, ...], ...]
    family: str = "jaccard"
    segmenter: str = ""
    feature: str = "none"
    source: str = "a table"
    threshold: float = 0.5
    slow: bool = False

    def features(self, articles: Sequence[Article], words: Sequence[Sequence[str]]) -> Features:
        """Count the call."""
        assert len(words) == len(articles)
        CALLS[self.name] += len(articles) == len(self.rows)
        return Features(None, len(articles))

    def similarities(self, features: Features, rows: slice) -> F32:
        """Look them up."""
        assert features.size == len(self.rows)
        return np.array(self.rows, np.float32)[rows]


@dataclass
class Broken(Table):
    """Breaks while it compares."""

    def similarities(self, features: Features, rows: slice) -> F32:
        """Break."""
        raise ArithmeticError(f"no similarities of {features.size} articles from {rows.start} on")


@dataclass
class Letters:
    """Cuts texts into letters, unless something is missing."""

    name: str = "letters"
    source: str = "the alphabet"
    slow: bool = False
    reason: str | None = None
    asked: list[int] = field(default_factory=list)

    def missing(self) -> str | None:
        """Say what."""
        return self.reason

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut."""
        self.asked.append(len(texts))
        return [list(text) for text in texts]


def five() -> LabelledSet:
    """Return five articles: a story with two copies, made by two edits, and two that stand alone and overlap."""
    articles = [
        LabelledArticle(Article("a", "第一条新闻说的是春天。"), "a"),
        LabelledArticle(Article("a1", "第一条新闻说的是春天！"), "a", "a", "punct"),
        LabelledArticle(Article("a2", "第一条新闻说的是。"), "a", "a", "cut", 0.5),
        LabelledArticle(Article("b", "完全不同的一件事情。"), "b"),
        LabelledArticle(Article("c", "又是另一件事情的消息。"), "c"),
    ]
    return LabelledSet("five", articles, np.array([[3, 4]]))


# a-a1 0.9, a-a2 0.4, a1-a2 0.6, a-b 0.7, b-c 0.8 (overlapping: does not count), all others 0.1.
FIVE = (
    (1.0, 0.9, 0.4, 0.7, 0.1),
    (0.9, 1.0, 0.6, 0.1, 0.1),
    (0.4, 0.6, 1.0, 0.1, 0.1),
    (0.7, 0.1, 0.1, 1.0, 0.8),
    (0.1, 0.1, 0.1, 0.8, 1.0),
)
