"""The service: a warm standby that follows the changelog, and the one that reads the input and decides.

Knows roles, what a start needs and how the loop ends; knows nothing of texts or of librdkafka's properties.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Message

from stream_dedup.decode import Decoder
from stream_dedup.dedup import Deduplicator
from stream_dedup.index.peek import is_state
from stream_dedup.index.rocks import RocksStore, opened_store
from stream_dedup.index.store import StoreDamagedError
from stream_dedup.observe.advance import Advance
from stream_dedup.observe.complaints import Complaints
from stream_dedup.observe.health import Health
from stream_dedup.observe.http import Observatory
from stream_dedup.observe.memory import show_memory
from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.watchdog import Watchdog
from stream_dedup.registry import RegistryUnreachableError
from stream_dedup.settings import Settings
from stream_dedup.stream.changelog import ChangelogReader, ChangelogTruncatedError
from stream_dedup.stream.clients import BrokerError
from stream_dedup.stream.meter import Meter
from stream_dedup.stream.ownership import Ownership
from stream_dedup.stream.pipeline import Pipeline
from stream_dedup.stream.reader import Intake, Reader
from stream_dedup.stream.rebuild import History, commit_in_silence
from stream_dedup.stream.replay import Follower
from stream_dedup.stream.shadowing import Shadow, discard_shadows
from stream_dedup.stream.sink import Sink
from stream_dedup.stream.snapshots import SnapshotDesk
from stream_dedup.stream.source import Source
from stream_dedup.stream.state_meter import StateMeter
from stream_dedup.stream.states import (
    check_old_format,
    digest_of,
    discard,
    other_states,
    refusal,
    state_directory,
)
from stream_dedup.stream.statistics import client_statistics
from stream_dedup.stream.topics import StateTopics, Topics, state_topics
from stream_dedup.stream.traced import traced
from stream_dedup.stream.upkeep import Upkeep
from stream_dedup.stream.wire import Wire
from stream_dedup.stream.writer import AbortedError, StuckError, Writer
from stream_dedup.version import __version__

if TYPE_CHECKING:
    from stream_dedup.stream.spans import Spans  # of the extra `otel`

_STOP_SECONDS = 3.0  # what the last commit may still take of the ten seconds to closing; closing takes some too
_REPORT_SECONDS = 5.0  # between two lines about a long restore
_CLOSE_SECONDS = 4.5
_FOLLOW_SECONDS = 0.1  # that a standby waits for the next record
_PAUSE_SECONDS = 0.5  # after an aborted transaction
_REPLAY = "the changelog to be replayed"  # what is waited for, as /readyz and /startupz say it
_AGAIN = "what the group has decided to be judged again"
_YOUNG_OBJECTS = 50_000  # between two looks of the collector: a batch makes several times as many, and all die with it

log = structlog.get_logger()


class StoppedError(Exception):
    """A stop was asked for while something took long, or while the service could not go on anyway."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a process has in every role."""

    engine: Deduplicator
    store: RocksStore
    directory: Path
    topics: Topics
    names: StateTopics
    identity: str
    reader: ChangelogReader
    ownership: Ownership
    meter: Meter
    upkeep: Upkeep


