"""What there is to choose from, as tables: for the terminal and for the README.

Knows names, sources and availability; knows nothing of results.
"""

from stream_dedup.counted import counted
from stream_dedup.evaluate.engine import configurations
from stream_dedup.evaluate.features.catalogue import features
from stream_dedup.evaluate.operators import OPERATORS
from stream_dedup.evaluate.report.tables import Column, Table
from stream_dedup.evaluate.segmenters import segmenters
from stream_dedup.evaluate.selection import Selection
from stream_dedup.evaluate.similarity.catalogue import measures


def segmenters_table() -> Table:
    """Return the segmenters."""
    rows = [(one.name, "slow" if one.slow else "", one.source) for one in segmenters().values()]
    return Table("segmenters", "Segmenters", (Column("segmenter"), Column("speed"), Column("source")), rows)


def available_segmenters_table() -> Table:
    """Return the segmenters, with what each lacks on this machine."""
    columns = (Column("segmenter"), Column("status"), Column("source"))
    rows = [(one.name, one.missing() or "available", one.source) for one in segmenters().values()]
    return Table("segmenters", "Segmenters", columns, rows)


def features_table() -> Table:
    """Return the features."""
    rows = [(one.name, one.source) for one in features().values()]
    return Table("features", "Features", (Column("feature"), Column("source")), rows)


def similarities_table() -> Table:
    """Return the similarity measures."""
    columns = (Column("similarity"), Column("family"), Column("threshold", 3), Column("source"))
    rows = [(one.name, one.family, one.threshold, one.source) for one in measures().values()]
    return Table("similarities", "Similarities", columns, rows)


def engine_table() -> Table:
    """Return the configurations of the engine."""
    rows = [(name, one.about) for name, one in configurations().items()]
    return Table("engine", "The engine", (Column("algorithm"), Column("difference from your settings")), rows)


def operators_table() -> Table:
    """Return the edit operators."""
    columns = (
        Column("operator"),
        Column("what it does"),
        Column("strength"),
        Column("default strengths"),
        Column("short posts"),
    )
    rows = [
        (
            one.name,
            one.description,
            one.allowed() if one.unit else None,
            ", ".join(f"{level:g}" for level in one.levels) or None,
            "yes" if one.posts else "no",
        )
        for one in OPERATORS.values()
    ]
    return Table("operators", "Edit operators", columns, rows)


def algorithms_table(selection: Selection) -> Table:
    """Return the selected algorithms, with what each lacks on this machine."""
    columns = (Column("algorithm"), Column("threshold", 3), Column("status"), Column("source"))
    missing = {name: one.missing() for name, one in selection.segmenters.items()}
    slow = set(selection.slow())
    rows = [
        (name, one.threshold, _state(missing.get(one.segmenter), slow=name in slow), one.source)
        for name, one in selection.algorithms.items()
    ]
    return Table("algorithms", counted(len(rows), "algorithm"), columns, rows)


def _state(missing: str | None, *, slow: bool) -> str:
    return missing or ("available, slow" if slow else "available")
