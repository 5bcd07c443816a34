"""Articles with labels that say which are copies of which.

Knows clusters and kinds of edits; knows nothing of files or of how the copies were made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from stream_dedup.arrays import I64
from stream_dedup.article import Article
from stream_dedup.scope import name_of

Edit = tuple[str, float | None]  # kind and strength


def in_order(edit: Edit) -> tuple[str, float]:
    """Return what edits are sorted by: kind, then strength, none first."""
    kind, strength = edit
    return kind, -inf if strength is None else strength


@dataclass(frozen=True, slots=True)
class LabelledArticle:
    """An article and its labels.

    Attributes:
        article: the article itself.
        cluster: name of its story within its scope: articles of the same story are copies of each other.
        original: id of the article that it was made from, in the same scope; None if it is an original, or if that is
            unknown.
        kind: name of the edit that made it; empty for an original, or if that is unknown.
        strength: strength of the edit; None if it has none.
    """

    article: Article
    cluster: str
    original: str | None = None
    kind: str = ""
    strength: float | None = None

    @property
    def edit(self) -> Edit | None:
        """The edit that made it, with its strength; None for an original, or if that is unknown."""
        return (self.kind, self.strength) if self.original is not None and self.kind else None

    @property
    def story(self) -> str:
        """The name of its story, unique across scopes."""
        return name_of(self.article.scope, self.cluster)


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Articles in the order of the stream.

    Attributes:
        name: its name in reports.
        articles: the n articles.
        overlapping: pairs of indices (first < second) that are copies too, or so similar that neither answer is wrong:
            they count neither for nor against an algorithm, shape (m, 2).
    """

    name: str
    articles: Sequence[LabelledArticle]
    overlapping: I64

    def clusters(self) -> I64:
        """Return the number of each article's cluster, from 0, shape (n,)."""
        return _numbers([labelled.story for labelled in self.articles])

    def scopes(self) -> I64:
        """Return the number of each article's scope, from 0, shape (n,)."""
        return _numbers([labelled.article.scope for labelled in self.articles])

    def firsts(self) -> list[LabelledArticle]:
        """Return the first article of each story."""
        found: dict[str, LabelledArticle] = {}
        for labelled in self.articles:
            found.setdefault(labelled.story, labelled)
        return list(found.values())

    def positive_count(self) -> int:
        """Return the number of pairs within a cluster."""
        sizes = np.bincount(self.clusters())
        return int((sizes * (sizes - 1) // 2).sum())


def _numbers(names: Sequence[str]) -> I64:
    numbers: dict[str, int] = {}  # not np.unique: NumPy's strings lose a NUL at the end
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
