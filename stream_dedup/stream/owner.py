"""The role of the owner: it reads the input, decides and commits, until it loses the index.

Knows what a term needs and how its loop ends; knows nothing of texts or of librdkafka's properties.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Message

from stream_dedup.decode import Decoder
from stream_dedup.observe.health import Awaited
from stream_dedup.observe.remaining_time import RemainingTime
from stream_dedup.stream.commit.committer import Committer
from stream_dedup.stream.commit.pipeline import Pipeline, commit_without_publishing
from stream_dedup.stream.commit.shadowing import Shadow
from stream_dedup.stream.formats import Formats
from stream_dedup.stream.input.history import History
from stream_dedup.stream.input.reader import PendingCommit, Reader
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.statistics import client_statistics
from stream_dedup.stream.output.errors import AbortedError, StuckError
from stream_dedup.stream.output.exactly_once import abort_open_transaction
from stream_dedup.stream.output.guarantees import make_writer
from stream_dedup.stream.output.sink import Sink
from stream_dedup.stream.output.writer import Writer
from stream_dedup.stream.parts import ServiceParts
from stream_dedup.stream.transient_faults import Aborts, Outages

if TYPE_CHECKING:
    from stream_dedup.stream.watching.spans import Spans  # of the extra `otel`

_CLOSE_SECONDS = 4.5

log = structlog.get_logger()


class Owner:
    """The process in the role of the owner, for one term after another.

    Args:
        parts: what it has in every role.
        spans: makes the spans of commits; None if they are not traced.
    """

    def __init__(self, parts: ServiceParts, spans: "Spans | None") -> None:
        self._parts = parts
        self._settings = parts.settings
        self._life = parts.life
        self._spans = spans
        self._aborts = Aborts(parts.life, parts.meter, parts.settings.commit.deadline_seconds)
        self._outages = Outages(parts.life, parts.metrics)

    def serve(self) -> None:
        """Read the input and decide until the index is lost, the writer is stuck, or a stop is requested.

        Raises:
            StoppedError: a stop was requested during a long step.
            FencedError: another process has taken over, and writes to the index now.
            BrokerError: the broker refuses, or gives no answer.
            ChangelogError: the changelog cannot be read.
            RegistryError: the schema registry refuses something.
            StoreError: the state cannot be read or written.
        """
        parts, life, output = self._parts, self._life, self._settings.output
        life.begin(Awaited.REPLAY)
        began, term = time.monotonic(), parts.ownership.term
        # The transactional id fences earlier writers of this changelog. A writer with other settings is fenced by the
        # input's group, whose generation has changed by then.
        with (
            client_statistics(parts.metrics, "consumer") as consumer_statistics,
            client_statistics(parts.metrics, "producer") as producer_statistics,
            ExitStack() as closed,
            self._closing_together() as closers,
            ExitStack() as company,
        ):
            changelog = parts.names.changelog
            writer = make_writer(
                self._settings, changelog, life.wait_for_answer, producer_statistics, partial(self._asked, term)
            )
            closers.append(writer.close)
            writer.open()
            committer = Committer(parts.engine, writer, parts.identity)
            parts.catch_up()
            company.enter_context(life.called_when_polled(parts.reader.rest, writer.poll))
            room = parts.topics.max_message_bytes(output.unique)
            with Formats(self._settings, self._outages.report_with_heartbeat, self._outages.end) as formats:
                if not self._judge_history(formats.decoder(room), committer):
                    return
                encoder = formats.encoder()
            source = Source(self._settings, parts.engine.positions(), parts.topics.identities, consumer_statistics)
            closers.append(source.close)
            closed.callback(parts.meter.count_events, source)
            company.enter_context(life.called_at_heartbeat(source.keep_alive))
            company.enter_context(life.called_when_polled(partial(parts.meter.tick, source)))
            sink = Sink(output, writer, encoder, parts.topics.max_message_bytes(output.dead))
            self._trim()
            parts.metrics.show_role("active")
            log.info("active", term=term, seconds=round(time.monotonic() - began, 3))
            self._decide(term, source, sink, writer, committer, room)

    @contextmanager
    def _closing_together(self) -> Iterator[list[Callable[[], None]]]:
        """Call the listed closers at the end, all at once: if the broker is gone, each of them waits for it in vain."""
        closers: list[Callable[[], None]] = []
        try:
            yield closers
        finally:
            if self._life.stopping.is_set():
                closers.append(self._parts.ownership.leave)
            deadline = time.monotonic() + _CLOSE_SECONDS
            for thread in [_calling(close) for close in closers]:
                if thread.is_alive():
                    thread.join(max(0.0, deadline - time.monotonic()))

    # ------------------------------------------------------------------------------------------------ history

    def _judge_history(self, decoder: Decoder, committer: Committer) -> bool:
        """Judge, without publishing, what the group has decided but the state, new or of other settings, lacks.

        This is finished before anything is published: a copy in one partition may be of an article in another.

        Returns:
            Whether everything is judged: if not, a new writer must resume after the last committed batch.
        """
        parts, life = self._parts, self._life
        positions, identify = parts.engine.positions(), parts.topics.known_identities
        with closing(
            History(self._settings, positions, identify, life.heartbeat, while_hidden=self._end_others)
        ) as history:
            if not history.total:
                return True
            reason = "the group has decided these messages, but the state does not have them"
            log.warning("judged_again_in_silence", messages=history.total, reason=reason)
            parts.metrics.show_role("restoring")  # as a standby it would raise the alert that none is active
            advance = RemainingTime("messages")
            life.health.set_waiting_for(Awaited.SECOND_JUDGEMENT, advance.left(history.total))
            for messages in history.batches():
                if messages and not self._judge_without_publishing(messages, history.identities, decoder, committer):
                    return False
                life.heartbeat()
                life.health.set_waiting_for(Awaited.SECOND_JUDGEMENT, advance.left(history.total - history.done))
                life.raise_if_stopping("decided messages were being judged again")
        return True

    def _end_others(self) -> None:
        """Abort transactions of other settings while one of them hides what the group has decided.

        One of these settings is aborted by now, but nobody else ends that of a killed process with others before it
        times out. A `state rebuild` with other settings hides nothing: it commits no offsets, and is left alone.
        """
        parts = self._parts
        for changelog in parts.topics.other_changelogs(parts.directory.name):
            abort_open_transaction(self._settings, changelog, self._life.heartbeat)

    def _judge_without_publishing(
        self, messages: Sequence[Message], identities: Mapping[str, int], decoder: Decoder, committer: Committer
    ) -> bool:
        """Judge a batch that the group has decided; return whether it was committed."""
        parts = self._parts
        try:
            drifts = commit_without_publishing(messages, identities, parts.engine, decoder, committer)
        except AbortedError as error:
            self._aborts.pause_after(error)
            return False
        parts.meter.judged_without_publishing(len(messages), drifts)
        self._aborts.end()
        return True

    # ------------------------------------------------------------------------------------------------ the stream

    def _decide(self, term: int, source: Source, sink: Sink, writer: Writer, committer: Committer, room: int) -> None:
        """Decide and commit what arrives until the term is over, the source is unusable, or a stop is requested.

        Args:
            term: see `Ownership.term`.
            source: of the messages.
            sink: of the outputs.
            writer: already open.
            committer: commits with the writer.
            room: the largest message that the outputs accept, in bytes.
        """
        parts, life = self._parts, self._life
        formats = Formats(self._settings, self._outages.report, self._outages.end)
        # The formats are closed first: until then the reader's thread may be waiting for the registry.
        with Reader(source, formats.decoder(room), parts.engine) as reader, self._shadow() as shadow, formats:
            pipeline = Pipeline(parts.engine, source, reader, sink, writer, committer, life.heartbeat, shadow)
            while not life.stopping.is_set() and self._owns(term) and self._turn(source, reader, pipeline):
                pass

    @contextmanager
    def _shadow(self) -> Iterator[Shadow | None]:
        parts = self._parts
        if not self._settings.shadow.enabled:
            yield None
            return
        with closing(Shadow(self._settings, parts.engine, parts.store, parts.directory, parts.metrics)) as shadow:
            yield shadow

    def _owns(self, term: int) -> bool:
        ownership = self._parts.ownership
        ownership.poll()
        return ownership.owner and ownership.term == term

    def _asked(self, term: int, seconds: float) -> bool:
        """Ask the group whether this process owns the index and has for the whole term; see `Ownership.ask`.

        Raises:
            AbortedError: another process may have owned it.
        """
        answered = self._parts.ownership.ask(seconds)
        if answered and not self._owns(term):
            raise AbortedError("another process may have owned the index in the meantime")
        return answered

    def _turn(self, source: Source, reader: Reader, pipeline: Pipeline) -> bool:
        """Commit what has arrived; return whether the source is still usable."""
        life = self._life
        life.health.beat()
        pending = reader.read(life.stopping)
        life.health.set_waiting_for(None if source.assigned else Awaited.PARTITIONS)
        life.poll()
        self._parts.snapshots.turn()
        return self._note(reader, pipeline) if pending is None else self._commit(reader, pipeline, pending)

    def _note(self, reader: Reader, pipeline: Pipeline) -> bool:
        try:
            if pipeline.note():
                self._aborts.end()
        except AbortedError as error:
            return self._go_back(reader, error)
        return True

    def _commit(self, reader: Reader, pipeline: Pipeline, pending: PendingCommit) -> bool:
        before = self._parts.engine.progress.live
        try:
            committed = pipeline.commit(pending)
        except AbortedError as error:
            return self._go_back(reader, error)
        self._parts.meter.committed(committed)
        if self._spans is not None:
            self._spans.committed(committed)
        self._aborts.end()
        if self._parts.engine.progress.live[0] != before[0]:
            self._trim()
        return True

    def _go_back(self, reader: Reader, error: AbortedError) -> bool:
        """Read the messages of an aborted transaction again: they are decided once more, on the same state."""
        self._aborts.pause_after(error)
        return not isinstance(error, StuckError) and reader.rewind()

    def _trim(self) -> None:
        """Cut off the part of the changelog that is no longer needed."""
        offset = self._parts.engine.state.changelog_start()
        if offset:
            trimmed = self._parts.topics.delete_records_before(self._parts.names.changelog, offset)
            log.info("changelog_trimmed", begins=offset, done=trimmed)


def _calling(close: Callable[[], None]) -> threading.Thread:
    """Return a thread that calls a function; if the system has no more threads, the function has been called."""
    thread = threading.Thread(target=close, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # An error ends no more than it would in a thread.
        with suppress(Exception):
            close()
    return thread