class Service:
    """The running service.

    Of all processes of one index (`state.name`) one owns it: it reads the input, decides and commits, in the steps of
    `protocol`. The others follow the changelog and take over when it leaves or is lost.

    Args:
        settings: all of them.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._metrics.build.info({"version": __version__})
        self._metrics.shadow_enabled.set(settings.shadow.enabled)
        for topic in settings.input.topics:
            if not topic.startswith("^"):
                self._metrics.expect(topic)
        self._health = Health(settings.http.stuck_seconds)
        self._metrics.heartbeat_age_seconds.set_function(self._health.silence)
        self._stopping = threading.Event()
        self._stopping_since: float | None = None
        self._ownership: Ownership | None = None
        self._source: Source | None = None
        # Called in each turn, and while something takes long: for clients that want to be polled, and for gauges.
        self._listening: Sequence[Callable[[], None]] = ()
        self._aborting_since: float | None = None
        self._complaints = Complaints()
        self._spans: Spans | None = None
        self.starting = True

    def stop(self) -> None:
        """Ask the loop to end after the commit at hand. May be called from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop`.

        A state that is damaged, or older than what the changelog still holds, is thrown away once, and restored from
        the changelog.

        Raises:
            BrokerError: the broker cannot be reached or refuses something.
            FencedError: another process has taken over, and writes to the index now.
            StoreError: the state cannot be opened, read or written, or belongs to other settings.
            ChangelogError: the changelog cannot be read.
            RegistryError: the schema registry refuses something.
            SettingsError: tracing takes packages that are missing.
            OSError: the HTTP port is taken.
        """
        check_old_format(self._settings)
        digest = digest_of(self._settings)
        directory = state_directory(self._settings, digest)
        topics = Topics(self._settings, self._heartbeat)
        self._check_generation(topics, digest, directory)
        with Watchdog(self._health, self._metrics.stack_dumps.inc), traced(self._settings) as self._spans:
            self._run_or_restore(directory, topics, digest)

    def _run_or_restore(self, directory: Path, topics: Topics, digest: str) -> None:
        try:
            self._run_on(directory, topics, digest)
        except (StoreDamagedError, ChangelogTruncatedError) as error:
            log.warning("state_discarded", state=str(directory), error=str(error), then="restored from the changelog")
            discard(directory)
            self._run_on(directory, topics, digest)

    def _check_generation(self, topics: Topics, digest: str, directory: Path) -> None:
        others = other_states(self._settings, digest)
        if is_state(directory) or not others:
            return
        # A state of these settings may have been made elsewhere: then its changelog is there.
        if not topics.exists(state_topics(self._settings, digest).changelog):
            raise refusal(self._settings, topics.other_changelogs(digest), others)

    def _run_on(self, directory: Path, topics: Topics, digest: str) -> None:
        # The state comes first: a second instance must hear that it is in use, not that the port is.
        with (
            opened_store(directory, self._settings.state) as store,
            self._metrics.refreshed_by(StateMeter(self._metrics, store, directory).refresh),
            self._metrics.refreshed_by(partial(show_memory, self._metrics)),
            Observatory(self._settings.http, self._metrics, self._health) as observatory,
        ):
            log.info("starting", http=observatory.url, state=str(directory))
            self._begin("the state to load, and the loops to compile at an installation's first start")
            engine = Deduplicator(settings=self._settings, store=store)
            engine.warm_up()
            # What is loaded by now lives as long as the process: the collector need not look at it again and again.
            gc.freeze()
            gc.set_threshold(_YOUNG_OBJECTS)
            desk = SnapshotDesk(self._settings.state.directory, store, digest)
            with (
                Upkeep(store, desk) as upkeep,
                _stoppable(),
                self._connected(engine, store, directory, topics, upkeep) as parts,
            ):
                try:
                    self._take_roles(parts)
                finally:
                    self._health.wait_for("the end")
            log.info("stopped", judged=engine.progress.judged)

    @contextmanager
    def _connected(
        self, engine: Deduplicator, store: RocksStore, directory: Path, topics: Topics, upkeep: Upkeep
    ) -> Iterator[_Parts]:
        self._begin("the broker")
        digest = directory.name
        names = state_topics(self._settings, digest)
        changelogs = [] if engine.progress.steps else topics.other_changelogs(digest)
        if changelogs and not topics.exists(names.changelog):
            raise refusal(self._settings, changelogs, other_states(self._settings, digest))
        topics.prepare(names)
        with (
            client_statistics(self._metrics, "changelog") as told,
            closing(ChangelogReader(self._settings, names.changelog, self._heartbeat, told)) as reader,
        ):
            if changelogs and reader.bounds()[1] == 0:
                raise refusal(self._settings, changelogs, other_states(self._settings, digest))
            self.starting = False
            self._metrics.become("restoring")
            self._begin(_REPLAY)
            identity = topics.identity(names.changelog)
            self._catch_up(self._follower(engine, reader, identity))
            ownership = self._ownership = Ownership(self._settings, names.owner)
            try:
                meter = Meter(self._metrics, engine)
                with self._metrics.refreshed_by(meter.refresh):
                    yield _Parts(engine, store, directory, topics, names, identity, reader, ownership, meter, upkeep)
            finally:
                self._ownership = None
                ownership.leave()

    def _follower(self, engine: Deduplicator, reader: ChangelogReader, identity: str) -> Follower:
        return Follower(engine.state, reader, identity, self._heartbeat)

    def _catch_up(self, follower: Follower) -> None:
        began = reported = time.monotonic()
        advance = Advance("records")

        def report(left: int) -> None:
            nonlocal reported
            self._metrics.changelog_records_remaining.set(left)
            self._health.wait_for(f"{_REPLAY}: {advance.left(left)}" if left else _REPLAY)
            if time.monotonic() - reported >= _REPORT_SECONDS:
                reported = time.monotonic()
                log.info("restoring", records_remaining=left, articles=follower.replayed)
            if self._stopping.is_set():
                raise StoppedError("the changelog was being replayed: the next start goes on")

        report(follower.remaining)
        follower.catch_up(report)
        if follower.replayed:
            log.info("restored", articles=follower.replayed, seconds=round(time.monotonic() - began, 2))

    # ------------------------------------------------------------------------------------------------ roles

    def _take_roles(self, parts: _Parts) -> None:
        self._health.start()
        log.info("started", judged=parts.engine.progress.judged, idf_epoch=parts.engine.epoch.number)
        while not self._stopping.is_set():
            self._stand_by(parts)
            if not self._stopping.is_set():
                self._own(parts)

    def _stand_by(self, parts: _Parts) -> None:
        """Follow the changelog until the index is this process's."""
        self._metrics.become("standby")
        parts.meter.idle()
        follower = self._follower(parts.engine, parts.reader, parts.identity)
        while not (self._stopping.is_set() or parts.ownership.owner):
            follower.follow(_FOLLOW_SECONDS)
            parts.reader.bounds()
            parts.meter.following(follower.position, follower.remaining)
            parts.upkeep.turn(parts.engine.progress)
            left = follower.remaining
            behind = left > self._settings.state.lag_records
            self._health.wait_for(f"{_REPLAY}: {left:,} records left" if behind else "")

    def _own(self, parts: _Parts) -> None:
        """Read the input and decide, until the index is taken away."""
        self._begin(_REPLAY)
        began, term = time.monotonic(), parts.ownership.term
        output = self._settings.output
        # The id fences whoever wrote to this changelog before; a writer with other settings is fenced by the input's
        # group, which has another generation by then.
        with (
            client_statistics(self._metrics, "consumer") as consumer_told,
            client_statistics(self._metrics, "producer") as producer_told,
            self._closing_together(parts.ownership) as closers,
        ):
            changelog = parts.names.changelog
            writer = Writer(self._settings, changelog, changelog, self._heartbeat, producer_told)
            closers.append(writer.close)
            writer.open()
            self._catch_up(self._follower(parts.engine, parts.reader, parts.identity))
            self._listening = (parts.reader.rest, writer.hear)
            room = parts.topics.room(output.unique)
            with Wire(self._settings, self._await_registry, self._end_outage) as wire:
                if not self._judge_history(parts, wire.decoder(room), writer):
                    return
                encoder = wire.encoder()
            source = self._source = Source(self._settings, parts.engine.positions(), consumer_told)
            closers.append(source.close)
            self._listening = (*self._listening, partial(parts.meter.tick, source))
            sink = Sink(output, writer, encoder, parts.topics.room(output.dead))
            self._trim(parts)
            self._metrics.become("active")
            log.info("active", term=term, seconds=round(time.monotonic() - began, 3))
            wire = Wire(self._settings, self._tell_outage, self._end_outage)
            # The wire ends first: until then the reader's thread may wait for the registry.
            with Reader(source, wire.decoder(room), parts.engine) as reader, self._shadow(parts) as shadow, wire:
                beat = self._heartbeat
                pipeline = Pipeline(parts.engine, source, reader, sink, writer, parts.identity, beat, shadow)
                while not self._stopping.is_set() and self._owns(parts.ownership, term):
                    if not self._turn(parts, source, reader, pipeline):
                        break

    @contextmanager
    def _shadow(self, parts: _Parts) -> Iterator[Shadow | None]:
        if not self._settings.shadow.enabled:
            discard_shadows(parts.directory)
            yield None
            return
        with closing(Shadow(self._settings, parts.engine, parts.store, parts.directory, self._metrics)) as shadow:
            yield shadow

    def _judge_history(self, parts: _Parts, decoder: Decoder, writer: Writer) -> bool:
        """Judge in silence what the group has decided beyond the state, one that is new or of other settings.

        All of it before anything is published: a copy in one partition may be of an article in another.

        Returns:
            Whether all is judged: if not, a new writer is to go on behind the last batch that was committed.
        """
        with closing(History(self._settings, parts.engine.positions())) as history:
            if not history.total:
                return True
            reason = "the group has decided these messages, the state does not know them"
            log.warning("judged_again_in_silence", messages=history.total, reason=reason)
            advance = Advance("messages")
            self._health.wait_for(f"{_AGAIN}: {advance.left(history.total)}")
            for messages in history.batches(self._settings.commit.articles):
                if messages and not self._judge_in_silence(parts, messages, decoder, writer):
                    return False
                self._heartbeat()
                self._health.wait_for(f"{_AGAIN}: {advance.left(history.total - history.done)}")
                if self._stopping.is_set():
                    raise StoppedError("what the group has decided was being judged again: the next start goes on")
        return True

    def _judge_in_silence(self, parts: _Parts, messages: Sequence[Message], decoder: Decoder, writer: Writer) -> bool:
        """Judge a batch that the group has decided; return whether it is committed."""
        judged = parts.engine.progress.judged
        try:
            commit_in_silence(messages, parts.engine, decoder, writer, parts.identity)
        except AbortedError as error:
            self._bear(parts, error)
            return False
        parts.meter.judged_in_silence(parts.engine.progress.judged - judged)
        self._aborting_since = None
        return True

    @contextmanager
    def _closing_together(self, ownership: Ownership) -> Iterator[list[Callable[[], None]]]:
        """Close what is in the list at the end, all at once: with the broker gone each waits for it in vain."""
        closers: list[Callable[[], None]] = []
        try:
            yield closers
        finally:
            self._source, self._listening = None, ()
            if self._stopping.is_set():
                closers.append(ownership.leave)
            threads = [threading.Thread(target=close, daemon=True) for close in closers]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + _CLOSE_SECONDS
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

    def _owns(self, ownership: Ownership, term: int) -> bool:
        ownership.poll()
        return ownership.owner and ownership.term == term

    def _turn(self, parts: _Parts, source: Source, reader: Reader, pipeline: Pipeline) -> bool:
        """Commit what there is; return whether the source can go on."""
        self._health.beat()
        intake = reader.read(self._stopping)
        self._health.wait_for("" if source.assigned else "partitions")
        self._listen()
        parts.upkeep.turn(parts.engine.progress)
        return intake is None or self._commit(parts, reader, pipeline, intake)

    def _commit(self, parts: _Parts, reader: Reader, pipeline: Pipeline, intake: Intake) -> bool:
        before = parts.engine.progress.live
        try:
            committed = pipeline.commit(intake)
        except AbortedError as error:
            return self._go_back(parts, reader, error)
        parts.meter.committed(committed)
        if self._spans is not None:
            self._spans.committed(committed)
        self._aborting_since = None
        if parts.engine.progress.live[0] != before[0]:
            self._trim(parts)
        return True

    def _go_back(self, parts: _Parts, reader: Reader, error: AbortedError) -> bool:
        """Read the messages of an aborted transaction again: they are decided anew, on the same state."""
        self._bear(parts, error)
        return not isinstance(error, StuckError) and reader.rewind()

    def _bear(self, parts: _Parts, error: AbortedError) -> None:
        """Take an aborted transaction for an accident, unless all have been aborted for too long."""
        parts.meter.aborted()
        self._aborting_since = self._aborting_since or time.monotonic()
        if time.monotonic() - self._aborting_since > self._settings.commit.deadline_seconds:
            raise BrokerError(f"given up after commit.deadline_seconds: {error}") from None
        if isinstance(error, StuckError):
            self._complaints.warning("writer_renewed", error=type(error).__name__, detail=str(error))
        else:
            self._stopping.wait(_PAUSE_SECONDS)

    def _trim(self, parts: _Parts) -> None:
        """Cut off what the changelog need not keep any more."""
        offset = parts.engine.state.begin_of_changelog()
        if offset:
            trimmed = parts.topics.forget(parts.names.changelog, offset)
            log.info("changelog_trimmed", begins=offset, done=trimmed)

    def _tell_outage(self, outage: RegistryUnreachableError) -> None:
        """Tell that the schema registry is waited for. May be called from the reader's thread."""
        self._metrics.registry_waiting.set(1)
        self._health.miss("the schema registry")
        self._complaints.warning("registry_out_of_reach", error="registry", detail=str(outage))

    def _end_outage(self) -> None:
        """Tell that the schema registry is not waited for any more. May be called from the reader's thread."""
        self._metrics.registry_waiting.set(0)
        self._health.miss("")

    def _await_registry(self, outage: RegistryUnreachableError) -> None:
        self._tell_outage(outage)
        self._heartbeat()

    def _listen(self) -> None:
        for listen in self._listening:
            listen()

    def _begin(self, what: str) -> None:
        """Tell the probes what the service is at from now on."""
        self._health.beat()
        self._health.wait_for(what)

    def _heartbeat(self) -> None:
        """Go on living while something takes long."""
        self._health.beat()
        if self._ownership is not None:
            self._ownership.poll()
        if self._source is not None:
            self._source.keep_alive()
        self._listen()
        if self._stopping.is_set():
            self._stopping_since = self._stopping_since or time.monotonic()
            if time.monotonic() - self._stopping_since > _STOP_SECONDS:
                raise StoppedError("the broker did not answer: what was not committed will be decided again")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a stop end what it runs, at whatever step."""
    try:
        yield
    except StoppedError as stopped:
        log.info("stopping", detail=str(stopped))
