"""What all scenarios share: a broker of their own, an input, and what an undisturbed run makes of it.

Knows how to run replicas over that input and to check what came out; knows nothing of faults.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.broker import KafkaBroker
from tests.faults.chaos import Progress, Replica, disk_bytes
from tests.faults.outcome import Outcome, faults, read_outcome
from tests.faults.proxy import Proxy, slow
from tests.faults.workload import Labelled, workload
from tests.stream.messages import produce
from tests.stream.topics import Topics, fresh_topics

KILLS = int(os.environ.get("FAULT_KILLS", "10"))
OUTAGE_SECONDS = float(os.environ.get("FAULT_OUTAGE_SECONDS", "15"))
SIZE = 1500
SESSION_SECONDS = 3.0
FLAGS = (
    "commit.articles=50",
    f"kafka.consumer.session.timeout.ms={int(SESSION_SECONDS * 1000)}",
    "kafka.consumer.heartbeat.interval.ms=500",
    "kafka.reconnect.backoff.max.ms=500",
)
EXACTLY_ONCE, AT_LEAST_ONCE = (f"commit.guarantee={one}" for one in ("exactly_once", "at_least_once"))
SLOW_LINE = slow(0.005, 1_000_000)
TRICKLE = slow(0.05, 20_000)
LONG = pytest.mark.timeout(300 + 10 * KILLS + 10 * OUTAGE_SECONDS)


@dataclass(frozen=True, slots=True)
class Stage:
    """What all runs share.

    Attributes:
        broker: their own broker, which may be killed.
        proxy: in front of it.
        messages: of the input, by number.
        topics: of the undisturbed run; others read its input.
        reference: what came out of it.
        state_bytes: size of its state.
    """

    broker: KafkaBroker
    proxy: Proxy
    messages: list[Labelled]
    topics: Topics
    reference: Outcome
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run over the input of the stage.

    Attributes:
        stage: what all runs share.
        directory: of the replicas.
        topics: with its own outputs.
        progress: of its group.
    """

    stage: Stage
    directory: Path
    topics: Topics
    progress: Progress

    def replica(self, name: str, *flags: str, bootstrap: str | None = None) -> Replica:
        """Return a replica that is not started yet."""
        address = bootstrap or self.stage.broker.bootstrap
        return Replica(self.directory / name, address, self.topics, *FLAGS, *flags)

    def outcome(self) -> Outcome:
        """Return what has come out so far."""
        return read_outcome(self.stage.broker.bootstrap, self.topics)

    def check(self, *, repeats: bool = False) -> None:
        """Check the finished run against the undisturbed one."""
        found = faults(self.outcome(), self.stage.reference, repeats=repeats)
        assert not found, "\n".join(found)


@contextmanager
def new_stage(directory: Path) -> Iterator[Stage]:
    """A broker that allows short sessions, a single-partition input, and an undisturbed run over it."""
    with Proxy() as proxy, KafkaBroker({"group.min.session.timeout.ms": 1000}, proxy_port=proxy.port) as broker:
        proxy.forward_to(broker.proxied)
        topics, messages = fresh_topics(broker.bootstrap), workload(SIZE)
        produce(broker.bootstrap, topics.input, [message.incoming for message in messages])
        with Replica(directory, broker.bootstrap, topics) as replica, Progress(broker.bootstrap, topics) as progress:
            progress.wait(SIZE, [replica.start()])
            replica.stop()
            state_bytes = disk_bytes(replica.state)
        yield Stage(broker, proxy, messages, topics, read_outcome(broker.bootstrap, topics), state_bytes)


@contextmanager
def new_run(stage: Stage, directory: Path) -> Iterator[Run]:
    """A run with its own outputs."""
    topics = stage.topics.with_other_outputs(stage.broker.bootstrap)
    with Progress(stage.broker.bootstrap, topics) as progress:
        yield Run(stage, directory, topics, progress)
