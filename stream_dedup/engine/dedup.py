"""The engine: articles and withdrawals in, outcomes and a pending change out.

Knows how an engine is opened, asked and closed; knows no Kafka, no files and no threshold.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stream_dedup.arguments import check_items, shown
from stream_dedup.article import Article, Decision, Unjudged, Withdrawal
from stream_dedup.closing import SelfClosing
from stream_dedup.engine.batch import Batch
from stream_dedup.engine.foresight import Foresight
from stream_dedup.engine.judged import Change, Judged
from stream_dedup.engine.parts import parts_of
from stream_dedup.engine.prepared import Prepared
from stream_dedup.engine.rehearsal import YOUNG_ENTRIES, rehearse, rehearsed
from stream_dedup.engine.state import State
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.changelog import Commit
from stream_dedup.index.records.ledger import ChangelogPlace, Positions, Progress
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import FileStore, MemoryStore
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import Epoch
from stream_dedup.text.lexicon import shipped_list

_ITEMS = (Article, Withdrawal)
_ITEM = "an Article or a Withdrawal (stream_dedup.article)"
_ARTICLE = "an Article (stream_dedup.Article)"


class Deduplicator(SelfClosing):
    """Decides for each article whether it is new. One thread at a time, but for `prepare`.

    Use it as a context manager, or call `close`.

    Args:
        directory: where the state is kept; None keeps it in memory.
        settings: thresholds, tables, weights; the defaults are those of the service.
        store: a store to use instead of `directory`; it is closed with the engine.
        beside: an engine of comparable settings, whose dictionaries are used too.

    Raises:
        TypeError: the settings are no EngineSettings.
        StoreLockedError: another process has the directory open.
        StoreError: the directory cannot be opened, or was made with settings that cannot be compared with these.
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
        store = store or (MemoryStore() if directory is None else RocksStore(Path(directory)))
        try:
            self.state = State(store, self._settings, comparability(self._settings))
        except BaseException:
            store.close()
            raise
        try:
            shared = beside.fingerprinter if beside is not None else None
            self._parts = parts_of(self._settings, self.state, shared)
            self._foresight = Foresight()
        except BaseException:
            self.close()
            raise

    def add(self, article: Article) -> Decision:
        """Judge one article and remember it. `add_batch` is many times faster.

        Raises:
            TypeError: it is no Article.
            StoreError: the store cannot be read or written, or the engine is closed.
            ValueError: the article is older than the window, and late ones are not judged.
        """
        if not isinstance(article, Article):
            raise TypeError(f"{shown(article)}: `add` wants {_ARTICLE}")
        return self.add_batch([article])[0]

    def add_batch(self, articles: Sequence[Article]) -> list[Decision]:
        """Judge articles in order and remember them; the decisions are those of `add` one by one.

        Raises:
            TypeError: they are no sequence of Articles.
            StoreError: the store cannot be read or written, or the engine is closed.
            ValueError: an article is older than the window, and late ones are not judged.
        """
        check_items(articles, (Article,), _ARTICLE)
        judged = self.decide(articles)
        undecided = [outcome for outcome in judged.outcomes if isinstance(outcome, Unjudged)]
        if undecided:
            raise ValueError(f"no decision on {undecided[0].item.id!r}: {undecided[0].detail}")
        self.apply(judged.change)
        return judged.decisions

    def process(self, items: Sequence[Article | Withdrawal]) -> Judged:
        """Judge articles and withdrawals in order and remember what they change.

        Raises:
            TypeError: they are no sequence of Articles and Withdrawals.
            StoreError: the store cannot be read or written, or the engine is closed.
        """
        judged = self.decide(items)
        self.apply(judged.change)
        return judged

    def warm_up(self) -> None:
        """Compile all loops now and not amid the stream: a minute or two once an installation, a second later."""
        with rehearsed_engine(self._settings):
            pass

    def prepare(
        self, items: Sequence[Article | Withdrawal], awaited: Callable[[], bool] = lambda: False
    ) -> Prepared | None:
        """Work out what no other article has a say in, and fingerprints; None where there are no articles.

        This alone may be called in another thread, while others are decided and applied.

        Args:
            items: in order.
            awaited: tells whether somebody waits already: fingerprints are then left to `decide`.

        Raises:
            TypeError: the items are no sequence of Articles and Withdrawals.
        """
        check_items(items, _ITEMS, _ITEM)
        articles = [item for item in items if isinstance(item, Article)]
        if not articles:
            return None
        prepared = self._parts.prepared(articles, self.state.lines.learnt, self._foresight)
        return prepared if awaited() else self._parts.fingerprinted(prepared, self.state.epoch)

    def decide(self, items: Sequence[Article | Withdrawal], prepared: Prepared | None = None) -> Judged:
        """Judge a batch without changing anything: `apply` its change before the next batch is decided.

        Of several that are decided on the same state one can be applied, any of them.

        Args:
            items: articles, and requests to forget some, in order; may be none.
            prepared: all the articles, if they were; what is of no use any more is worked out again.

        Raises:
            TypeError: the items are no sequence of Articles and Withdrawals.
            StoreError: the store cannot be read, or the engine is closed.
        """
        check_items(items, _ITEMS, _ITEM)
        self.state.check_open()
        return Batch(self._parts, self.state, items, prepared).judged()

    def apply(self, change: Change, positions: Positions | None = None, place: ChangelogPlace | None = None) -> None:
        """Make a change: one atomic write, with the places in input and changelog that it stands at.

        Args:
            change: of a `decide` after which nothing was applied yet.
            positions: next input offset by topic and partition, for a stream.
            place: next offset in the changelog, for a stream.

        Raises:
            StoreError: the store cannot be written, or the engine is closed; nothing has changed then.
            ValueError: since the change was decided, another one was applied, or this one already: decide again.
        """
        self.state.apply(change, positions or {}, place)

    def commit_of(self, change: Change, positions: Positions) -> Commit:
        """Return a change as the changelog keeps it.

        A changelog whose oldest part is cut off must still hold all input offsets: so where a generation begins it
        gets all of them.

        Args:
            change: not applied yet, nor any other since it was decided.
            positions: next input offset by topic and partition, of those that it moves.
        """
        whole = {**self.state.positions(), **positions} if change.begins_generation else positions
        return Commit(change.steps, whole)

    @property
    def fingerprinter(self) -> Fingerprinter:
        """What computes features; it has no state that changes."""
        return self._parts.fingerprinter

    @property
    def progress(self) -> Progress:
        """How far the state has come."""
        return self.state.progress

    @property
    def epoch(self) -> Epoch:
        """The epoch of the document counts."""
        return self.state.epoch

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the next input offset by topic and partition, as of the last change.

        Raises:
            StoreError: the store cannot be read, or the engine is closed.
        """
        return self.state.positions()

    def vocabulary(self) -> int:
        """Return how many words are counted."""
        return self.state.counts.words

    def learnt_lines(self) -> int:
        """Return how many lines are known to be their sites'."""
        return self.state.lines.lines

    def close(self) -> None:
        """Release the directory. Nothing can be decided afterwards; how far the state has come is still told."""
        self.state.close()


