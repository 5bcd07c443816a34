"""What workers do: cut words, extract features, compare a block of texts with all, ask the engine.

Knows the files that workers share, and the clock; knows nothing of processes or of the results as a whole.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import joblib
from threadpoolctl import threadpool_limits

from stream_dedup.arrays import F32
from stream_dedup.evaluate.algorithm import Algorithm, Features, Segmenter
from stream_dedup.evaluate.engine import Configuration, measure_engine
from stream_dedup.evaluate.labelled import LabelledSet
from stream_dedup.evaluate.quality import Tally, Truth
from stream_dedup.evaluate.replaced import similarities_to_edited
from stream_dedup.evaluate.results import AlgorithmResult
from stream_dedup.evaluate.runner.folder import read_words
from stream_dedup.text.normal import Normaliser

_ROWS = 256  # texts that are compared with all at a time: with 20,000 texts, a block is 20 MB


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """Where workers find what they have in common.

    Attributes:
        directory: directory of the files.
        size: number of articles in the set.
    """

    directory: Path
    size: int

    @classmethod
    def of(cls, labelled: LabelledSet, directory: Path) -> "WorkerFiles":
        """Write a labelled set to where workers find it."""
        joblib.dump((labelled, Truth.of(labelled)), directory / "set.pickle")
        return cls(directory, len(labelled.articles))

    def features_of(self, name: str) -> Path:
        """Return the path for the features of an algorithm."""
        return self.directory / f"{name.replace('/', '_')}.features"


@dataclass(frozen=True, slots=True)
class SegmentedTexts:
    """Words of some texts, and the processor seconds that cutting them took."""

    words: list[list[str]]
    seconds: float


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The tally of the pairs of some texts with all, and the processor seconds that comparing them took."""

    tally: Tally
    seconds: float


def cut(shared: WorkerFiles, segmenter: Segmenter, rows: slice) -> SegmentedTexts:
    """Return the words of the bodies of some articles."""
    normal = Normaliser()
    texts = [normal(one.article.body) for one in _labelled(shared)[0].articles[rows]]
    segmenter.cut(texts[:1])  # loads its dictionary before the clock starts
    begin = time.process_time()
    words = segmenter.cut(texts)
    return SegmentedTexts(words, time.process_time() - begin)


def extract(shared: WorkerFiles, algorithm: Algorithm, words: Path | None) -> float:
    """Write the features of all articles to where `compare` finds them; return the processor seconds they took."""
    articles = [one.article for one in _labelled(shared)[0].articles]
    cut_words = _words(words) if words else [[]] * len(articles)
    with threadpool_limits(1):
        algorithm.features(articles[:2], cut_words[:2])  # compiles its loops before the clock starts
        begin = time.process_time()
        features = algorithm.features(articles, cut_words)
        seconds = time.process_time() - begin
    joblib.dump(features, shared.features_of(algorithm.name))
    return seconds


def compare(shared: WorkerFiles, algorithm: Algorithm, rows: slice) -> ComparedRows:
    """Compare some articles with all."""
    features = _features(shared.features_of(algorithm.name))
    tally, seconds = Tally.empty(_labelled(shared)[1]), 0.0
    with threadpool_limits(1):
        algorithm.similarities(features, slice(rows.start, rows.start + 1))
        for start in range(rows.start, rows.stop, _ROWS):
            begin = time.process_time()
            block = algorithm.similarities(features, slice(start, min(start + _ROWS, rows.stop)))
            seconds += time.process_time() - begin
            tally = tally.add(start, block)
    return ComparedRows(tally, seconds)


def ask_engine(shared: WorkerFiles, configuration: Configuration) -> AlgorithmResult:
    """Return how well a configuration of the engine does."""
    return measure_engine(configuration, _labelled(shared)[0])


def replace_characters(measures: Mapping[int, Algorithm], text: str, seed: tuple[int, int]) -> F32:
    """Return the similarities for one text of the experiment of the K-gram study."""
    with threadpool_limits(1):
        return similarities_to_edited(measures, text, seed)


# Cached, since a worker is given tasks with the same set, words and features one after another.


@lru_cache(maxsize=1)
def _labelled(shared: WorkerFiles) -> tuple[LabelledSet, Truth]:
    loaded: tuple[LabelledSet, Truth] = joblib.load(shared.directory / "set.pickle")
    return loaded


@lru_cache(maxsize=1)
def _words(path: Path) -> list[list[str]]:
    return read_words(path)


@lru_cache(maxsize=2)
def _features(path: Path) -> Features:
    loaded: Features = joblib.load(path)
    return loaded
