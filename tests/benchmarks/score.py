"""Scores links against labels: recall by kind of repost, and precision by exact overlap of the texts.

Knows clusters and sets of n-grams; knows nothing of how links were found.
"""

import argparse
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from stream_dedup.arrays import U64
from stream_dedup.fingerprint.sketch import gram_hashes
from stream_dedup.text.normal import Normaliser, word_table

GRAM = 5
RIGHT_FROM = 0.5  # a link counts as right from this containment of its two texts on


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a set of links.

    Attributes:
        recall: by kind: reposts whose cluster contains their original, and all reposts.
        right: links that are labelled, or whose texts overlap by at least `RIGHT_FROM`.
        links: all links.
    """

    recall: dict[str, tuple[int, int]]
    right: int
    links: int


class Clusters:
    """Articles joined by links: union-find over ids."""

    def __init__(self, links: Iterable[Mapping[str, str]]) -> None:
        self._parents: dict[str, str] = {}
        for link in links:
            self._parents[self.root(link["id"])] = self.root(link["duplicate_of"])

    def root(self, name: str) -> str:
        """Return the id that represents an article's cluster."""
        while (parent := self._parents.get(name, name)) != name:
            self._parents[name] = self._parents.get(parent, parent)
            name = parent
        return name


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    """Yield the JSON objects of a file, plain or .gz."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        yield from (orjson.loads(line) for line in lines if line.strip())


def score(links: list[dict[str, str]], truth: list[dict[str, str]], bodies: Mapping[str, str]) -> Score:
    """Score links.

    Args:
        links: with `id` and `duplicate_of`.
        truth: reposts, with `id`, `repost_of` and `kind`.
        bodies: text by id.
    """
    clusters = Clusters(links)
    found: dict[str, list[bool]] = defaultdict(list)
    for label in truth:
        found[label["kind"]].append(clusters.root(label["id"]) == clusters.root(label["repost_of"]))
    labelled = {(label["id"], label["repost_of"]) for label in truth}
    right = sum((link["id"], link["duplicate_of"]) in labelled or overlap(bodies, link) >= RIGHT_FROM for link in links)
    return Score({kind: (sum(hits), len(hits)) for kind, hits in found.items()}, right, len(links))


def overlap(bodies: Mapping[str, str], link: Mapping[str, str]) -> float:
    """Return the exact containment of a link's two texts: shared n-grams / n-grams of the smaller."""
    a, b = _grams(bodies[link["id"]]), _grams(bodies[link["duplicate_of"]])
    smaller = min(len(a), len(b))
    return len(set(a.tolist()) & set(b.tolist())) / smaller if smaller else float(link["id"] == link["duplicate_of"])


def _grams(body: str) -> U64:
    return gram_hashes(Normaliser().all([body]).kept(word_table()).points, GRAM)


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("links", type=Path, help="JSONL with id and duplicate_of")
    parser.add_argument("--truth", type=Path, required=True, help="JSONL with id, repost_of and kind")
    parser.add_argument("--articles", type=Path, required=True, help="JSONL with id and body, plain or .gz")
    options = parser.parse_args()
    bodies = {article["id"]: article["body"] for article in read_lines(options.articles)}
    result = score(list(read_lines(options.links)), list(read_lines(options.truth)), bodies)
    table = Table("kind of repost", "recall", "of", title="Links against labels", title_justify="left")
    for kind, (hits, total) in result.recall.items():
        table.add_row(kind, f"{hits / total:.4f}", str(total))
    hits, total = (sum(column) for column in zip(*result.recall.values(), strict=True))
    table.add_row("all", f"{hits / total:.4f}", str(total), style="bold")
    table.add_row("precision", f"{result.right / result.links:.4f}", f"{result.links} links", style="bold")
    Console().print(table)


if __name__ == "__main__":
    main()
