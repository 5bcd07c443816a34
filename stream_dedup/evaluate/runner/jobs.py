"""The jobs of a run: which calls each one makes, and what it does with their results.

Knows calls and results; knows nothing of who makes the calls, or where results are kept.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from stream_dedup.arrays import F32
from stream_dedup.evaluate.algorithm import Algorithm, Segmenter
from stream_dedup.evaluate.engine import Configuration
from stream_dedup.evaluate.quality import Tally, judge
from stream_dedup.evaluate.results import AlgorithmInfo, AlgorithmResult, Seconds
from stream_dedup.evaluate.runner.folder import read_seconds, write_words
from stream_dedup.evaluate.runner.tasks import (
    ComparedRows,
    SegmentedTexts,
    WorkerFiles,
    ask_engine,
    compare,
    cut,
    extract,
    replace_characters,
)
from stream_dedup.evaluate.runner.workers import Call, Job

_CUT_ROWS = 512  # texts whose words one call cuts
_COMPARE_ROWS = 1024  # texts that one call compares with all


def cutting(shared: WorkerFiles, segmenter: Segmenter, words: Path) -> Job[None]:
    """Cut the words of all articles, and write them to where `comparing` finds them."""
    parts: list[SegmentedTexts] = yield [
        Call(cut, (shared, segmenter, rows)) for rows in _slices(shared.size, _CUT_ROWS)
    ]
    cut_words = [each for part in parts for each in part.words]
    write_words(words, cut_words, sum(part.seconds for part in parts))


def comparing(shared: WorkerFiles, algorithm: Algorithm, threshold: float, words: Path | None) -> Job[AlgorithmResult]:
    """Compare all articles with each other, and return how good the results are.

    Args:
        shared: what the workers have in common.
        algorithm: the algorithm that compares.
        threshold: similarity at or above which a pair counts as copies.
        words: path of the words; None if the algorithm works on characters.
    """
    try:
        features: list[float] = yield [Call(extract, (shared, algorithm, words))]
        slices = _slices(shared.size, _COMPARE_ROWS)
        parts: list[ComparedRows] = yield [Call(compare, (shared, algorithm, rows)) for rows in slices]
    finally:
        shared.features_of(algorithm.name).unlink(missing_ok=True)
    comparing_seconds = sum(part.seconds for part in parts)
    seconds = Seconds(read_seconds(words) if words else None, features[0], comparing_seconds)
    quality = judge(reduce(Tally.merge, (part.tally for part in parts)), threshold)
    candidates = (shared.size - 1) / 2  # each pair once: an article is compared with all that came before it
    return AlgorithmResult(named_of(algorithm), quality.given, quality.swept, None, candidates, seconds)


def asking(shared: WorkerFiles, configuration: Configuration) -> Job[AlgorithmResult]:
    """Give all articles to the engine, and return how good its answers are."""
    measured: list[AlgorithmResult] = yield [Call(ask_engine, (shared, configuration))]
    return measured[0]


def replacing(measures: Mapping[int, Algorithm], text: str, seed: tuple[int, int]) -> Job[F32]:
    """Return the similarities for one text of the experiment on replaced characters."""
    similarities: list[F32] = yield [Call(replace_characters, (measures, text, seed))]
    return similarities[0]


def named_of(algorithm: Algorithm) -> AlgorithmInfo:
    """Return what is known about an algorithm before it runs."""
    return AlgorithmInfo(algorithm.name, algorithm.family, algorithm.segmenter, algorithm.feature, algorithm.source)


def _slices(size: int, rows: int) -> Sequence[slice]:
    return [slice(start, min(start + rows, size)) for start in range(0, size, rows)]
