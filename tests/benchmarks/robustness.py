"""Recall of the engine by edit and strength, on several corpora, with its default thresholds.

Knows corpora as `tests.benchmarks.corpora` writes them, and labelled reposts; knows nothing of the engine's internals.

The thresholds were chosen on the halves `tune` and on the labelled stream; published figures are for the halves
`report`.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from stream_dedup import Deduplicator, EngineSettings
from stream_dedup.article import Decision, Relation
from stream_dedup.evaluate.labelled import LabelledSet
from stream_dedup.evaluate.operators import OPERATORS
from stream_dedup.evaluate.reposts import RepostSettings
from stream_dedup.evaluate.source import Source, make
from stream_dedup.settings import InputSettings

_BATCH = 512
_FEW = 20  # copies in a cell: with fewer, their number is shown beside the share
_FOR_EVER_DAYS = 36_500
_MOST_ARTICLES = 3_000  # of a corpus
# More copies of each original in small corpora, so that each edit occurs often enough.
_COPIES: Mapping[str, Mapping[str, Any]] = {
    "people": {"copies": 2},
    "posts": {"copies": 1.5},
    "english": {"copies": 8},
    "mixed": {"copies": 2},
    "reports": {"copies": 12},
}

Edit = tuple[str, float | None]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a corpus.

    Attributes:
        corpus: its name.
        articles: number of originals and copies.
        hits: by edit: for each copy, whether it is in the same cluster as its story.
        links: number of links.
        overlapping: number of links that join two stories which overlap: such links are neither right nor wrong.
        wrong: number of links that join two other stories.
    """

    corpus: str
    articles: int
    hits: Mapping[Edit, Sequence[bool]]
    links: int
    overlapping: int
    wrong: int

    @property
    def all_hits(self) -> list[bool]:
        """Whether each copy was found, whatever the edit."""
        return [hit for hits in self.hits.values() for hit in hits]


def measure(labelled: LabelledSet) -> Found:
    """Judge a labelled set in order and return what was found."""
    articles = [one.article for one in labelled.articles]
    settings = EngineSettings.model_validate({"window": {"days": _FOR_EVER_DAYS}})
    with Deduplicator(settings=settings) as engine:
        decisions = [
            decision
            for start in range(0, len(articles), _BATCH)
            for decision in engine.add_batch(articles[start : start + _BATCH])
        ]
    clusters = {one.article.id: one.cluster for one in labelled.articles}
    roots = _roots(decisions)
    hits: dict[Edit, list[bool]] = defaultdict(list)
    for one in labelled.articles:
        if one.original is not None:
            root = roots[one.article.id]
            hits[one.kind, one.strength].append(root in {roots[one.original], roots[one.cluster]})
    ids = [article.id for article in articles]
    near = {(ids[first], ids[second]) for first, second in labelled.overlapping.tolist()}
    links = [(one.article.id, one.link.duplicate_of) for one in decisions if _is_copy(one) and one.link is not None]
    across = [pair for pair in links if clusters[pair[0]] != clusters[pair[1]]]
    wrong = [pair for pair in across if not {pair, pair[::-1]} & near]
    return Found(labelled.name, len(articles), hits, len(links), len(across) - len(wrong), len(wrong))


def _is_copy(decision: Decision) -> bool:
    return decision.link is not None and decision.link.relation is not Relation.REVISION


def _roots(decisions: Sequence[Decision]) -> dict[str, str]:
    """Return the first article of each article's cluster: links always point to earlier articles."""
    roots: dict[str, str] = {}
    for decision in decisions:
        name = decision.article.id
        roots[name] = roots[decision.link.duplicate_of] if _is_copy(decision) and decision.link else name
    return roots


def corpora(directory: Path, half: str, seed: int) -> Iterator[LabelledSet]:
    """Yield the corpora of a directory with reposts."""
    for name, copies in _COPIES.items():
        reposts = RepostSettings(seed=seed, share=1, **copies)
        source = Source(directory / f"{name}.{half}.jsonl", InputSettings(), reposts=reposts, limit=_MOST_ARTICLES)
        yield make(source).labelled


def _cell(hits: Sequence[bool]) -> str:
    if not hits:
        return ""
    return f"{sum(hits) / len(hits):.3f}" + (f" ({len(hits)})" if len(hits) < _FEW else "")


def table(found: Sequence[Found]) -> Iterator[str]:
    """Yield the lines of a Markdown table: recall by edit and strength, with a column per corpus."""
    yield "| edit | strength | " + " | ".join(one.corpus for one in found) + " | all |"
    yield "| --- | ---: |" + " ---: |" * (len(found) + 1)
    for operator in OPERATORS.values():
        for level in operator.levels or (None,):
            cells = [one.hits.get((operator.name, level), []) for one in found]
            every = [hit for hits in cells for hit in hits]
            shown = " | ".join(_cell(hits) for hits in [*cells, every])
            yield f"| {operator.name} | {'' if level is None else format(level, 'g')} | {shown} |"
    for name, shown_cells in (
        ("**all edits**", [_cell(one.all_hits) for one in found]),
        ("copies", [str(len(one.all_hits)) for one in found]),
        ("links", [str(one.links) for one in found]),
        ("between stories that overlap", [str(one.overlapping) for one in found]),
        ("wrong", [str(one.wrong) for one in found]),
    ):
        yield f"| {name} | | {' | '.join(shown_cells)} | |"


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("corpora", type=Path, help="directory that tests.benchmarks.corpora has filled")
    parser.add_argument("--half", choices=["tune", "report"], default="report", help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=5, help="seed for the reposts (default %(default)s)")
    options = parser.parse_args()
    sets = corpora(options.corpora, options.half, options.seed)
    found = [measure(labelled) for labelled in track(sets, "corpora", len(_COPIES), console=Console(stderr=True))]
    print("\n".join(table(found)))  # noqa: T201  # its output


if __name__ == "__main__":
    main()
