"""Files in, `unique.jsonl`, `links.jsonl` and `dead.jsonl` out.

Knows what becomes of each record and when the state remembers it; knows nothing of formats or of the terminal.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from stream_dedup.article import Decision, Withdrawn
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Change
from stream_dedup.files.batches import Batch, BatchReader, prefetched
from stream_dedup.files.readers import (
    STANDARD_INPUT,
    Progress,
    Record,
    check_begin,
    check_exists,
    check_regular,
    reader_for,
    shown,
)
from stream_dedup.files.results import Results, check_new
from stream_dedup.files.run_positions import RunPositions, fresh_start
from stream_dedup.index.records.ledger import Positions
from stream_dedup.output_fields import link_fields, succession_fields, withdrawal_fields
from stream_dedup.settings import Settings


@dataclass(slots=True)
class Summary:
    """What became of a run's records.

    Attributes:
        outcomes: counts of `unique`, `withdrawn`, `dead` and the relations.
        reasons: counts of the dead, by reason.
        finished: whether all records are judged, and the state knows it.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    finished: bool = False

    def records(self) -> int:
        """Return how many records there were."""
        return self.outcomes.total()


def check_files(paths: Sequence[Path]) -> None:
    """Check that files exist and have formats that can be read, as often as they are named.

    Raises:
        FileFormatError: one does not, or cannot.
    """
    for path, times in Counter(paths).items():
        check_exists(path)
        if times > 1:
            check_regular(path)  # anything else would be empty the second time
        reader_for(path)
        check_begin(path)


def are_regular(paths: Sequence[Path]) -> bool:
    """Return whether all files can be read again: none is a pipe."""
    return all(path != STANDARD_INPUT and path.is_file() for path in paths)


def dedup_files(
    paths: Sequence[Path],
    out: Path,
    engine: Deduplicator,
    settings: Settings,
    report: Callable[[int, Progress], None],
    summary: Summary,
    look: Callable[[], None] = lambda: None,
) -> None:
    """Judge the records of files in order and write the results.

    The state remembers how far the run has come, along with the articles. However it ends, the same call on the same
    state resumes there, and the results are those of an uninterrupted run. Input from a pipe cannot be read again: such
    a run starts over.

    Args:
        paths: the files.
        out: directory of the results, created if it does not exist.
        engine: judges; its state carries over from file to file.
        settings: field names, bounds and the size of batches.
        report: called now and then with the number of a file, from 0, and how far it has been read.
        summary: counts what is written, even if the run fails.
        look: called between batches and while waiting for one; may raise to end the run. A signal handler must not
            raise, since compiled loops cannot cope with that.

    Raises:
        FileFormatError: a file cannot be read; the results of everything before that are written.
        FileExistsError: `out` already contains results, and not those of an unfinished run.
        OSError: the results cannot be written.
        StoreError: the state cannot be read or written.
    """
    check_files(paths)
    readers = [(path, reader_for(path, {settings.input.fields.deleted})) for path in paths]
    place = RunPositions(paths, out, settings) if are_regular(paths) else None
    start = place.start(engine.positions()) if place is not None else fresh_start(len(paths))
    if start.new:
        check_new(out)
        # Before the files exist: otherwise those of a run that ended here would be in the way.
        engine.apply(engine.decide([]).change, place.begun() if place is not None else {})
    with Results(out, start.kept, sync=settings.state.sync) as results:
        run = _Run(engine, results, summary, place)
        reading = BatchReader(readers, Decoder(settings.input), engine, settings.commit, start.done)
        # Closed before the engine is, however the run ends.
        with closing(prefetched(reading, look)) as batches:
            for batch in batches:
                run.batch(batch)
                report(batch.file, batch.progress)
        run.finish()
    summary.finished = True


class _Run:
    """One run over files.

    Args:
        engine: judges.
        results: open.
        summary: counts.
        place: what the state is to remember of the run; None for nothing.
    """

    def __init__(self, engine: Deduplicator, results: Results, summary: Summary, place: RunPositions | None) -> None:
        self._engine = engine
        self._results = results
        self._summary = summary
        self._place = place

    def batch(self, batch: Batch) -> None:
        """Judge the records of a batch and write what became of them, then have the state remember it."""
        counted, dead = Summary(), [*batch.dead]
        judged = self._engine.decide(batch.items, batch.prepared)
        for place, (record, outcome) in enumerate(zip(batch.sound, judged.outcomes, strict=True)):
            if isinstance(outcome, Decision):
                self._decision(record, outcome, batch.now_ms, counted)
            elif isinstance(outcome, Withdrawn):
                self._withdrawn(outcome, batch.now_ms, counted)
            else:
                dead.append((record, UndecodableError(Reason(outcome.reason), outcome.detail)))
            # Before the next decision, as on the topic: of two lines with the same id the last one counts.
            for one in judged.successions.get(place, ()):
                self._results.links.add(orjson.dumps(succession_fields(one, batch.now_ms)))
        for record, error in sorted(dead, key=lambda letter: letter[0].number):
            self._dead(batch.path, record, error, counted)
        lengths = self._results.write()
        self._apply(judged.change, self._place.after(lengths, batch.file, batch.last) if self._place else {})
        self._summary.outcomes.update(counted.outcomes)
        self._summary.reasons.update(counted.reasons)

    def finish(self) -> None:
        """Have the state remember that the run is finished."""
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
        line = orjson.dumps(withdrawal_fields(withdrawn, now_ms))
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
