"""The shelf: all runs of a state and the young lists; freezes the young lists, merges runs, and looks up keys.

Knows when runs are made and dropped; knows nothing of their bytes, or of what keys are made from.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from stream_dedup.arrays import U64, Bool
from stream_dedup.background import let_others_first
from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.records.records import key_of
from stream_dedup.index.runs.ahead import ReadAhead, cacheable_bytes
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.hits import lists_of, no_hits
from stream_dedup.index.runs.merging import key_ranges, merge_runs
from stream_dedup.index.runs.postings import PostingKind, PostingLists, Postings
from stream_dedup.index.runs.run import Run, RunWriter, bounds_of, open_run
from stream_dedup.index.runs.schedule import due_of_closed, due_of_open
from stream_dedup.index.runs.section import mark_present
from stream_dedup.index.runs.young import YoungLists
from stream_dedup.index.stores.store import Drop, Family, FileStore, Put, StoreFullError, Write

YOUNG_ENTRIES = 1 << 14  # the young lists are frozen when they hold this many
_THREADS = 2  # for freezing and for a merge, which may take longer than the young lists to fill up
_MOST_RUNS_BEHIND = 12  # frozen and not merged yet: then everything waits for the merge under way
_SLICE_SECONDS = 1.0  # longest wait at a time, so that signals and heartbeats get their turn
_RUN_PREFIX = b"run/"
_REMOVED_PREFIX = b"removed/"
RUN_KEYS = (_RUN_PREFIX, _REMOVED_PREFIX)  # may differ between two states with the same entries


@dataclass(slots=True)
class Reads:
    """What look-ups have cost so far, and the merging that keeps them cheap.

    Attributes:
        keys: keys looked up in the lists.
        blocks: blocks of runs read for them.
        merging_seconds: CPU time spent on merging runs and opening what comes of it.
    """

    keys: int = 0
    blocks: int = 0
    merging_seconds: float = 0.0


class Young:
    """Young lists of all kinds.

    Args:
        kinds: kinds of the lists.
    """

    def __init__(self, kinds: Sequence[PostingKind]) -> None:
        self.lists = [YoungLists() for _ in kinds]

    def add(self, keyed_postings: Sequence[KeyedPostings]) -> None:
        """Add postings, one `KeyedPostings` for each kind, of entries that are newer than all those already held."""
        for lists, keyed in zip(self.lists, keyed_postings, strict=True):
            lists.add(keyed)

    def clear(self) -> None:
        """Remove all postings."""
        for lists in self.lists:
            lists.clear()


class Shelf:
    """Posting lists of several kinds.

    What a look-up finds does not depend on which entries are already in runs: it sees the newest postings of a key, up
    to the cap of its kind, among the entries that have not expired. Removed entries are included until they expire.

    Args:
        store: where runs are kept.
        kinds: kinds of the lists.
        shared: whether runs use memory that other processes share; see `open_run`.

    Attributes:
        young_entries: the young lists are frozen into a run when they hold this many.
        reads: what look-ups have cost so far.

    Raises:
        StoreDamagedError: a run is missing or damaged.
    """

    def __init__(self, store: FileStore, kinds: Sequence[PostingKind], *, shared: bool = False) -> None:
        self._store = store
        self._shared = shared
        self._kinds = kinds
        self._runs = _stored_runs(store, {}, shared=shared)
        # Those that take new entries; and those before, up to `_full_stop`, which are being frozen, or empty.
        self._young, self._full = Young(kinds), Young(kinds)
        self._young_first = self._full_stop = self._young_stop = self._runs[-1].stop if self._runs else 0
        self._freezing: Future[Run] | None = None
        self._aside = ThreadPoolExecutor(_THREADS, "runs", let_others_first)
        # Some file systems take a second to remove a gigabyte, and freezing must not wait for that.
        self._remover = ThreadPoolExecutor(1, "removals", let_others_first)
        self._removals: list[Future[None]] = []
        self._merge: tuple[list[Run], Future[Run]] | None = None
        self._closing = threading.Event()
        self.young_entries = YOUNG_ENTRIES
        self.reads = Reads()
        known = {run.name for run in self._runs}
        store.remove_files([name for name in store.file_names() if name not in known])
        self._ahead = ReadAhead([] if shared else self._runs, cacheable_bytes())
        self._ahead.start()

    @property
    def young_first(self) -> int:
        """Number of the first entry that no run holds."""
        return self._young_first

    @property
    def young_stop(self) -> int:
        """Number after the last entry that the lists hold."""
        return self._young_stop

    @property
    def runs(self) -> Sequence[Run]:
        """The runs, oldest first."""
        return self._runs

    def find(self, place: int, keys: U64, floor: int, pending: Young | None) -> PostingLists:
        """Return the posting lists of distinct, ascending keys.

        Args:
            place: index of the kind.
            keys: shape (m,).
            floor: number of the first entry that has not expired.
            pending: lists of entries that are about to be added.

        Raises:
            StoreDamagedError: a run is damaged.
        """
        kind = self._kinds[place]
        room = np.full(len(keys), kind.cap, np.int64)
        hits = no_hits(len(keys))
        # The newest first: most lists that reach their cap reach it before the oldest runs are read.
        for young in (pending, self._young, self._full):
            if young is not None:
                # Of two generations that are being frozen, a run may hold the older one already.
                hits = young.lists[place].find(keys, room, max(floor, self._young_first), hits)
        for run in reversed(self._runs):
            hits, blocks = run.find(place, keys, room, floor, hits)
            self.reads.blocks += blocks
        self.reads.keys += len(keys)
        offsets, *postings = lists_of(hits, len(keys))
        return PostingLists(keys, offsets, Postings(*postings))

    def may_hold(self, place: int, keys: U64, pending: Young | None) -> Bool:
        """Tell for each key whether it may have a list, shape of `keys`; False is certain."""
        may_be = np.zeros(len(keys), np.bool_)
        for young in (self._young, self._full, pending):
            if young is not None:
                young.lists[place].mark(keys, may_be)
        for run in reversed(self._runs):
            mark_present(run.sections[place].words, keys, may_be)
        return may_be

    def add(self, keyed_postings: Sequence[KeyedPostings], stop: int) -> None:
        """Add the postings of entries.

        Args:
            keyed_postings: one for each kind.
            stop: number after the last of these entries.
        """
        self._young.add(keyed_postings)
        self._young_stop = stop

    def maintain(self, progress: Progress) -> None:
        """Begin to freeze and merge what is due, use what has been, and drop what has expired.

        This does not change what look-ups find.

        Args:
            progress: progress of the state, all of whose entries have been added.

        Raises:
            StoreError: a run cannot be written; nothing has changed then. Or one that is no longer used could not be
                removed.
        """
        floor = progress.floor
        self._hear_of_removals()
        self._install()
        self._drop(floor)
        self._freeze(progress, due=self._is_due(progress))
        # A merge that filled the disk would leave the next write no room: it waits until there is space.
        if (
            self._merge is None
            and (group := self._due_merge(progress))
            and self._store.has_room(sum(run.size for run in group))
        ):
            self._merge = (group, self._aside.submit(self._merged, group, floor))

    def reload_runs(self) -> None:
        """Switch to the runs that are now in the store, if another process makes them.

        If these are other runs than before, the young lists are empty afterwards.

        Raises:
            StoreDamagedError: a run is missing, because the writer has merged it in the meantime, or is damaged.
        """
        known = {run.name: run for run in self._runs}
        runs = _stored_runs(self._store, known, shared=self._shared)
        if runs == self._runs:
            return
        for run in self._runs:
            if run not in runs:
                run.close()
        self._runs = runs
        self._young = Young(self._kinds)
        self._young_first = self._full_stop = self._young_stop = runs[-1].stop if runs else 0

    def finish(self, progress: Progress) -> None:
        """Freeze and merge all that is due and has room, and wait until that is done and what is unused is removed."""
        self.maintain(progress)
        while begun := self._begun():
            wait(begun)
            if self._merge is not None:
                self._merge[1].result()
            self.maintain(progress)
        wait(self._removals)
        self._hear_of_removals()

    def keyed_postings(self) -> Iterator[tuple[int, KeyedPostings]]:
        """Yield all postings, kind by kind and run by run, a stretch of keys at a time: index of the kind, postings."""
        for place, kind in enumerate(self._kinds):
            for run in self._runs:
                for begin, end in key_ranges(run.sections[place].layout.block_bits):
                    yield place, run.postings_between(place, begin, end)
            for young in (self._full, self._young):
                yield place, young.lists[place].sorted(kind.cap, self._young_first)

    def close(self) -> None:
        """Close the runs. A merge under way ends after the current stretch of keys; the next shelf begins it again.

        Files that are no longer used and not yet removed are removed by the next shelf.
        """
        self._ahead.stop()
        self._closing.set()
        for threads in (self._aside, self._remover):
            threads.shutdown(wait=True, cancel_futures=True)
        for run in [*self._runs, *self._not_installed()]:
            run.close()
        self._runs, self._freezing, self._merge = [], None, None

    def _begun(self) -> list[Future[Run]]:
        """Return the freezing and the merge that were begun and whose runs are not in use yet."""
        merging = self._merge and self._merge[1]
        return [future for future in (self._freezing, merging) if future is not None]

    def _not_installed(self) -> list[Run]:
        """Return the runs that are complete but were not installed."""
        return [future.result() for future in self._begun() if not future.cancelled() and not future.exception()]

    def _is_due(self, progress: Progress) -> bool:
        young = self._young_stop - self._full_stop
        # Once a generation has begun, the one before is to be merged, with the last of its entries.
        return young >= self.young_entries or (young > 0 and self._full_stop < progress.generations[-1].first_entry)

    def _freeze(self, progress: Progress, *, due: bool) -> None:
        """Install what has been frozen; if the young lists are `due`, begin to freeze them.

        Lists are frozen one after another: those that are due wait until those before them are. After an attempt that
        failed everything waits for the next, since nothing may change as long as there is an error. It also waits if
        the lists hold a second generation, which is rare: only after a replay, or when a state is opened.
        """
        while self._young_first < self._full_stop:
            begun = self._freezing is not None
            if not begun:
                self._begin_freezing(progress)
            if not self._install_frozen(must=due or not begun):
                break
        if due:
            self._young, self._full = self._full, self._young
            self._full_stop = self._young_stop
            self._begin_freezing(progress)

    def _begin_freezing(self, progress: Progress) -> None:
        """Begin to make a run of the full lists, without the entries that have expired; there may be no others.

        A run that spanned two generations would have to be kept as long as the younger one, and with it all runs of the
        older one, which are merged with it: the younger one waits for a run of its own.
        """
        first = max(self._young_first, progress.floor)
        if first < self._full_stop:
            begins = (generation.first_entry for generation in progress.generations)
            stop = min([self._full_stop, *(begin for begin in begins if begin > first)])
            self._freezing = self._aside.submit(self._frozen, first, stop)
        else:
            self._leave_to_runs(self._full_stop)

    def _frozen(self, first: int, stop: int) -> Run:
        name = _run_name(first, stop)
        with self._store.new_file(name) as file:
            writer = RunWriter(file, first, stop)
            for kind, lists in zip(self._kinds, self._full.lists, strict=True):
                live = _before(stop, lists.sorted(kind.cap, first))
                writer.section([live], bounds_of(live), kind.detail_bytes)
            writer.finish()
        return self._open(name)

    def _install_frozen(self, *, must: bool) -> bool:
        """Use a run made of the full lists instead of them once it is complete, now if it `must` be; tell if it is."""
        freezing = self._freezing
        if freezing is None or not self._has_ended(freezing, must=must):
            return False
        self._freezing = None
        run = freezing.result()
        self._register([], run)
        self._leave_to_runs(run.stop)
        return True

    def _leave_to_runs(self, stop: int) -> None:
        """Forget the entries before `stop`, which a run holds or which have expired."""
        self._young_first = stop
        if stop == self._full_stop:
            self._full.clear()

    def _has_ended(self, future: Future[Run], *, must: bool) -> bool:
        """Tell whether a call has ended, after waiting for it if it `must` have."""
        while must and not future.done():
            wait([future], _SLICE_SECONDS)
            self._store.while_waiting()
        return future.done()

    def _open(self, name: str) -> Run:
        return open_run(name, self._store.open_file(name))

    def _register(self, old: Sequence[Run], new: Run) -> None:
        """Replace old runs with a new one, in the store and here; close the new one if that fails."""
        try:
            self._store.write(
                [
                    *(Put(Family.META, _run_key(run.first), None) for run in old),
                    Put(Family.META, _run_key(new.first), new.name.encode()),
                    Drop(Family.META, _REMOVED_PREFIX, _REMOVED_PREFIX + key_of(new.stop)),
                ]
            )
        except BaseException:
            new.close()
            raise
        self._runs = sorted([*(run for run in self._runs if run not in old), new], key=lambda run: run.first)
        self._forget(old)

    def _drop(self, floor: int) -> None:
        expired = [run for run in self._runs if run.stop <= floor]
        if self._merge is not None:
            # The runs that are being merged are still read.
            expired = [run for run in expired if run not in self._merge[0]]
        if expired:
            self._store.write([Put(Family.META, _run_key(run.first), None) for run in expired])
            self._runs = [run for run in self._runs if run not in expired]
            self._forget(expired)

    def _forget(self, runs: Sequence[Run]) -> None:
        for run in runs:
            run.close()
        if runs:
            self._removals.append(self._remover.submit(self._store.remove_files, [run.name for run in runs]))

    def _hear_of_removals(self) -> None:
        """Raise the error of a removal that has failed since the last time."""
        while self._removals and self._removals[0].done():
            self._removals.pop(0).result()

    def _due_merge(self, progress: Progress) -> list[Run]:
        """Return runs to merge, the oldest first; none if none are due."""
        starts = np.array([generation.first_entry for generation in progress.generations])
        for generation, runs in groupby(self._runs, lambda run: int(np.searchsorted(starts, run.first, side="right"))):
            group = list(runs)
            sizes = [run.entries for run in group]
            # Merged without its last run, a completed generation would soon be merged again.
            closed = generation < len(starts) and starts[generation] <= self._young_first
            if due := group[due_of_closed(sizes) if closed else due_of_open(sizes, self.young_entries)]:
                return due
        return []

    def _merged(self, runs: Sequence[Run], floor: int) -> Run:
        name, began = _run_name(runs[0].first, runs[-1].stop), time.thread_time()
        with self._store.new_file(name) as file:
            merge_runs(file, runs, self._kinds, floor, self._raise_if_closing)
        # Here rather than where it is installed: the filters of three million entries take a third of a second to read.
        merged = self._open(name)
        self.reads.merging_seconds += time.thread_time() - began
        return merged

    def _raise_if_closing(self) -> None:
        if self._closing.is_set():
            raise CancelledError

    def _install(self) -> None:
        """Replace runs with the one that they were merged into, once it is finished."""
        if self._merge is None:
            return
        runs, future = self._merge
        behind = sum(run.entries < 2 * self.young_entries for run in self._runs)
        if not self._has_ended(future, must=behind >= _MOST_RUNS_BEHIND):
            return
        self._merge = None
        # Somebody else has filled the disk: merging can wait until there is space again.
        with suppress(StoreFullError):
            self._register(runs, future.result())


def load_removed(store: FileStore) -> dict[int, bytes]:
    """Return the entries that were removed since the last run was frozen, as they were stored, by their numbers."""
    prefix = len(_REMOVED_PREFIX)
    return {int.from_bytes(key[prefix:]): value for key, value in store.items(Family.META, _REMOVED_PREFIX)}


def removed_put(number: int, packed: bytes) -> Put:
    """Return the write that keeps a removed entry, for the sake of its keys, until a run holds these.

    Args:
        number: number of the entry.
        packed: the entry as it was stored.
    """
    return Put(Family.META, _REMOVED_PREFIX + key_of(number), packed)


def is_removed_put(write: Write) -> bool:
    """Tell whether a write was made by `removed_put`."""
    return isinstance(write, Put) and write.family is Family.META and write.key.startswith(_REMOVED_PREFIX)


def _stored_runs(store: FileStore, known: Mapping[str, Run], *, shared: bool) -> list[Run]:
    """Return the runs of a store; those in `known` are open already and are reused."""
    runs: list[Run] = []
    with ExitStack() as opened:
        for _, packed in store.items(Family.META, _RUN_PREFIX):
            name = packed.decode()
            if name in known:
                runs.append(known[name])
                continue
            runs.append(open_run(name, store.open_file(name), shared=shared))
            opened.callback(runs[-1].close)
        # From here on, the shelf closes them.
        opened.pop_all()
    return runs


def _before(stop: int, keyed: KeyedPostings) -> KeyedPostings:
    """Return the postings of entries before `stop`."""
    older = keyed.entries < stop
    return keyed if older.all() else KeyedPostings(*(column[older] for column in keyed))


def _run_key(first: int) -> bytes:
    return _RUN_PREFIX + key_of(first)


def _run_name(first: int, stop: int) -> str:
    return f"{first:012d}-{stop:012d}.run"
