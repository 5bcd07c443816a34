"""The planner's figures beside those of a real index with as many entries as wanted, in RocksDB.

Knows how to fill and to ask an index; asserts nothing. Entries are made up, with fingerprints that are related as
real ones are; copies are real ones where there is a file of articles, and else made up as well.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from stream_dedup.dedup import comparability
from stream_dedup.fingerprint.features import Features
from stream_dedup.hashing import I64, U64
from stream_dedup.index.candidates import SIMHASH, Candidates, MultiIndex
from stream_dedup.index.probing import Occupancy
from stream_dedup.index.rocks import RocksStore
from stream_dedup.index.store import Family
from stream_dedup.planner import (
    STRANGERS,
    Copies,
    Expectation,
    Limits,
    Model,
    Shape,
    Traffic,
    cheapest,
    copies_of,
    expectation_of,
    measured_sample,
)
from stream_dedup.planner.costs import GENERATIONS, HELD_WINDOWS
from stream_dedup.planner.quantity import quantity
from stream_dedup.settings import Settings, load_settings
from stream_dedup.state import State
from tests.benchmarks.filled import INDEXED_SHARE, RECORDED, RECORDS, fill
from tests.benchmarks.population import Population, fingerprints_of, slices

_ASKED = 2_048  # articles that are looked up, and copies
_READ = 6_000  # articles of the file
_BATCH = 512  # of a look-up, as in the service
_TURNS = 3  # over the articles that are looked up: the first warms up
_SIMILARITY = 0.8
_RECALLS = (0.95, 0.98)

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """What look-ups found, of n articles.

    Attributes:
        candidates: entry numbers of those within the largest distance, n of them.
        keys: that were looked up.
        postings: that were read.
        seconds: of the fastest turn.
    """

    candidates: list[set[int]]
    keys: int
    postings: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one index came to; all but sizes an article, as in `Expectation`."""

    recall: float
    keys: float
    postings: float
    candidates: float
    bitmaps: float
    memory: float
    tables: float
    disk: float
    look_up_us: float
    insert_us: float
    families: Mapping[Family, float]


def measured(shape: Shape, entries: int, copies: Copies | None, directory: Path) -> Measured:
    """Fill an index and ask it."""
    population = Population(7)
    with closing(RocksStore(directory)) as store:
        settings = _settings(shape)
        state = State(store, settings, comparability(settings))
        began = time.process_time()
        stored = copies.originals[:_ASKED] if copies else np.empty(0, np.uint64)
        originals = fill(state, population, entries, stored, _ASKED)
        filled = time.process_time() - began
        for family in Family:
            store.reclaim(family, b"", b"\xff" * 13)
        sizes = {family: size * (RECORDED if family in RECORDS else 1) for family, size in store.sizes().items()}
        if copies is None:
            reposts = fingerprints_of(population.copies(originals, copies_of(_SIMILARITY)))
        else:
            reposts = copies.fingerprints[:_ASKED], copies.sums[:_ASKED]
        found = _Questions(state.index, state, population, shape.max_distance).ask(*reposts).candidates
        articles = fingerprints_of(population.sums(_ASKED))
        strangers = _Questions(state.index, state, population, shape.max_distance).ask(*articles)
        without = MultiIndex(store, _settings(shape, enabled=False), state.progress)
        landmarks_alone = _Questions(without, state, population, shape.max_distance).ask(*articles)
        return Measured(
            sum(number in hits for number, hits in enumerate(found)) / len(found),
            strangers.keys / _ASKED,
            strangers.postings / _ASKED,
            sum(map(len, strangers.candidates)) / _ASKED,
            (GENERATIONS + 1) * Occupancy(shape.plan).bits.nbytes,
            psutil.Process().memory_info().rss,
            sizes[Family.TABLES],
            sum(sizes.values()),
            (strangers.seconds - landmarks_alone.seconds) / _ASKED * 1e6,
            filled / entries * 1e6,
            {family: size / entries for family, size in sizes.items()},
        )


