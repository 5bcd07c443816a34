"""Processes that are killed: each message comes out exactly once, as if nothing had happened."""

import random
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import pytest

from stream_dedup.stream.protocol import Step
from tests.faults.chaos import Replica, fused, kill_at_random
from tests.faults.outcome import faults, faults_so_far
from tests.faults.stage import AT_LEAST_ONCE, KILLS, LONG, SIZE, Run, Stage, new_run
from tests.stream.waiting import PATIENCE_SECONDS


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
    with new_run(stage, tmp_path_factory.mktemp("lives")) as run, run.replica("killed") as replica:
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
        code = replica.service.wait_end(PATIENCE_SECONDS)
    replica.service.kill()
    outcome = run.outcome()
    return Life(code, faults_so_far(outcome, run.stage.reference), outcome.count)


@pytest.mark.parametrize("step", Step)
@LONG
def test_kill_after_a_step(lives: dict[Step, tuple[Life, Life]], step: Step) -> None:
    """After SIGKILL at any step, readers see only whole commits, and the next process resumes after them."""
    killed, following = lives[step]
    assert killed.code == -signal.SIGKILL
    assert not killed.found, "\n".join(killed.found)
    assert not following.found, "\n".join(following.found)
    assert following.count > killed.count


@LONG
def test_kills_at_random_times(run: Run) -> None:
    """Many kills at random moments, of starting and of working processes, change nothing."""
    with run.replica("killed", "commit.articles=10") as replica:
        kill_at_random(replica, run.progress, random.Random(KILLS), KILLS)
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()


@LONG
def test_at_least_once_repeats_only_the_same(run: Run) -> None:
    """Without transactions, kills may repeat records, unchanged and under the same keys, but lose none."""
    with run.replica("killed", AT_LEAST_ONCE) as replica:
        for step in (Step.PUBLISHED, Step.LOGGED, Step.CONFIRMED, Step.APPLIED):
            replica.start(fused(step, after=3))
            assert replica.service.wait_end(PATIENCE_SECONDS) == -signal.SIGKILL
        run.progress.finish([replica.start()])
        replica.stop()
    run.check(repeats=True)
