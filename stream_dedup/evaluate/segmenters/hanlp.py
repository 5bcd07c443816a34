"""The segmenters of HanLP 1, with the small dictionary of its portable jar.

Knows HanLP's classes; knows nothing of how Java is run.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stream_dedup.evaluate.segmenters.cutting import Cut
from stream_dedup.evaluate.segmenters.java import cutter, getter, java_class

CRF_MODEL = "HANLP_CRF_MODEL"
_HANLP = "com.hankcs.hanlp"


def standard() -> Cut:
    """Return the shortest path over a bigram model, by Viterbi."""
    return _tokenizer("StandardTokenizer")


def nlp() -> Cut:
    """Return the same with names of people, places and organisations."""
    return _tokenizer("NLPTokenizer")


def index() -> Cut:
    """Return the words of the standard mode, and after each long one the words that it holds."""
    return _tokenizer("IndexTokenizer")


def speed() -> Cut:
    """Return the longest words of the dictionary from the left on, by a double-array trie."""
    return _tokenizer("SpeedTokenizer")


def n_shortest() -> Cut:
    """Return the best of the N shortest paths, as HanLP's documentation sets it up."""
    return _cutter(_with_names("NShort.NShortSegment").seg)


def shortest() -> Cut:
    """Return the shortest path by Dijkstra, as HanLP's documentation sets it up."""
    return _cutter(_with_names("Dijkstra.DijkstraSegment").seg)


def crf() -> Cut:
    """Return words by a conditional random field, from the model that the environment names, in the format of CRF++.

    HanLP writes its own form of the model beside it.

    Raises:
        FileNotFoundError: there is none.
    """
    model = os.environ.get(CRF_MODEL, "")
    if not Path(model).is_file():
        raise FileNotFoundError(f"the environment variable {CRF_MODEL} names no file: {model!r}")
    java_class(f"{_HANLP}.HanLP$Config").CRFSegmentModelPath = model
    return _cutter(java_class(f"{_HANLP}.seg.CRF.CRFSegment")().seg)


def _tokenizer(name: str) -> Cut:
    return _cutter(java_class(f"{_HANLP}.tokenizer.{name}").segment)


def _with_names(name: str) -> Any:  # noqa: ANN401  # Java's classes have no Python types
    segment = java_class(f"{_HANLP}.seg.{name}")()
    return segment.enableCustomDictionary(False).enablePlaceRecognize(True).enableOrganizationRecognize(True)


def _cutter(terms: Callable[[str], Any]) -> Cut:
    return cutter(lambda text: terms(text).stream(), getter(f"{_HANLP}.seg.common.Term", "word"))
