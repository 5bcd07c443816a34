"""Files in, `unique.jsonl`, `links.jsonl` and `dead.jsonl` out.

Knows the batches and what becomes of each record; knows nothing of formats or of the terminal.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

import orjson

from stream_dedup.article import Article, Decision, Origin, Withdrawal, Withdrawn
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Change
from stream_dedup.engine.prepared import Prepared
from stream_dedup.files.place import Place, new_start
from stream_dedup.files.readers import (
    STANDARD_INPUT,
    FileFormatError,
    Progress,
    Reader,
    Record,
    check_begin,
    reader_for,
    shown,
)
from stream_dedup.files.results import Results, check_new
from stream_dedup.index.records.ledger import Positions
from stream_dedup.settings import Settings
from stream_dedup.told import link_fields, withdrawal_fields

_LEAVE_SECONDS = 2.0  # a batch out of a file takes less
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of the records of a run: `unique`, the relations, and `dead`, by count; the dead by reason too."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def records(self) -> int:
        """Return how many records there were."""
        return self.outcomes.total()


def check_files(paths: Sequence[Path]) -> None:
    """Check that files are there and of formats that can be read.

    Raises:
        FileFormatError: one is not.
    """
    for path in paths:
        if path.is_dir():
            raise FileFormatError(f"{path} is a directory: name the files in it")
        reader_for(path)
        if path != STANDARD_INPUT and not path.exists():
            raise FileFormatError(f"{path}: there is no such file")
        check_begin(path)


def are_regular(paths: Sequence[Path]) -> bool:
    """Tell whether all of some files can be read again: none is a pipe."""
    return all(path != STANDARD_INPUT and path.is_file() for path in paths)


def dedup_files(
    paths: Sequence[Path],
    out: Path,
    engine: Deduplicator,
    settings: Settings,
    report: Callable[[Path, Progress], None],
    summary: Summary,
    look: Callable[[], None] = lambda: None,
) -> None:
    """Judge the records of files in order and write the results.

    A state remembers with the articles how far the run has come. However it ends, the same call on the same state goes
    on behind that, and the results are those of a run that nothing has ended. What comes by a pipe cannot be read
    again: such a run is begun anew.

    Args:
        paths: the files.
        out: directory of the results, made if it does not exist.
        engine: judges; its state goes on from file to file.
        settings: field names, bounds and batch size.
        report: called now and then with the file and how far it has been read.
        summary: counts what is written, also where this fails.
        look: called between batches, and while none comes; may raise to end the run. A handler of signals may not, as
            compiled loops do not bear it.

    Raises:
        FileFormatError: a file cannot be read; what stands before that is written.
        FileExistsError: there are results in `out` already, and not those of an unfinished run.
        OSError: the results cannot be written.
        StoreError: the state cannot be read or written.
    """
    check_files(paths)
    readers = [(path, reader_for(path, {settings.input.fields.deleted})) for path in paths]
    place = Place(paths, out) if are_regular(paths) else None
    start = place.start(engine.positions()) if place is not None else new_start(len(paths))
    if start.new:
        check_new(out)
        # Before there are files: else those of a run that ended here would be in the way.
        engine.apply(engine.decide([]).change, place.begun() if place is not None else {})
    with Results(out, start.kept, sync=settings.state.sync) as results:
        run = _Run(engine, results, summary, place)
        reading = _Reading(readers, Decoder(settings.input), engine, settings.commit.articles, start.done)
        # Closed before the engine is, whatever ends the run.
        with closing(_one_ahead(reading, look)) as batches:
            for batch in batches:
                run.batch(batch)
                report(batch.path, batch.progress)
        run.finish()


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records of one file, read, decoded and their articles prepared.

    Attributes:
        path: of the file.
        file: its number, from 0.
        last: number of the last record.
        progress: behind that.
        now_ms: when they were read, milliseconds since 1970 in UTC.
        sound: records that hold something to judge.
        items: what they hold.
        dead: the other ones, with the reason.
        prepared: the articles, if there are any.
    """

    path: Path
    file: int
    last: int
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
        done: number of the last record of each file that is left out.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, Reader]],
        decoder: Decoder,
        engine: Deduplicator,
        size: int,
        done: Sequence[int],
    ) -> None:
        self._files = files
        self._decoder = decoder
        self._engine = engine
        self._size = size
        self._done = done
        self._at_work = Lock()
        self._left = False

    def batches(self) -> Iterator[_Batch]:
        """Yield the records in order; no batch has those of two files.

        Raises:
            FileFormatError: a file cannot be read any further; all before was yielded.
        """
        for file, ((path, reader), done) in enumerate(zip(self._files, self._done, strict=True)):
            records = (one for one in reader(path) if one[0].number > done)
            for some in _groups(records, self._size):
                with self._at_work:
                    if self._left:
                        return
                    batch = self._batch(path, file, [record for record, _ in some], some[-1][1])
                yield batch

    def leave(self) -> None:
        """Wait until no batch is worked through; none is any more, whatever the files bring."""
        with self._at_work:
            self._left = True

    def _batch(self, path: Path, file: int, records: Sequence[Record], progress: Progress) -> _Batch:
        now_ms = time.time_ns() // 1_000_000
        sound: list[Record] = []
        items: list[Article | Withdrawal] = []
        dead: list[tuple[Record, UndecodableError]] = []
        for record in records:
            if record.fault is not None:
                dead.append((record, UndecodableError(Reason.INVALID_RECORD, record.fault)))
                continue
            try:
                items.append(self._decoder.decode(record.value, now_ms, Origin(shown(path.name), 0, record.number)))
                sound.append(record)
            except UndecodableError as error:
                dead.append((record, error))
        last = records[-1].number
        return _Batch(path, file, last, progress, now_ms, sound, items, dead, self._engine.prepare(items))


