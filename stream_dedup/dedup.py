"""The engine: a batch of articles in, decisions and a pending change out.

Knows the order of the steps; knows no Kafka, no files and no threshold.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from stream_dedup.article import Article, Decision
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.hashing import I64, U64
from stream_dedup.index.candidates import Candidates, MultiIndex
from stream_dedup.index.counts import delta_put, epoch_puts, load_counts
from stream_dedup.index.ledger import (
    Positions,
    Progress,
    check_format,
    load_positions,
    load_progress,
    position_puts,
)
from stream_dedup.index.records import NOT_INDEXED, ArticleRecord, EntryNames, key_of
from stream_dedup.index.store import Family, MemoryStore, Put, RocksStore, Store
from stream_dedup.judge import RELATIONS, SKIP, judge, limits_of
from stream_dedup.links import JudgedBatch, Linker
from stream_dedup.settings import EngineSettings
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.text.idf import Counts, DocumentCounts, Epoch, document_delta
from stream_dedup.text.lexicon import shipped_list
from stream_dedup.versions import Version, find_versions


@dataclass(frozen=True, slots=True)
class Change:
    """What a batch does to the state, not yet done.

    Attributes:
        puts: writes.
        base: how far the state has come.
        progress: how far the state will have come.
        fingerprints: of the articles that it indexes, shape (m,).
        documents: articles that it counts.
        delta: how many of them hold each word.
        counts: the live counts after it, where it ends an epoch.
        epoch: the epoch that begins after it, where it ends one.
    """

    puts: list[Put]
    base: Progress
    progress: Progress
    fingerprints: U64
    documents: int
    delta: Counts
    counts: DocumentCounts | None = None
    epoch: Epoch | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A batch of articles judged.

    Attributes:
        decisions: one an article, in order.
        change: what `Deduplicator.apply` does to the state.
        candidates: candidates by family (content, landmark, SimHash), shape (3,).
        confirmed: those of them that matched, shape (3,).
        seconds: time by stage.
    """

    decisions: list[Decision]
    change: Change
    candidates: I64
    confirmed: I64
    seconds: Mapping[str, float]


class Deduplicator:
    """Decides for each article whether it is new. One thread at a time.

    Use it as a context manager, or call `close`.

    Args:
        directory: where the state is kept; None keeps it in memory.
        settings: thresholds, tables, weights; the defaults are those of the service.
        store: a store to use instead of `directory`; it is closed with the engine.

    Raises:
        StoreLockedError: another process has the directory open.
        StoreError: the directory cannot be opened, or was made with settings that cannot be compared with these.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        settings: EngineSettings | None = None,
        *,
        store: Store | None = None,
    ) -> None:
        self._settings = settings or EngineSettings()
        self._store = store or (MemoryStore() if directory is None else RocksStore(Path(directory)))
        try:
            check_format(self._store, _comparability(self._settings))
            self.fingerprinter = Fingerprinter(self._settings)
            self._index = MultiIndex(self._store, self._settings)
            self._counts, self.epoch = load_counts(self._store, self._settings.idf.max_words)
            self.progress = load_progress(self._store)
        except BaseException:
            self._store.close()
            raise
        counting = self._settings.verify.duplicates
        self._limits = limits_of(self._settings)
        self._linker = Linker(self._store, self._index.format, self._limits, counting)
        self._duplicates = np.array([relation in counting for relation in RELATIONS], np.bool_)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, article: Article) -> Decision:
        """Judge one article and remember it. `add_batch` is many times faster.

        Raises:
            StoreError: the store cannot be read or written.
        """
        return self.add_batch([article])[0]

    def add_batch(self, articles: Sequence[Article]) -> list[Decision]:
        """Judge articles in order and remember them; the decisions are those of `add` one by one.

        Raises:
            StoreError: the store cannot be read or written.
        """
        decisions: list[Decision] = []
        while len(decisions) < len(articles):
            start = len(decisions)
            judged = self.decide(articles[start : start + self.batch_room()])
            self.apply(judged.change)
            decisions += judged.decisions
        return decisions

    def warm_up(self) -> None:
        """Compile the loops now and not during the first batch: half a minute once an installation, nothing later."""
        self.decide([Article("warm-up", "编译一次，以后的启动都不再等待。")])

    def batch_room(self) -> int:
        """Return how many articles the next batch may hold: an epoch ends at the same article in every run."""
        return self._settings.idf.epoch_articles - self.progress.judged % self._settings.idf.epoch_articles

    def decide(self, articles: Sequence[Article]) -> Judged:
        """Judge a batch without changing anything: `apply` its change before the next batch.

        Args:
            articles: at most `batch_room()` of them; may be none.

        Raises:
            StoreError: the store cannot be read.
            ValueError: there are too many articles.
        """
        if len(articles) > self.batch_room():
            raise ValueError(f"{len(articles)} articles in a batch that has room for {self.batch_room()}")
        if not articles:
            none = np.zeros(3, np.int64)
            change = Change(
                [], self.progress, self.progress, np.empty(0, np.uint64), 0, document_delta(np.empty(0, np.uint64))
            )
            return Judged([], change, none, none, {})
        watch = Stopwatch()
        features = self.fingerprinter.features(articles)
        watch.lap("features")
        fingerprints, sums = self.fingerprinter.fingerprints(features, self.epoch)
        watch.lap("simhash")
        candidates = self._index.look_up(features, fingerprints, sums)
        versions = find_versions(self._store, articles, features.sketches.content)
        watch.lap("look_up")
        modes = np.array([version.mode for version in versions], np.int64)
        owners = _owners(articles, versions, candidates)
        verdicts = judge(candidates, modes, owners, self._index.caps(), self._limits, self._duplicates)
        watch.lap("judge")
        decisions = self._linker.decisions(JudgedBatch(articles, versions, candidates, verdicts), self.epoch.number)
        change = self._change(decisions, versions, features, candidates)
        watch.lap("change")
        return Judged(decisions, change, verdicts.candidates.sum(axis=0), verdicts.confirmed.sum(axis=0), watch.seconds)

    def apply(self, change: Change, positions: Positions | None = None) -> None:
        """Make a change: one atomic write, with the input offsets that it stands at.

        Args:
            change: of the last `decide`.
            positions: next input offset by topic and partition, for a stream.

        Raises:
            StoreError: the store cannot be written; nothing has changed then.
            ValueError: the change is not of the last `decide`, or was made already.
        """
        if change.base != self.progress:
            raise ValueError("this change was decided on another state: apply each once, before the next decide")
        self._store.write([*change.puts, *position_puts(positions or {})])
        self.progress = change.progress
        self._index.occupy(change.fingerprints)
        if change.epoch is not None and change.counts is not None:
            self._counts, self.epoch = change.counts, change.epoch
        elif change.documents:
            self._counts.add(change.documents, change.delta)

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the next input offset by topic and partition, as of the last change."""
        return load_positions(self._store)

    def vocabulary(self) -> int:
        """Return how many words are counted."""
        return self._counts.words

    def close(self) -> None:
        """Release the directory."""
        self._store.close()

    def _change(
        self,
        decisions: Sequence[Decision],
        versions: Sequence[Version],
        features: Features,
        candidates: Candidates,
    ) -> Change:
        indexed = np.array([i for i, decision in enumerate(decisions) if decision.indexed], np.int64)
        numbers = np.arange(len(indexed), dtype=np.uint64) + np.uint64(self.progress.entries)
        progress = Progress(self.progress.judged + len(decisions), self.progress.entries + len(indexed))
        # Copies are not counted: a story on forty sites would deflate its own words.
        counted = [i for i, decision in enumerate(decisions) if decision.unique and decision.link is None]
        delta = document_delta(
            np.concatenate([features.terms.hashes[features.terms.of(i)] for i in counted] or [np.empty(0, np.uint64)])
        )
        puts = [
            *self._entry_puts([decisions[i] for i in indexed], indexed, numbers, candidates),
            *self._index.insertions(candidates, indexed, numbers),
            *_article_puts(decisions, versions, dict(zip(indexed.tolist(), numbers.tolist(), strict=True))),
            progress.put(),
        ]
        fingerprints = candidates.fingerprints[indexed]
        if progress.judged % self._settings.idf.epoch_articles:
            if counted:
                puts.append(delta_put(self.progress.judged, len(counted), delta))
            return Change(puts, self.progress, progress, fingerprints, len(counted), delta)
        counts = self._counts.copy()
        counts.add(len(counted), delta)
        epoch = counts.freeze(self.epoch.number + 1)
        puts += epoch_puts(self._store, epoch)
        return Change(puts, self.progress, progress, fingerprints, len(counted), delta, counts, epoch)

    def _entry_puts(
        self, decisions: Sequence[Decision], places: I64, numbers: U64, candidates: Candidates
    ) -> list[Put]:
        entries = self._index.format.pack(
            candidates.rows,
            places + len(candidates.names),
            self.epoch.number,
            [decision.article.published_ms for decision in decisions],
            [EntryNames(decision.article.id, decision.canonical) for decision in decisions],
        )
        return [
            Put(Family.ENTRIES, key_of(number), entry) for number, entry in zip(numbers.tolist(), entries, strict=True)
        ]


