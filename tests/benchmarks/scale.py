"""The index as it grows: rate, memory, disk and start-up time by size, on synthetic entries related like real ones.

Knows the state and its index as a library; asserts nothing: it prints figures, writes JSON and draws a plot.

Entries take the same path as a stream's: written batch by batch, with the log, flushed and compacted by RocksDB, their
posting lists frozen and merged. At each size a stream of new articles and copies is looked up, on one core.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import cast

import matplotlib as mpl
import numpy as np
import psutil
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from stream_dedup.arrays import Bytes
from stream_dedup.cli.quantity import quantity
from stream_dedup.compiled.kernel import kernel
from stream_dedup.engine.compare import limits_of
from stream_dedup.engine.judge import proved
from stream_dedup.engine.matching import JUDGE, JudgingInput, Siblings
from stream_dedup.index.lookup.candidates import Candidates, Search
from stream_dedup.index.lookup.multi import MultiIndex
from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.runs.run import Run
from stream_dedup.index.runs.section import Section, is_sound
from stream_dedup.index.runs.shelf import Young
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, MemoryStore, Store
from stream_dedup.settings import Settings, load_settings
from tests.benchmarks.filled import INDEXED_SHARE
from tests.benchmarks.grown import BATCH, REMEMBERED, STEP, Filling, Question

_MEASURED = 20  # batches at each size
_WARM = 12  # batches before them
_INSERTED = 1 << 16  # entries whose insertion is timed at each size
_FIRST_SIZE = 100_000
_READ_BYTES = 1 << 24  # at once
# A file has no width that the table must fit.
console = Console(width=None if sys.stdout.isatty() else 200)


@dataclass(frozen=True, slots=True)
class Measured:
    """The index at one size.

    Attributes:
        entries: number of entries.
        runs: number of files its posting lists are divided into.
        look_up_us: CPU time to look an article up in the indexes, in microseconds, in a process that has already read
            every block.
        first_us: the same for the first batches after opening: on its first read a block is checked and its page
            mapped.
        verify_us: CPU time per article to read its candidates and to prove copies by their first landmarks, in
            microseconds.
        insert_us: CPU time to insert an entry, in microseconds, including freezing and its share of all merging since
            the first entry.
        rate: articles per second on one core, look-ups and insertions.
        blocks: blocks read per article.
        faults: pages read from the disk per article, although all files were read just before.
        candidates: candidates read per article.
        found: share of the copies whose original is among the candidates.
        memory: resident bytes of a process that has just opened the state and looked up some batches, without the
            pages of its files, which the system can reclaim.
        mapped: bytes of those pages.
        disk: bytes of the state per article of the stream, without waiting for compaction.
        written: bytes written to the disk per byte of the state.
        start_seconds: time to open the state until it is ready.
    """

    entries: int
    runs: int
    look_up_us: float
    first_us: float
    verify_us: float
    insert_us: float
    rate: float
    blocks: float
    faults: float
    candidates: float
    found: float
    memory: int
    mapped: int
    disk: float
    written: float
    start_seconds: float


class _Clock:
    """CPU time by purpose."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._at = time.process_time()

    def lap(self, spent_on: str) -> None:
        """Count the time since the last lap."""
        now = time.process_time()
        self.seconds[spent_on] = self.seconds.get(spent_on, 0.0) + now - self._at
        self._at = now


