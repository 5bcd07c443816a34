"""Files in, `unique.jsonl`, `links.jsonl` and `dead.jsonl` out.

Knows the batches and the result files; knows nothing of formats or of the terminal.
"""

import errno
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import orjson

from stream_dedup.article import Article, Decision, Origin, Withdrawal, Withdrawn, link_json, withdrawal_json
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.dedup import Deduplicator
from stream_dedup.files.readers import FileFormatError, Progress, Record, reader_for
from stream_dedup.settings import Settings

_UNIQUE, _LINKS, _DEAD = "unique.jsonl", "links.jsonl", "dead.jsonl"


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of the records of a run: `unique`, the relations, and `dead`, by count; the dead by reason too."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def records(self) -> int:
        """Return how many records there were."""
        return self.outcomes.total()


@dataclass(frozen=True, slots=True)
class Results:
    """The three result files, open."""

    unique: BinaryIO
    links: BinaryIO
    dead: BinaryIO


def dedup_files(
    paths: Sequence[Path],
    out: Path,
    engine: Deduplicator,
    settings: Settings,
    report: Callable[[Path, Progress], None],
) -> Summary:
    """Judge the records of files in order and write the results.

    Args:
        paths: the files.
        out: directory of the results, made if it does not exist.
        engine: judges; its state goes on from file to file.
        settings: field names, bounds and batch size.
        report: called now and then with the file and how far it has been read.

    Raises:
        FileFormatError: a file cannot be read.
        FileExistsError: there are results in `out` already.
        StoreError: the state cannot be read or written.
    """
    readers = [(path, reader_for(path)) for path in paths]
    for path in paths:
        if not path.is_file():
            raise FileFormatError(f"{path}: there is no such file")
    out.mkdir(parents=True, exist_ok=True)
    for name in (_UNIQUE, _LINKS, _DEAD):
        if (out / name).exists():
            raise FileExistsError(errno.EEXIST, "there already", str(out / name))
    summary = Summary()
    with ExitStack() as stack:
        results = Results(*(stack.enter_context((out / name).open("xb")) for name in (_UNIQUE, _LINKS, _DEAD)))
        run = _Run(engine, Decoder(settings.input), results, summary)
        for path, reader in readers:
            for batch, progress in _batches(reader(path), settings.commit.articles):
                run.batch(path, batch)
                report(path, progress)
    return summary


def _batches(records: Iterator[tuple[Record, Progress]], size: int) -> Iterator[tuple[list[Record], Progress]]:
    batch: list[Record] = []
    progress = Progress(0, 0)
    for record, progress in records:
        batch.append(record)
        if len(batch) == size:
            yield batch, progress
            batch = []
    if batch:
        yield batch, progress


class _Run:
    """One run over files."""

    def __init__(self, engine: Deduplicator, decoder: Decoder, results: Results, summary: Summary) -> None:
        self._engine = engine
        self._decoder = decoder
        self._results = results
        self._summary = summary

    def batch(self, path: Path, records: Sequence[Record]) -> None:
        """Judge some records of a file and write what became of them."""
        items: list[Article | Withdrawal] = []
        sound: list[Record] = []
        now_ms = time.time_ns() // 1_000_000
        for record in records:
            try:
                origin = Origin(path.name, 0, record.number)
                items.append(self._decoder.decode(record.value, now_ms, origin))
                sound.append(record)
            except UndecodableError as error:
                self._dead(path, record, error)
        for record, outcome in zip(sound, self._engine.process(items).outcomes, strict=True):
            if isinstance(outcome, Decision):
                self._decision(record, outcome, now_ms)
            elif isinstance(outcome, Withdrawn):
                self._withdrawn(outcome, now_ms)
            else:
                self._dead(path, record, UndecodableError(Reason(outcome.reason), outcome.detail))

    def _decision(self, record: Record, decision: Decision, now_ms: int) -> None:
        if decision.unique:
            self._summary.outcomes["unique"] += 1
            self._results.unique.write(record.value + b"\n")
        elif decision.link is not None:
            self._summary.outcomes[decision.link.relation] += 1
            self._results.links.write(link_json(decision, decision.link, now_ms) + b"\n")

    def _withdrawn(self, withdrawn: Withdrawn, now_ms: int) -> None:
        self._summary.outcomes["withdrawn"] += 1
        line = withdrawal_json(withdrawn.id, withdrawn.withdrawal, withdrawn.canonical, now_ms)
        self._results.links.write(line + b"\n")

    def _dead(self, path: Path, record: Record, error: UndecodableError) -> None:
        self._summary.outcomes["dead"] += 1
        self._summary.reasons[error.reason] += 1
        line = {
            "reason": error.reason,
            "detail": str(error),
            "file": str(path),
            "number": record.number,
            "value": record.value.decode("utf-8", "backslashreplace"),
        }
        self._results.dead.write(orjson.dumps(line) + b"\n")
