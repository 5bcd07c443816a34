"""All features by name.

Knows their names and sources; knows nothing of the measures that compare them.
"""

from functools import cache, partial

from stream_dedup.evaluate.features.feature import Feature, Kind
from stream_dedup.evaluate.features.grams import grams, shingles
from stream_dedup.evaluate.features.improved import improved_features
from stream_dedup.evaluate.features.textrank import text_rank
from stream_dedup.evaluate.features.weights import frequency, tf_idf, unweighted
from stream_dedup.evaluate.studies import COMPARISON, GRAM_LENGTHS, KGRAMS

SHINGLE_LENGTHS = (2, 4, 10)  # Broder's own experiment used 10


@cache
def features() -> dict[str, Feature]:
    """Return all features by name."""
    plain = [
        Feature("none", COMPARISON, unweighted, Kind.WORDS),
        Feature("frequency", COMPARISON, frequency, Kind.WEIGHTED),
        Feature("tfidf", COMPARISON, tf_idf, Kind.WEIGHTED),
        Feature("textrank", "Mihalcea and Tarau, EMNLP 2004, equation 1", text_rank, Kind.WEIGHTED),
    ]
    every = [*plain, *improved_features(), *map(_shingles, SHINGLE_LENGTHS), *map(_grams, GRAM_LENGTHS)]
    return {feature.name: feature for feature in every}


def _shingles(length: int) -> Feature:
    extract = partial(shingles, length=length)
    return Feature(f"{length}-shingles", "Broder 1997, w-shingling", extract, Kind.SHINGLES)


def _grams(length: int) -> Feature:
    extract = partial(grams, length=length)
    return Feature(f"{length}-grams", f"K-grams, 2017, {KGRAMS}", extract, Kind.GRAMS)
