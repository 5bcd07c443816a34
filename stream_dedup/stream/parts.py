"""What a service process holds in every role, and how its state catches up with the changelog.

Knows the parts and how a replay is reported; knows nothing of the roles.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.observe.health import Awaited
from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.remaining_time import RemainingTime
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.topics import StateTopics, Topics
from stream_dedup.stream.life import Life
from stream_dedup.stream.ownership import Ownership
from stream_dedup.stream.state.changelog import ChangelogReader
from stream_dedup.stream.state.replay import ChangelogFollower
from stream_dedup.stream.state.snapshots import SnapshotServer
from stream_dedup.stream.watching.meter import Meter

_REPORT_SECONDS = 5.0  # between two log lines about a long replay

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """What a service process holds in every role.

    Attributes:
        settings: all settings.
        metrics: of the process.
        life: of the process.
        engine: judges articles.
        store: holds the state.
        directory: of the state store.
        topics: on the broker.
        names: of the state's topics.
        identity: the changelog's name and topic id, see `Topics.identity`.
        reader: of the changelog.
        ownership: tells whether this process owns the index.
        meter: of the process.
        snapshots: takes requests for snapshots.
    """

    settings: Settings
    metrics: Metrics
    life: Life
    engine: Deduplicator
    store: RocksStore
    directory: Path
    topics: Topics
    names: StateTopics
    identity: str
    reader: ChangelogReader
    ownership: Ownership
    meter: Meter
    snapshots: SnapshotServer

    def follower(self) -> ChangelogFollower:
        """Return a follower that applies the changelog from the state's position on."""
        return ChangelogFollower(self.engine.state, self.reader, self.identity, self.life.heartbeat)

    def catch_up(self) -> None:
        """Replay the changelog records that the state does not have yet."""
        replay_changelog(self.follower(), self.life, self.meter)


def replay_changelog(follower: ChangelogFollower, life: Life, meter: Meter) -> None:
    """Replay the changelog records that a state does not have yet, and report the progress.

    Raises:
        StoppedError: a stop was requested.
        ChangelogError: the changelog cannot be read.
        BrokerError: the broker refuses, or gives no answer.
        StoreError: the state cannot be read or written.
    """
    began = reported = time.monotonic()
    advance = RemainingTime("records")

    def report(left: int) -> None:
        nonlocal reported
        meter.following(follower.position, left)
        life.health.set_waiting_for(Awaited.REPLAY, advance.left(left) if left else "")
        if time.monotonic() - reported >= _REPORT_SECONDS:
            reported = time.monotonic()
            log.info("restoring", records_remaining=left, articles=follower.replayed)
        life.raise_if_stopping("the changelog was being replayed")

    report(follower.remaining)
    follower.catch_up(report)
    if follower.replayed:
        log.info("restored", articles=follower.replayed, seconds=round(time.monotonic() - began, 2))
