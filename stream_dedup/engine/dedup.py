"""The engine: articles and withdrawals in, outcomes and a pending change out.

Knows how an engine is opened, used and closed; knows nothing of Kafka, of files or of thresholds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from threading import RLock

from stream_dedup.arguments import check_items, shown
from stream_dedup.article import Article, Decision, Unjudged, Withdrawal
from stream_dedup.closing import SelfClosing
from stream_dedup.engine.batch import Batch
from stream_dedup.engine.copy_predictor import CopyPredictor
from stream_dedup.engine.judged import Change, Judged
from stream_dedup.engine.parts import parts_of
from stream_dedup.engine.prepared import Prepared
from stream_dedup.engine.state import State
from stream_dedup.engine.warm_up import FROZEN_FROM, run_warm_up, warm_up_settings
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.changelog import Commit, CommitReader, commit_records
from stream_dedup.index.peek import check_not_of_service
from stream_dedup.index.records.ledger import ChangelogPosition, Positions, Progress
from stream_dedup.index.stores.rocks import open_store
from stream_dedup.index.stores.store import FileStore, MemoryStore
from stream_dedup.settings import EngineSettings, Settings, StateSettings
from stream_dedup.settings.kinds import required_path
from stream_dedup.signals import holding_interrupt
from stream_dedup.text.idf import Epoch

_ITEMS = (Article, Withdrawal)
_ITEM = "an Article or a Withdrawal (stream_dedup.article)"
_ARTICLE = "an Article (stream_dedup.Article)"


class Deduplicator(SelfClosing):
    """Decides for each article whether it is new.

    Calls from several threads wait for one another; only `prepare` runs beside the others, in one thread at a time.
    From a `decide` to its `apply`, only one thread may use the engine.

    It belongs to the process that opened it: a forked one opens its own.

    Use it as a context manager, or call `close`. Ctrl-C waits for the end of a call, whose changes are remembered, and
    so does `close` in another thread.

    Args:
        directory: where the state is kept; None keeps it in memory.
        settings: thresholds, tables, weights; the defaults are those of the service. Of a service's whole `Settings`,
            `state` says how the directory is kept.
        store: a store to use instead of `directory`; it is closed with the engine.
        beside: an engine with comparable settings, to share its dictionaries.

    Raises:
        TypeError: the directory is neither a path nor a text, or the settings are not EngineSettings.
        ValueError: the directory is an empty text.
        StoreLockedError: the directory is open already, in another process or in this one.
        StoreError: the directory cannot be opened, or was made with settings that are not comparable with these.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        settings: EngineSettings | None = None,
        *,
        store: FileStore | None = None,
        beside: "Deduplicator | None" = None,
    ) -> None:
        self._settings = _checked(settings)
        # What an open call reads must not be released under it, and what it decided is applied before the next call
        # decides. `close` may also be called within one, by a store.
        self._using = RLock()
        store = store or _opened(directory, self._settings)
        with ExitStack() as failed:
            failed.callback(store.close)
            with holding_interrupt():
                self.state = State(store, self._settings)
                failed.callback(self.close)
                shared = beside.fingerprinter if beside is not None else None
                self._parts = parts_of(self._settings, shared)
                self._copy_predictor = CopyPredictor()
            failed.pop_all()

    @holding_interrupt()
    def add(self, article: Article) -> Decision:
        """Judge one article and remember it. `add_batch` is many times faster.

        Raises:
            TypeError: it is not an Article.
            StoreError: the store cannot be read or written, or the engine is closed.
            ValueError: the article is older than the window, and late ones are not judged.
        """
        if not isinstance(article, Article):
            raise TypeError(f"{shown(article)}: `add` needs {_ARTICLE}")
        return self.add_batch([article])[0]

    @holding_interrupt()
    def add_batch(self, articles: Sequence[Article]) -> list[Decision]:
        """Judge articles in order and remember them; the decisions are the same as with `add`, one by one.

        Raises:
            TypeError: they are not a sequence of Articles.
            StoreError: the store cannot be read or written, or the engine is closed.
            ValueError: an article is older than the window, and late ones are not judged.
        """
        check_items(articles, (Article,), _ARTICLE)
        with self._using:
            judged = self.decide(articles)
            undecided = [outcome for outcome in judged.outcomes if isinstance(outcome, Unjudged)]
            if undecided:
                raise ValueError(f"no decision on {undecided[0].item.id!r}: {undecided[0].detail}")
            self.apply(judged.change)
        return judged.decisions

    @holding_interrupt()
    def process(self, items: Sequence[Article | Withdrawal]) -> Judged:
        """Judge articles and withdrawals in order and remember what they change.

        Raises:
            TypeError: they are not a sequence of Articles and Withdrawals.
            StoreError: the store cannot be read or written, or the engine is closed.
        """
        with self._using:
            judged = self.decide(items)
            self.apply(judged.change)
        return judged

    @holding_interrupt()
    def warm_up(self) -> None:
        """Compile all loops now, not mid-stream: a minute or two once per installation, half a second after that.

        There is nothing left to do if another engine with these settings has done it in this process.
        """
        _warm_up(self._settings.model_dump_json(include=set(EngineSettings.model_fields)))

    @holding_interrupt()
    def prepare(
        self, items: Sequence[Article | Withdrawal], awaited: Callable[[], bool] = lambda: False
    ) -> Prepared | None:
        """Compute what does not depend on other articles, and fingerprints; None if there are no articles.

        Does not wait for calls in other threads: meanwhile, another batch can be decided and applied.

        Args:
            items: articles and withdrawals, in order.
            awaited: tells whether somebody is already waiting: fingerprints are then left to `decide`.

        Raises:
            TypeError: the items are not a sequence of Articles and Withdrawals.
        """
        check_items(items, _ITEMS, _ITEM)
        articles = [item for item in items if isinstance(item, Article)]
        if not articles:
            return None
        prepared = self._parts.prepared(articles, self.state.epoch_state.lines.learnt, self._copy_predictor)
        return prepared if awaited() else self._parts.fingerprinted(prepared, self.state.epoch_state.epoch)

    @holding_interrupt()
    def decide(self, items: Sequence[Article | Withdrawal], prepared: Prepared | None = None) -> Judged:
        """Judge a batch without changing anything: `apply` its change before deciding the next batch.

        Of several batches decided on the same state, only one can be applied, any of them.

        Args:
            items: articles and withdrawals, in order; may be empty.
            prepared: what `prepare` returned for them, if it was called; anything out of date is computed again.

        Raises:
            TypeError: the items are not a sequence of Articles and Withdrawals.
            StoreError: the store cannot be read, or the engine is closed.
            ValueError: `prepared` is of other articles.
        """
        check_items(items, _ITEMS, _ITEM)
        with self._using:
            self.state.check_open()
            if prepared is not None and [*prepared.articles] != [item for item in items if isinstance(item, Article)]:
                raise ValueError(
                    "`prepared` is of other articles than these: pass what `prepare` returned for the same items"
                )
            return Batch(self._parts, self.state, items, prepared).judged()

    @holding_interrupt()
    def apply(self, change: Change, positions: Positions | None = None, place: ChangelogPosition | None = None) -> None:
        """Apply a change in one atomic write, together with the positions reached in input and changelog.

        Args:
            change: from a `decide` after which nothing has been applied yet.
            positions: next input offset by topic and partition, for a stream.
            place: next offset in the changelog, for a stream.

        Raises:
            TypeError: it is not a Change.
            StoreError: the store cannot be written, or the engine is closed; nothing has changed then.
            ValueError: this change, or another one, was applied after it was decided: decide again.
        """
        if not isinstance(change, Change):
            raise TypeError(f"{shown(change)}: `apply` needs the `change` of what `decide` returned")
        with self._using:
            self.state.apply(change, positions or {}, place)

    def commit_of(self, change: Change, positions: Positions) -> Commit:
        """Return a change as the changelog stores it.

        A changelog whose oldest part has been deleted must still hold all input offsets, so a commit that begins a
        generation carries all of them.

        Args:
            change: not applied yet; nor has another one been applied since it was decided.
            positions: next input offset by topic and partition, of the partitions that advance.
        """
        whole = {**self.state.positions(), **positions} if change.begins_generation else positions
        return Commit(change.steps, whole)

    @property
    def fingerprinter(self) -> Fingerprinter:
        """Computes features; has no mutable state."""
        return self._parts.fingerprinter

    @property
    def progress(self) -> Progress:
        """Progress of the state."""
        return self.state.progress

    @property
    def epoch(self) -> Epoch:
        """The epoch of the document counts."""
        return self.state.epoch_state.epoch

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the next input offset by topic and partition, as of the last change.

        Raises:
            StoreError: the store cannot be read, or the engine is closed.
        """
        with self._using:
            return self.state.positions()

    def vocabulary(self) -> int:
        """Return how many words are counted."""
        return self.state.epoch_state.counts.words

    def learnt_lines(self) -> int:
        """Return how many lines have been learnt to be their sites'."""
        return self.state.epoch_state.lines.lines

    def close(self) -> None:
        """Release the directory. Nothing can be decided afterwards; `progress` remains available.

        Waits for a call in another thread to end: the next one there is refused, as the engine is closed.
        """
        with self._using:
            self.state.close()