def _owners(articles: Sequence[Article], versions: Sequence[Version], candidates: Candidates) -> I64:
    """Return a number for each row whose id comes again in this batch, equal for equal ids, else -1, shape (rows,)."""
    numbers = {
        article.id: place for place, (article, v) in enumerate(zip(articles, versions, strict=True)) if v.revised
    }
    owners = np.full(len(candidates.names) + len(articles), -1, np.int64)
    if numbers:
        names = [*(name.article for name in candidates.names), *(article.id for article in articles)]
        owners[:] = [numbers.get(name, -1) for name in names]
    return owners


def _article_puts(
    decisions: Sequence[Decision],
    versions: Sequence[Version],
    entries: Mapping[int, int],
) -> list[Put]:
    """Return the writes of what became of each article id; a redelivery leaves what is known."""
    return [
        Put(
            Family.ARTICLES,
            decision.article.id.encode(),
            ArticleRecord(
                version.contents,
                entries.get(place, NOT_INDEXED),
                decision.article.published_ms,
                decision.link.relation if decision.link else None,
                decision.canonical,
                decision.article.origin,
            ).pack(),
        )
        for place, (decision, version) in enumerate(zip(decisions, versions, strict=True))
        if version.mode != SKIP
    ]


def _comparability(settings: EngineSettings) -> dict[str, Any]:
    """Return the settings that stored fingerprints, sketches and keys depend on, word lists by their content."""
    text, weights, plain = settings.text, settings.weights, settings.model_dump(mode="json")
    lists = {
        "text.user_dictionary": text.user_dictionary,
        "text.stop_words": text.stop_words or shipped_list("stop_words.txt"),
        "text.marker_words": text.marker_words or shipped_list("marker_words.txt"),
    }
    groups = {
        "text": ("segmenter", "hmm", "simplify", "strip_html"),
        "weights": tuple(type(weights).model_fields),
    }
    groups |= {"simhash": ("enabled", "tables", "prefix_bits"), "landmarks": ("enabled", "keys")}
    groups |= {"sketch": ("gram", "size", "numbers"), "idf": ("epoch_articles",)}
    return {
        **{f"{group}.{name}": plain[group][name] for group, names in groups.items() for name in names},
        **{name: path and hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in lists.items()},
    }
