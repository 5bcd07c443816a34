"""Batches of a run over files: read, decoded and prepared, one batch ahead of the one being judged.

Knows records, batches and the thread that makes them; knows nothing of decisions, or of what becomes of a record.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

from stream_dedup.article import Article, Origin, Withdrawal
from stream_dedup.background import begun
from stream_dedup.decode import Decoder, UndecodableError, internal
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.prepared import Prepared, prepared_without_faulty
from stream_dedup.files.items import item_of
from stream_dedup.files.readers import FileFormatError, Progress, Reader, Record, shown
from stream_dedup.settings import CommitSettings

_LEAVE_SECONDS = 2.0  # a batch from a file takes less
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one file, read, decoded and their articles prepared.

    Attributes:
        path: of the file.
        file: number of the file, from 0.
        last: number of the last record.
        progress: after that record.
        now_ms: when they were read, milliseconds since 1970 in UTC.
        sound: records that could be decoded.
        items: what they contain.
        dead: the other records, with the reason.
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


class BatchReader:
    """Reads files in batches.

    Args:
        files: paths and their readers.
        decoder: decodes records.
        engine: prepares their texts.
        commit: how many records, and bytes of them, make a batch.
        done: number of the last record of each file that is skipped.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, Reader]],
        decoder: Decoder,
        engine: Deduplicator,
        commit: CommitSettings,
        done: Sequence[int],
    ) -> None:
        self._files = files
        self._decoder = decoder
        self._engine = engine
        self._commit = commit
        self._done = done
        self._at_work = Lock()
        self._left = False

    def batches(self) -> Iterator[Batch]:
        """Yield the records in order; no batch spans two files.

        Raises:
            FileFormatError: a file cannot be read any further; everything before was yielded.
        """
        for file, ((path, reader), done) in enumerate(zip(self._files, self._done, strict=True)):
            records = (one for one in reader(path) if one[0].number > done)
            for some in _groups(records, self._commit):
                with self._at_work:
                    if self._left:
                        return
                    batch = self._batch(path, file, [record for record, _ in some], some[-1][1])
                yield batch

    def leave(self) -> None:
        """Wait until no batch is being made; no more are made after that, whatever the files bring."""
        with self._at_work:
            self._left = True

    def _batch(self, path: Path, file: int, records: Sequence[Record], progress: Progress) -> Batch:
        now_ms = time.time_ns() // 1_000_000
        sound: list[Record] = []
        items: list[Article | Withdrawal] = []
        dead: list[tuple[Record, UndecodableError]] = []
        for record in records:
            origin = Origin(shown(path.name), 0, record.number)
            try:
                items.append(item_of(record, self._decoder, now_ms, origin))
                sound.append(record)
            except UndecodableError as error:
                dead.append((record, error))
        last = records[-1].number
        prepared, faults = prepared_without_faulty(items, self._engine.prepare)
        if faults:
            dead += [(sound[place], internal(fault)) for place, fault in faults.items()]
            sound = [record for place, record in enumerate(sound) if place not in faults]
            items = [item for place, item in enumerate(items) if place not in faults]
        return Batch(path, file, last, progress, now_ms, sound, items, dead, prepared)


def prefetched(reading: BatchReader, look: Callable[[], None]) -> Generator[Batch]:
    """Yield batches; while one is judged, the next is made in another thread.

    Args:
        reading: makes them.
        look: called between batches and while waiting for one; may raise to end the run.

    Raises:
        FileFormatError: as `BatchReader.batches`.
    """
    # In a thread that the end of a run need not wait for: its pipe may bring nothing.
    next_one = partial(begun, partial(next, reading.batches(), None), "reader")
    coming = next_one()
    try:
        while (batch := _awaited(coming, look)) is not None:
            coming = next_one()
            yield batch
    finally:
        # The next batch uses what the caller closes next, so it is waited for; but not if a pipe brings nothing.
        wait([coming], _LEAVE_SECONDS)
        reading.leave()


def _awaited(coming: "Future[Batch | None]", look: Callable[[], None]) -> Batch | None:
    look()
    while not wait([coming], _LOOK_SECONDS).done:
        look()
    return coming.result()


def _groups(
    records: Iterator[tuple[Record, Progress]], commit: CommitSettings
) -> Iterator[Sequence[tuple[Record, Progress]]]:
    """Yield records, as many at a time as a commit takes; after a fault, first those read before it, then raise it."""
    group: list[tuple[Record, Progress]] = []
    size = 0
    try:
        for one in records:
            group.append(one)
            size += len(one[0].value)
            if len(group) >= commit.articles or size >= commit.bytes:
                yield group
                group, size = [], 0
    except FileFormatError:
        if group:
            yield group
        raise
    if group:
        yield group
