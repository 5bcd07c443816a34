"""Several replicas, of which one or another is killed, frozen or restarted: one of them writes at a time."""

from pathlib import Path

import pytest

from stream_dedup.stream.protocol import Step
from tests.faults.chaos import Progress, Replica, active_one, delete_state, fused
from tests.faults.outcome import faults, read_outcome
from tests.faults.proxy import PASS
from tests.faults.stage import AT_LEAST_ONCE, FLAGS, LONG, SIZE, TRICKLE, Run, Stage
from tests.faults.workload import workload
from tests.stream.arguments import set_flags, write_settings
from tests.stream.messages import produce
from tests.stream.service import run_once
from tests.stream.topics import fresh_topics
from tests.stream.waiting import PATIENCE_SECONDS

EXIT_FENCED = 4
OTHER = ("sketch.gram=4",)  # a state of its own


@pytest.mark.parametrize("step", [Step.DECIDED, Step.OFFSETS_SENT])
@LONG
def test_zombie_writes_nothing(run: Run, step: Step) -> None:
    """A process that wakes up after another took over writes nothing more, and ends with exit code 4."""
    with run.replica("zombie") as zombie, run.replica("successor") as successor:
        zombie.start(fused(step, after=4, signal="stop")).wait_paused()
        run.progress.finish([successor.start()])
        zombie.resume()
        assert zombie.service.wait_end(PATIENCE_SECONDS) == EXIT_FENCED
        successor.stop()
    run.check()


@LONG
def test_zombie_without_transactions_leaves_the_changelog_whole(run: Run) -> None:
    """Nothing fences it, so it asks the group: a changelog with records of two writers could not be restored."""
    with run.replica("zombie", AT_LEAST_ONCE) as zombie, run.replica("successor", AT_LEAST_ONCE) as successor:
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


@LONG
def test_killed_writer_does_not_hold_up_one_with_other_settings(run: Run) -> None:
    """Its open transaction hides what the group has decided, for minutes unless the next process aborts it."""
    with run.replica("old") as old, run.replica("new", *OTHER) as new:
        run.progress.wait(SIZE // 3, [old.start()])
        old.stop()
        settings = write_settings(new.directory, run.stage.broker.bootstrap, run.topics)
        rebuilt = run_once("state", "rebuild", "--config", str(settings), *set_flags((*FLAGS, *OTHER)))
        assert rebuilt.returncode == 0, rebuilt.stderr
        old.start(fused(Step.OFFSETS_SENT, after=4)).service.wait_end()
        run.progress.finish([new.start()])
        assert new.codes == []
        new.stop()
    found = faults(run.outcome())
    assert not found, "\n".join(found)


@LONG
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


@LONG
def test_replicas_over_several_partitions(stage: Stage, tmp_path: Path) -> None:
    """With three partitions, and a replica that is killed and comes back, each message still comes out once."""
    bootstrap = stage.broker.bootstrap
    topics = fresh_topics(bootstrap, partitions=3)
    produce(bootstrap, topics.input, [message.incoming for message in workload(SIZE, partitions=3)])
    with (
        Progress(bootstrap, topics) as progress,
        Replica(tmp_path / "one", bootstrap, topics, *FLAGS) as one,
        Replica(tmp_path / "two", bootstrap, topics, *FLAGS) as two,
    ):
        replicas = [one.start(), two.start()]
        active = active_one(replicas)
        progress.wait(SIZE // 3, replicas)
        active.service.kill()
        progress.finish(replicas)
    found = faults(read_outcome(bootstrap, topics))
    assert not found, "\n".join(found)


@LONG
def test_rebalance_during_replay(run: Run) -> None:
    """A replica that joins and leaves while another replays the changelog changes nothing."""
    with (
        run.replica("first") as first,
        run.replica("second", bootstrap=run.stage.proxy.address) as second,
        run.replica("third", bootstrap=run.stage.proxy.address) as third,
    ):
        run.progress.wait(SIZE * 2 // 3, [first.start()])
        first.service.kill()
        run.stage.proxy.set(TRICKLE)  # the replay would take minutes
        second.start().wait_role("restoring")
        third.start()
        third.wait_role("restoring")
        assert third.service.terminate().code == 0
        run.stage.proxy.set(PASS)
        run.progress.finish([second])
        second.stop()
    run.check()
