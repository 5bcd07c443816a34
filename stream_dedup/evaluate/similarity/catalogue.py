"""All measures by name, with the similarity at or above which their sources count two texts as copies.

Knows their names, sources and thresholds; knows nothing of features.
"""

from functools import cache, partial

from stream_dedup.evaluate.features.feature import Kind
from stream_dedup.evaluate.similarity import cosine, kgram, minhash, sets, simhash
from stream_dedup.evaluate.similarity.measure import Measure
from stream_dedup.evaluate.studies import COMPARISON, KGRAMS

_CHARIKAR = "Charikar, STOC 2002"
_BRODER = "Broder 1997"
_HALF = 0.5  # of the 2017 study, "or so"
_ALIKE = 0.8  # the study gives none; common words make the bit sums of different texts agree to a half and more
_DISTANCE = 3  # of 64 bits: Manku, Jain and Das Sarma, WWW 2007
_SETS = Kind.WORDS | Kind.SHINGLES | Kind.GRAMS
_WEIGHTS = Kind.WORDS | Kind.WEIGHTED
_BITS = (32, 64)
_FUNCTIONS = (32, 128)
_MODULUS = 4  # Broder's 25 would leave nothing of most news articles


@cache
def measures() -> dict[str, Measure]:
    """Return all measures by name."""
    every = [*_of_sets(), _cosine(), *map(_hamming, _BITS), *map(_simhash_cosine, _BITS), *_min_hashes(), _kgram()]
    return {measure.name: measure for measure in every}


def _of_sets() -> list[Measure]:
    sampled = partial(minhash.sampled, modulus=_MODULUS)
    return [
        Measure("jaccard", "jaccard", COMPARISON, _HALF, _SETS, sets.sets, sets.jaccard),
        Measure("jaccard-shorter", "jaccard", COMPARISON, _HALF, _SETS, sets.sets, sets.jaccard_shorter),
        Measure("jaccard-sampled", "shingling", _BRODER, _HALF, Kind.SHINGLES | Kind.GRAMS, sampled, sets.jaccard),
    ]


def _cosine() -> Measure:
    return Measure("cosine", "cosine", COMPARISON, _HALF, _WEIGHTS, cosine.unit_vectors, cosine.cosine)


def _hamming(bits: int) -> Measure:
    prepare, compare = partial(simhash.fingerprints, bits=bits), partial(simhash.hamming, bits=bits)
    return Measure(f"simhash{bits}-hamming", "simhash", _CHARIKAR, 1 - _DISTANCE / bits, _WEIGHTS, prepare, compare)


def _simhash_cosine(bits: int) -> Measure:
    prepare = partial(simhash.directions, bits=bits)
    return Measure(f"simhash{bits}-cosine", "simhash", COMPARISON, _ALIKE, _WEIGHTS, prepare, simhash.cosine)


def _min_hashes() -> list[Measure]:
    return [_one_function(size) for size in _FUNCTIONS] + [_many_functions(size) for size in _FUNCTIONS]


def _one_function(size: int) -> Measure:
    prepare = partial(minhash.smallest, size=size)
    return Measure(f"minhash-one-{size}", "minhash", COMPARISON, _HALF, _SETS, prepare, sets.jaccard)


def _many_functions(functions: int) -> Measure:
    prepare = partial(minhash.signatures, functions=functions)
    return Measure(
        f"minhash-{functions}", "minhash", f"{_BRODER}; {COMPARISON}", _HALF, _SETS, prepare, minhash.agreement
    )


def _kgram() -> Measure:
    source = f"K-gram improved Jaccard, 2017, {KGRAMS}"
    return Measure("kgram-improved", "kgram", source, _HALF, Kind.GRAMS, kgram.counts, kgram.kgram_improved)
