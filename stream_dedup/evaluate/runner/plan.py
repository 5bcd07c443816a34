"""What a run is asked to do, and who receives its progress.

Knows algorithms, segmenters and options; knows nothing of how they are run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stream_dedup.evaluate.algorithm import Algorithm, Segmenter
from stream_dedup.evaluate.engine import Configuration
from stream_dedup.evaluate.replaced import ReplacedOptions


class Listener(Protocol):
    """Receives the progress of a run."""

    def lacks(self, reasons: Mapping[str, str]) -> None:
        """Take note, before anything is run, which segmenters cannot be used here and what to do about each."""

    def begin(self, stage: str, jobs: int) -> None:
        """Take note that a stage with this number of jobs begins."""

    def done(self, name: str, note: str) -> None:
        """Take note that a job of the stage is done; `note` says how it went."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        algorithms: algorithms of the literature, by name.
        configurations: configurations of the engine, by name.
        segmenters: segmenters by name, at least those of the algorithms.
        measures: the K-gram similarity by K, for the experiment on replaced characters.
        replaced: options of that experiment.
        threshold: for all algorithms; None for each one's own.
        jobs: number of processes; 0 means one per core.
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

    @property
    def engine_settings(self) -> tuple[str, ...]:
        """The user's changes to the engine's defaults that any of the configurations has, as `group.name=value`."""
        return tuple(dict.fromkeys(change for one in self.configurations.values() for change in one.taken))

    def threshold_of(self, algorithm: Algorithm) -> float:
        """Return the similarity at or above which a pair counts as copies."""
        return algorithm.threshold if self.threshold is None else self.threshold
