"""The planner's figures compared with those of a real index of a chosen size, in RocksDB.

Knows how to fill and query an index; asserts nothing. Entries are synthetic, with fingerprints that are related like
real ones; copies are real if a file of articles is given, and otherwise synthetic as well.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from stream_dedup.arrays import I64, U64
from stream_dedup.article import Article
from stream_dedup.cli.quantity import quantity
from stream_dedup.engine.state import State
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.index.lookup.candidates import SIMHASH, Candidates, Search
from stream_dedup.index.runs.section import Section
from stream_dedup.index.stores.rocks import RocksStore, open_store
from stream_dedup.index.stores.store import Family
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
from stream_dedup.planner.costs import HELD_WINDOWS
from stream_dedup.settings import Settings, load_settings
from tests.benchmarks.filled import INDEXED_SHARE, RECORDED, RECORDS, fill, insertion_us
from tests.benchmarks.population import Population, fingerprints_of, slices

_ASKED = 2_048  # new articles looked up, and as many copies
_READ = 6_000  # articles read from the file
_BATCH = Settings().commit.articles  # per look-up, as in a service at full load
_TURNS = 5  # over the articles that are looked up: the first is a warm-up
_SIMILARITY = 0.8
_RECALLS = (0.95, 0.98)

_T = TypeVar("_T")

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the look-ups of n articles found.

    Attributes:
        candidates: for each of the n articles, the entry numbers within the largest distance.
        keys: number of keys looked up.
        blocks: number of blocks read for them.
        postings: number of postings read.
        seconds: CPU time for the tables, in the fastest turn.
    """

    candidates: list[set[int]]
    keys: int
    blocks: int
    postings: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured on one index; all figures except sizes are per new article, as in `Expectation`."""

    recall: float
    keys: float
    blocks: float
    postings: float
    candidates: float
    filters: float
    lists: float
    memory: float
    tables: float
    disk: float
    look_up_us: float
    insert_us: float
    families: Mapping[str, float]


def measured(shape: Shape, entries: int, copies: Copies | None, directory: Path) -> Measured:
    """Fill an index and query it."""
    settings, population = _settings(shape), Population(7)
    store = open_store(directory, settings.state)
    state = State(store, settings)
    stored = copies.originals[:_ASKED] if copies else np.empty(0, np.uint64)
    originals = fill(state, population, entries, stored, _ASKED)
    for family in Family:
        store.reclaim(family, b"", b"\xff" * 13)
    if copies is None:
        reposts = fingerprints_of(population.copies(originals, copies_of(_SIMILARITY)))
    else:
        reposts = copies.fingerprints[:_ASKED], copies.sums[:_ASKED]
    questions = _Questions(state, population, shape.max_distance)
    found = questions.ask(*reposts).candidates
    strangers = questions.ask(*fingerprints_of(population.sums(_ASKED)))
    sections = [section for run in state.index.shelf.runs for section in run.sections]
    tables = [run.sections[SIMHASH] for run in state.index.shelf.runs]
    sizes = _sizes(store, directory)
    state.close()
    return Measured(
        recall=sum(number in hits for number, hits in enumerate(found)) / len(found),
        keys=strangers.keys / _ASKED,
        blocks=strangers.blocks / _ASKED,
        postings=strangers.postings / _ASKED,
        candidates=sum(map(len, strangers.candidates)) / _ASKED,
        filters=sum(section.words.nbytes for section in tables),
        lists=sum(_memory(section) for section in sections),
        memory=_resident(shape, directory),
        tables=sum(_disk(section) for section in tables),
        disk=sum(sizes.values()),
        look_up_us=strangers.seconds / _ASKED * 1e6,
        insert_us=insertion_us(shape.plan, settings, population, entries),
        families={name: size / entries for name, size in sizes.items()},
    )


def _sizes(store: RocksStore, directory: Path) -> dict[str, float]:
    """Return the bytes of each family and of the runs, extrapolated as if all articles' records had been written."""
    families = {str(name): float(size * (RECORDED if name in RECORDS else 1)) for name, size in store.sizes().items()}
    return families | {"runs": float(sum(path.stat().st_size for path in directory.glob("files/*.run")))}


def _memory(section: Section) -> int:
    return section.words.nbytes + section.fences.nbytes


def _disk(section: Section) -> int:
    return section.stop - section.start + section.words.nbytes + section.fences.nbytes