class _ClockedStore:
    """A store that counts the time of its reads as `verify`, and the time before each read as `look_up`."""

    def __init__(self, store: RocksStore, clock: _Clock) -> None:
        self._store = store
        self._clock = clock

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Store`."""
        self._clock.lap("look_up")
        values = self._store.get_many(family, keys)
        self._clock.lap("verify")
        return values


def ask(filling: Filling, question: Question, clock: _Clock) -> Candidates:
    """Look a batch up as the engine does."""
    state, count = filling.state, len(question.fingerprints)
    index, floor = state.index, state.progress.floor
    times, scopes = np.full(count, state.progress.stream_ms), np.zeros(count, np.uint64)
    clock.lap("other")
    store = cast("Store", _ClockedStore(cast("RocksStore", state.store), clock))
    search = Search(index, store, question.features, times, scopes, floor, None)
    clock.lap("look_up")
    first = search.candidates()
    rows = np.full(len(first.names) + count, -1, np.int64)
    zeros = np.zeros(count, np.int64)
    siblings = Siblings.none(len(rows), count)
    cases = JudgingInput(np.full(count, JUDGE, np.int64), rows, siblings, zeros, zeros)
    duplicates = np.array([False, True, True, True, True])
    proven = proved(first, cases, index.caps(), limits_of(filling.settings), duplicates)
    clock.lap("verify")
    search.look_up_other_landmarks(proven)
    search.look_up_tables(question.fingerprints, question.sums, proven, ~np.zeros(count, np.bool_))
    clock.lap("look_up")
    found = search.candidates()
    clock.lap("verify")
    return found


def measured(filling: Filling, directory: Path, flags: Sequence[str]) -> Measured:
    """Measure the state as it is; afterwards it can grow further."""
    state = filling.state
    shelf = state.index.shelf
    shelf.finish(state.progress)
    entries, runs = state.progress.entries, len(shelf.runs)
    questions = [filling.question(number) for number in range(_WARM + _MEASURED)]
    _read_through(shelf.runs)
    for question in questions[:_WARM]:
        ask(filling, question, _Clock())
    clock, blocks, faults = _Clock(), shelf.reads.blocks, _major_faults()
    found = [ask(filling, question, clock) for question in questions[_WARM:]]
    faults = _major_faults() - faults
    articles = BATCH * len(found)
    hits = _hits(found, questions[_WARM:])
    blocks = shelf.reads.blocks - blocks
    disk, written = _disk(directory), _written()
    opened = _opened(filling, directory, flags)
    insert_us = _insertion(filling)
    look_up_us, verify_us = (clock.seconds[name] / articles * 1e6 for name in ("look_up", "verify"))
    return Measured(
        entries=entries,
        runs=runs,
        look_up_us=look_up_us,
        first_us=opened["first_us"],
        verify_us=verify_us,
        insert_us=insert_us,
        rate=1e6 / (look_up_us + INDEXED_SHARE * insert_us),
        blocks=blocks / articles,
        faults=faults / articles,
        candidates=sum(len(candidates.numbers) for candidates in found) / articles,
        found=sum(hits) / len(hits),
        memory=int(opened["memory"]),
        mapped=int(opened["mapped"]),
        disk=disk / entries * INDEXED_SHARE,
        written=written / disk,
        start_seconds=opened["seconds"],
    )


def _hits(found: Sequence[Candidates], questions: Sequence[Question]) -> list[bool]:
    """Return for each copy whether its original is among the candidates of its batch."""
    return [
        number in numbers
        for candidates, question in zip(found, questions, strict=True)
        for numbers in [set(candidates.numbers.tolist())]
        for number in question.originals
    ]


def _read_through(runs: Sequence[Run]) -> None:
    """Read every block of the posting lists once, as a stream's look-ups do within a day: mere growth reads none."""
    for run in runs:
        with os.fdopen(os.dup(run.descriptor), "rb", buffering=0) as file:
            file.seek(0)
            while file.read(_READ_BYTES):
                pass
        assert all(_all_sound(run.data, section) for section in run.sections)


@kernel
def _all_sound(data: Bytes, section: Section) -> bool:
    """Return whether all blocks of a section are sound; each is checked once."""
    sound = True
    for block in range(len(section.fences) - 1):
        sound &= is_sound(data, section, block)
    return sound


def _major_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _insertion(filling: Filling) -> float:
    """Return the CPU time of adding an entry to the posting lists, in microseconds.

    Merges of runs of a million entries are rare, so the time for merging is averaged over the whole growth so far.
    """
    index, clock = filling.state.index, _Clock()
    young, frozen = Young(index.kinds), index.shelf.young_first
    index.shelf.finish(filling.state.progress)
    merging = index.shelf.reads.merging_seconds
    for _ in range(_INSERTED // STEP):
        step = filling.step(STEP)
        clock.lap("other")
        index.shelf.finish(filling.state.progress)
        if index.shelf.young_first != frozen:
            young.clear()
            frozen = index.shelf.young_first
        # Repeats what the state does in `apply`, where the time could not be told apart from RocksDB's.
        young.add(index.keyed_postings(step.entries, step.numbers()))
        clock.lap("insert")
        filling.apply(step)
    clock.lap("other")
    index.shelf.finish(filling.state.progress)
    clock.lap("insert")
    merged = index.shelf.reads.merging_seconds
    own = (clock.seconds["insert"] - (merged - merging)) / _INSERTED
    return 1e6 * (own + (filling.merging_seconds + merged) / filling.state.progress.entries)


def _opened(filling: Filling, directory: Path, flags: Sequence[str]) -> Mapping[str, float]:
    """Open the state in a separate process, and return how long that took and its memory afterwards."""
    filling.close()
    command = [sys.executable, "-m", "tests.benchmarks.scale", "--open", str(directory), *_set(flags)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    filling.open(directory)
    opened: Mapping[str, float] = json.loads(answer.stdout)
    return opened


def open_and_ask(directory: Path, settings: Settings) -> Mapping[str, float]:
    """Open a state and look up some batches; return the seconds for opening, and memory and CPU time for look-ups."""
    MultiIndex(MemoryStore(), settings, Progress()).close()  # loads the compiled loops
    began = time.perf_counter()
    filling = Filling(settings)
    filling.open(directory)
    seconds = time.perf_counter() - began
    filling.remember(0, filling.population.sums(REMEMBERED))
    clock = _Clock()
    for number in range(_WARM + _MEASURED):
        ask(filling, filling.question(number), clock)
    first_us = clock.seconds["look_up"] / (BATCH * (_WARM + _MEASURED)) * 1e6
    process, files = psutil.Process(), str(directory.resolve())
    mapped = sum(part.rss for part in process.memory_maps() if part.path.startswith(files))
    memory = process.memory_info().rss - mapped
    filling.state.close()
    return {"seconds": seconds, "memory": memory, "mapped": mapped, "first_us": first_us}


def _disk(directory: Path) -> float:
    """Return the bytes of a state."""
    return float(sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()))


def _written() -> int:
    """Return the bytes that this process has written to the disk."""
    counters: int = psutil.Process().io_counters().write_bytes
    return counters


def _set(flags: Sequence[str]) -> list[str]:
    return [part for flag in flags for part in ("--set", flag)]


def sizes_to(entries: int) -> Iterator[int]:
    """Yield the sizes to measure at, each about three times the previous one, then the last: 100K, 300K, 1M, 3M, ..."""
    size, factors = _FIRST_SIZE, cycle((3, 10 / 3))
    while size < entries:
        yield size
        size = round(size * next(factors))
    yield entries


def write(directory: Path, sizes: Sequence[Measured], about: Mapping[str, object]) -> None:
    """Write scale.json and scale.svg: information on the run, and the sizes measured so far."""
    directory.mkdir(parents=True, exist_ok=True)
    found = {**about, "sizes": [asdict(one) for one in sizes]}
    (directory / "scale.json").write_text(json.dumps(found, indent=1) + "\n")
    plot(sizes, directory / "scale.svg")


def plot(sizes: Sequence[Measured], path: Path) -> None:
    """Draw rate, memory and disk against size."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    entries = [one.entries / 1e6 for one in sizes]
    for number, (name, values) in enumerate(_curves(sizes), 1):
        axes = figure.add_subplot(1, 3, number)
        axes.plot(entries, values, marker="o")
        axes.set(xscale="log", xlabel="million entries", title=name)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    mpl.rcParams["svg.hashsalt"] = "stream_dedup"
    figure.savefig(path, metadata={"Date": None})


def _curves(sizes: Sequence[Measured]) -> Iterator[tuple[str, list[float]]]:
    yield "index alone, articles/s on one core", [one.rate for one in sizes]
    yield "memory, MB", [one.memory / 1e6 for one in sizes]
    yield "disk, bytes per article", [one.disk for one in sizes]


def table_of(sizes: Sequence[Measured], machine: str) -> Table:
    """Return the figures as a table with a column per size."""
    table = Table(title=f"The index as it grows ({machine})", title_justify="left")
    for name in ("entries", *(f"{one.entries:,}" for one in sizes)):
        table.add_column(name, justify="left" if name == "entries" else "right")
    for name, cell in _ROWS.items():
        table.add_row(name, *(cell(one) for one in sizes))
    return table


_ROWS: Mapping[str, Callable[[Measured], str]] = {
    "index alone, articles/s": lambda one: f"{one.rate:,.0f}",
    "look-up, us per article": lambda one: f"{one.look_up_us:.1f}",
    "just after opening, us": lambda one: f"{one.first_us:.1f}",
    "insertion, us per entry": lambda one: f"{one.insert_us:.1f}",
    "candidates read, us per article": lambda one: f"{one.verify_us:.1f}",
    "blocks read per article": lambda one: f"{one.blocks:.1f}",
    "pages from the disk per article": lambda one: f"{one.faults:.2f}",
    "candidates per article": lambda one: f"{one.candidates:.2f}",
    "copies found": lambda one: f"{one.found:.4f}",
    "runs": lambda one: str(one.runs),
    "memory, MB": lambda one: f"{one.memory / 1e6:,.0f}",
    "files mapped, MB": lambda one: f"{one.mapped / 1e6:,.0f}",
    "disk, bytes per article": lambda one: f"{one.disk:.0f}",
    "written / held": lambda one: f"{one.written:.2f}",
    "start, s": lambda one: f"{one.start_seconds:.2f}",
}


def main() -> None:
    """Grow, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=quantity, default=1e6, help="final number of entries (default 1M)")
    parser.add_argument("--out", type=Path, help="write scale.json and scale.svg here")
    parser.add_argument("--set", dest="flags", action="append", default=[], help="a setting of the engine")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    settings = load_settings(flags=options.flags)
    if options.open:
        console.print_json(json.dumps(open_and_ask(options.open, settings)))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    machine = f"{platform.machine()}, one core, Python {platform.python_version()}"
    entries, sizes = int(options.entries), []
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        directory = Path(folder) / "state"
        filling = Filling(settings, entries)
        filling.open(directory)
        for size in sizes_to(entries):
            filling.grow(size)
            sizes.append(measured(filling, directory, options.flags))
            console.print(table_of(sizes, machine))
            if options.out:  # a run of hours that is interrupted keeps what it has measured
                write(options.out, sizes, {"machine": machine, "settings": options.flags})
        filling.state.close()


if __name__ == "__main__":
    main()
