"""The experiment of the K-gram study: how similar a text is to itself with some of its characters replaced.

Knows how the texts are edited and what is measured; knows nothing of the similarity measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import F32, F64
from stream_dedup.article import Article
from stream_dedup.compiled.hashing import code_points
from stream_dedup.evaluate.algorithm import Algorithm
from stream_dedup.evaluate.results import ReplacedCurve, ReplacementExperiment

SHARES = tuple(round(0.05 * step, 2) for step in range(1, 20))
_HAN = np.arange(0x4E00, 0x9FA6, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class ReplacedOptions:
    """Options of the experiment.

    Attributes:
        texts: how many are edited; 0 skips the experiment. The study used 100.
        characters: length of a text: longer ones are cut, shorter ones joined. The study used over 10,000.
        seed: random seed of the replacements.
    """

    texts: int = 30
    characters: int = 10_000
    seed: int = 1


def long_texts(bodies: Sequence[str], options: ReplacedOptions) -> list[str]:
    """Return texts of exactly `characters`, as many as the bodies suffice for: the longest first, short ones joined.

    Args:
        bodies: bodies of articles that are not copies of each other.
        options: how many texts, and how long.
    """
    texts: list[str] = []
    waiting = ""
    for body in sorted(bodies, key=len, reverse=True):
        waiting += body
        if len(waiting) >= options.characters:
            texts.append(waiting[: options.characters])
            waiting = ""
        if len(texts) == options.texts:
            break
    return texts[: options.texts]


def with_replaced(text: str, share: float, rng: np.random.Generator) -> str:
    """Return a text with a share of its characters, chosen at random, replaced by Han characters not in the text."""
    points = code_points(text).copy()
    places = rng.choice(len(points), round(share * len(points)), replace=False)
    points[places] = rng.choice(np.setdiff1d(_HAN, points), len(places))
    return points.tobytes().decode("utf-32-le", "surrogatepass")


def similarities_to_edited(measures: Mapping[int, Algorithm], text: str, seed: Sequence[int]) -> F32:
    """Return the similarity of a text to itself edited at each of `SHARES`, by each measure, shape (measures, shares).

    Args:
        measures: the K-gram similarity by K; they work on characters, not on words.
        text: the text to edit.
        seed: random seed of the replacements.
    """
    rng = np.random.default_rng(seed)
    row = [Article("text", text), *(Article(f"{share}", with_replaced(text, share, rng)) for share in SHARES)]
    return np.stack([_to_first(measure, row) for measure in measures.values()])


def _to_first(measure: Algorithm, row: Sequence[Article]) -> F32:
    features = measure.features(row, [[]] * len(row))
    return measure.similarities(features, slice(0, 1))[0, 1:]


def replacement_experiment(
    sizes: Sequence[int], texts: Sequence[str], similarities: Sequence[F32]
) -> ReplacementExperiment:
    """Return the result of the experiment.

    Args:
        sizes: the values of K.
        texts: the texts that were edited; at least one.
        similarities: those of each text, shape (len(sizes), shares).
    """
    by_size = np.stack(similarities, axis=1).astype(np.float64)
    curves = tuple(_curve(k, rows) for k, rows in zip(sizes, by_size, strict=True))
    return ReplacementExperiment(len(texts), round(sum(map(len, texts)) / len(texts)), curves)


def _curve(k: int, similarity: F64) -> ReplacedCurve:
    """Return the curve of similarities, shape (texts, shares); constant ones have correlation 0."""
    kept = np.broadcast_to(1 - np.array(SHARES), similarity.shape)
    constant = bool(np.ptp(similarity) == 0)
    correlation = 0.0 if constant else float(np.corrcoef(kept.ravel(), similarity.ravel())[0, 1])
    return ReplacedCurve(k, SHARES, tuple(similarity.mean(axis=0).tolist()), correlation)
