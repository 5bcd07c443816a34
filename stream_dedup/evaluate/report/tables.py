"""The tables of a report, as data that is formatted elsewhere.

Knows columns and rows; knows nothing of terminals, Markdown or HTML.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stream_dedup.counted import counted
from stream_dedup.evaluate.quality import ThresholdSweep
from stream_dedup.evaluate.results import AlgorithmResult, Evaluation

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        heading: a short name.
        digits: digits after the decimal point; None for words, and for numbers used as names.
        meaning: an explanation.
    """

    heading: str
    digits: int | None = None
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: name of its file, without the suffix.
        title: heading above it.
        columns: the columns, from left to right.
        rows: each with one cell per column.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    def shown(self) -> Iterator[list[str]]:
        """Yield the rows as a reader sees them."""
        for row in self.rows:
            yield [shown(cell, column.digits) for cell, column in zip(row, self.columns, strict=True)]

    def part(self, *headings: str) -> "Table":
        """Return the table with only some of its columns."""
        places = [place for place, column in enumerate(self.columns) if column.heading in headings]
        columns = [self.columns[place] for place in places]
        return replace(self, columns=columns, rows=[[row[place] for place in places] for row in self.rows])


def shown(cell: Cell, digits: int | None) -> str:
    """Return a cell as a reader sees it: a dash where there is nothing."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return f"{cell:g}" if digits is None else f"{cell:,.{digits}f}"


_ALGORITHMS = (
    Column("algorithm", meaning="segmenter / weights / similarity, or a configuration of the engine"),
    Column("at", 2, "similarity at or above which a pair counts as copies"),
    Column("precision", 4, "share of the pairs found that are copies"),
    Column("recall", 4, "share of the pairs of copies that were found"),
    Column("F1", 4, "harmonic mean of precision and recall"),
    Column("ARI", 4, "adjusted Rand index of the clusters"),
    Column("best F1", 4, "the highest F1 at any threshold"),
    Column("best at", 2, "the threshold of the highest F1"),
    Column("width", 2, "of the range of thresholds around it in which F1 is at least 0.95 of the best: wide is stable"),
    Column("P slope", 2, "root mean square of the slope of precision over all thresholds: small is stable"),
    Column("R slope", 2, "the same for recall; 1 if it falls evenly"),
    Column("links", 4, "share of the links to the matched article that join copies"),
    Column("words s", 2, "processor seconds for words"),
    Column("features s", 2, "processor seconds for features"),
    Column("compare s", 2, "processor seconds for all comparisons"),
    Column("candidates", 1, "articles that each article was compared with, on average"),
)


def algorithms_table(evaluation: Evaluation) -> Table:
    """Return the table of all algorithms, the best first."""
    articles = evaluation.articles
    title = f"{articles.name}: {counted(articles.articles, 'article')}, {counted(articles.pairs, 'pair')} of copies"
    return Table("algorithms", title, _ALGORITHMS, [_algorithm_row(measured) for measured in evaluation.measured])


def _algorithm_row(measured: AlgorithmResult) -> list[Cell]:
    score, swept, seconds = measured.given.score, measured.swept, measured.seconds
    return [
        measured.named.name,
        *(score.threshold, score.precision, score.recall, score.f1, measured.given.ari),
        *(_swept_cells(swept) if swept else [None] * 5),
        measured.links,
        *(seconds.segmenting, seconds.features, seconds.comparing),
        measured.candidates,
    ]


def _swept_cells(swept: ThresholdSweep) -> list[Cell]:
    best, stability = swept.best.score, swept.stability
    return [best.f1, best.threshold, stability.width, stability.precision_slope, stability.recall_slope]


def unmeasured_table(evaluation: Evaluation) -> Table:
    """Return the table of the algorithms without a result."""
    columns = (Column("algorithm"), Column("state"), Column("reason"))
    rows = [(one.named.name, "failed" if one.failed else "not available", one.reason) for one in evaluation.unmeasured]
    return Table("unmeasured", "Without a result", columns, rows)


def kinds_table(evaluation: Evaluation, names: Sequence[str]) -> Table:
    """Return the recall by edit, with a column for each of the named algorithms."""
    results = [result for name in names if (result := evaluation.result(name))]
    columns = (
        *(Column("edit"), Column("strength"), Column("copies", 0)),
        *(Column(result.named.name, 4) for result in results),
    )
    found = [{(one.kind, one.strength): one.recall for one in result.best.kinds} for result in results]
    rows = [
        (one.kind, one.strength, one.copies, *(recalls.get((one.kind, one.strength)) for recalls in found))
        for one in evaluation.articles.kinds
    ]
    return Table("kinds", "Recall by edit, each algorithm at its best threshold", columns, rows)


def sweep_table(evaluation: Evaluation) -> Table:
    """Return precision, recall and F1 of every algorithm at every threshold."""
    columns = (
        *(Column("algorithm"), Column("threshold", 2)),
        *(Column("precision", 4), Column("recall", 4), Column("F1", 4)),
    )
    rows = [
        (measured.named.name, score.threshold, score.precision, score.recall, score.f1)
        for measured in evaluation.measured
        for score in (measured.swept.curve if measured.swept else [measured.given.score])
    ]
    return Table("sweep", "Precision and recall over thresholds", columns, rows)


def replaced_table(evaluation: Evaluation) -> Table | None:
    """Return the experiment of the K-gram study, with a column for each K; None if it was not run."""
    replaced = evaluation.replaced
    if replaced is None:
        return None
    title = (
        f"Similarity with characters replaced: {counted(replaced.texts, 'text')} of {replaced.characters:,} characters"
    )
    curves = replaced.curves
    rows: list[Sequence[Cell]] = [
        (f"{share:.0%}", *(curve.similarity[place] for curve in curves)) for place, share in enumerate(curves[0].shares)
    ]
    rows.append(("correlation", *(curve.correlation for curve in curves)))
    return Table("replaced", title, (Column("replaced"), *(Column(f"K = {curve.k}", 4) for curve in curves)), rows)


def tables_of(evaluation: Evaluation) -> list[Table]:
    """Return all tables that are written as CSV."""
    every = [measured.named.name for measured in evaluation.measured]
    replaced = replaced_table(evaluation)
    return [
        *(algorithms_table(evaluation), unmeasured_table(evaluation)),
        *(kinds_table(evaluation, every), sweep_table(evaluation)),
        *([replaced] if replaced else []),
    ]
