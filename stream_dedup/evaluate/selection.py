"""Which algorithms, and which configurations of the engine, the user asks for.

Knows names and patterns; knows nothing of what they stand for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from stream_dedup.evaluate.algorithm import Algorithm, Segmenter
from stream_dedup.evaluate.engine import SHIPPED, Configuration, configurations
from stream_dedup.evaluate.findings import algorithms_for_findings
from stream_dedup.evaluate.registry import algorithms, check_patterns, select
from stream_dedup.evaluate.segmenters import segmenters
from stream_dedup.evaluate.studies import GRAM_LENGTHS
from stream_dedup.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class WantedPatterns:
    """What the user asks for; `*`, `?` and `[...]` in a pattern are as in file names.

    Attributes:
        algorithms: patterns of full names, including those of the engine's configurations.
        segmenters: patterns of segmenters, `chars` for none.
        features: patterns of features.
        similarities: patterns of similarities.
        findings: whether to add the algorithms needed to check the studies' findings.
    """

    algorithms: Sequence[str] = ()
    segmenters: Sequence[str] = ()
    features: Sequence[str] = ()
    similarities: Sequence[str] = ()
    findings: bool = False

    @property
    def parts(self) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        """The patterns for the parts of a name."""
        return self.segmenters, self.features, self.similarities


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be run, by name.

    Attributes:
        algorithms: algorithms of the literature.
        configurations: configurations of the engine.
        segmenters: all segmenters.
        measures: the K-gram similarity by K.
    """

    algorithms: Mapping[str, Algorithm]
    configurations: Mapping[str, Configuration]
    segmenters: Mapping[str, Segmenter]
    measures: Mapping[int, Algorithm]

    def slow(self) -> list[str]:
        """Return the names of the algorithms that take minutes on 3,000 articles."""
        return [
            name
            for name, algorithm in self.algorithms.items()
            if algorithm.segmenter and self.segmenters[algorithm.segmenter].slow
        ]


def selected(wanted: WantedPatterns, settings: EngineSettings = SHIPPED) -> Selection:
    """Return what the user asks for; by default, the default algorithms and all configurations of the engine.

    Args:
        wanted: patterns.
        settings: those that the configurations start from.

    Raises:
        ValueError: a pattern matches nothing; the message names what is close to it.
    """
    cutters = segmenters()
    every, engines = algorithms(cutters), configurations(settings)
    check_patterns(wanted.algorithms, [*engines, *every], "algorithm")
    patterns = [pattern for pattern in wanted.algorithms if _matching(every, [pattern])]
    chosen: dict[str, Algorithm] = {}
    if patterns or any(wanted.parts) or not wanted.algorithms:
        chosen |= select(every, patterns, *wanted.parts)
    if wanted.findings:
        chosen |= {name: every[name] for name in algorithms_for_findings()}
    configured = _matching(engines, wanted.algorithms or ([] if any(wanted.parts) else ["*"]))
    measures = {k: every[f"chars/{k}-grams/kgram-improved"] for k in GRAM_LENGTHS}
    return Selection(chosen, {name: engines[name] for name in configured}, cutters, measures)


def _matching(names: Mapping[str, object], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
