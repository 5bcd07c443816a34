"""What the loop tells the metrics.

Knows which event moves which metric; knows nothing of how they are shown.
"""

import time
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import structlog
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from stream_dedup.decode import UndecodableError
from stream_dedup.dedup import Deduplicator, Judged
from stream_dedup.judge import SOURCES
from stream_dedup.observe.metrics import Metrics
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream.source import Source

_GAUGE_SECONDS = 1.0
_REPORT_SECONDS = 30.0

log = structlog.get_logger()


class Meter:
    """Moves the metrics and reports progress in the log.

    Args:
        metrics: what is moved.
        engine: asked for its epoch and progress.
        source: asked for its assignment and lag.
    """

    def __init__(self, metrics: Metrics, engine: Deduplicator, source: Source) -> None:
        self._metrics = metrics
        self._engine = engine
        self._source = source
        self._gauges_at = 0.0
        self._reported_at = time.monotonic()
        self._reported_judged = engine.progress.judged
        self._outcomes: Counter[str] = Counter()
        self._lagging: AbstractSet[tuple[str, int]] = set()

    def batch(
        self, messages: Sequence[Message], dead: Sequence[UndecodableError], judged: Judged, watch: Stopwatch
    ) -> None:
        """Count a committed batch."""
        metrics = self._metrics
        metrics.commits.inc()
        metrics.batch_articles.observe(len(messages))
        metrics.commit_seconds.observe(sum(watch.seconds[stage] for stage in ("produce", "flush", "commit")))
        stages = {name: seconds for name, seconds in watch.seconds.items() if name != "decide"}
        for stage, seconds in {**stages, **judged.seconds}.items():
            metrics.stage_seconds.labels(stage).inc(seconds)
        self._count_decisions(judged)
        for error in dead:
            metrics.dead_letters.labels(error.reason).inc()
            self._outcomes["dead"] += 1
        now_ms = time.time_ns() // 1_000_000
        for kind, timestamp in (message.timestamp() for message in messages):
            if kind != TIMESTAMP_NOT_AVAILABLE:
                metrics.decision_seconds.observe(max(0, now_ms - timestamp) / 1000)

    def tick(self) -> None:
        """Bring the gauges up to date and report now and then."""
        now = time.monotonic()
        if now - self._gauges_at >= _GAUGE_SECONDS:
            self._gauges_at = now
            self._set_gauges()
        if now - self._reported_at >= _REPORT_SECONDS:
            self._report(now)

    def _count_decisions(self, judged: Judged) -> None:
        metrics = self._metrics
        outcomes = Counter(
            (
                "unique" if decision.unique else "duplicate",
                decision.link.relation if decision.link else "none",
            )
            for decision in judged.decisions
        )
        for (decision, relation), count in outcomes.items():
            metrics.articles.labels(decision, relation).inc(count)
            self._outcomes[decision] += count
        for source, count in Counter(d.link.source for d in judged.decisions if d.link).items():
            metrics.matches.labels(source).inc(count)
        for source, found, confirmed in zip(SOURCES, judged.candidates, judged.confirmed, strict=True):
            metrics.candidates.labels(source).inc(int(found))
            metrics.confirmed.labels(source).inc(int(confirmed))

    def _set_gauges(self) -> None:
        metrics, engine = self._metrics, self._engine
        metrics.assigned.set(len(self._source.assigned))
        metrics.ready.set(bool(self._source.assigned))
        metrics.epoch.set(engine.epoch.number)
        metrics.vocabulary.set(engine.vocabulary())
        metrics.judged.set(engine.progress.judged)
        metrics.entries.set(engine.progress.entries)
        lags = self._source.lag()
        for topic, partition in self._lagging - lags.keys():
            metrics.lag.remove(topic, str(partition))
        for (topic, partition), lag in lags.items():
            metrics.lag.labels(topic, str(partition)).set(lag)
        self._lagging = lags.keys()

    def _report(self, now: float) -> None:
        judged = self._engine.progress.judged
        if self._outcomes:
            rate = (judged - self._reported_judged) / (now - self._reported_at)
            log.info("progress", per_second=round(rate, 1), lag=sum(self._source.lag().values()), **self._outcomes)
        self._reported_at, self._reported_judged = now, judged
        self._outcomes.clear()
