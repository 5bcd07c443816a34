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
    """Return a cutter by the shortest path over a bigram model, by Viterbi."""
    return _tokenizer("StandardTokenizer")


def nlp() -> Cut:
    """Return the same as `standard`, with names of people, places and organisations."""
    return _tokenizer("NLPTokenizer")


def index() -> Cut:
    """Return a cutter into the words of the standard mode, each long one followed by the words in it."""
    return _tokenizer("IndexTokenizer")


def speed() -> Cut:
    """Return a cutter into the longest words of the dictionary, from left to right, by a double-array trie."""
    return _tokenizer("SpeedTokenizer")


def n_shortest() -> Cut:
    """Return a cutter by the best of the N shortest paths, set up as in HanLP's documentation."""
    return _cutter(_with_names("NShort.NShortSegment").seg)


def shortest() -> Cut:
    """Return a cutter by the shortest path (Dijkstra), set up as in HanLP's documentation."""
    return _cutter(_with_names("Dijkstra.DijkstraSegment").seg)


def crf() -> Cut:
    """Return a cutter by a conditional random field; the model, in CRF++'s format, is that of `HANLP_CRF_MODEL`.

    HanLP writes the model in its own format next to it.

    Raises:
        FileNotFoundError: there is no such file.
    """
    model = os.environ.get(CRF_MODEL, "")
    if not Path(model).is_file():
        raise FileNotFoundError(f"the environment variable {CRF_MODEL} does not name a file: {model!r}")
    java_class(f"{_HANLP}.HanLP$Config").CRFSegmentModelPath = model
    return _cutter(java_class(f"{_HANLP}.seg.CRF.CRFSegment")().seg)


def _tokenizer(name: str) -> Cut:
    return _cutter(java_class(f"{_HANLP}.tokenizer.{name}").segment)


def _with_names(name: str) -> Any:  # noqa: ANN401  # Java's classes have no Python types
    segment = java_class(f"{_HANLP}.seg.{name}")()
    return segment.enableCustomDictionary(False).enablePlaceRecognize(True).enableOrganizationRecognize(True)


def _cutter(terms: Callable[[str], Any]) -> Cut:
    return cutter(lambda text: terms(text).stream(), getter(f"{_HANLP}.seg.common.Term", "word"))