@cache
def _warm_up(settings: str) -> None:
    """Warm up once for engine settings, given as JSON."""
    with rehearsed_engine(EngineSettings.model_validate_json(settings)):
        pass


@contextmanager
def rehearsed_engine(settings: EngineSettings) -> Iterator[Deduplicator]:
    """Provide an in-memory engine that has judged the short stream of `warm_up`; most of its entries are in runs."""
    with Deduplicator(settings=warm_up_settings(settings)) as engine:
        engine.state.index.shelf.young_entries = FROZEN_FROM
        reader = CommitReader(engine.state.index.format)

        def process(items: Sequence[Article | Withdrawal]) -> None:
            change = engine.decide(items, engine.prepare(items)).change
            for key, value in commit_records(engine.commit_of(change, {})):
                reader.feed(key, value)
            engine.apply(change)

        run_warm_up(process, settings.window.days)
        engine.state.index.shelf.finish(engine.progress)
        yield engine


def _opened(directory: Path | str | None, settings: EngineSettings) -> FileStore:
    if directory is None:
        return MemoryStore()
    if not isinstance(directory, str | PathLike):
        raise TypeError(f"{shown(directory)}: a directory is needed, as a Path or a text; settings come after it")
    kept = settings.state if isinstance(settings, Settings) else StateSettings()
    path = Path(required_path(directory))
    check_not_of_service(path)
    return open_store(path, kept)


def _checked(settings: EngineSettings | None) -> EngineSettings:
    if settings is None:
        return EngineSettings()
    if not isinstance(settings, EngineSettings):
        raise TypeError(
            f"{shown(settings)}: EngineSettings are needed; create them with EngineSettings.model_validate({{...}}), "
            "or from a file with load_settings"
        )
    return settings
