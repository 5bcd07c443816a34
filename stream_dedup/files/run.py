"""Files in, `unique.jsonl`, `links.jsonl` and `dead.jsonl` out.

Knows the batches and the result files; knows nothing of formats or of the terminal.
"""

import errno
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import orjson

from stream_dedup.article import Article, Decision, Origin, Withdrawal, Withdrawn, link_fields, withdrawal_fields
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.dedup import Deduplicator
from stream_dedup.files.readers import FileFormatError, Progress, Reader, Record, reader_for
from stream_dedup.prepared import Prepared
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
        run = _Run(engine, results, summary)
        reading = _Reading(readers, Decoder(settings.input), engine, settings.commit.articles)
        for batch in _one_ahead(reading.batches()):
            run.batch(batch)
            report(batch.path, batch.progress)
    return summary


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records of one file, read, decoded and their articles prepared.

    Attributes:
        path: of the file.
        progress: behind the last of them.
        now_ms: when they were read, milliseconds since 1970 in UTC.
        sound: records that hold something to judge.
        items: what they hold.
        dead: the other ones, with the reason.
        prepared: the articles, if there are any.
    """

    path: Path
    progress: Progress
    now_ms: int
    sound: Sequence[Record]
    items: Sequence[Article | Withdrawal]
    dead: Sequence[tuple[Record, UndecodableError]]
    prepared: Prepared | None


class _Reading:
    """Reads files in batches.

    Args:
        files: paths and what reads them.
        decoder: reads records.
        engine: works their texts through.
        size: of a batch.
    """

    def __init__(self, files: Sequence[tuple[Path, Reader]], decoder: Decoder, engine: Deduplicator, size: int) -> None:
        self._files = files
        self._decoder = decoder
        self._engine = engine
        self._size = size

    def batches(self) -> Iterator[_Batch]:
        """Yield the records in order; no batch has those of two files."""
        for path, reader in self._files:
            records = reader(path)
            while some := list(islice(records, self._size)):
                yield self._batch(path, [record for record, _ in some], some[-1][1])

    def _batch(self, path: Path, records: Sequence[Record], progress: Progress) -> _Batch:
        now_ms = time.time_ns() // 1_000_000
        sound: list[Record] = []
        items: list[Article | Withdrawal] = []
        dead: list[tuple[Record, UndecodableError]] = []
        for record in records:
            try:
                items.append(self._decoder.decode(record.value, now_ms, Origin(path.name, 0, record.number)))
                sound.append(record)
            except UndecodableError as error:
                dead.append((record, error))
        return _Batch(path, progress, now_ms, sound, items, dead, self._engine.prepare(items))


def _one_ahead(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """Yield batches; while one is at work, the next one is made in another thread."""
    with ThreadPoolExecutor(1, "reader") as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch


class _Run:
    """One run over files."""

    def __init__(self, engine: Deduplicator, results: Results, summary: Summary) -> None:
        self._engine = engine
        self._results = results
        self._summary = summary

    def batch(self, batch: _Batch) -> None:
        """Judge the records of a file and write what became of them."""
        for record, error in batch.dead:
            self._dead(batch.path, record, error)
        judged = self._engine.decide(batch.items, batch.prepared)
        self._engine.apply(judged.change)
        for record, outcome in zip(batch.sound, judged.outcomes, strict=True):
            if isinstance(outcome, Decision):
                self._decision(record, outcome, batch.now_ms)
            elif isinstance(outcome, Withdrawn):
                self._withdrawn(outcome, batch.now_ms)
            else:
                self._dead(batch.path, record, UndecodableError(Reason(outcome.reason), outcome.detail))

    def _decision(self, record: Record, decision: Decision, now_ms: int) -> None:
        if decision.unique:
            self._summary.outcomes["unique"] += 1
            self._results.unique.write(record.value + b"\n")
        elif decision.link is not None:
            self._summary.outcomes[decision.link.relation] += 1
            self._results.links.write(orjson.dumps(link_fields(decision, decision.link, now_ms)) + b"\n")

    def _withdrawn(self, withdrawn: Withdrawn, now_ms: int) -> None:
        self._summary.outcomes["withdrawn"] += 1
        line = orjson.dumps(withdrawal_fields(withdrawn.id, withdrawn.withdrawal, withdrawn.canonical, now_ms))
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