def _resident(shape: Shape, directory: Path) -> float:
    """Return the memory of a separate process that opens the state and queries it."""
    shape_of_it = ",".join(str(getattr(shape, name)) for name in Shape.__slots__)
    command = [sys.executable, "-m", "tests.benchmarks.plan", "--plan", shape_of_it, "--open", str(directory)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(answer.stdout)


def _open_and_ask(shape: Shape, directory: Path) -> int:
    """Return the memory of this process with the dictionaries loaded and the state queried."""
    settings, population = _settings(shape), Population(8)
    fingerprinter = Fingerprinter(settings)
    fingerprinter.features([Article("1", "一篇文章。")])
    state = State(open_store(directory, settings.state), settings)
    _Questions(state, population, shape.max_distance).ask(*fingerprints_of(population.sums(_ASKED)))
    memory: int = psutil.Process().memory_info().rss
    state.close()
    return memory


@dataclass(frozen=True, slots=True)
class _Questions:
    """Look-ups of articles as the engine does them, several hundred at once.

    Attributes:
        state: the state to query.
        population: draws the articles' other features.
        most: largest distance of a candidate.
    """

    state: State
    population: Population
    most: int

    def ask(self, fingerprints: U64, sums: I64) -> Asked:
        """Look all of them up several times, as texts without landmarks, which would spare most reads of entries."""
        features = _without_landmarks(self.population.features(len(fingerprints)))
        turns = []
        for _ in range(_TURNS):
            parts = [
                self._answer(features.part(part.start, part.stop), fingerprints[part], sums[part])
                for part in slices(len(fingerprints), _BATCH)
            ]
            turns.append(sum(part.seconds for part in parts))
        found = [hits for part in parts for hits in part.candidates]
        keys, blocks, postings = (sum(getattr(part, name) for part in parts) for name in ("keys", "blocks", "postings"))
        return Asked(found, keys, blocks, postings, min(turns))

    def _answer(self, features: Features, fingerprints: U64, sums: I64) -> Asked:
        index, progress = self.state.index, self.state.progress
        nothing_proved = np.zeros(len(fingerprints), np.bool_)
        times = np.full(len(fingerprints), progress.stream_ms)
        scopes = np.zeros(len(fingerprints), np.uint64)
        floor = progress.floor
        search = Search(index, self.state.store, features, times, scopes, floor, None)
        search.look_up_other_landmarks(nothing_proved)
        before, blocks = _timed(search.candidates)[1], index.shelf.reads.blocks
        _, tables = _timed(lambda: search.look_up_tables(fingerprints, sums, nothing_proved, ~nothing_proved))
        blocks = index.shelf.reads.blocks - blocks
        answer, after = _timed(search.candidates)
        return self._of_tables(answer, fingerprints, blocks, tables + after - before)

    def _of_tables(self, answer: Candidates, fingerprints: U64, blocks: int, seconds: float) -> Asked:
        """Return what was found in the tables for the articles of a batch."""
        keyed, stored = answer.keyed, len(answer.numbers)
        found = []
        keys = postings = 0
        for i, fingerprint in enumerate(fingerprints):
            own = keyed.look_up_keys[keyed.look_up_offsets[i] : keyed.look_up_offsets[i + 1]]
            own = own[keyed.key_kinds[own] == SIMHASH]
            spans = [keyed.list_rows[keyed.list_begins[key] : keyed.list_stops[key]] for key in own]
            rows = np.concatenate([np.empty(0, np.int64), *spans])
            keys, postings = keys + len(own), postings + len(rows)
            rows = np.unique(rows[(rows >= 0) & (rows < stored)])
            near = np.bitwise_count(answer.rows.fingerprints[rows] ^ fingerprint) <= self.most
            found.append(set(answer.numbers[rows[near]].tolist()))
        return Asked(found, keys, blocks, postings, seconds)


def _without_landmarks(features: Features) -> Features:
    sketches = features.sketches
    return replace(features, sketches=sketches._replace(landmarks=np.zeros_like(sketches.landmarks)))


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return a function's result, and its CPU time in seconds."""
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def _settings(shape: Shape) -> Settings:
    return load_settings(flags=[f"simhash.{name}={getattr(shape, name)}" for name in Shape.__slots__])


def _rows(expected: Expectation, one: Measured) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each figure, its predicted and its measured value."""
    yield "recall", expected.recall, one.recall
    yield "keys looked up", expected.keys, one.keys
    yield "blocks read", expected.blocks, one.blocks
    yield "postings read", expected.postings, one.postings
    yield "candidates", expected.candidates, one.candidates
    yield "filters, MB", expected.space.filters / 1e6, one.filters / 1e6
    yield "posting lists in memory, MB", expected.space.lists / 1e6, one.lists / 1e6
    yield "tables on disk, MB", expected.space.tables / 1e6, one.tables / 1e6
    yield "state on disk, MB", expected.space.disk / 1e6, one.disk / 1e6
    yield "resident, MB", expected.space.memory / 1e6, one.memory / 1e6
    yield "time of the tables, us", expected.time_us, one.look_up_us + one.insert_us


def main() -> None:
    """Plan, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--articles", type=quantity, default=1e6, help="entries in the index (default 1M)")
    parser.add_argument("--file", type=Path, help="articles to make real copies from, as for `plan --sample`")
    parser.add_argument("--plan", action="append", default=[], help="tables,bits,probes,distance; repeatable")
    parser.add_argument("--recall", type=float, action="append", default=[], help="recall to plan for; repeatable")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open:
        console.print(_open_and_ask(Shape(*map(int, arguments.plan[0].split(","))), arguments.open))
        return
    entries = int(arguments.articles)
    traffic = Traffic(entries / HELD_WINDOWS / INDEXED_SHARE, INDEXED_SHARE)
    sample = measured_sample(arguments.file, Settings(), _SIMILARITY, _READ) if arguments.file else None
    copies = sample.copy_mixture() if sample else copies_of(_SIMILARITY)
    model = Model(copies, STRANGERS, traffic, Settings())
    for shape in _shapes(arguments.plan, arguments.recall, model):
        with tempfile.TemporaryDirectory(prefix="plan-") as directory:
            one = measured(shape, entries, sample.copies if sample else None, Path(directory) / "state")
        _print(shape, entries, _rows(expectation_of(shape, model), one))
        bytes_each = ", ".join(f"{name} {size:.0f}" for name, size in one.families.items() if size >= 1)
        console.print(f"bytes per entry: {bytes_each}; postings written in {one.insert_us:.1f} us", style="dim")


def _shapes(plans: list[str], recalls: list[float], model: Model) -> Iterator[Shape]:
    """Yield the requested configurations; if there are none, the default one and two that are planned."""
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
    for name in ("per article", "predicted", "measured", "measured / predicted"):
        table.add_column(name, justify="left" if name == "per article" else "right")
    for name, expected, found in rows:
        table.add_row(name, f"{expected:,.3f}", f"{found:,.3f}", f"{found / expected:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
