"""A shelf of small runs beside dictionaries with the same lists, on a store that fails on demand.

Knows how shelves are driven and compared; knows nothing of what a test makes of it.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, BinaryIO, Self

import numpy as np
import pytest

from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.postings import PostingKind, PostingLists
from stream_dedup.index.runs.shelf import Shelf, Young
from stream_dedup.index.stores.store import FileStore, MemoryStore, StoreError, Write
from tests.unit.runs.plain import Posting, flat_of, newest, rows_of, u64

KINDS = (PostingKind("contents", 1), PostingKind("landmarks", 3, "size"), PostingKind("tables", 8, "fingerprint"))
YOUNG = 4
KEYS = u64(range(12)) * np.uint64(2**60 + 3)

Lists = list[dict[int, list[Posting]]]


class FaultyStore(MemoryStore):
    """A store that fails on demand.

    Attributes:
        error: raised by what fails, see `fail`; None if nothing does.
        removing: threads that have removed files.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self._at = ""
        self.removing: set[threading.Thread] = set()

    def fail(self, at: str, error: StoreError) -> None:
        """Let all writes of "files" or "pairs", or all "removals", raise an error from now on."""
        self._at, self.error = at, error

    @contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """See `FileStore`."""
        with super().new_file(name) as file:
            yield file
            if self.error is not None and self._at == "files":
                raise self.error

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`."""
        if self.error is not None and self._at == "pairs":
            raise self.error
        super().write(writes)

    def remove_files(self, names: Sequence[str]) -> None:
        """See `FileStore`."""
        if not set(names).isdisjoint(self.file_names()):
            self.removing.add(threading.current_thread())
            if self.error is not None and self._at == "removals":
                raise self.error
        super().remove_files(names)


def _entry_keys(number: int) -> list[list[int]]:
    """Return an entry's keys of each kind; there are few different ones, so that lists fill up."""
    rng = np.random.default_rng(number)
    return [rng.choice(KEYS, size, replace=False).tolist() for size in (1, 3, 2)]


def _detail(kind: PostingKind, number: int) -> int:
    return number * 0x9E3779B97F4A7C15 % (1 << 8 * kind.detail_bytes)


class Walk:
    """A shelf beside dictionaries with the same lists.

    Args:
        store: where runs are kept.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self.lists: Lists = [{} for _ in KINDS]
        self.progress = Progress()
        self.shelf = Shelf(store, KINDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shelf.close()
        self._store.close()

    def keyed_postings(self, numbers: Sequence[int]) -> list[KeyedPostings]:
        """Return the postings of entries."""
        return [
            flat_of((key, number, _detail(kind, number)) for number in numbers for key in _entry_keys(number)[place])
            for place, kind in enumerate(KINDS)
        ]

    def add(self, entries: int) -> None:
        """Add entries, after doing what is due, as a state does."""
        self.shelf.maintain(self.progress)
        first = self.progress.entries
        numbers = range(first, first + entries)
        for lists, keyed in zip(self.lists, self.keyed_postings(numbers), strict=True):
            for key, number, detail in rows_of(keyed):
                lists.setdefault(key, []).append((number, detail))
        self.shelf.add(self.keyed_postings(numbers), first + entries)
        self.progress = Progress(entries=first + entries, generations=self.progress.generations)

    def begin_generation(self) -> None:
        """Begin another generation, of which at most three live."""
        last = self.progress.generations[-1]
        generations = (*self.progress.generations, Generation(last.number + 1, 0, self.progress.entries))
        self.progress = Progress(entries=self.progress.entries, generations=generations[-3:])

    def finish(self) -> None:
        """Finish all freezing and merging that is due."""
        self.shelf.finish(self.progress)

    def reopen(self) -> None:
        """Close the shelf and reopen it, adding again the entries that are in no run."""
        self.shelf.close()
        self.shelf = Shelf(self._store, KINDS)
        first = max(self.shelf.young_first, self.floor)
        for number in range(first, self.progress.entries):
            self.shelf.add(self.keyed_postings([number]), number + 1)

    @property
    def floor(self) -> int:
        """The first entry that has not expired."""
        return self.progress.floor

    def check(self, pending: int = 0) -> None:
        """Compare all lists with the dictionaries, with entries about to be added if there are any pending."""
        first = self.progress.entries
        young = Young(KINDS) if pending else None
        lists: Lists = [{key: [*found] for key, found in one.items()} for one in self.lists]
        if young is not None:
            keyed_postings = self.keyed_postings(range(first, first + pending))
            young.add(keyed_postings)
            for kind_lists, keyed in zip(lists, keyed_postings, strict=True):
                for key, number, detail in rows_of(keyed):
                    kind_lists.setdefault(key, []).append((number, detail))
        for place, kind in enumerate(KINDS):
            expected = [newest(lists[place], key, kind.cap, self.floor) for key in KEYS.tolist()]
            assert _found(self.shelf.find(place, KEYS, self.floor, young)) == expected
            may_be = self.shelf.may_hold(place, KEYS, young)
            assert all(may_be[at] for at, found in enumerate(expected) if found)

    def check_files(self) -> None:
        """Check that the files are exactly those of the runs, and that the runs' entries are consecutive."""
        assert sorted(self._store.file_names()) == sorted(run.name for run in self.shelf.runs)
        assert all(one.stop == other.first for one, other in pairwise(self.shelf.runs))
        assert all(run.entries <= max(64, YOUNG) for run in self.shelf.runs)


def _found(lists: PostingLists) -> list[list[Posting]]:
    entries, details = (column.tolist() for column in lists.postings)
    postings = list(zip(entries, details, strict=True))
    return [postings[start:stop] for start, stop in pairwise(lists.offsets.tolist())]


class Now(Executor):
    """An executor that runs what it is given at once, and keeps errors for the caller of `result`."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, function: Callable[..., Any], /, *arguments: object, **named: object) -> Future[Any]:
        """See `Executor`."""
        self.submitted += 1
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except StoreError as error:
            future.set_exception(error)
        return future


def add_unmerged(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a shelf so that exactly its five runs are due to be merged."""
    with monkeypatch.context() as waiting:
        waiting.setattr(Shelf, "_due_merge", lambda *_: [])
        for _ in range(6):
            walk.add(YOUNG)
        monkeypatch.setattr(walk.shelf, "_is_due", lambda _: False)
        walk.finish()
    assert len(walk.shelf.runs) == 5
