"""The shadow: a second engine with other thresholds, which judges what was committed, without any effect.

Knows its state, its producer and what becomes of its errors; knows nothing of what a disagreement is.
"""

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import structlog
from confluent_kafka import KafkaException

from stream_dedup.article import Article, Decision, Withdrawal
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Outcome
from stream_dedup.engine.prepared import Prepared
from stream_dedup.engine.shadow import disagreement_json, disagreement_of, is_sampled
from stream_dedup.index.records.ledger import Positions
from stream_dedup.index.stores.rocks import RocksStore, open_store
from stream_dedup.index.stores.store import StoreError
from stream_dedup.observe.faults import raised_at
from stream_dedup.observe.metrics import Metrics
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import make_producer
from stream_dedup.stream.kafka.headers import trace_headers

_FOLDER = "shadow"  # beside the live states
_DIGEST_BYTES = 4
_MOST_WAITING = 10_000  # messages; further ones are counted and not sent
_FLUSH_SECONDS = 2.0
_AGREEMENT = "none"

log = structlog.get_logger()


class Shadow:
    """Judges what the live engine has judged and committed. Any failure in it ends the shadow, never the stream.

    Its state is kept if it is at the same positions as the live state; otherwise it starts as a copy of that.

    Args:
        settings: of the service.
        live: the live engine.
        store: of the live state.
        directory: of the live state.
        metrics: count how many articles disagree, and how.
    """

    def __init__(
        self, settings: Settings, live: Deduplicator, store: RocksStore, directory: Path, metrics: Metrics
    ) -> None:
        self._settings = settings.model_copy(update={"verify": settings.shadow_verify()})
        self._live = live
        self._metrics = metrics
        self._directory = _folder(directory) / f"{directory.name}-{_digest(self._settings)}"
        self._engine: Deduplicator | None = None
        try:
            self._producer = make_producer(settings)
            self._engine = self._kept() or self._begun(store)
        except (StoreError, OSError) as error:
            log.warning("shadow_ended", error=type(error).__name__, detail=str(error))
        except Exception as error:  # noqa: BLE001  # as in `judge`
            _tell_end(error)
        metrics.shadow_running.set(self._engine is not None)

    def judge(
        self,
        items: Sequence[Article | Withdrawal],
        prepared: Prepared | None,
        outcomes: Sequence[Outcome],
        positions: Positions,
    ) -> None:
        """Judge what was committed, and report the disagreements.

        Args:
            items: in order.
            prepared: all the articles, if they were prepared.
            outcomes: of the live engine, one per item.
            positions: next input offset by topic and partition, for those that the commit moves.
        """
        if self._engine is None:
            return
        try:
            judged = self._engine.decide(items, prepared)
            self._engine.apply(judged.change, positions)
            self._tell(outcomes, judged.outcomes)
        except Exception as error:  # noqa: BLE001  # whatever it is, the stream continues
            _tell_end(error)
            self.close()

    def close(self) -> None:
        """Release the state, and send what is still queued."""
        engine, self._engine = self._engine, None
        self._metrics.shadow_running.set(0)
        if engine is None:
            return
        try:
            engine.close()
            self._producer.flush(_FLUSH_SECONDS)
        except Exception as error:  # noqa: BLE001  # as above: a full disk fails here again
            _tell_end(error)

    def _kept(self) -> Deduplicator | None:
        """Return an engine on the existing state, if that has judged exactly what the live one has."""
        if not self._directory.is_dir():
            return None
        with ExitStack() as closing_unless_kept:
            try:
                engine = closing_unless_kept.enter_context(self._opened())
                has_judged = engine.positions(), engine.progress.judged
            except StoreError as error:
                log.warning("shadow_unreadable", error=str(error))
                return None
            if has_judged == (self._live.positions(), self._live.progress.judged):
                log.info("shadow_goes_on", judged=engine.progress.judged)
                closing_unless_kept.pop_all()
                return engine
            log.info("shadow_discarded", judged=engine.progress.judged, live=self._live.progress.judged)
        return None

    def _begun(self, store: RocksStore) -> Deduplicator:
        """Return an engine on a copy of the live state."""
        shutil.rmtree(self._directory.parent, ignore_errors=True)
        store.checkpoint(self._directory)
        log.info("shadow_begins", judged=self._live.progress.judged, state=str(self._directory))
        return self._opened()

    def _opened(self) -> Deduplicator:
        store = open_store(self._directory, self._settings.state)
        return Deduplicator(settings=self._settings, store=store, beside=self._live)

    def _tell(self, live: Sequence[Outcome], shadow: Sequence[Outcome]) -> None:
        now_ms = time.time_ns() // 1_000_000
        counts: Counter[str] = Counter()
        for one, other in zip(live, shadow, strict=True):
            if not (isinstance(one, Decision) and isinstance(other, Decision)):
                continue
            found = disagreement_of(one, other)
            counts[found or _AGREEMENT] += 1
            if found is not None and is_sampled(one.article.name, self._settings.shadow.sample):
                self._send(one.article, disagreement_json(found, one, other, now_ms))
        for disagreement, count in counts.items():
            self._metrics.shadow_articles.labels(disagreement).inc(count)
        self._producer.poll(0)

    def _send(self, article: Article, value: bytes) -> None:
        if len(self._producer) < _MOST_WAITING:
            with suppress(BufferError, KafkaException):
                headers = trace_headers(article.origin)
                self._producer.produce(self._settings.shadow.topic, value, article.name.encode(), headers=headers)
                return
        self._metrics.shadow_left_out.inc()


def _tell_end(error: Exception) -> None:
    log.warning("shadow_ended", error=type(error).__name__, detail=raised_at(error))
    log.debug("shadow_fault", exc_info=error)


def discard_shadows(directory: Path) -> None:
    """Delete the shadow states beside a live one: they are useful only while they keep up with it."""
    shutil.rmtree(_folder(directory), ignore_errors=True)


def _folder(directory: Path) -> Path:
    return directory.parent / _FOLDER


def _digest(settings: Settings) -> str:
    return hashlib.blake2b(settings.verify.model_dump_json().encode(), digest_size=_DIGEST_BYTES).hexdigest()