@contextmanager
def rehearsed_engine(settings: EngineSettings) -> Iterator[Deduplicator]:
    """Keep an engine in memory that has judged the short stream of `rehearsal`; its entries are mostly in runs."""
    with Deduplicator(settings=rehearsed(settings)) as engine:
        engine.state.index.shelf.young_entries = YOUNG_ENTRIES
        rehearse(
            lambda items: engine.apply(engine.decide(items, engine.prepare(items)).change),
            settings.window.days,
        )
        engine.state.index.shelf.finish_merges(engine.progress)
        yield engine


def _checked(settings: EngineSettings | None) -> EngineSettings:
    if settings is None:
        return EngineSettings()
    if not isinstance(settings, EngineSettings):
        raise TypeError(
            f"{shown(settings)}: EngineSettings are wanted; make some with EngineSettings.model_validate({{...}}), "
            "or with load_settings out of a file"
        )
    return settings


def comparability(settings: EngineSettings) -> dict[str, Any]:
    """Return the settings that stored fingerprints, sketches and keys depend on, word lists by their content."""
    text, weights, plain = settings.text, settings.weights, settings.model_dump(mode="json")
    lists = {
        "text.user_dictionary": text.user_dictionary,
        "text.stop_words": text.stop_words or shipped_list("stop_words.txt"),
        "text.marker_words": text.marker_words or shipped_list("marker_words.txt"),
        "text.boilerplate": text.boilerplate or shipped_list("boilerplate.txt"),
    }
    learning = ("learn_lines", "learn_min", "learn_share")
    groups = {
        "text": ("segmenter", "hmm", "simplify", "strip_html", "strip_boilerplate", *learning),
        "weights": tuple(type(weights).model_fields),
    }
    groups |= {
        "simhash": ("enabled", "tables", "prefix_bits"),
        "landmarks": ("enabled", "keys", "spacing", "most_keys"),
    }
    groups |= {"sketch": ("gram", "size", "numbers", "places"), "idf": ("epoch_articles", "first_epoch_articles")}
    return {
        **{f"{group}.{name}": plain[group][name] for group, names in groups.items() for name in names},
        **{name: path and hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in lists.items()},
    }
