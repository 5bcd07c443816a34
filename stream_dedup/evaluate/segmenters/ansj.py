"""The segmenters of ansj, a Java port of ICTCLAS.

Knows ansj's classes; knows nothing of how Java is run.
"""

from stream_dedup.evaluate.segmenters.cutting import Cut
from stream_dedup.evaluate.segmenters.java import cutter, getter, java_class


def precise() -> Cut:
    """Return a cutter by the shortest path over a bigram model, with numbers and personal names, as in ICTCLAS."""
    return _analysis("ToAnalysis")


def base() -> Cut:
    """Return a cutter by the shortest path over a bigram model alone."""
    return _analysis("BaseAnalysis")


def nlp() -> Cut:
    """Return the same as `precise`, with new words found by a conditional random field."""
    return _analysis("NlpAnalysis")


def _analysis(name: str) -> Cut:
    _forget_working_folder()
    parse = java_class(f"org.ansj.splitWord.analysis.{name}").parse
    return cutter(lambda text: parse(text).getTerms().stream(), getter("org.ansj.domain.Term", "getRealName"))


def _forget_working_folder() -> None:
    """Put empty user dictionaries in place of those that ansj would read from its working directory."""
    forest = java_class("org.nlpcn.commons.lang.tire.domain.Forest")
    for name in ("DicLibrary", "AmbiguityLibrary"):
        library = java_class(f"org.ansj.library.{name}")
        library.put(library.DEFAULT, "", forest())
