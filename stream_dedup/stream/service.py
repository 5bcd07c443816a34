"""The service: how its process starts, which role it takes, and how it ends.

Knows what a start needs; knows nothing of texts, of the input or of librdkafka's properties.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.peek import is_state
from stream_dedup.index.stores.rocks import RocksStore, open_store
from stream_dedup.index.stores.store import StoreDamagedError, StoreError
from stream_dedup.observe.health import Awaited
from stream_dedup.observe.http import MonitoringServer
from stream_dedup.observe.memory import show_memory
from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.watchdog import Watchdog
from stream_dedup.settings import Settings, is_expression
from stream_dedup.stream.commit.shadowing import discard_shadows
from stream_dedup.stream.kafka.statistics import client_statistics
from stream_dedup.stream.kafka.topics import Topics, state_topics
from stream_dedup.stream.life import Life, stoppable
from stream_dedup.stream.owner import Owner
from stream_dedup.stream.ownership import Ownership
from stream_dedup.stream.parts import ServiceParts, replay_changelog
from stream_dedup.stream.standby import stand_by
from stream_dedup.stream.state.changelog import ChangelogReader, ChangelogTruncatedError
from stream_dedup.stream.state.replay import ChangelogFollower
from stream_dedup.stream.state.restore import discard_replays
from stream_dedup.stream.state.snapshots import SnapshotServer
from stream_dedup.stream.state.states import (
    check_not_of_files,
    check_own,
    digest_of,
    discard,
    other_states,
    refusal,
    state_directory,
)
from stream_dedup.stream.watching.meter import Meter
from stream_dedup.stream.watching.state_meter import StateMeter
from stream_dedup.stream.watching.traced import traced
from stream_dedup.version import __version__

if TYPE_CHECKING:
    from stream_dedup.stream.watching.spans import Spans  # of the extra `otel`

# How long a thread waits for Python's lock before its holder has to let go; 5 ms by default. The main thread and the
# reader come back from compiled loops and clients hundreds of times per commit, and often find it held by the other.
_SWITCH_SECONDS = 0.0002

log = structlog.get_logger()


class Service:
    """The running service.

    One of all the processes of an index (`state.name`) owns it: it reads the input, decides and commits, in the steps
    of `protocol`. The others follow the changelog and take over when the owner leaves or is lost.

    Args:
        settings: all settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._metrics.build.info({"version": __version__})
        self._metrics.shadow_enabled.set(settings.shadow.enabled)
        for topic in settings.input.topics:
            if not is_expression(topic):
                self._metrics.show_topic(topic)
        self._life = Life(settings.http.stuck_seconds)
        self._metrics.heartbeat_age_seconds.set_function(self._life.health.silence)
        self.starting = True

    def stop(self) -> None:
        """Ask the service to end after the current commit. May be called from a signal handler."""
        self._life.stop()

    def run(self) -> None:
        """Run until `stop`.

        A state that is damaged, or older than what the changelog still holds, is discarded once, and restored from the
        changelog.

        Raises:
            BrokerError: the broker cannot be reached or refuses something.
            FencedError: another process has taken over, and writes to the index now.
            StoreError: the state cannot be opened, read or written, or belongs to other settings.
            ChangelogError: the changelog cannot be read.
            RegistryError: the schema registry refuses something.
            SettingsError: tracing needs packages that are missing.
            OSError: the HTTP port is taken.
        """
        check_not_of_files(self._settings)
        discard_replays(self._settings)
        digest = digest_of(self._settings)
        directory = state_directory(self._settings, digest)
        topics = Topics(self._settings, self._life.heartbeat)
        self._check_generation(topics, digest, directory)
        with Watchdog(self._life.health, self._metrics.stack_dumps.inc), traced(self._settings) as spans:
            try:
                self._run_on(directory, topics, spans)
            except (StoreDamagedError, ChangelogTruncatedError) as error:
                then = "restored from the changelog"
                log.warning("state_discarded", state=str(directory), error=str(error), then=then)
            else:
                return
            # No sooner: while the error is being handled, it keeps the engine of the old state in memory.
            discard(directory)
            self._run_on(directory, topics, spans)

    def _check_generation(self, topics: Topics, digest: str, directory: Path) -> None:
        others = other_states(self._settings, digest)
        if is_state(directory) or not others:
            return
        # A state of these settings may have been made elsewhere: then its changelog exists.
        if not topics.exists(state_topics(self._settings, digest).changelog):
            raise refusal(self._settings, topics.other_changelogs(digest), others)

    def _run_on(self, directory: Path, topics: Topics, spans: "Spans | None") -> None:
        life, metrics = self._life, self._metrics
        # The state is opened first: a second instance must be told that the state is in use, not the port.
        with (
            open_store(directory, self._settings.state) as store,
            metrics.refreshed_by(StateMeter(metrics, store, directory).refresh),
            metrics.refreshed_by(partial(show_memory, metrics)),
            MonitoringServer(self._settings.http, metrics, life.health) as monitoring,
        ):
            log.info("starting", http=monitoring.url, state=str(directory))
            life.begin(Awaited.STATE)
            store.while_waiting = life.heartbeat
            engine = Deduplicator(settings=self._settings, store=store)
            engine.warm_up()
            # What is loaded so far lives as long as the process: the collector need not scan it again and again.
            gc.freeze()
            sys.setswitchinterval(_SWITCH_SECONDS)
            engine.state.reclaimer.tell = _log_reclaimed
            snapshots = SnapshotServer(self._settings.state.directory, store, directory.name)
            with (
                closing(engine.state.index),
                stoppable(),
                self._connected(engine, store, directory, topics, snapshots) as parts,
            ):
                try:
                    self._take_roles(parts, Owner(parts, spans))
                finally:
                    life.health.set_waiting_for(Awaited.END)
            log.info("stopped", judged=engine.progress.judged)

    @contextmanager
    def _connected(
        self, engine: Deduplicator, store: RocksStore, directory: Path, topics: Topics, snapshots: SnapshotServer
    ) -> Iterator[ServiceParts]:
        """Connect to the broker, catch up with the changelog, and yield what a process holds in every role.

        Raises:
            StoreError: the state belongs to another index, or the index has a state of other settings.
            BrokerError: the broker refuses, or gives no answer.
            ChangelogError: the changelog cannot be read.
        """
        settings, life, metrics, digest = self._settings, self._life, self._metrics, directory.name
        life.begin(Awaited.BROKER)
        names = state_topics(settings, digest)
        # If the state is empty, the index may have one of other settings that only the broker knows of.
        changelogs = [] if engine.progress.steps else topics.other_changelogs(digest)
        if changelogs and not topics.exists(names.changelog):
            raise refusal(settings, changelogs, other_states(settings, digest))
        check_own(engine.state.place, names.changelog)
        topics.prepare(names)
        with (
            client_statistics(metrics, "changelog") as on_statistics,
            closing(ChangelogReader(settings, names.changelog, life.wait_for_broker, on_statistics)) as reader,
        ):
            if changelogs and reader.bounds()[1] == 0:
                raise refusal(settings, changelogs, other_states(settings, digest))
            self.starting = False
            metrics.show_role("restoring")
            life.begin(Awaited.REPLAY)
            identity = topics.identity(names.changelog)
            meter = Meter(metrics, engine)
            replay_changelog(ChangelogFollower(engine.state, reader, identity, life.heartbeat), life, meter)
            parts = ServiceParts(
                settings=settings,
                metrics=metrics,
                life=life,
                engine=engine,
                store=store,
                directory=directory,
                topics=topics,
                names=names,
                identity=identity,
                reader=reader,
                meter=meter,
                ownership=Ownership(settings, names.owner, digest),
                snapshots=snapshots,
            )
            try:
                with life.called_at_heartbeat(parts.ownership.poll), metrics.refreshed_by(parts.meter.refresh):
                    yield parts
            finally:
                parts.ownership.leave()

    def _take_roles(self, parts: ServiceParts, owner: Owner) -> None:
        stopping = self._life.stopping
        self._life.health.start()
        if not self._settings.shadow.enabled:
            discard_shadows(parts.directory)
        log.info("started", judged=parts.engine.progress.judged, idf_epoch=parts.engine.epoch.number)
        while not stopping.is_set():
            stand_by(parts)
            if not stopping.is_set():
                owner.serve()


def _log_reclaimed(oldest: int, seconds: float, error: StoreError | None) -> None:
    if error is not None:
        log.warning("space_not_reclaimed", error=str(error))
    else:
        log.debug("space_reclaimed", before_generation=oldest, seconds=round(seconds, 2))
