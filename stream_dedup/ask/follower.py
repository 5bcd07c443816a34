"""The state of another process, followed: what it has written so far, readable by several threads.

Knows when to look again and what is read anew; knows nothing of what is asked.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from stream_dedup.closing import SelfClosing
from stream_dedup.compiled.hashing import U64
from stream_dedup.engine.dedup import comparability
from stream_dedup.index.lookup.multi import MultiIndex
from stream_dedup.index.peek import is_state
from stream_dedup.index.records.counts import load_epoch, load_learnt
from stream_dedup.index.records.ledger import Progress, check_format, load_progress
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import FileStore, Store, StoreDamagedError, StoreError
from stream_dedup.scratch import Scratch
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import Epoch
from stream_dedup.text.learnt import rule_of

_CACHE_BYTES = 32 << 20
_BUFFER_BYTES = 1 << 20  # RocksDB reserves memory by it at each look, and takes what it needs
_ATTEMPTS = 3  # to open runs that are merged away meanwhile
_IDENTITY = "IDENTITY"  # RocksDB's name for a file that no two databases share


@dataclass(frozen=True, slots=True)
class View:
    """The state as it was at some moment.

    Attributes:
        store: what is read.
        index: its posting lists.
        progress: how far the state had come.
        epoch: of the document counts.
        learnt: the lines that are known to be their sites', see `LineCounts`.
    """

    store: Store
    index: MultiIndex
    progress: Progress
    epoch: Epoch
    learnt: U64

    @property
    def unseen(self) -> int:
        """How many of the newest entries no posting list leads to yet: under load these lag some seconds behind."""
        return self.progress.entries - self.index.shelf.young_stop


class Follower(SelfClosing):
    """Follows a state. Nobody is disturbed: the writer does not know.

    Use it as a context manager, or call `close`.

    Args:
        directory: of the state.
        settings: it was made with.

    Raises:
        StoreError: there is none, it was made with other settings, or it cannot be read.
    """

    def __init__(self, directory: Path, settings: EngineSettings) -> None:
        self._directory = directory
        self._settings = settings
        self._lock = threading.RLock()
        self._scratch = Scratch("follow")
        self._view: View | None = None
        self._identity = ""
        self._epoch_begin = -1  # articles judged before it began
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def view(self) -> Iterator[View]:
        """Keep the state as it was at the last look, as long as the context lasts; others wait meanwhile.

        Raises:
            StoreError: it is gone, and no other is there yet.
        """
        with self._lock:
            if self._view is None:
                self.refresh()
            yield self._seen()

    def refresh(self, most: int | None = None) -> None:
        """Look what was written since. Another state in the same directory is taken for what it is.

        Args:
            most: entries that are made to be found at most: the rest waits for the next look. Where more than that
                came since the last one, none are: the writer puts them into a run before long. None for all.

        Raises:
            StoreError: there is none, or it cannot be read; the next look may find one.
        """
        with self._lock:
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
        with self._lock:
            self._forget()
            self._scratch.cleanup()

    def _seen(self) -> View:
        if self._view is None:
            raise StoreError(f"{self._directory} is not followed any more")
        return self._view

    def _look(self, most: int | None) -> None:
        identity = _identity_of(self._directory)
        if self._view is None or identity != self._identity:
            self._forget()
            self._view, most = self._opened(), None
            self._identity = identity
        for attempt in range(_ATTEMPTS):
            self._store.catch_up()
            try:
                self._view = self._caught_up(self._seen(), most)
            except StoreDamagedError:
                # The writer may have merged a run since its name was read.
                if attempt + 1 == _ATTEMPTS:
                    raise
            else:
                return

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
        self._store = store
        self._epoch_begin = _begin_of_epoch(load_progress(store))
        return view

    def _caught_up(self, view: View, most: int | None) -> View:
        progress = load_progress(view.store)
        if most is not None and progress.entries - view.progress.entries > most:
            most = 0
        view.index.shelf.follow()
        view.index.load_young(self._store, progress, most)
        return replace(view, progress=progress)

    def _take_epoch(self, seen: View) -> None:
        """Read the counts of a new epoch while others go on asking: there may be some hundred thousand of them."""
        epoch, learnt = _counts(seen.store, self._settings)
        with self._lock:
            if self._view is not None and self._view.store is seen.store:
                self._view = replace(self._view, epoch=epoch, learnt=learnt)
                self._epoch_begin = _begin_of_epoch(seen.progress)

    def _forget(self) -> None:
        if self._view is not None:
            view, self._view = self._view, None
            view.index.close()
            # What cannot be released is the writer's, not ours.
            with suppress(StoreError):
                self._store.close()


def view_of(store: FileStore, settings: EngineSettings, progress: Progress) -> View:
    """Return the state in a store that another writes.

    Args:
        store: where it is.
        settings: it was made with.
        progress: up to which entries can be found that no run holds.

    Raises:
        StoreError: it cannot be read.
    """
    counts = _counts(store, settings)
    return View(store, MultiIndex(store, settings, progress, shared=True), progress, *counts)


def _counts(store: Store, settings: EngineSettings) -> tuple[Epoch, U64]:
    epoch = load_epoch(store)
    return epoch, load_learnt(store, rule_of(settings.text), epoch.number)


def _identity_of(directory: Path) -> str:
    if not is_state(directory):
        raise StoreError(f"{directory} is no state of these settings: start the service, or see state.directory")
    try:
        return (directory / _IDENTITY).read_text()
    except OSError as error:
        raise StoreError(f"cannot read the state directory {directory}: {error.strerror}") from None


def _begin_of_epoch(progress: Progress) -> int:
    return progress.judged - progress.epoch_judged
