"""What the loop reports to the metrics.

Knows which event updates which metric; knows nothing of how they are shown.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import structlog
from prometheus_client import Gauge

from stream_dedup.article import Withdrawn
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Judged, Tally
from stream_dedup.engine.matching import SOURCES
from stream_dedup.engine.window import span_ms
from stream_dedup.fingerprint.drift import Drift
from stream_dedup.index.lookup.candidates import LANDMARK, SIMHASH
from stream_dedup.observe.metrics import Metrics
from stream_dedup.stream.commit.pipeline import Committed
from stream_dedup.stream.input.source import Lag, Source
from stream_dedup.stream.kafka.places import Place, timestamp_of

_GAUGE_SECONDS = 1.0
_REPORT_SECONDS = 30.0
_STILL_SECONDS = 3.0  # without an update of the gauges

log = structlog.get_logger()


class Meter:
    """Updates the metrics and reports progress in the log.

    Everything but `refresh` is for the loop's thread only.

    Args:
        metrics: the metrics to update.
        engine: asked for its epoch and progress.
    """

    def __init__(self, metrics: Metrics, engine: Deduplicator) -> None:
        self._metrics = metrics
        self._engine = engine
        self._gauges_at = 0.0
        self._looked_ms = 0
        self._reported_at = time.monotonic()
        self._reported_judged = engine.progress.judged
        self._blocks_read = engine.state.index.shelf.reads.blocks
        self._outcomes: Counter[str] = Counter()
        self._lags: Mapping[Place, Lag] = {}  # replaced, never changed in place: another thread reads it
        self._ageing: set[Place] = set()  # partitions whose lag in seconds is shown
        self._source: Source | None = None
        self._rebalances = self._lost = 0  # of that source, counted so far

    def committed(self, committed: Committed) -> None:
        """Count a commit."""
        metrics, judged = self._metrics, committed.judged
        metrics.transactions.labels("committed").inc()
        metrics.commit_messages.observe(len(committed.messages))
        metrics.commit_bytes.observe(committed.size)
        metrics.commit_seconds.observe(sum(committed.seconds[stage] for stage in ("produce", "transaction", "apply")))
        # Deciding is reported by stages of its own, which include computing features that were not prepared.
        for stage, seconds in chain(committed.seconds.items(), judged.seconds.items()):
            if stage != "decide":
                metrics.stage_seconds.labels(stage).inc(seconds)
        metrics.articles_stripped.inc(judged.tally.without_lines)
        self._count_decisions(judged)
        self._count_candidates(judged.tally)
        for drift in judged.drifts:
            self._show_drift(drift)
        for _, error in committed.dead:
            metrics.dead_letters.labels(error.reason).inc()
            self._outcomes["dead"] += 1
        told = map(timestamp_of, committed.messages)
        stamps_ms = np.array([stamp_ms for stamp_ms in told if stamp_ms is not None], np.int64)
        metrics.decision_seconds.observe_all(np.maximum(0, time.time_ns() // 1_000_000 - stamps_ms) / 1000)

    def judged_without_publishing(self, messages: int, drifts: Sequence[Drift]) -> None:
        """Count a commit of messages that were judged only to add them to the state.

        Args:
            messages: how many there were.
            drifts: of the epochs that have begun.
        """
        self._metrics.transactions.labels("committed").inc()
        self._metrics.messages_silent.inc(messages)
        for drift in drifts:
            self._show_drift(drift)
        self._show_epoch()
        self.following(self._place(), 0)

    def aborted(self) -> None:
        """Count an aborted transaction."""
        self._metrics.transactions.labels("aborted").inc()

    def tick(self, source: Source) -> None:
        """Bring the gauges up to date, and report progress now and then."""
        now = time.monotonic()
        if now - self._gauges_at >= _GAUGE_SECONDS:
            self._gauges_at = now
            self._show_source(source)
            self._show_state()
            self._show_epoch()
            self._show_place(self._place(), 0)
        if now - self._reported_at >= _REPORT_SECONDS:
            self._report(now, source)

    def idle(self) -> None:
        """Report that the input is not being read, or not any more."""
        metrics = self._metrics
        # The engine looks at the words of the state again only when it is about to decide.
        for gauge in (metrics.ready, metrics.assigned_partitions, metrics.unread_topics, *_of_epochs(metrics)):
            gauge.set(0)
        self._show_lags({})

    def following(self, position: int, remaining: int) -> None:
        """Report how far the state has followed its changelog, and bring the gauges of the state up to date."""
        self._show_place(position, remaining)
        now = time.monotonic()
        self._reported_at, self._reported_judged = now, self._engine.progress.judged
        if now - self._gauges_at >= _GAUGE_SECONDS:
            self._gauges_at = now
            self._show_state()

    def count_events(self, source: Source) -> None:
        """Count the rebalances and losses of a source since the last call; closing it is the last rebalance."""
        if source is not self._source:
            self._source, self._rebalances, self._lost = source, 0, 0
        self._metrics.rebalances.inc(source.rebalances - self._rebalances)
        self._metrics.input_lost.inc(source.lost - self._lost)
        self._rebalances, self._lost = source.rebalances, source.lost

    def refresh(self) -> None:
        """Bring up to date what grows by itself; from one thread at a time, whatever the loop is doing."""
        # What was waiting at the last look has been committed since, unless the loop stands still.
        stands_still = time.monotonic() - self._gauges_at > _STILL_SECONDS
        now_ms = time.time_ns() // 1_000_000 if stands_still else self._looked_ms
        gauge = self._metrics.consumer_lag_seconds
        ages = {
            place: max(0, now_ms - lag.since_ms) / 1000 if lag.since_ms is not None else 0.0
            for place, lag in self._lags.items()
            if lag.since_ms is not None or not lag.messages
        }
        for topic, partition in self._ageing - ages.keys():
            gauge.remove(topic, str(partition))
        for (topic, partition), age in ages.items():
            gauge.labels(topic, str(partition)).set(age)
        self._ageing = {*ages}

    def _show_place(self, position: int, remaining: int) -> None:
        self._metrics.changelog_position.set(position)
        self._metrics.changelog_records_remaining.set(remaining)

    def _place(self) -> int:
        place = self._engine.state.place
        return place.offset if place is not None else 0

    def _count_decisions(self, judged: Judged) -> None:
        metrics = self._metrics
        outcomes = Counter(
            (
                decision.article.origin.topic if decision.article.origin else "",
                decision.verdict,
                decision.link.relation if decision.link else "none",
            )
            for decision in judged.decisions
        )
        for (topic, decision, relation), count in outcomes.items():
            metrics.articles.labels(topic, decision, relation).inc(count)
            self._outcomes[decision] += count
        for outcome in judged.outcomes:
            if isinstance(outcome, Withdrawn):
                metrics.withdrawals.inc()
                self._outcomes["withdrawn"] += 1
        metrics.successions.inc(sum(map(len, judged.successions.values())))
        for source, count in Counter(d.link.source for d in judged.decisions if d.link).items():
            metrics.matches.labels(source).inc(count)

    def _count_candidates(self, tally: Tally) -> None:
        metrics = self._metrics
        for source, found, confirmed in zip(SOURCES, tally.candidates, tally.confirmed, strict=True):
            metrics.candidates.labels(source).inc(int(found))
            metrics.candidates_confirmed.labels(source).inc(int(confirmed))
        # A full list of contents hides nothing: its entries have the same text.
        for kind in (LANDMARK, SIMHASH):
            metrics.hot_keys.labels(SOURCES[kind]).inc(int(tally.hot_keys[kind]))
            metrics.longest_list_articles.labels(SOURCES[kind]).set(int(tally.longest_lists[kind]))
        metrics.simhash_probes.inc(tally.probes)
        metrics.simhash_hits.inc(tally.hits)

    def _show_drift(self, drift: Drift) -> None:
        self._metrics.epoch_drift_distance.observe_all(drift.distances.astype(np.float64))
        self._metrics.epoch_drift_mean_distance.set(drift.mean)
        self._metrics.epoch_drift_articles.set(len(drift.distances))
        log.info(
            "epoch",
            number=drift.epoch,
            drift_mean_bits=round(drift.mean, 2),
            drift_most_bits=drift.most,
            drift_articles=len(drift.distances),
        )

    def _show_source(self, source: Source) -> None:
        metrics = self._metrics
        self.count_events(source)
        metrics.assigned_partitions.set(len(source.assigned))
        metrics.unread_topics.set(len(source.unread_topics))
        metrics.ready.set(bool(source.assigned))
        self._show_lags(source.lag())

    def _show_lags(self, lags: Mapping[Place, Lag]) -> None:
        gauge = self._metrics.consumer_lag_messages
        for topic, partition in self._lags.keys() - lags.keys():
            gauge.remove(topic, str(partition))
        for (topic, partition), lag in lags.items():
            gauge.labels(topic, str(partition)).set(lag.messages)
        self._looked_ms = time.time_ns() // 1_000_000
        self._lags = lags

    def _show_state(self) -> None:
        metrics, engine = self._metrics, self._engine
        progress = engine.progress
        shelf = engine.state.index.shelf
        metrics.index_runs.set(len(shelf.runs))
        metrics.index_run_bytes.set(sum(run.size for run in shelf.runs))
        metrics.index_blocks_read.inc(shelf.reads.blocks - self._blocks_read)
        self._blocks_read = shelf.reads.blocks
        metrics.state_articles_judged.set(progress.judged)
        metrics.index_entries.set(progress.entries - progress.floor)
        metrics.window_generations.set(len(progress.generations))
        metrics.window_span_seconds.set(span_ms(progress) / 1000)
        metrics.stream_time_seconds.set(max(0, progress.stream_ms) / 1000)

    def _show_epoch(self) -> None:
        engine = self._engine
        values = (engine.epoch.number, engine.vocabulary(), engine.learnt_lines())
        for gauge, value in zip(_of_epochs(self._metrics), values, strict=True):
            gauge.set(value)

    def _report(self, now: float, source: Source) -> None:
        judged = self._engine.progress.judged
        if self._outcomes:
            rate = (judged - self._reported_judged) / (now - self._reported_at)
            log.info(
                "progress",
                per_second=round(rate, 1),
                lag=sum(lag.messages for lag in source.lag().values()),
                **self._outcomes,
            )
        self._reported_at, self._reported_judged = now, judged
        self._outcomes.clear()


def _of_epochs(metrics: Metrics) -> tuple[Gauge, Gauge, Gauge]:
    """Return the gauges of what begins with an epoch: its number, the words counted, and the lines learnt."""
    return metrics.idf_epoch, metrics.idf_vocabulary_words, metrics.learnt_lines