def _groups(records: Iterator[tuple[Record, Progress]], size: int) -> Iterator[Sequence[tuple[Record, Progress]]]:
    """Yield records, some at a time; what was read before a fault too, before it is raised."""
    group: list[tuple[Record, Progress]] = []
    try:
        for one in records:
            group.append(one)
            if len(group) == size:
                yield group
                group = []
    except FileFormatError:
        if group:
            yield group
        raise
    if group:
        yield group


def _one_ahead(reading: _Reading, look: Callable[[], None]) -> Generator[_Batch]:
    """Yield batches; while one is at work, the next one is made in another thread."""
    batches = reading.batches()
    coming = _begun(batches)
    try:
        while (batch := _awaited(coming, look)) is not None:
            coming = _begun(batches)
            yield batch
    finally:
        # It is made with what the caller closes next; but a pipe that brings nothing is not waited for.
        wait([coming], _LEAVE_SECONDS)
        reading.leave()


def _awaited(coming: "Future[_Batch | None]", look: Callable[[], None]) -> _Batch | None:
    look()
    while not wait([coming], _LOOK_SECONDS).done:
        look()
    return coming.result()


def _begun(batches: Iterator[_Batch]) -> "Future[_Batch | None]":
    """Begin to make the next batch, in a thread that the end of a run need not wait for: its pipe may bring nothing."""
    coming: Future[_Batch | None] = Future()

    def make() -> None:
        try:
            coming.set_result(next(batches, None))
        except BaseException as error:  # noqa: BLE001  # whoever waits for the batch raises it
            coming.set_exception(error)

    Thread(target=make, name="reader", daemon=True).start()
    return coming


class _Run:
    """One run over files.

    Args:
        engine: judges.
        results: open.
        summary: counts.
        place: what the state is to remember of the run; None: nothing.
    """

    def __init__(self, engine: Deduplicator, results: Results, summary: Summary, place: Place | None) -> None:
        self._engine = engine
        self._results = results
        self._summary = summary
        self._place = place

    def batch(self, batch: _Batch) -> None:
        """Judge the records of a file and write what became of them, then let the state remember it."""
        counted = Summary()
        for record, error in batch.dead:
            self._dead(batch.path, record, error, counted)
        judged = self._engine.decide(batch.items, batch.prepared)
        for record, outcome in zip(batch.sound, judged.outcomes, strict=True):
            if isinstance(outcome, Decision):
                self._decision(record, outcome, batch.now_ms, counted)
            elif isinstance(outcome, Withdrawn):
                self._withdrawn(outcome, batch.now_ms, counted)
            else:
                self._dead(batch.path, record, UndecodableError(Reason(outcome.reason), outcome.detail), counted)
        lengths = self._results.write()
        self._apply(judged.change, self._place.after(lengths, batch.file, batch.last) if self._place else {})
        self._summary.outcomes.update(counted.outcomes)
        self._summary.reasons.update(counted.reasons)

    def finish(self) -> None:
        """Let the state remember that there is no more to come."""
        self._apply(self._engine.decide([]).change, self._place.finished() if self._place else {})

    def _apply(self, change: Change, positions: Positions) -> None:
        self._results.remembering()
        self._engine.apply(change, positions)
        self._results.kept()

    def _decision(self, record: Record, decision: Decision, now_ms: int, counted: Summary) -> None:
        if decision.unique:
            counted.outcomes["unique"] += 1
            self._results.unique.add(record.value)
        elif decision.link is not None:
            counted.outcomes[decision.link.relation] += 1
            self._results.links.add(orjson.dumps(link_fields(decision, decision.link, now_ms)))

    def _withdrawn(self, withdrawn: Withdrawn, now_ms: int, counted: Summary) -> None:
        counted.outcomes["withdrawn"] += 1
        line = orjson.dumps(withdrawal_fields(withdrawn.id, withdrawn.withdrawal, withdrawn.canonical, now_ms))
        self._results.links.add(line)

    def _dead(self, path: Path, record: Record, error: UndecodableError, counted: Summary) -> None:
        counted.outcomes["dead"] += 1
        counted.reasons[error.reason] += 1
        line = {
            "reason": error.reason,
            "detail": str(error),
            "file": shown(path),
            "number": record.number,
            "value": record.value.decode("utf-8", "backslashreplace"),
        }
        self._results.dead.add(orjson.dumps(line))
