"""The poll loop: read a batch, decode, decide, publish, commit.

Knows the order of the steps and how the loop ends; knows nothing of texts or of librdkafka's properties.
"""

import gc
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import structlog
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from stream_dedup.article import Article, Origin
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.dedup import Deduplicator, Judged
from stream_dedup.index.store import Store, open_store
from stream_dedup.observe.health import Health
from stream_dedup.observe.http import Observatory
from stream_dedup.observe.metrics import Metrics
from stream_dedup.settings import Settings
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream.clients import BrokerError, Topics
from stream_dedup.stream.meter import Meter
from stream_dedup.stream.sink import Sink, size_beside_value
from stream_dedup.stream.source import Source
from stream_dedup.version import __version__

_CONFIRM_SECONDS = 0.2  # between looks at the stop signal
_STOP_SECONDS = 4.0  # what the last batch may still take of the ten seconds to closing; closing takes some too

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Decoded:
    """A batch of messages decoded.

    Attributes:
        articles: those that are articles, with their messages.
        dead: the others, with the reason.
    """

    articles: list[tuple[Message, Article]]
    dead: list[tuple[Message, UndecodableError]]


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a batch passes through."""

    engine: Deduplicator
    source: Source
    decoder: Decoder
    sink: Sink
    meter: Meter


class Service:
    """The running service.

    Each batch goes these steps:

    1. read messages, at most as many as the epoch has room for;
    2. decode them into articles and dead letters;
    3. decide: the engine returns decisions and a pending change, nothing has changed yet;
    4. publish unique articles, links and dead letters, and wait until the broker has confirmed them all;
    5. commit: one atomic write makes the change and keeps the input offsets behind the batch.

    A kill before 5 repeats the batch with the same decisions; a kill after 5 continues behind it.

    Args:
        settings: all of them.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._metrics.build.info({"version": __version__})
        self._health = Health(settings.http.stuck_seconds)
        self._stopping = threading.Event()
        self._stopping_since: float | None = None
        self.starting = True

    def stop(self) -> None:
        """Ask the loop to end after the batch at hand. May be called from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop`.

        Raises:
            BrokerError: the broker cannot be reached or refuses something.
            StoreError: the state cannot be opened, read or written.
            OSError: the HTTP port is taken.
        """
        # The state comes first: a second instance must hear that it is in use, not that the port is.
        with (
            closing(open_store(self._settings.state.directory, self._settings.state)) as store,
            Observatory(self._settings.http, self._metrics, self._health) as observatory,
        ):
            log.info("starting", http=observatory.url, state=str(self._settings.state.directory))
            parts = self._prepare(store)
            try:
                self._loop(parts)
            finally:
                self._health.wait_for("the end")
                parts.sink.close()
                parts.source.close()
                log.info("stopped", judged=parts.engine.progress.judged)

    def _prepare(self, store: Store) -> _Parts:
        self._health.wait_for("the state to load, and the loops to compile at an installation's first start")
        engine = Deduplicator(settings=self._settings, store=store)
        engine.warm_up()
        # What is loaded by now lives as long as the process: the collector need not look at it again and again.
        gc.freeze()
        self._health.wait_for("the broker")
        topics = Topics(self._settings)
        topics.prepare()
        output = self._settings.output
        source = Source(self._settings, engine.positions())
        log.info("started", judged=engine.progress.judged, idf_epoch=engine.epoch.number)
        return _Parts(
            engine,
            source,
            Decoder(self._settings.input, topics.room(output.unique)),
            Sink(self._settings, topics.room(output.dead), self._while_waiting),
            Meter(self._metrics, engine, source),
        )

    def _loop(self, parts: _Parts) -> None:
        self._health.wait_for("partitions")
        self.starting = False
        while not self._stopping.is_set():
            self._health.beat()
            messages = parts.source.poll(parts.engine.batch_room(), self._stopping)
            self._health.wait_for("" if parts.source.assigned else "partitions")
            if messages:
                self._process(messages, parts)
            parts.meter.tick()

    def _process(self, messages: Sequence[Message], parts: _Parts) -> None:
        watch = Stopwatch()
        decoded = _decode(messages, parts.decoder)
        watch.lap("decode")
        judged = parts.engine.decide([article for _, article in decoded.articles])
        watch.lap("decide")
        _publish(decoded, judged, parts.sink)
        watch.lap("produce")
        self._await_confirmation(parts.sink)
        watch.lap("flush")
        positions = _next_offsets(messages)
        parts.engine.apply(judged.change, positions)
        watch.lap("commit")
        parts.source.advance(positions)
        parts.meter.batch(messages, [error for _, error in decoded.dead], judged, watch)

    def _await_confirmation(self, sink: Sink) -> None:
        """Wait for the broker. librdkafka's delivery timeout bounds it, and a stop shortens it."""
        while not sink.confirmed(_CONFIRM_SECONDS):
            self._while_waiting()

    def _while_waiting(self) -> None:
        self._health.beat()
        if self._stopping.is_set():
            self._stopping_since = self._stopping_since or time.monotonic()
            if time.monotonic() - self._stopping_since > _STOP_SECONDS:
                raise BrokerError("stopped while the broker did not confirm: the last batch will be repeated")


def _decode(messages: Sequence[Message], decoder: Decoder) -> Decoded:
    now_ms = time.time_ns() // 1_000_000
    decoded = Decoded([], [])
    for message in messages:
        try:
            article = decoder.decode(message.value(), now_ms, _origin(message), beside=size_beside_value(message))
            decoded.articles.append((message, article))
        except UndecodableError as error:
            decoded.dead.append((message, error))
        except Exception as error:  # whatever one message does, the stream goes on
            log.exception("message_not_decoded", topic=message.topic(), offset=message.offset())
            reason = f"{type(error).__name__}: {error}"
            decoded.dead.append((message, UndecodableError(Reason.INTERNAL, reason)))
    return decoded


def _origin(message: Message) -> Origin:
    kind, timestamp = message.timestamp()
    return Origin(
        str(message.topic()),
        int(message.partition() or 0),
        int(message.offset() or 0),
        None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
    )


def _publish(decoded: Decoded, judged: Judged, sink: Sink) -> None:
    decided_ms = time.time_ns() // 1_000_000
    for (message, _), decision in zip(decoded.articles, judged.decisions, strict=True):
        sink.decision(message, decision, decided_ms)
    for message, error in decoded.dead:
        sink.dead_letter(message, error)


def _next_offsets(messages: Sequence[Message]) -> dict[tuple[str, int], int]:
    """Return the offset behind the last message of each partition."""
    return {
        (str(message.topic()), int(message.partition() or 0)): int(message.offset() or 0) + 1 for message in messages
    }
