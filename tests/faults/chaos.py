"""Faults for a service: kills, pauses, damaged, deleted and full disks; and waiting until everything is processed.

Knows processes, files and a group's offsets; knows nothing of what a record says.
"""

import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from stream_dedup.stream.protocol import Step
from tests.stream.service import Service
from tests.stream.topics import ADMIN_SECONDS, Topics
from tests.stream.waiting import stands_still, wait_until

SHIPPED = ("stream_dedup",)
START_SECONDS = 90.0
_PROCESS_SECONDS = 150.0
_QUERY_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_FLIPPED_BYTES = 64


def fused(step: Step, after: int = 1, signal: str = "kill") -> tuple[str, ...]:
    """Return the program that runs the service until it reaches a step for the n-th time, and then signals it.

    Args:
        step: the step.
        after: n.
        signal: 'kill' or 'stop'.
    """
    return ("tests.faults.runner", "--at", step, "--after", str(after), "--signal", signal, "--")


# --------------------------------------------------------------------------------------------- processes


class Replica:
    """A directory with a state, and the processes that use it one after another.

    As a context manager it kills a process that is still running.

    Args:
        directory: of the settings, the state and the logs; created if missing.
        bootstrap: the broker.
        topics: what it reads and writes.
        flags: more settings, as `group.name=value`.
    """

    def __init__(self, directory: Path, bootstrap: str, topics: Topics, *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.codes: list[int] = []
        """Exit codes of the processes that `revive` found ended."""
        self.last_words: list[str] = []
        """The last line in the log of each of them that ended by itself."""
        self._bootstrap = bootstrap
        self._topics = topics
        self._flags = flags
        self._service: Service | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._service is not None:
            self._service.__exit__(kind, error, trace)

    @property
    def state(self) -> Path:
        """Its state directory."""
        return self.directory / "state"

    @property
    def service(self) -> Service:
        """The current process, or the last one."""
        assert self._service is not None, "start() comes first"
        return self._service

    def start(self, program: Sequence[str] = SHIPPED) -> Self:
        """Start a process; the previous one must have ended."""
        assert self._service is None or not self._service.running
        service = Service(self.directory, self._bootstrap, self._topics, *self._flags, program=program)
        self._service = service.__enter__()
        return self

    def revive(self) -> None:
        """Restart it if it has ended, as a container supervisor would."""
        if not self.service.running:
            self.codes.append(self.service.wait_end(0))
            if self.codes[-1] >= 0:
                self.last_words += self.service.log().splitlines()[-1:]
            self.start()

    def stop(self) -> None:
        """Wait until it is ready and stop it cleanly: in time, with exit code 0."""
        # Before that, SIGTERM may arrive before the process can handle it.
        self.service.wait_ready()
        self.service.stop()

    def pause(self) -> None:
        """Send SIGSTOP: it is frozen until `resume`."""
        self.service.pause()

    def resume(self) -> None:
        """Send SIGCONT."""
        self.service.resume()

    def wait_paused(self) -> None:
        """Wait until SIGSTOP has stopped it, whoever sent it."""
        wait_until(lambda: stands_still(self.service.pid), "stopped", START_SECONDS)

    @property
    def role(self) -> str:
        """The role it reports: 'active', 'standby' or 'restoring'; empty while it reports none."""
        if not self.service.running or not self.service.events("starting"):
            return ""
        with suppress(OSError, HTTPException, AssertionError):
            roles = self.service.metrics().by("role", "role")
            return next((role for (role,) in roles), "")
        return ""

    def wait_role(self, *roles: str, seconds: float = START_SECONDS) -> None:
        """Wait until it has one of these roles."""
        wait_until(lambda: self.role in roles, " or ".join(roles), seconds)


def active_one(replicas: Sequence[Replica]) -> Replica:
    """Wait until one of the replicas is active, and return it."""
    found: list[Replica] = []

    def look() -> bool:
        found[:] = [replica for replica in replicas if replica.role == "active"]
        return len(found) == 1

    wait_until(look, "one active replica", START_SECONDS)
    return found[0]


def kill_at_random(replica: Replica, progress: "Progress", rng: random.Random, kills: int) -> None:
    """Start and kill a replica repeatedly, in mid-work or while it is starting."""
    for left in range(kills, 0, -1):
        replica.start()
        if rng.random() < 1 / 4:
            time.sleep(rng.uniform(0.2, 3.0))
        else:
            progress.wait(progress.done + rng.randint(0, progress.remaining // left), [replica])
            time.sleep(rng.uniform(0, 0.03))
        replica.service.kill()


# ---------------------------------------------------------------------------------------------- progress


class Progress:
    """How far a group has come in its input; as a context manager it closes its connection.

    Args:
        bootstrap: the broker, at an address that is spared from faults.
        topics: input and group.
    """

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        properties = {"bootstrap.servers": bootstrap, "group.id": topics.group, "log_level": "0"}
        self._consumer = Consumer({**properties, "enable.auto.commit": "false"})
        self._places = [TopicPartition(topics.input, partition) for partition in self._partitions(topics.input)]
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    @property
    def done(self) -> int:
        """Messages before the group's committed offsets; the last known number while the broker is away."""
        with suppress(KafkaException):
            committed = self._consumer.committed(self._places, timeout=_QUERY_SECONDS)
            self._done = sum(max(place.offset, 0) for place in committed)
        return self._done

    @property
    def size(self) -> int:
        """Messages in the input; retried until the broker answers, even if it has to come back first.

        Raises:
            AssertionError: it does not.
        """
        ends: list[int] = []

        def look() -> bool:
            with suppress(KafkaException):
                ends[:] = [self._consumer.get_watermark_offsets(at, _QUERY_SECONDS)[1] for at in self._places]
            return bool(ends)

        wait_until(look, "an answer of the broker")
        return sum(ends)

    @property
    def remaining(self) -> int:
        """Messages not yet processed."""
        return self.size - self.done

    def wait(self, count: int, replicas: Sequence[Replica], seconds: float = _PROCESS_SECONDS) -> None:
        """Wait until `count` messages are processed.

        Raises:
            AssertionError: they are not at the deadline, or no process is running that could do it.
        """
        self._wait(count, replicas, seconds, _must_run)

    def finish(self, replicas: Sequence[Replica], count: int | None = None, seconds: float = _PROCESS_SECONDS) -> None:
        """Wait until the whole input, or `count` messages, are processed; a replica that ends is restarted.

        Raises:
            AssertionError: they are not at the deadline.
        """
        self._wait(self.size if count is None else count, replicas, seconds, _revive_all)

    def _wait(
        self, count: int, replicas: Sequence[Replica], seconds: float, look: Callable[[Sequence[Replica]], None]
    ) -> None:
        deadline = time.monotonic() + seconds
        while (done := self.done) < count:
            assert time.monotonic() < deadline, (
                f"{done} of {count} messages are processed after {seconds:g} s\n{_tails(replicas)}"
            )
            look(replicas)
            time.sleep(_LOOK_SECONDS)

    def _partitions(self, topic: str) -> list[int]:
        return sorted(self._consumer.list_topics(topic, timeout=ADMIN_SECONDS).topics[topic].partitions)


def _must_run(replicas: Sequence[Replica]) -> None:
    assert any(replica.service.running for replica in replicas), f"no replica runs\n{_tails(replicas)}"


def _revive_all(replicas: Sequence[Replica]) -> None:
    for replica in replicas:
        replica.revive()


def _tails(replicas: Sequence[Replica]) -> str:
    return "\n".join(
        f"--- {replica.directory.name}, ended before with {replica.codes}\n{replica.service.log_tail()}"
        for replica in replicas
    )


# ------------------------------------------------------------------------------------------------- disks


def flip_bytes(state: Path) -> None:
    """Invert bytes in the middle of a RocksDB database's largest table; the database must be closed."""
    table = max(state.rglob("*.sst"), key=_size)
    with table.open("r+b") as file:
        file.seek(_size(table) // 2)
        sound = file.read(_FLIPPED_BYTES)
        file.seek(-len(sound), os.SEEK_CUR)
        file.write(bytes(byte ^ 0xFF for byte in sound))


def truncate_manifest(state: Path) -> None:
    """Cut off the second half of a RocksDB database's list of files; the database must be closed."""
    manifest = max(state.rglob("MANIFEST-*"), key=_size)
    os.truncate(manifest, _size(manifest) // 2)


def delete_state(state: Path) -> None:
    """Delete the state directory."""
    shutil.rmtree(state)


def disk_bytes(directory: Path) -> int:
    """Return the size of all files below a directory, even if some vanish meanwhile."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += _size(Path(folder, name))
    return total


def _size(path: Path) -> int:
    return path.stat().st_size


@contextmanager
def small_disk(directory: Path, size: int) -> Iterator[Callable[[], None]]:
    """Give a directory a disk of `size` bytes, and yield a function that enlarges it.

    If this process may mount, it is a file system in memory, and writing too much fails with ENOSPC. Otherwise no file
    of the processes started meanwhile can grow beyond an eighth of the size: that fails with EFBIG, the nearest thing
    to a full disk for an unprivileged user.
    """
    directory.mkdir(parents=True, exist_ok=True)
    limit = memory_disk if _mount(directory, size) else file_limit
    with limit(directory, size) as grow:
        yield grow


@contextmanager
def memory_disk(directory: Path, _size: int) -> Iterator[Callable[[], None]]:
    """Yield a function that enlarges the file system mounted at a directory; unmount it at the end."""
    try:
        yield lambda: _run("mount", "-o", "remount,size=1g", str(directory))
    finally:
        _run("umount", "--lazy", str(directory))


@contextmanager
def file_limit(_directory: Path, size: int) -> Iterator[Callable[[], None]]:
    """Limit files of this process and its children to an eighth of `size`; yield a function that lifts the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 8, before[1]))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _mount(directory: Path, size: int) -> bool:
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "stream-dedup-test", str(directory))
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
