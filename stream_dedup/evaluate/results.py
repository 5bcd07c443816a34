"""The results of algorithms, as plain data that can be written to JSON and read back.

Knows the numbers and their meaning; knows nothing of how they are computed or shown.
"""

from dataclasses import dataclass

from stream_dedup.evaluate.quality import ScoresAtThreshold, ThresholdSweep

ENGINE = "engine"  # the family of the engine itself


@dataclass(frozen=True, slots=True)
class AlgorithmInfo:
    """What is known about an algorithm before it runs.

    Attributes:
        name: unique.
        family: what a report groups by.
        segmenter: name of its segmenter; empty if it works on characters.
        feature: name of its feature.
        source: paper and equation.
    """

    name: str
    family: str
    segmenter: str
    feature: str
    source: str


@dataclass(frozen=True, slots=True)
class Seconds:
    """Processor seconds of one core; loading dictionaries and compiling loops is not counted.

    Attributes:
        segmenting: texts to words; None if that is part of `features`, or there are no words.
        features: words or characters to features.
        comparing: features to similarities or answers.
    """

    segmenting: float | None
    features: float
    comparing: float


@dataclass(frozen=True, slots=True)
class AlgorithmResult:
    """The results of an algorithm.

    Attributes:
        named: the algorithm.
        given: its answers at its own threshold, or at the user's.
        swept: its answers at all thresholds; None if it was run at only one.
        links: share of its links (article, matched article) that join copies; None if it makes no links.
        candidates: articles that each article was compared with, on average.
        seconds: the time it took.
    """

    named: AlgorithmInfo
    given: ScoresAtThreshold
    swept: ThresholdSweep | None
    links: float | None
    candidates: float
    seconds: Seconds

    @property
    def best(self) -> ScoresAtThreshold:
        """The answers by which it is compared with others: those at its best threshold, if it was run at several."""
        return self.swept.best if self.swept else self.given


@dataclass(frozen=True, slots=True)
class AlgorithmWithoutResult:
    """An algorithm without a result.

    Attributes:
        named: the algorithm.
        reason: why, and what to do about it.
        failed: whether it broke; otherwise something that it needs is missing, or the run was interrupted.
    """

    named: AlgorithmInfo
    reason: str
    failed: bool


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many copies an edit made at one strength."""

    kind: str
    strength: float | None
    copies: int


@dataclass(frozen=True, slots=True)
class SetSummary:
    """A summary of the articles of a run.

    Attributes:
        name: name of the set.
        digest: digest of the articles and labels.
        articles: how many articles.
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
        shares: shares of characters replaced, ascending.
        similarity: mean over the texts at each share.
        correlation: Pearson's, of the share kept with the similarity, over all texts and shares.
    """

    k: int
    shares: tuple[float, ...]
    similarity: tuple[float, ...]
    correlation: float


@dataclass(frozen=True, slots=True)
class ReplacementExperiment:
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
    """The results of a run.

    Attributes:
        articles: what it ran on.
        measured: the algorithms with a result, in order of their best F1, the best first.
        unmeasured: those without one.
        replaced: the experiment of the K-gram study; None if it was not run.
        command: what the user typed.
        version: version of the package.
        engine_settings: the engine's settings that are not as shipped, as `group.name=value`; a configuration that is
            about one of them has a value of its own.
    """

    articles: SetSummary
    measured: tuple[AlgorithmResult, ...]
    unmeasured: tuple[AlgorithmWithoutResult, ...]
    replaced: ReplacementExperiment | None
    command: str
    version: str
    engine_settings: tuple[str, ...] = ()

    def result(self, name: str) -> AlgorithmResult | None:
        """Return the result of an algorithm; None if it has none."""
        return next((measured for measured in self.measured if measured.named.name == name), None)
