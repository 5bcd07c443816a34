"""IK Analyzer 2012: words of a dictionary, with or without those that overlap.

Knows IK's classes; knows nothing of how Java is run.
"""

from typing import Any

from stream_dedup.evaluate.segmenters.cutting import Cut
from stream_dedup.evaluate.segmenters.java import cutter, function, getter, java_class

_IK = "org.wltea.analyzer.core"


def fine() -> Cut:
    """Return a cutter into all words of the dictionary that occur, overlapping."""
    return _cutter(smart=False)


def smart() -> Cut:
    """Return a cutter into words that do not overlap; numbers are joined with their measure words."""
    return _cutter(smart=True)


def _cutter(*, smart: bool) -> Cut:
    segmenter, reader = java_class(f"{_IK}.IKSegmenter"), java_class("java.io.StringReader")
    lexemes = _lexemes()
    return cutter(lambda text: lexemes(segmenter(reader(text), smart)), getter(f"{_IK}.Lexeme", "getLexemeText"))


def _lexemes() -> Any:  # noqa: ANN401  # Java's classes have no Python types
    """Return a function from a segmenter with its text to the Java stream of its lexemes, which ends at a null."""
    handles = java_class("java.lang.invoke.MethodHandles").publicLookup()
    method_type = java_class("java.lang.invoke.MethodType").methodType
    advance = handles.findVirtual(
        java_class(f"{_IK}.IKSegmenter"), "next", method_type(java_class(f"{_IK}.Lexeme").class_)
    )
    is_some = handles.findStatic(
        java_class("java.util.Objects"),
        "nonNull",
        method_type(java_class("java.lang.Boolean").TYPE, java_class("java.lang.Object").class_),
    )
    some = function("java.util.function.Predicate", is_some)
    generate = java_class("java.util.stream.Stream").generate
    return lambda segmenter: generate(function("java.util.function.Supplier", advance.bindTo(segmenter))).takeWhile(
        some
    )
