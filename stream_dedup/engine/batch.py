"""Judges a batch: articles and withdrawals become outcomes and a pending change.

Knows the order of the steps and where a batch has to be split; knows nothing of Kafka or of thresholds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from stream_dedup.arrays import I64, Bool
from stream_dedup.article import (
    Article,
    Decision,
    Relation,
    Succession,
    SuccessionReason,
    Unjudged,
    UnjudgedReason,
    Withdrawal,
    Withdrawn,
)
from stream_dedup.engine.clusters import Cluster
from stream_dedup.engine.epochs import CountInput, Epochs
from stream_dedup.engine.judge import judge, proved
from stream_dedup.engine.judged import Change, Judged, Outcome, Tally
from stream_dedup.engine.linker import Linker
from stream_dedup.engine.links import JudgedRun, Links
from stream_dedup.engine.matching import JudgingInput, Siblings, Verdicts
from stream_dedup.engine.members import ClusterChanges
from stream_dedup.engine.parts import Parts
from stream_dedup.engine.prepared import Prepared
from stream_dedup.engine.state import State
from stream_dedup.engine.versions import URL_NAMES, PriorVersions, find_prior_versions, since, url_hash, with_url
from stream_dedup.engine.window import Moment, Times
from stream_dedup.fingerprint.features import Features
from stream_dedup.index.entries.new_entries import NewEntries
from stream_dedup.index.lookup.candidates import SIMHASH, Candidates, Search
from stream_dedup.index.lookup.multi import Pending
from stream_dedup.index.records.ledger import Progress
from stream_dedup.index.steps import Step, step_writes
from stream_dedup.index.stores.store import Overlay
from stream_dedup.scope import id_of, scope_hash
from stream_dedup.stopwatch import Stopwatch

_SAME_ARTICLE = frozenset({Relation.REDELIVERY, Relation.REVISION})  # links to an earlier text of the same id or URL
_FEWEST = 8  # articles that are looked at together, however few of the last ones could be judged
_NO_TIMES: I64 = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _RunToJudge:
    """A run of n articles to judge.

    Attributes:
        articles: the articles.
        prior_versions: how they relate to what was seen before under their ids and URLs.
        times: their times.
    """

    articles: Sequence[Article]
    prior_versions: PriorVersions
    times: Times

    def cases(self, candidates: Candidates) -> JudgingInput:
        """Return the cases for `judge`.

        Args:
            candidates: candidates of the run.
        """
        times, prior_versions = self.times, self.prior_versions
        rows = len(candidates.names) + len(self.articles)
        owners, siblings = np.full(rows, -1, np.int64), Siblings.none(rows, len(self.articles))
        if prior_versions.revised.any():
            names = [*(name.decode() for name in candidates.names), *prior_versions.names]
            ids, urls = prior_versions.places_of_revised(), prior_versions.orders_of_siblings()
            owners[:] = [ids.get(name, -1) for name in names]
            siblings.urls[:], siblings.orders[:] = zip(*[urls.get(name, (-1, 0)) for name in names], strict=True)
            revising = [place for place, version in prior_versions.versions.items() if version.siblings]
            siblings.reach[revising] = URL_NAMES
        return JudgingInput(prior_versions.modes, owners, siblings, times.cutoffs, times.reindex_before)


class Batch:
    """A batch that is being judged.

    It is judged in runs. A run ends where something changes that later articles depend on: the epoch, the generation,
    the text of an id that comes again, or the index because of a withdrawal. Nearly all batches are a single run. Later
    runs see the changes of earlier ones in an overlay over the store.

    Args:
        parts: parts of the engine.
        state: the state before the batch.
        items: articles and withdrawals, in order.
        prepared: features of all the articles among them, if they were prepared.
    """

    def __init__(
        self, parts: Parts, state: State, items: Sequence[Article | Withdrawal], prepared: Prepared | None
    ) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._index = state.index
        self._items = items
        self._prepared = prepared
        self._base = self._progress = state.progress
        self._store = Overlay(state.store)
        self._epochs = Epochs(parts.fingerprinter, self._store, state.epoch_state)
        self._pending = Pending(state.index)
        self._outcomes: list[Outcome] = []
        self._withdrawals = 0  # among the items that already have outcomes
        self._steps: list[Step] = []
        self._successions: dict[int, list[Succession]] = {}  # by the index of the outcome
        self._clusters: dict[str, Cluster | None] = {}
        self._tally = Tally()
        self._watch = Stopwatch()

    def judged(self) -> Judged:
        """Return the outcomes and the change."""
        for withdrawals, items in groupby(self._items, lambda item: isinstance(item, Withdrawal)):
            if withdrawals:
                self._withdraw([item for item in items if isinstance(item, Withdrawal)])
            else:
                self._judge([item for item in items if isinstance(item, Article)])
        if not self._steps:
            # Even a commit with nothing but dead letters is a step of the state, as the input offsets advance.
            entries = NewEntries(self._index.format, self._progress.entries)
            self._stage(entries, self._book(entries))
        return Judged(
            self._outcomes,
            Change(self._steps, self._store.staged, self._base, self._epochs.state),
            self._successions,
            self._clusters,
            self._tally,
            self._epochs.drifts,
            self._watch.seconds,
        )

    # ------------------------------------------------------------------------------------------------ articles

    def _judge(self, articles: Sequence[Article]) -> None:
        times = self._parts.window.times(articles, self._progress.stream_ms)
        late = times.late & (self._settings.window.late == "dead")
        places = np.flatnonzero(~late)
        on_time = [articles[place] for place in places.tolist()]
        decisions = self._decisions(on_time, times.at(places), places + len(self._outcomes))
        self._outcomes += [
            _too_late(article, self._settings.window.days) if is_late else next(decisions)
            for article, is_late in zip(articles, late.tolist(), strict=True)
        ]

    def _decisions(self, articles: Sequence[Article], times: Times, places: I64) -> Iterator[Decision]:
        """Yield the decisions on articles; `places` are the indices of their outcomes."""
        start = 0
        while start < len(articles):
            stop = min(start + self._room(times.stream[start:]), len(articles))
            yield from self._of_epoch(articles[start:stop], times.at(np.arange(start, stop)), places[start:stop])
            start = stop

    def _of_epoch(self, articles: Sequence[Article], times: Times, places: I64) -> Iterator[Decision]:
        """Yield the decisions on articles of one epoch, which only the last may end: one set of features serves all."""
        features, start, most = self._features(articles, places - self._withdrawals), 0, len(articles)
        while start < len(articles):
            stop = min(start + most, len(articles))
            part = features.part(start, stop)
            decisions = self._run(articles[start:stop], part, times.at(np.arange(start, stop)), places[start:stop])
            # If all have the same URL, each is judged alone: looking at all the rest every time would be quadratic.
            most = max(_FEWEST, 2 * len(decisions))
            start += len(decisions)
            yield from decisions

    def _features(self, articles: Sequence[Article], numbers: I64) -> Features:
        """Return the features of articles; `numbers` counts the articles of the whole batch."""
        learnt = self._epochs.state.lines.learnt

        def anew(places: I64) -> Features:
            features = self._parts.features([articles[place] for place in places.tolist()], learnt)
            self._watch.lap("features")
            return features

        if self._prepared is None:
            return anew(np.arange(len(articles)))
        return self._prepared.of(numbers, learnt, anew)

    def _room(self, times: I64) -> int:
        """Return how many articles there may be until the epoch or the generation ends."""
        room = self._settings.idf.articles_of(self._epochs.state.epoch.number) - self._progress.epoch_judged
        last = self._parts.window.begins_generation(times[:room], self._progress)
        return room if last is None else last + 1

    def _run(self, articles: Sequence[Article], features: Features, times: Times, places: I64) -> list[Decision]:
        """Judge as many of the first articles as can be judged together, and stage what they change.

        Args:
            articles: n articles.
            features: their features.
            times: their times.
            places: indices of their outcomes, shape (n,).
        """
        live, contents, same_url = self._progress.live, features.sketches.content, self._settings.verify.same_url
        prior_versions = find_prior_versions(self._store, live, articles, contents, times, same_url=same_url)
        if len(prior_versions) < len(articles):
            articles, features = articles[: len(prior_versions)], features.part(0, len(prior_versions))
            times = times.at(np.arange(len(prior_versions)))
        scopes = np.fromiter((scope_hash(article.scope) for article in articles), np.uint64, len(articles))
        floor = self._progress.floor
        search = Search(self._index, self._store, features, times.window, scopes, floor, self._pending.young)
        run = self._found(search, _RunToJudge(articles, prior_versions, times), features)
        entries = NewEntries(self._index.format, self._progress.entries, run.texts(self._index.format))
        book = self._book(entries)
        links = Links(self._parts.limits, run, book)
        decisions = Linker(self._settings.verify.duplicates, run, links, book, entries).decisions()
        count = len(decisions)
        self._count(run, search, count)
        for place, succession in book.successions:
            self._successions.setdefault(int(places[place]), []).append(succession)
        new = np.array([not decision.link or decision.link.relation not in _SAME_ARTICLE for decision in decisions])
        unique = np.flatnonzero(new & [decision.unique for decision in decisions])
        told = np.flatnonzero(new)
        self._stage(entries, book, times.stream[:count], CountInput(run.features, run.fingerprints, unique, told))
        self._watch.lap("change")
        return decisions

    def _found(self, search: Search, asked: _RunToJudge, features: Features) -> JudgedRun:
        """Look up and judge a run, segmenting the articles that `text.segment` selects."""
        proven = self._proved(search, asked)
        search.look_up_other_landmarks(proven)
        if self._settings.text.segment == "all":
            self._watch.lap("look_up")
            return self._found_by_words(search, asked, features, proven, np.ones(len(proven), np.bool_))
        # Words change the verdict on an article without them only through an earlier article of the batch.
        verdicts = self._judged(search.candidates(), asked)
        wanted = ~(proven | self._copies(verdicts, asked)) | verdicts.indexed
        self._watch.lap("look_up")
        while True:
            features = self._parts.fingerprinter.segmented(features, wanted)
            self._watch.lap("features")
            found, segmented = self._found_by_words(search, asked, features, proven, wanted), wanted
            # Copies that are found without the tables need no words, unless later articles are to find them there. Each
            # round settles at least one more article, in order.
            copies = self._copies(found.verdicts, asked) & (found.verdicts.sources != SIMHASH)
            wanted = ~(proven | copies) | found.verdicts.indexed
            if np.array_equal(wanted, segmented):
                return found

    def _found_by_words(
        self,
        search: Search,
        asked: _RunToJudge,
        features: Features,
        proven: Bool,
        segmented: Bool,
    ) -> JudgedRun:
        """Look up the tables as well, for articles that are segmented and not proved to be copies."""
        epoch = self._epochs.state.epoch
        fingerprints, sums = self._parts.fingerprinter.fingerprints(features, epoch)
        self._watch.lap("simhash")
        search.look_up_tables(fingerprints, sums, proven, segmented)
        candidates = search.candidates()
        self._watch.lap("look_up")
        verdicts = self._judged(candidates, asked)
        self._watch.lap("judge")
        return JudgedRun(
            asked.articles, asked.prior_versions, features, candidates, verdicts, asked.times, epoch.number
        )

    def _proved(self, search: Search, asked: _RunToJudge) -> Bool:
        """Tell which articles need no further look-up, shape (n,); see `proved`."""
        candidates, parts = search.candidates(), self._parts
        return ~asked.prior_versions.revised & proved(
            candidates, asked.cases(candidates), self._index.caps(), parts.limits, parts.duplicates
        )

    def _judged(self, candidates: Candidates, asked: _RunToJudge) -> Verdicts:
        parts = self._parts
        return judge(candidates, asked.cases(candidates), self._index.caps(), parts.limits, parts.duplicates)

    def _copies(self, verdicts: Verdicts, asked: _RunToJudge) -> Bool:
        """Tell which articles were found to be copies, shape (n,)."""
        return ~asked.prior_versions.revised & self._parts.duplicates[verdicts.relations]

    def _count(self, run: JudgedRun, search: Search, articles: int) -> None:
        """Add the first articles of a run to the tally."""
        tally, verdicts = self._tally, run.verdicts
        tally.candidates += verdicts.candidates[:articles].sum(axis=0)
        tally.confirmed += verdicts.confirmed[:articles].sum(axis=0)
        tally.hot_keys += verdicts.hot[:articles].sum(axis=0)
        np.maximum(tally.longest_lists, verdicts.longest[:articles].max(axis=0), out=tally.longest_lists)
        tally.probes += int(search.probes[:articles].sum())
        tally.hits += int(search.hits[:articles].sum())
        tally.without_lines += int(run.features.lines.taken[:articles].sum())

    # ------------------------------------------------------------------------------------------------ withdrawals

    def _withdraw(self, withdrawals: Sequence[Withdrawal]) -> None:
        entries = NewEntries(self._index.format, self._progress.entries)
        book = self._book(entries)
        moment = self._parts.window.moment(self._progress.stream_ms)
        for withdrawal in withdrawals:
            self._outcomes.append(self._withdrawn(withdrawal, book, moment))
            self._withdrawals += 1
        if book.records.changed:
            self._stage(entries, book)
        self._watch.lap("change")

    def _withdrawn(self, withdrawal: Withdrawal, book: ClusterChanges, moment: Moment) -> Outcome:
        records, name, url = book.records, withdrawal.name, url_hash(withdrawal.url, withdrawal.scope)
        record = since(records.record(name), moment.cutoff_ms)
        if record is None and url:
            known = with_url(
                url, [(other, since(records.record(other), moment.cutoff_ms)) for other in records.owners(url)]
            )
            name, record = next(iter(known.items()), (name, None))
        if record is None:
            return Unjudged(withdrawal, UnjudgedReason.UNKNOWN_ARTICLE, _unknown(withdrawal))
        canonical = book.leave(name, record, SuccessionReason.WITHDRAWN, moment)
        records.forget(name, record)
        return Withdrawn(withdrawal, id_of(name), id_of(canonical) if canonical is not None else None)

    # ------------------------------------------------------------------------------------------------ steps

    def _book(self, entries: NewEntries) -> ClusterChanges:
        return ClusterChanges(self._store, self._progress.live, self._index.format, self._parts.policy, entries)

    def _stage(
        self,
        entries: NewEntries,
        book: ClusterChanges,
        times: I64 = _NO_TIMES,
        run: CountInput | None = None,
    ) -> None:
        """Stage the changes made by articles with these stream times, or by withdrawals."""
        before = self._progress
        progress = self._after(before, times, entries.next)
        counts = list(self._epochs.count(before.steps, run)) if run else []
        if progress.epoch_judged == 0 and len(times):
            counts = list(self._epochs.end())
        fixed, names = entries.all()
        packed = self._index.format.pack(fixed, names)
        step = Step(progress, fixed, packed, book.removed, book.writes(), counts)
        self._store.write(list(step_writes(self._store, self._index, before, step)))
        self._pending.add(fixed, step.numbers())
        self._progress = progress
        self._steps.append(step)
        self._clusters |= book.published

    def _after(self, before: Progress, times: I64, entries: int) -> Progress:
        """Return the progress of the state after some articles.

        An epoch ends with each generation, so that the changelog need not reach back beyond the oldest generation.
        """
        generations = self._parts.window.generations(before, times, entries)
        epoch_judged = before.epoch_judged + len(times)
        most = self._settings.idf.articles_of(self._epochs.state.epoch.number)
        if generations[-1].number != before.generation or epoch_judged >= most:
            epoch_judged = 0
        return Progress(
            before.steps + 1,
            before.judged + len(times),
            epoch_judged,
            entries,
            int(times[-1]) if len(times) else before.stream_ms,
            generations,
        )


def _unknown(withdrawal: Withdrawal) -> str:
    scope = f" of the scope {withdrawal.scope!r}" if withdrawal.scope else ""
    return f"no article {withdrawal.id!r}{scope} is known in the window"


def _too_late(article: Article, days: float) -> Unjudged:
    detail = f"published more than {days:g} days before the newest article of the stream"
    return Unjudged(article, UnjudgedReason.TOO_LATE, detail)
