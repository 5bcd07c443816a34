"""What is known of an algorithm once it has run, as plain data that goes to JSON and back.

Knows the numbers and their meaning; knows nothing of how they were reached or are shown.
"""

from dataclasses import dataclass

from stream_dedup.evaluate.quality import KindRecall, Score, Stability

ENGINE = "engine"  # the family of the engine itself


@dataclass(frozen=True, slots=True)
class Named:
    """What is known of an algorithm before it runs.

    Attributes:
        name: unique.
        family: what a report groups by.
        segmenter: name of its segmenter, empty where it takes characters.
        feature: name of its weights.
        source: paper and equation.
        slow: whether it takes about a minute or more on 3,000 articles.
    """

    name: str
    family: str
    segmenter: str
    feature: str
    source: str
    slow: bool


@dataclass(frozen=True, slots=True)
class Answers:
    """How good the answers at one threshold are.

    Attributes:
        score: of the pairs that were found.
        ari: adjusted Rand index of the clusters (Hubert and Arabie 1985).
        kinds: recall by edit.
    """

    score: Score
    ari: float
    kinds: tuple[KindRecall, ...]


@dataclass(frozen=True, slots=True)
class Swept:
    """How good the answers at all thresholds are.

    Attributes:
        best: at the threshold of the best F1.
        curve: scores at thresholds from 0 to 1.
        stability: how little the choice of the threshold matters.
    """

    best: Answers
    curve: tuple[Score, ...]
    stability: Stability


@dataclass(frozen=True, slots=True)
class Seconds:
    """Processor seconds of one core; loading dictionaries and compiling loops is not counted.

    Attributes:
        segmenting: texts to words; None where that is part of `features`, or there are no words.
        features: words or characters to features.
        comparing: features to similarities or answers.
    """

    segmenting: float | None
    features: float
    comparing: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What an algorithm reached.

    Attributes:
        named: which one.
        given: its answers at its own threshold, or at the user's.
        swept: its answers at the others; None where it was not asked for them.
        links: share of its links (article, article that matched) that join copies; None where it makes no links.
        candidates: articles that each one was compared with, on average.
        seconds: what it took.
    """

    named: Named
    given: Answers
    swept: Swept | None
    links: float | None
    candidates: float
    seconds: Seconds

    @property
    def best(self) -> Answers:
        """The answers by which it is compared with others: those at its best threshold, where it has others."""
        return self.swept.best if self.swept else self.given


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """An algorithm without result.

    Attributes:
        named: which one.
        reason: why, and what to do about it.
        failed: whether it broke; else something that it needs is not installed.
    """

    named: Named
    reason: str
    failed: bool


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many copies an edit of some strength made."""

    kind: str
    strength: float | None
    copies: int


@dataclass(frozen=True, slots=True)
class SetSummary:
    """What the articles were.

    Attributes:
        name: of the set.
        digest: of the articles and labels.
        articles: how many.
        clusters: how many stories.
        pairs: how many pairs of copies.
        overlapping: how many pairs count neither for nor against.
        kinds: copies by edit and strength.
    """

    name: str
    digest: str
    articles: int
    clusters: int
    pairs: int
    overlapping: int
    kinds: tuple[KindCount, ...]


@dataclass(frozen=True, slots=True)
class ReplacedCurve:
    """Similarity of texts to themselves with some of their characters replaced, for one K.

    Attributes:
        k: characters of a K-gram.
        shares: replaced, ascending.
        similarity: mean over the texts at each share.
        correlation: Pearson's, of the share that is kept and the similarity, over all texts and shares.
    """

    k: int
    shares: tuple[float, ...]
    similarity: tuple[float, ...]
    correlation: float


@dataclass(frozen=True, slots=True)
class Replaced:
    """The experiment of the K-gram study.

    Attributes:
        texts: how many were edited.
        characters: mean length of a text.
        curves: one for each K.
    """

    texts: int
    characters: int
    curves: tuple[ReplacedCurve, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All of a run.

    Attributes:
        articles: what it ran on.
        measured: in the order of their best F1, the best first.
        unmeasured: those without result.
        replaced: the experiment of the K-gram study, where it was asked for.
        command: what the user typed.
        version: of the package.
    """

    articles: SetSummary
    measured: tuple[Measured, ...]
    unmeasured: tuple[Unmeasured, ...]
    replaced: Replaced | None
    command: str
    version: str

    def result(self, name: str) -> Measured | None:
        """Return the result of an algorithm; None where it has none."""
        return next((measured for measured in self.measured if measured.named.name == name), None)
