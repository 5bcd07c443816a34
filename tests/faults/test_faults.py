"""The promise under faults: each message comes out exactly once, as if nothing had happened, whatever happens."""

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from deploy.broker import KafkaBroker
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka import tail
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.tail import Tail
from stream_dedup.stream.ownership import Ownership
from stream_dedup.stream.protocol import Step
from stream_dedup.stream.state.changelog import ChangelogReader
from tests.faults.chaos import (
    Progress,
    Replica,
    active_one,
    delete_state,
    disk_bytes,
    flip_bytes,
    fused,
    kill_at_random,
    small_disk,
    truncate_manifest,
)
from tests.faults.outcome import Outcome, faults, faults_so_far, read_outcome
from tests.faults.proxy import BLACK_HOLE, CUT, PASS, Proxy, Traffic, slow
from tests.faults.workload import Labelled, workload
from tests.stream.harness import Topics, create_topic, fresh_topics, produce, wait_until

KILLS = int(os.environ.get("FAULT_KILLS", "10"))
OUTAGE_SECONDS = float(os.environ.get("FAULT_OUTAGE_SECONDS", "15"))
SIZE = 1500
SESSION_SECONDS = 3.0
EXIT_FENCED = 4
_FLAGS = (
    "commit.articles=50",
    f"kafka.consumer.session.timeout.ms={int(SESSION_SECONDS * 1000)}",
    "kafka.consumer.heartbeat.interval.ms=500",
    "kafka.reconnect.backoff.max.ms=500",
)
_AT_LEAST_ONCE = "commit.guarantee=at_least_once"
# The smallest that RocksDB accepts: the state then has tables on disk, not only a log.
_SMALL_BUFFERS = "state.write_buffer_bytes=1048576"
_PATIENCE_SECONDS = 90.0
_SLOW_LINE = slow(0.005, 1_000_000)
_TRICKLE = slow(0.05, 20_000)
_SILENT_ATTEMPTS = 3  # until the broker can be reached again
_LONG = pytest.mark.timeout(300 + 10 * KILLS + 10 * OUTAGE_SECONDS)


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
        return Replica(self.directory / name, address, self.topics, *_FLAGS, *flags)

    def outcome(self) -> Outcome:
        """Return what has come out so far."""
        return read_outcome(self.stage.broker.bootstrap, self.topics)

    def check(self, *, repeats: bool = False) -> None:
        """Check the finished run against the undisturbed one."""
        found = faults(self.outcome(), self.stage.reference, repeats=repeats)
        assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def stage(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:  # noqa: ARG001  # needed for its effect
    """A broker that allows short sessions, a single-partition input, and an undisturbed run over it."""
    with Proxy() as proxy, KafkaBroker({"group.min.session.timeout.ms": 1000}, proxy_port=proxy.port) as broker:
        proxy.forward_to(broker.proxied)
        topics, messages = fresh_topics(broker.bootstrap), workload(SIZE)
        produce(broker.bootstrap, topics.input, [message.incoming for message in messages])
        directory = tmp_path_factory.mktemp("undisturbed")
        with Replica(directory, broker.bootstrap, topics) as replica, Progress(broker.bootstrap, topics) as progress:
            progress.wait(SIZE, [replica.start()])
            replica.stop()
            state_bytes = disk_bytes(replica.state)
        yield Stage(broker, proxy, messages, topics, read_outcome(broker.bootstrap, topics), state_bytes)


@pytest.fixture
def run(stage: Stage, tmp_path: Path) -> Iterator[Run]:
    """A run with its own outputs; the connection to the broker is restored at its end."""
    with _new_run(stage, tmp_path) as run:
        yield run
    stage.proxy.set(PASS)


@contextmanager
def _new_run(stage: Stage, directory: Path) -> Iterator[Run]:
    topics = stage.topics.with_other_outputs(stage.broker.bootstrap)
    with Progress(stage.broker.bootstrap, topics) as progress:
        yield Run(stage, directory, topics, progress)


# -------------------------------------------------------------------------------------------- undisturbed


def test_undisturbed_run_keeps_the_promise(stage: Stage) -> None:
    """Without faults, each message comes out once and nothing contradicts."""
    assert stage.reference.count == SIZE
    assert faults(stage.reference) == []


def test_undisturbed_run_holds_what_faults_could_break(stage: Stage) -> None:
    """The input leads to unique articles, copies, withdrawals, dead letters, successions and clusters."""
    fates = [fates[0] for fates in stage.reference.answers.values()]
    assert sum(fate.output == "unique" for fate in fates) > SIZE / 10
    assert sum(fate.output == "duplicates" and bool(fate.names) for fate in fates) > SIZE / 10
    assert sum(fate.withdrawn for fate in fates) > SIZE / 50
    assert sum(fate.output == "dead" for fate in fates) > SIZE / 100
    assert stage.reference.announcements
    assert stage.reference.clusters


# -------------------------------------------------------------------------------------------------- kills


@dataclass(frozen=True, slots=True)
class Life:
    """One of several processes that use the same state one after another.

    Attributes:
        code: how it ended; None if it had to be killed at the deadline.
        found: faults that a reader saw at that point.
        count: messages with an answer at that point.
    """

    code: int | None
    found: list[str]
    count: int


@pytest.fixture(scope="module")
def lives(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> dict[Step, tuple[Life, Life]]:
    """For each step, the life that ended there and the next, which started on what it left. The last life finishes."""
    with _new_run(stage, tmp_path_factory.mktemp("lives")) as run, run.replica("killed") as replica:
        lives = [_killed_at(step, run, replica) for step in Step]
        run.progress.finish([replica.start()])
        replica.stop()
        outcome = run.outcome()
    lives.append(Life(0, faults(outcome, stage.reference), outcome.count))
    return dict(zip(Step, pairwise(lives), strict=True))


def _killed_at(step: Step, run: Run, replica: Replica) -> Life:
    """Run until a step is reached for the second time."""
    replica.start(fused(step, after=2))
    code = None
    with suppress(subprocess.TimeoutExpired):
        code = replica.service.wait_end(_PATIENCE_SECONDS)
    replica.service.kill()
    outcome = run.outcome()
    return Life(code, faults_so_far(outcome, run.stage.reference), outcome.count)


@pytest.mark.parametrize("step", Step)
@_LONG
def test_kill_after_a_step(lives: dict[Step, tuple[Life, Life]], step: Step) -> None:
    """After SIGKILL at any step, readers see only whole commits, and the next process resumes after them."""
    killed, following = lives[step]
    assert killed.code == -signal.SIGKILL
    assert not killed.found, "\n".join(killed.found)
    assert not following.found, "\n".join(following.found)
    assert following.count > killed.count


@_LONG
def test_kills_at_random_times(run: Run) -> None:
    """Many kills at random moments, of starting and of working processes, change nothing."""
    with run.replica("killed", "commit.articles=10") as replica:
        kill_at_random(replica, run.progress, random.Random(KILLS), KILLS)
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()


@_LONG
def test_at_least_once_repeats_only_the_same(run: Run) -> None:
    """Without transactions, kills may repeat records, unchanged and under the same keys, but lose none."""
    with run.replica("killed", _AT_LEAST_ONCE) as replica:
        for step in (Step.PUBLISHED, Step.LOGGED, Step.CONFIRMED, Step.APPLIED):
            replica.start(fused(step, after=3))
            assert replica.service.wait_end(_PATIENCE_SECONDS) == -signal.SIGKILL
        run.progress.finish([replica.start()])
        replica.stop()
    run.check(repeats=True)


# ------------------------------------------------------------------------------------------------ replicas


@pytest.mark.parametrize("step", [Step.DECIDED, Step.OFFSETS_SENT])
@_LONG
def test_zombie_writes_nothing(run: Run, step: Step) -> None:
    """A process that wakes up after another took over writes nothing more, and ends with exit code 4."""
    with run.replica("zombie") as zombie, run.replica("successor") as successor:
        zombie.start(fused(step, after=4, signal="stop")).wait_paused()
        run.progress.finish([successor.start()])
        zombie.resume()
        assert zombie.service.wait_end(_PATIENCE_SECONDS) == EXIT_FENCED
        successor.stop()
    run.check()


@_LONG
def test_zombie_without_transactions_leaves_the_changelog_whole(run: Run) -> None:
    """Nothing fences it, so it asks the group: a changelog with records of two writers could not be restored."""
    with run.replica("zombie", _AT_LEAST_ONCE) as zombie, run.replica("successor", _AT_LEAST_ONCE) as successor:
        zombie.start(fused(Step.DECIDED, after=4, signal="stop")).wait_paused()
        run.progress.finish([successor.start()])
        zombie.resume()
        zombie.wait_role("standby")
        zombie.stop()
        successor.stop()
        delete_state(successor.state)
        successor.start().wait_role("active")
        successor.stop()
    run.check(repeats=True)


def test_question_to_a_silent_group_holds_nobody_up(stage: Stage) -> None:
    """It waits as long as it is told and no longer, stays in the group meanwhile, and gets the answer later."""
    topic = f"t{uuid4().hex[:12]}.owner"
    create_topic(stage.broker.bootstrap, topic)
    member = Ownership(Settings.model_validate({"kafka": {"bootstrap.servers": stage.proxy.address}}), topic)

    def owns() -> bool:
        member.poll(0.02)
        return member.owner

    with ExitStack() as leaving:
        leaving.callback(member.leave)
        leaving.callback(stage.proxy.set, PASS)
        wait_until(owns, "it owns")
        stage.proxy.set(BLACK_HOLE)
        began = time.monotonic()
        assert not member.ask(0.5)
        member.poll()
        assert time.monotonic() - began < SESSION_SECONDS
        stage.proxy.set(PASS)
        wait_until(lambda: member.ask(0.5), "an answer")


@_LONG
def test_replicas_killed_in_turn(run: Run) -> None:
    """Each time the active one of two replicas is killed, the standby takes over."""
    rounds = 3
    with run.replica("one") as one, run.replica("two") as two:
        replicas = [one.start(), two.start()]
        for number in range(1, rounds + 1):
            active = active_one(replicas)
            run.progress.wait(SIZE * number // (rounds + 1), replicas)
            active.service.kill()
            active.start()
            active.wait_role("standby", "active")
        run.progress.finish(replicas)
        for replica in replicas:
            replica.stop()
    run.check()


@_LONG
def test_replicas_over_several_partitions(stage: Stage, tmp_path: Path) -> None:
    """With three partitions, and a replica that stops and comes back, each message still comes out once."""
    bootstrap = stage.broker.bootstrap
    topics = fresh_topics(bootstrap, partitions=3)
    produce(bootstrap, topics.input, [message.incoming for message in workload(SIZE, partitions=3)])
    with (
        Progress(bootstrap, topics) as progress,
        Replica(tmp_path / "one", bootstrap, topics, *_FLAGS) as one,
        Replica(tmp_path / "two", bootstrap, topics, *_FLAGS) as two,
    ):
        replicas = [one.start(), two.start()]
        active = active_one(replicas)
        progress.wait(SIZE // 3, replicas)
        active.stop()
        progress.finish(replicas)
    found = faults(read_outcome(bootstrap, topics))
    assert not found, "\n".join(found)


@_LONG
def test_rebalance_during_replay(run: Run) -> None:
    """A replica that joins and leaves while another replays the changelog changes nothing."""
    with (
        run.replica("first") as first,
        run.replica("second", bootstrap=run.stage.proxy.address) as second,
        run.replica("third", bootstrap=run.stage.proxy.address) as third,
    ):
        run.progress.wait(SIZE * 2 // 3, [first.start()])
        first.service.kill()
        run.stage.proxy.set(_SLOW_LINE)  # the replay takes seconds
        second.start().wait_role("restoring")
        third.start()
        third.wait_role("restoring", "standby")
        assert third.service.terminate().code == 0
        run.stage.proxy.set(PASS)
        run.progress.finish([second])
        second.stop()
    run.check()


@pytest.mark.parametrize("traffic", [_TRICKLE, BLACK_HOLE])
@_LONG
def test_stop_during_replay(run: Run, traffic: Traffic) -> None:
    """A stop during the replay ends the process cleanly and in time, whether or not the broker answers."""
    with (
        run.replica("first") as first,
        run.replica("second", bootstrap=run.stage.proxy.address) as second,
    ):
        run.progress.wait(SIZE * 2 // 3, [first.start()])
        first.service.kill()
        run.stage.proxy.set(_TRICKLE)  # the replay would take minutes
        second.start().wait_role("restoring")
        run.stage.proxy.set(traffic)
        second.service.stop()
        assert second.service.events("stopped")
        run.stage.proxy.set(PASS)
        run.progress.finish([second.start()])
        second.stop()
    run.check()


@_LONG
def test_stops_at_random_times(run: Run) -> None:
    """Whenever a stop comes, and whatever the broker does, the process ends cleanly and in time; the work resumes."""
    rng = random.Random("stops")
    with run.replica("stopped", bootstrap=run.stage.proxy.address) as replica:
        for traffic in rng.choices([PASS, _SLOW_LINE, _TRICKLE, BLACK_HOLE, CUT], k=KILLS // 2):
            run.stage.proxy.set(PASS)
            replica.start().service.wait_starting()
            time.sleep(rng.uniform(0.0, 4.0))
            run.stage.proxy.set(traffic)
            time.sleep(rng.uniform(0.0, 1.0))
            replica.service.stop()
        run.stage.proxy.set(PASS)
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()


@_LONG
def test_end_of_the_changelog_is_asked_again_while_the_broker_is_silent(stage: Stage) -> None:
    """Even if a request never left the client because the previous one is unanswered: that is not a refusal."""
    topic, waits = f"t{uuid4().hex[:12]}", count(1)
    create_topic(stage.broker.bootstrap, topic)
    kafka = {"bootstrap.servers": stage.proxy.address, "consumer.max.in.flight": "1"}

    def wait() -> None:
        if next(waits) == _SILENT_ATTEMPTS:
            stage.proxy.set(PASS)

    with closing(ChangelogReader(Settings.model_validate({"kafka": kafka}), topic, wait)) as reader:
        reader.seek(0)
        # From here on, a request for records is in flight.
        assert reader.read(1.0, 1) == []
        stage.proxy.set(BLACK_HOLE)
        assert reader.bounds() == (0, 0)
    assert next(waits) > _SILENT_ATTEMPTS


# --------------------------------------------------------------------------------------------------- disks


@_LONG
def test_deleted_state(run: Run) -> None:
    """A state directory that is deleted between two processes is restored from the changelog."""
    with run.replica("deleted") as replica:
        for count in (SIZE // 3, SIZE * 2 // 3):
            run.progress.wait(count, [replica.start()])
            replica.service.kill()
            delete_state(replica.state)
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()


@pytest.mark.parametrize("damage", [flip_bytes, truncate_manifest])
@_LONG
def test_damaged_state(run: Run, damage: Callable[[Path], None]) -> None:
    """A damaged database is not accepted as valid: it is rebuilt, or the process says which directory to delete."""
    with run.replica("damaged", _SMALL_BUFFERS) as replica:
        run.progress.wait(SIZE // 2, [replica.start()])
        replica.stop()
        damage(replica.state)
        _finish_or_delete(run, replica.start())
        replica.stop()
    run.check()


def _finish_or_delete(run: Run, replica: Replica) -> None:
    """Finish the input; if a process ends because of its state, delete the state as its message says."""
    wait_until(
        lambda: not replica.service.running or run.progress.remaining == 0, "processed, or ended", _PATIENCE_SECONDS
    )
    if not replica.service.running:
        assert replica.service.wait_end(0) == 1
        assert str(replica.state) in replica.service.log()
        assert "Traceback" not in replica.service.log()
        delete_state(replica.state)
        run.progress.finish([replica.start()])


@_LONG
def test_full_disk(run: Run) -> None:
    """A process whose disk fills up ends with exit code 1 and says why; with more room it resumes."""
    replica = run.replica("full", _SMALL_BUFFERS)
    with small_disk(replica.state, run.stage.state_bytes // 2) as make_room, replica:
        assert replica.start().service.wait_end(_PATIENCE_SECONDS) == 1
        assert re.search("No space left|File too large", replica.service.log())
        assert "Traceback" not in replica.service.log()
        assert run.progress.remaining > 0
        make_room()
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()


# -------------------------------------------------------------------------------------------------- broker


@_LONG
def test_broker_killed_and_restarted(run: Run) -> None:
    """If the broker is killed in mid-work and comes back, the service waits for it."""
    with run.replica("waiting", "commit.articles=10") as replica:
        run.progress.wait(SIZE // 4, [replica.start()])
        run.stage.broker.kill()
        run.stage.broker.restart()
        run.progress.finish([replica])
        replica.stop()
    run.check()


@pytest.mark.parametrize("traffic", [BLACK_HOLE, CUT], ids=["silent", "gone"])
def test_reader_of_what_is_there_waits_no_longer_than_it_says(
    traffic: Traffic, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the broker is lost once the ends are known, `tail --last` reports it instead of waiting forever."""

    class Interrupted(Tail):
        def _places(self, last: int | None) -> list[TopicPartition]:
            found = super()._places(last)
            stage.proxy.set(traffic)
            return found

    monkeypatch.setattr(tail, "_SILENT_SECONDS", 2.0)
    settings = Settings.model_validate({"kafka": {"bootstrap.servers": stage.proxy.address}})
    try:
        told = r"nothing has arrived for 2 s: see kafka\.bootstrap\.servers"
        with Interrupted(settings, [stage.topics.unique]) as reader, pytest.raises(BrokerError, match=told):
            list(reader.messages(5, endless=False))
    finally:
        stage.proxy.set(PASS)
    with Tail(settings, [stage.topics.unique]) as again:
        assert len(list(again.messages(5, endless=False))) == 5


@_LONG
def test_broker_slow_silent_and_refusing(run: Run) -> None:
    """After a bad connection, a silent broker and refused connections, the work resumes."""
    proxy = run.stage.proxy
    with run.replica("waiting", bootstrap=proxy.address) as replica:
        proxy.set(_SLOW_LINE)
        replica.start()
        for part, traffic in enumerate((BLACK_HOLE, CUT), 1):
            run.progress.finish([replica], SIZE * part // 4)
            proxy.set(traffic)
            time.sleep(OUTAGE_SECONDS / 2)
            proxy.set(_SLOW_LINE)
        run.progress.finish([replica], SIZE * 3 // 4)
        proxy.set(PASS)
        run.progress.finish([replica])
        replica.stop()
    run.check()
