"""Follows the state of another process: what it has written so far, readable by several threads.

Knows when to refresh and what to reload; knows nothing of what is asked.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from stream_dedup.arrays import U64
from stream_dedup.ask.turns import Turns
from stream_dedup.closing import SelfClosing
from stream_dedup.engine.comparability import comparability
from stream_dedup.index.lookup.multi import MultiIndex
from stream_dedup.index.peek import is_state
from stream_dedup.index.records.counts import load_epoch, load_learnt
from stream_dedup.index.records.ledger import Progress, check_format, load_progress
from stream_dedup.index.stores.beside import read_beside_writer
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import FileStore, Store, StoreError
from stream_dedup.scratch import Scratch
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import Epoch
from stream_dedup.text.learnt import learn_rule_of

_CACHE_BYTES = 32 << 20
_BUFFER_BYTES = 1 << 20  # RocksDB reserves memory in proportion at each refresh, and takes more as needed
_IDENTITY = "IDENTITY"  # RocksDB's file with the id of the database; every copy has a file of its own
_NEVER_OPENED = (0, 0)  # the identity of a snapshot that no service has opened: it does not have that file yet


@dataclass(frozen=True, slots=True)
class View:
    """The state at one moment.

    Attributes:
        store: the store it is read from.
        index: its posting lists.
        progress: the state's progress.
        epoch: the document counts.
        learnt: hashes of lines known to belong to a site rather than an article, see `LineCounts`.
    """

    store: Store
    index: MultiIndex
    progress: Progress
    epoch: Epoch
    learnt: U64

    @property
    def unseen(self) -> int:
        """Number of the newest entries that no posting list contains yet: under load, lists lag some seconds behind."""
        return self.progress.entries - self.index.shelf.young_stop


class StateFollower(SelfClosing):
    """Follows a state without the writer noticing.

    Use it as a context manager, or call `close`.

    Args:
        directory: directory of the state.
        settings: the settings it was made with.

    Raises:
        StoreError: there is none, it was made with other settings, or it cannot be read.
    """

    def __init__(self, directory: Path, settings: EngineSettings) -> None:
        self._directory = directory
        self._settings = settings
        self._turns = Turns()
        self._scratch = Scratch("follow")
        self._view: View | None = None
        self._identity: tuple[int, int] | None = None
        self._last_write = -1  # that the view shows
        self._epoch_begin = -1  # number of articles judged before it began
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def view(self) -> Iterator[View]:
        """Hold the state as of the last refresh while the context lasts; other threads wait meanwhile. Do not nest.

        Raises:
            StoreError: it is gone, and no other has replaced it yet.
        """
        with self._turns.question():
            if self._view is None:
                self.refresh()
            yield self._seen()

    def refresh(self, most: int | None = None) -> None:
        """Read what was written since the last refresh. A new state in the same directory is recognised as such.

        Args:
            most: the largest number of entries to make searchable; the rest waits for the next refresh. If more than
                that were added since the last one, none are, because the writer will soon put them into a run.
                None for no limit.

        Raises:
            StoreError: there is none, or it cannot be read; the next refresh may find one.
        """
        with self._turns.upkeep():
            try:
                self._look(most)
            except BaseException:
                self._forget()
                raise
            view = self._seen()
        if _begin_of_epoch(view.progress) != self._epoch_begin:
            self._take_epoch(view)

    def close(self) -> None:
        """Release what was opened."""
        with self._turns.upkeep():
            self._forget()
            self._scratch.cleanup()

    def _seen(self) -> View:
        if self._view is None:
            raise StoreError(f"{self._directory} is no longer followed")
        return self._view

    def _look(self, most: int | None) -> None:
        identity = _identity_of(self._directory)
        if self._view is None or identity != self._identity:
            self._forget()
            self._view, most = read_beside_writer(self._opened), None
            self._identity = identity
        self._view = read_beside_writer(partial(self._caught_up, self._seen(), most))

    def _opened(self) -> View:
        with ExitStack() as opened:
            scratch = Path(self._scratch.name)
            store = RocksStore(
                self._directory, cache_bytes=_CACHE_BYTES, write_buffer_bytes=_BUFFER_BYTES, follow=scratch
            )
            opened.callback(store.close)
            check_format(store, comparability(self._settings), claim=False)
            view = view_of(store, self._settings, Progress())
            opened.pop_all()
        self._store, self._last_write = store, -1
        self._epoch_begin = _begin_of_epoch(load_progress(store))
        return view

    def _caught_up(self, view: View, most: int | None) -> View:
        self._store.catch_up()
        last_write = self._store.last_write
        if last_write == self._last_write and (most == 0 or not view.unseen):
            return view
        progress = load_progress(view.store)
        if most is not None and progress.entries - view.progress.entries > most:
            most = 0
        view.index.shelf.reload_runs()
        view.index.load_young(self._store, progress, most)
        self._last_write = last_write
        return replace(view, progress=progress)

    def _take_epoch(self, seen: View) -> None:
        """Read the counts of a new epoch without blocking other threads: there may be some hundred thousand of them."""
        epoch, learnt = _counts(seen.store, self._settings)
        with self._turns.upkeep():
            if self._view is not None and self._view.store is seen.store:
                self._view = replace(self._view, epoch=epoch, learnt=learnt)
                self._epoch_begin = _begin_of_epoch(seen.progress)

    def _forget(self) -> None:
        if self._view is not None:
            view, self._view = self._view, None
            view.index.close()
            # If closing fails, the cause is in the writer's files.
            with suppress(StoreError):
                self._store.close()


def view_of(store: FileStore, settings: EngineSettings, progress: Progress) -> View:
    """Return a view of the state in a store that something else writes.

    Args:
        store: the store.
        settings: the settings that the state was made with.
        progress: entries that are in no run are searchable up to this progress.

    Raises:
        StoreError: it cannot be read.
    """
    counts = _counts(store, settings)
    return View(store, MultiIndex(store, settings, progress, shared=True), progress, *counts)


def _counts(store: Store, settings: EngineSettings) -> tuple[Epoch, U64]:
    epoch = load_epoch(store)
    return epoch, load_learnt(store, learn_rule_of(settings.text), epoch.number)


def _identity_of(directory: Path) -> tuple[int, int]:
    """Return what tells the database in a directory from all others, from copies of it as well.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    if not is_state(directory):
        raise StoreError(f"{directory} holds no state for these settings: start the service, or check state.directory")
    try:
        status = (directory / _IDENTITY).stat()
    except FileNotFoundError:
        return _NEVER_OPENED
    except OSError as error:
        raise StoreError(f"cannot read the state directory {directory}: {error.strerror}") from None
    # The number of a deleted file may be given again, but not its time.
    return status.st_ino, status.st_ctime_ns


def _begin_of_epoch(progress: Progress) -> int:
    return progress.judged - progress.epoch_judged
