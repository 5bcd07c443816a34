"""What a run is asked to do, and who hears how it goes on.

Knows algorithms, segmenters and options; knows nothing of how they are run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stream_dedup.evaluate.algorithm import Algorithm, Segmenter
from stream_dedup.evaluate.engine import Configuration
from stream_dedup.evaluate.replaced import ReplacedOptions


class Listener(Protocol):
    """Hears how a run goes on."""

    def begin(self, stage: str, jobs: int) -> None:
        """Hear that a stage with so many jobs begins."""

    def done(self, name: str, note: str) -> None:
        """Hear that a job of the stage is done, with what there is to say about it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        algorithms: of the literature, by name.
        configurations: of the engine, by name.
        segmenters: by name, those of the algorithms at least.
        measures: the K-gram similarity by K, for the experiment on replaced characters.
        replaced: how that experiment is made.
        threshold: of all algorithms; None for each one's own.
        jobs: processes; 0 stands for one a core.
        command: what the user typed, for the report.
    """

    algorithms: Mapping[str, Algorithm]
    configurations: Mapping[str, Configuration] = field(default_factory=dict)
    segmenters: Mapping[str, Segmenter] = field(default_factory=dict)
    measures: Mapping[int, Algorithm] = field(default_factory=dict)
    replaced: ReplacedOptions = field(default_factory=lambda: ReplacedOptions(texts=0))
    threshold: float | None = None
    jobs: int = 0
    command: str = ""

    def threshold_of(self, algorithm: Algorithm) -> float:
        """Return the similarity from which on a pair counts as copies."""
        return algorithm.threshold if self.threshold is None else self.threshold
