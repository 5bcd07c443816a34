"""Runs the steps of many jobs, in this process or in several at the same time.

Knows processes and whose turn it is; knows nothing of what a step does.
"""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, Queue
from typing import Any, Generic, TypeVar

from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from stream_dedup.compiled.kernel import hearing_of_compiling, tell_of_compiling
from stream_dedup.picklable import PicklableError
from stream_dedup.signals import exit_by_signal, handling_signals

_Result = TypeVar("_Result")
_IDLE_SECONDS = 60
_FOR_GOOD = ExitStack()  # what lasts as long as a worker
_LOOK_SECONDS = 2.0  # between two looks at whether the parent process lives


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments, all of which can be pickled."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


# A job yields calls that can be made at the same time, and is sent their results in the same order.
Job = Generator[Sequence[Call], list[Any], _Result]
Workers = Callable[[], Executor]


class WorkerLostError(PicklableError):
    """A worker process has died."""

    def __init__(self) -> None:
        super().__init__("a worker process was killed, most likely for lack of memory: try fewer --jobs")


def processes(jobs: int) -> int:
    """Return the number of processes: as many as asked for; 0 means one per core."""
    count: int = jobs or cpu_count()
    return count


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Provide workers, and stop them at the end whatever they are doing. Who hears of compiling hears of theirs too.

    Args:
        jobs: number of processes; 1 means this process alone, 0 means one per core.
    """
    if processes(jobs) == 1:
        yield _InProcessExecutor
        return

    hearing, telling = Pipe(duplex=False)
    threading.Thread(target=_pass_on, args=(hearing,), name="compiling", daemon=True).start()

    def executor() -> Any:  # noqa: ANN401  # loky publishes no types
        # This replaces an executor that has broken.
        return get_reusable_executor(
            max_workers=processes(jobs), timeout=_IDLE_SECONDS, initializer=_begin, initargs=(telling,)
        )

    with warnings.catch_warnings(), telling:
        # It only says that a worker whose memory has grown is replaced by a new one.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        try:
            yield executor
        finally:
            team = executor()
            _drop_waiting(team)
            team.shutdown(wait=True, kill_workers=True)


def _drop_waiting(team: Any) -> None:  # noqa: ANN401  # loky publishes no types
    """Drop the calls that no process has been given yet: loky would discard them, then look them up, and break."""
    waiting: Queue[int] = team._work_ids  # noqa: SLF001  # there is no public access to them
    with suppress(Empty):
        while True:
            waiting.get_nowait()


def _pass_on(hearing: Connection) -> None:
    """Tell that a worker compiles when the first one says so, or end with the last one."""
    with hearing, suppress(EOFError):
        hearing.recv_bytes()
        tell_of_compiling()


def _begin(telling: Connection) -> None:
    """Prepare a worker.

    Args:
        telling: for one message if it compiles; nobody may listen any more.
    """
    _depend()

    def tell() -> None:
        with suppress(OSError):
            telling.send_bytes(b"compiling")

    _FOR_GOOD.enter_context(hearing_of_compiling(tell))


def _depend() -> None:
    """Leave Ctrl-C to the process that started this one, which knows what to keep, and end with it if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)  # the thread that works may be waiting for a lock that a killed process holds

    threading.Thread(target=end_with_parent, name="parent", daemon=True).start()


class _InProcessExecutor(Executor):
    """Makes each call in this process; a signal ends the run only after the call, a second signal immediately."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401  # any call
        future: Future[Any] = Future()
        with _signals_held():
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001  # it is raised where the result is requested
                future.set_exception(error)
        return future


@contextmanager
def _signals_held() -> Iterator[None]:
    """Defer SIGTERM and Ctrl-C: in a compiled loop, what their handlers raise would be lost or cause a crash."""
    heard: list[int] = []

    def hear(number: int, _frame: object) -> None:
        if heard:
            exit_by_signal(number)
        heard.append(number)

    with handling_signals(hear):
        yield
    if heard:
        signal.raise_signal(heard[0])


@dataclass(eq=False, slots=True)
class _Running(Generic[_Result]):
    name: str
    job: Job[_Result]
    futures: list[Future[Any]] = field(default_factory=list)
    begun: bool = False

    def ready(self) -> bool:
        """Return whether all of its calls are done."""
        return all(future.done() for future in self.futures)

    def advance(self) -> Sequence[Call]:
        """Send the job the results of its calls, or the error of one, and return its next calls.

        Raises:
            StopIteration: it is done; the value is its result.
            Exception: it failed.
        """
        if not self.begun:
            self.begun = True
            return next(self.job)
        try:
            results = [future.result() for future in self.futures]
        except BrokenProcessPool:
            return self.job.throw(WorkerLostError())
        except Exception as error:  # noqa: BLE001  # the job decides what it means
            return self.job.throw(error)
        return self.job.send(results)


def run_jobs(
    jobs: Mapping[str, Job[_Result]], executor: Workers, most: int
) -> Iterator[tuple[str, _Result | Exception]]:
    """Yield the name of each job with its result, or with the error that it did not handle, as they end.

    Args:
        jobs: jobs by name; they begin in this order.
        executor: returns what makes the calls.
        most: maximum number of jobs that have begun but not ended.
    """
    waiting = iter(jobs.items())
    running: list[_Running[_Result]] = []
    while True:
        running += [_Running(name, job) for name, job in islice(waiting, most - len(running))]
        if not running:
            return
        for one in [one for one in running if one.ready()]:
            try:
                one.futures = [executor().submit(call.function, *call.arguments) for call in one.advance()]
            except StopIteration as stop:
                running.remove(one)
                yield one.name, stop.value
            except Exception as error:  # noqa: BLE001  # one that breaks must not stop the others
                running.remove(one)
                yield one.name, error
        if not any(one.ready() for one in running):
            pending = [future for one in running for future in one.futures if not future.done()]
            wait(pending, return_when=FIRST_COMPLETED)