@dataclass(frozen=True, slots=True)
class _Questions:
    """Look-ups of articles as the engine does them, some hundred at once.

    Attributes:
        index: that is asked.
        state: of which it is the index.
        population: draws what else belongs to the articles.
        most: largest distance of a candidate.
    """

    index: MultiIndex
    state: State
    population: Population
    most: int

    def ask(self, fingerprints: U64, sums: I64) -> Asked:
        """Look all of them up several times."""
        features = self.population.features(len(fingerprints))
        seconds = []
        for _ in range(_TURNS):
            began = time.process_time()
            answers = [
                self._answer(features.part(part.start, part.stop), fingerprints[part], sums[part])
                for part in slices(len(fingerprints), _BATCH)
            ]
            seconds.append(time.process_time() - began)
        parts = [self._of_tables(answer) for answer in answers]
        found = [hits for part in parts for hits in part[0]]
        return Asked(found, sum(part[1] for part in parts), sum(part[2] for part in parts), min(seconds))

    def _answer(self, features: Features, fingerprints: U64, sums: I64) -> Candidates:
        progress = self.state.progress
        times = np.full(len(fingerprints), progress.stream_ms)
        scopes = np.zeros(len(fingerprints), np.uint64)
        return self.index.look_up(self.state.store, features, fingerprints, sums, times, scopes, progress.live)

    def _of_tables(self, answer: Candidates) -> tuple[list[set[int]], int, int]:
        """Return the entries that each article of a batch found in the tables, the keys and the postings."""
        keyed, stored = answer.keyed, len(answer.numbers)
        found = []
        keys = postings = 0
        for i, fingerprint in enumerate(answer.fingerprints):
            own = keyed.look_up_keys[keyed.look_up_offsets[i] : keyed.look_up_offsets[i + 1]]
            own = own[keyed.key_families[own] == SIMHASH]
            spans = [keyed.list_rows[keyed.list_offsets[key] : keyed.list_offsets[key + 1]] for key in own]
            rows = np.concatenate([np.empty(0, np.int64), *spans])
            keys, postings = keys + len(own), postings + len(rows)
            rows = np.unique(rows[(rows >= 0) & (rows < stored)])
            near = np.bitwise_count(answer.rows.fingerprints[rows] ^ fingerprint) <= self.most
            found.append(set(answer.numbers[rows[near]].tolist()))
        return found, keys, postings


def _settings(shape: Shape, *, enabled: bool = True) -> Settings:
    flags = [f"simhash.{name}={getattr(shape, name)}" for name in Shape.__slots__]
    return load_settings(flags=[*flags, f"simhash.enabled={str(enabled).lower()}"])


def _rows(expected: Expectation, one: Measured) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each figure, what was predicted and what was measured."""
    yield "recall", expected.recall, one.recall
    yield "keys looked up", expected.keys, one.keys
    yield "postings read", expected.postings, one.postings
    yield "candidates", expected.candidates, one.candidates
    yield "bitmaps, MB", expected.space.bitmaps / 1e6, one.bitmaps / 1e6
    yield "tables on disk, MB", expected.space.tables / 1e6, one.tables / 1e6
    yield "state on disk, MB", expected.space.disk / 1e6, one.disk / 1e6
    yield "resident, MB", expected.space.memory / 1e6, one.memory / 1e6
    yield "time of the tables, us", expected.time_us, one.look_up_us


def main() -> None:
    """Plan, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--articles", type=quantity, default=1e6, help="entries of the index (default 1M)")
    parser.add_argument("--file", type=Path, help="articles that real copies are made of, as for `plan --sample`")
    parser.add_argument("--plan", action="append", default=[], help="tables,bits,probes,distance; repeatable")
    parser.add_argument("--recall", type=float, action="append", default=[], help="planned for; may be repeated")
    arguments = parser.parse_args()
    entries = int(arguments.articles)
    traffic = Traffic(entries / HELD_WINDOWS / INDEXED_SHARE, INDEXED_SHARE)
    sample = measured_sample(arguments.file, Settings(), _SIMILARITY, _READ) if arguments.file else None
    copies = sample.copy_mixture() if sample else copies_of(_SIMILARITY)
    model = Model(copies, STRANGERS, traffic, Settings())
    for shape in _shapes(arguments.plan, arguments.recall, model):
        with tempfile.TemporaryDirectory(prefix="plan-") as directory:
            one = measured(shape, entries, sample.copies if sample else None, Path(directory) / "state")
        _print(shape, entries, _rows(expectation_of(shape, model), one))
        bytes_each = ", ".join(f"{family} {size:.0f}" for family, size in one.families.items() if size >= 1)
        console.print(f"bytes an entry: {bytes_each}; written in {one.insert_us:.0f} us", style="dim")


def _shapes(plans: list[str], recalls: list[float], model: Model) -> Iterator[Shape]:
    """Yield what is asked for, or else the default configuration and two that are planned."""
    simhash = model.settings.simhash
    if not plans and not recalls:
        yield Shape(simhash.tables, simhash.prefix_bits, simhash.probes, simhash.max_distance)
        recalls = list(_RECALLS)
    for plan in plans:
        yield Shape(*map(int, plan.split(",")))
    for recall in recalls:
        yield cheapest(recall, model, Limits()).shape


def _print(shape: Shape, entries: int, rows: Iterator[tuple[str, float, float]]) -> None:
    title = f"{shape.tables} tables, {shape.prefix_bits} bits, {shape.probes} probes, distance {shape.max_distance}"
    table = Table(title=f"{title}; {entries:,} entries", title_justify="left")
    for name in ("an article", "predicted", "measured", "measured / predicted"):
        table.add_column(name, justify="left" if name == "an article" else "right")
    for name, expected, found in rows:
        table.add_row(name, f"{expected:,.3f}", f"{found:,.3f}", f"{found / expected:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
