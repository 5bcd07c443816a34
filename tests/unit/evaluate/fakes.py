"""A fake algorithm and a fake segmenter with known answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_dedup.arrays import F32
from stream_dedup.article import Article
from stream_dedup.evaluate.algorithm import Features
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet

CALLS: Counter[str] = Counter()  # how often each algorithm computed features of the whole set


@dataclass
class Table:
    """An algorithm whose similarities come from a table."""

    name: str
    rows: tuple[tuple[float, ...], ...]
    family: str = "jaccard"
    segmenter: str = ""
    feature: str = "none"
    source: str = "a table"
    threshold: float = 0.5

    def features(self, articles: Sequence[Article], words: Sequence[Sequence[str]]) -> Features:
        """Count the call."""
        assert len(words) == len(articles)
        CALLS[self.name] += len(articles) == len(self.rows)
        return len(articles)

    def similarities(self, features: Features, rows: slice) -> F32:
        """Return these rows of the table."""
        assert features == len(self.rows)
        return np.array(self.rows, np.float32)[rows]


@dataclass
class Broken(Table):
    """An algorithm that fails when it compares."""

    def similarities(self, features: Features, rows: slice) -> F32:
        """Raise an error."""
        raise ArithmeticError(f"no similarities of {features} articles from {rows.start} on")


@dataclass
class Letters:
    """A segmenter that splits texts into letters, unless it has a reason to be unavailable."""

    name: str = "letters"
    source: str = "the alphabet"
    slow: bool = False
    reason: str | None = None
    release: str = "1.0"
    asked: list[int] = field(default_factory=list)

    def missing(self) -> str | None:
        """Return the reason, if any."""
        return self.reason

    def versions(self) -> list[str]:
        """Return the release."""
        return [self.release]

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Split the texts into letters."""
        self.asked.append(len(texts))
        return [list(text) for text in texts]


def five() -> LabelledSet:
    """Return five articles: a story with two copies made by two edits, and two unrelated ones that overlap."""
    articles = [
        LabelledArticle(Article("a", "第一条新闻说的是春天。"), "a"),
        LabelledArticle(Article("a1", "第一条新闻说的是春天！"), "a", "a", "punct"),
        LabelledArticle(Article("a2", "第一条新闻说的是。"), "a", "a", "cut", 0.5),
        LabelledArticle(Article("b", "完全不同的一件事情。"), "b"),
        LabelledArticle(Article("c", "又是另一件事情的消息。"), "c"),
    ]
    return LabelledSet("five", articles, np.array([[3, 4]]))


# a-a1 0.9, a-a2 0.4, a1-a2 0.6, a-b 0.7, b-c 0.8 (overlapping: not counted), all others 0.1.
FIVE = (
    (1.0, 0.9, 0.4, 0.7, 0.1),
    (0.9, 1.0, 0.6, 0.1, 0.1),
    (0.4, 0.6, 1.0, 0.1, 0.1),
    (0.7, 0.1, 0.1, 1.0, 0.8),
    (0.1, 0.1, 0.1, 0.8, 1.0),
)
