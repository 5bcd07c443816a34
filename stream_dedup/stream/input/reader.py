"""Reads ahead: while a batch is decided and committed, the next one is read, decoded and its texts are prepared.

Knows what may be done with messages before their turn; knows nothing of decisions or of what becomes of them.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from confluent_kafka import Message

from stream_dedup.closing import SelfClosing
from stream_dedup.decode import Decoder
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.prepared import Prepared, joined
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream.input.decoded import Decoded, decode_all, prepared_all
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.source import Source

_SLICE_SECONDS = 1.0  # longest wait at a time, so that signals and heartbeats get their turn


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Decoded messages with their articles prepared.

    Attributes:
        decoded: what they hold.
        prepared: the articles among them; None if there are none, or they have to be prepared when it is their turn.
        seconds: time by stage.
    """

    decoded: Decoded
    prepared: Prepared | None
    seconds: Mapping[str, float]


@dataclass(slots=True)
class PendingCommit:
    """The messages of one commit, being processed since they arrived.

    Attributes:
        batch: the messages.
        parts: their results, one part for each time that some arrived.
        messages: how many are being processed.
        awaited: whether their turn has come: work that can be done then is no longer done ahead.
    """

    batch: MessageBatch
    parts: list[Future[PreparedBatch]] = field(default_factory=list)
    messages: int = 0
    awaited: bool = False

    def is_processed(self) -> bool:
        """Tell whether all messages that were being processed are."""
        return all(part.done() for part in self.parts)

    def is_closed(self) -> bool:
        """Tell whether it takes no more messages: it is due and still being processed, so they would only delay it."""
        return self.batch.due is not None and self.batch.due <= time.monotonic() and not self.is_processed()

    def taken(self, while_waiting: Callable[[], None]) -> PreparedBatch:
        """Wait for all parts and join them.

        Args:
            while_waiting: called about every second, since they may wait for a schema registry; may raise to give up.

        Raises:
            RegistryError: the schema registry refuses.
        """
        self.awaited = True
        while wait(self.parts, _SLICE_SECONDS).not_done:
            while_waiting()
        parts = [part.result() for part in self.parts]
        seconds: dict[str, float] = {}
        for stage, lap in (lap for part in parts for lap in part.seconds.items()):
            seconds[stage] = seconds.get(stage, 0.0) + lap
        return PreparedBatch(
            Decoded(
                [item for part in parts for item in part.decoded.items], [d for p in parts for d in p.decoded.dead]
            ),
            joined([part.prepared for part in parts if part.prepared is not None]),
            seconds,
        )


class Reader(SelfClosing):
    """Hands out the messages of one commit after another. Use it as a context manager: its thread ends with it.

    Args:
        source: where they come from.
        decoder: reads them.
        engine: prepares their texts.
    """

    def __init__(self, source: Source, decoder: Decoder, engine: Deduplicator) -> None:
        self._source = source
        self._decoder = decoder
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "reader")
        self._next = PendingCommit(source.batch())

    def close(self) -> None:
        """End the thread; what it has not begun is left undone."""
        self._thread.shutdown(cancel_futures=True)

    def read(self, stopping: threading.Event) -> PendingCommit | None:
        """Return the messages of the next commit, all being processed; None if nothing came or it is not due yet.

        Args:
            stopping: ends the waiting.

        Raises:
            BrokerError: the broker refuses for good, for instance because rights are missing.
        """
        pending, end = self._next, time.monotonic() + _SLICE_SECONDS
        while not pending.is_closed() and self._source.take(pending.batch, stopping):
            if pending.is_processed():
                self._take_in(pending)
            if time.monotonic() > end:
                return None
        if not pending.batch.messages:
            return None
        self._take_in(pending)
        self._next = PendingCommit(self._source.batch())
        return pending

    def read_ahead(self) -> None:
        """Start processing what has arrived for the commit after the current one.

        Raises:
            BrokerError: as in `read`.
        """
        self._source.take_at_once(self._next.batch)
        self._take_in(self._next)

    def rewind(self) -> bool:
        """Go back to the first uncommitted message; return whether that was possible, see `Source.rewind`."""
        if not self._source.rewind():
            return False
        self._next = PendingCommit(self._source.batch())
        return True

    def _take_in(self, pending: PendingCommit) -> None:
        """Start processing what has arrived since the last call."""
        messages = pending.batch.messages[pending.messages :]
        if messages:
            pending.messages += len(messages)
            pending.parts.append(self._thread.submit(self._taken, messages, pending))

    def _taken(self, messages: Sequence[Message], pending: PendingCommit) -> PreparedBatch:
        watch = Stopwatch()
        decoded = decode_all(messages, self._decoder, self._engine.progress.stream_ms)
        watch.lap("decode")
        decoded, prepared = prepared_all(decoded, lambda items: self._engine.prepare(items, lambda: pending.awaited))
        watch.lap("features")
        return PreparedBatch(decoded, prepared, watch.seconds)
