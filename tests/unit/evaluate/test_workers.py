"""Workers make and answer a job's calls in order, and a failure affects only its own job."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from threading import Semaphore, Timer
from unittest.mock import Mock

import psutil
import pytest
from numba.core.event import trigger_event

from stream_dedup.compiled.kernel import hearing_of_compiling
from stream_dedup.evaluate.runner.workers import Call, Job, WorkerLostError, run_jobs, workers
from stream_dedup.signals import cleaning_up_on_signals


def _square(number: int) -> int:
    return number * number


def _fail(message: str) -> int:
    raise ValueError(message)


def _die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
    return 0


def _squares(*numbers: int) -> Job[int]:
    squares: list[int] = yield [Call(_square, (number,)) for number in numbers]
    twice: list[int] = yield [Call(_square, (sum(squares),))]
    return twice[0]


def _calling(function: Callable[..., int], *arguments: object) -> Job[int]:
    results: list[int] = yield [Call(function, arguments)]
    return results[0]


def _forgiving() -> Job[int]:
    try:
        yield [Call(_fail, ("no",))]
    except ValueError:
        return -1
    return 0


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.slow
def test_jobs_get_their_results_in_order(processes: int) -> None:
    """(3 x 3 + 4 x 4) squared, whatever else runs."""
    with workers(processes) as team:
        outcomes = dict(run_jobs({str(n): _squares(3, 4 + n) for n in range(9)}, team, 3))
    assert outcomes == {str(n): (9 + (4 + n) ** 2) ** 2 for n in range(9)}


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.slow
def test_errors_are_the_jobs_own(processes: int) -> None:
    """A failing job is yielded as its error, a job that handles the error has a result, and the others continue."""
    jobs = {"bad": _calling(_fail, "why"), "forgiving": _forgiving(), "good": _squares(1)}
    with workers(processes) as team:
        outcomes = dict(run_jobs(jobs, team, 3))
    assert (str(outcomes["bad"]), outcomes["forgiving"], outcomes["good"]) == ("why", -1, 1)


@pytest.mark.slow
def test_killed_worker_is_replaced() -> None:
    """A job whose process is killed reports it, and the jobs after it get new processes."""
    jobs = {"killed": _calling(_die), "after": _squares(1)}
    with workers(2) as team:
        outcomes = dict(run_jobs(jobs, team, 1))
    assert isinstance(outcomes["killed"], WorkerLostError)
    assert "--jobs" in str(outcomes["killed"])
    assert outcomes["after"] == 1


def _compile() -> int:
    with trigger_event("numba:compile"):
        return 1


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.slow
def test_compiling_in_a_worker_is_heard(processes: int) -> None:
    """Once, as if this process did it, however many workers compile."""
    told, heard = Semaphore(0), Mock()
    heard.side_effect = told.release
    with hearing_of_compiling(heard), workers(processes) as team:
        outcomes = dict(run_jobs({str(n): _calling(_compile) for n in range(4)}, team, 4))
        assert told.acquire(timeout=60)
    assert (set(outcomes.values()), heard.call_count) == ({1}, 1)


_KILLED = """
import os, signal, sys, time
from stream_dedup.evaluate.runner.workers import Call, run_jobs, workers

def tell():
    print(os.getpid(), flush=True)
    time.sleep(60)

def job():
    yield [Call(tell, ()), Call(tell, ())]

with workers(2) as team:
    list(run_jobs({"job": job()}, team, 1))
"""


@pytest.mark.slow
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """It cannot stop them, and each holds hundreds of megabytes."""
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        working = [psutil.Process(int(process.stdout.readline())) for _ in range(2)]
        process.kill()
        gone, alive = psutil.wait_procs(working, timeout=120)
    for one in alive:
        one.kill()
    assert (len(gone), alive) == (2, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_call_in_this_process_is_finished_before_a_signal_ends_the_run(number: signal.Signals) -> None:
    """Inside compiled loops an exception would be lost or crash the process, so it is raised after them."""
    finished: list[bool] = []

    def signalled() -> int:
        os.kill(os.getpid(), number)
        time.sleep(0.01)
        finished.append(True)
        return 0

    with cleaning_up_on_signals(), workers(1) as team, pytest.raises((KeyboardInterrupt, SystemExit)):
        list(run_jobs({"job": _calling(signalled)}, team, 1))
    assert finished == [True]


_HELD = """
import signal, sys, time
from stream_dedup.evaluate.runner.workers import Call, run_jobs, workers
from stream_dedup.signals import cleaning_up_on_signals

def wait():
    hear = signal.getsignal(signal.SIGINT)

    def hear_aloud(*told):
        hear(*told)
        print("heard", flush=True)

    signal.signal(signal.SIGINT, hear_aloud)
    print("waiting", flush=True)
    while True:
        time.sleep(0.01)

def job():
    yield [Call(wait, ())]

with cleaning_up_on_signals(), workers(1) as team:
    list(run_jobs({"job": job()}, team, 1))
"""


@pytest.mark.slow
def test_second_signal_does_not_wait_for_the_call() -> None:
    """The call may take minutes, so a second signal ends the run immediately."""
    command = [sys.executable, "-c", _HELD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            process.send_signal(signal.SIGINT)
            # Of two that are pending at the same time, a process hears one.
            assert process.stdout.readline() == "heard\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, told) == (130, "error: interrupted\n")


@pytest.mark.slow
def test_run_that_ends_amid_many_calls_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more calls than processes, ending the run must not make loky print a traceback about the dropped ones."""
    broken: list[object] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)

    def many() -> Job[int]:
        yield [Call(time.sleep, (60,)) for _ in range(20)]
        return 0

    def ended() -> None:
        with cleaning_up_on_signals(), workers(2) as team:
            Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            list(run_jobs({"many": many()}, team, 1))

    with pytest.raises(KeyboardInterrupt):
        ended()
    assert broken == []


def test_no_more_begin_than_are_allowed() -> None:
    """Of many jobs, at most this many are started before the first ends."""
    begun: list[int] = []

    def job(number: int) -> Job[int]:
        begun.append(number)
        return (yield from _squares(number))

    with workers(1) as team:
        running = run_jobs({str(number): job(number) for number in range(9)}, team, 2)
        next(running)
    assert len(begun) <= 3


def test_no_jobs_are_none() -> None:
    """With nothing to do, it ends at once."""
    with workers(1) as team:
        assert list(run_jobs({}, team, 2)) == []
