"""All algorithms of the literature by name, and which of them to run.

Knows which parts fit together, and which comparisons answer the studies' questions; knows nothing of the parts.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from stream_dedup.evaluate.comparison import Comparison, comparison
from stream_dedup.evaluate.features.catalogue import features
from stream_dedup.evaluate.features.feature import Kind
from stream_dedup.evaluate.similarity.catalogue import measures

STUDY_SEGMENTER = "jieba-precise"
# The studies' segmenters and what has replaced them since, without variants of them and without slow ones.
STUDY_SEGMENTERS = (
    "jieba-precise",
    "jieba-full",
    "jieba-search",
    "rjieba",
    "grams2",
    "ik-*",
    "hanlp-*",
    "ansj",
    "ictclas",
)
# What is run by default: each line answers a question of the studies.
DEFAULTS = (
    *(f"{segmenter}/none/simhash32-hamming" for segmenter in STUDY_SEGMENTERS),  # which segmenter?
    f"{STUDY_SEGMENTER}/frequency/simhash32-hamming",  # which weights? Those of the 2017 study
    f"{STUDY_SEGMENTER}/tfidf/simhash32-hamming",
    f"{STUDY_SEGMENTER}/textrank/simhash32-hamming",
    f"{STUDY_SEGMENTER}/*/simhash64-hamming",  # and those of the 2020 paper, factor by factor
    f"{STUDY_SEGMENTER}/none/*",  # which similarity? All, on words without weights
    f"{STUDY_SEGMENTER}/tfidf/cosine",
    f"{STUDY_SEGMENTER}/4-shingles/jaccard",  # what the 2020 paper compares with, complete and sampled
    f"{STUDY_SEGMENTER}/4-shingles/jaccard-sampled",
    "chars/*/kgram-improved",  # which K?
    "chars/5-grams/jaccard",  # the exact values of what the engine estimates
    "chars/5-grams/jaccard-shorter",
)
_PARTS = ("segmenter", "feature", "similarity")


def algorithms(segmenters: Iterable[str]) -> dict[str, Comparison]:
    """Return all algorithms by name, `segmenter/feature/similarity`; `chars` stands for those without a segmenter.

    Args:
        segmenters: names of segmenters.
    """
    every = [*_of("", Kind.GRAMS), *(algorithm for name in segmenters for algorithm in _of(name, ~Kind.GRAMS))]
    return {algorithm.name: algorithm for algorithm in every}


def select(
    every: dict[str, Comparison],
    patterns: Sequence[str] = (),
    segmenters: Sequence[str] = (),
    features: Sequence[str] = (),
    similarities: Sequence[str] = (),
) -> dict[str, Comparison]:
    """Return the algorithms that the user asks for, by name; the default ones if all lists are empty.

    An algorithm is returned if its name matches one of `patterns` and each of its parts matches one of the patterns of
    that part; an empty list matches everything.

    Args:
        every: algorithms to choose from.
        patterns: of full names, with `*`, `?` and `[...]` as in file names.
        segmenters: patterns of segmenters, `chars` for none.
        features: patterns of features.
        similarities: patterns of similarities.

    Raises:
        ValueError: a pattern matches nothing, or no algorithm matches all of the lists.
    """
    parts = (segmenters, features, similarities)
    if not any((patterns, *parts)):
        return {name: every[name] for name in every if _matches(name, DEFAULTS)}
    check_patterns(patterns, every, "algorithm")
    for place, (kind, wanted) in enumerate(zip(_PARTS, parts, strict=True)):
        check_patterns(wanted, dict.fromkeys(name.split("/")[place] for name in every), kind)
    chosen = {name: every[name] for name in every if _matches(name, patterns) and _fits(name, parts)}
    if not chosen:
        raise ValueError(f"no algorithm matches all of {[list(wanted) for wanted in (patterns, *parts) if wanted]}")
    return chosen


def check_patterns(patterns: Sequence[str], names: Iterable[str], kind: str) -> None:
    """Check that each pattern matches a name.

    Args:
        patterns: with `*`, `?` and `[...]` as in file names.
        names: all names of a kind.
        kind: what they are names of, for the message.

    Raises:
        ValueError: a pattern matches nothing; the message names what is close to it.
    """
    known = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            close = get_close_matches(pattern, known, n=5, cutoff=0.3)
            near = f"; closest: {', '.join(close)}" if close else ""
            raise ValueError(
                f"{pattern!r} matches no {kind}{near}; `stream-dedup evaluate list` shows what there is to choose from"
            )


def _of(segmenter: str, kinds: Kind) -> Iterator[Comparison]:
    for feature in features().values():
        for measure in measures().values():
            if feature.kind & kinds and feature.kind & measure.takes:
                yield comparison(segmenter, feature, measure)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _fits(name: str, parts: Sequence[Sequence[str]]) -> bool:
    return all(_matches(part, wanted) for part, wanted in zip(name.split("/"), parts, strict=True))
