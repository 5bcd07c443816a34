"""What a process of the service has in every role, and how its state comes up to the changelog.

Knows what there is and what is told of a replay; knows no role.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.observe.advance import Advance
from stream_dedup.observe.metrics import Metrics
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.topics import StateTopics, Topics
from stream_dedup.stream.life import Life
from stream_dedup.stream.ownership import Ownership
from stream_dedup.stream.state.changelog import ChangelogReader
from stream_dedup.stream.state.replay import Follower
from stream_dedup.stream.upkeep import Upkeep
from stream_dedup.stream.watching.meter import Meter

REPLAY = "the changelog to be replayed"  # what is waited for, as /readyz and /startupz say it
_REPORT_SECONDS = 5.0  # between two lines about a long replay

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a process has in every role.

    Attributes:
        settings: all of them.
        metrics: of the process.
        life: of the process.
        engine: judges.
        store: the state.
        directory: of the state.
        topics: of the broker.
        names: of the topics of the state.
        identity: name of the changelog, with the id that Kafka gave it.
        reader: of the changelog.
        ownership: tells whether the index is this process's.
        meter: of what it does.
        upkeep: what it does beside.
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
    upkeep: Upkeep

    def follower(self) -> Follower:
        """Return what makes the state follow the changelog from where it stands."""
        return Follower(self.engine.state, self.reader, self.identity, self.life.heartbeat)

    def catch_up(self) -> None:
        """Replay what the changelog has beyond the state."""
        catch_up(self.follower(), self.life, self.metrics)


def catch_up(follower: Follower, life: Life, metrics: Metrics) -> None:
    """Replay what the changelog has beyond a state, and tell of it.

    Raises:
        StoppedError: a stop is asked for.
        ChangelogError: the changelog cannot be read.
        BrokerError: the broker refuses, or gives no answer.
        StoreError: the state cannot be read or written.
    """
    began = reported = time.monotonic()
    advance = Advance("records")

    def report(left: int) -> None:
        nonlocal reported
        metrics.changelog_records_remaining.set(left)
        life.health.wait_for(f"{REPLAY}: {advance.left(left)}" if left else REPLAY)
        if time.monotonic() - reported >= _REPORT_SECONDS:
            reported = time.monotonic()
            log.info("restoring", records_remaining=left, articles=follower.replayed)
        life.heed_stop("the changelog was being replayed")

    report(follower.remaining)
    follower.catch_up(report)
    if follower.replayed:
        log.info("restored", articles=follower.replayed, seconds=round(time.monotonic() - began, 2))
