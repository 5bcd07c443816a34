"""The service as users run it: a separate process, with its own topics on a real broker.

Knows topics, processes, logs and HTTP; knows nothing of what a test expects.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from prometheus_client.parser import text_string_to_metric_families

from tests.stream.fork_server import Forked, fork_server

REPOSITORY = Path(__file__).resolve().parents[2]
LARGE = 16 << 20
PATIENCE_SECONDS = 90.0  # for what must happen: a busy machine is not the service's fault
READY_SECONDS = 120.0  # when five processes start at once on two cores; one alone takes four
STOP_SECONDS = 10.0
OWN_PREFIX = "stream_dedup."
_ADMIN_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_MOST_LOOK_SECONDS = 0.1
_LOG_TAIL_BYTES = 5_000

Headers = list[tuple[str, bytes | None]]


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition; fail at the deadline. It is looked at less and less often: that takes the service's CPU."""
    deadline, pause = time.monotonic() + seconds, _LOOK_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
        pause = min(1.5 * pause, _MOST_LOOK_SECONDS)


def stand_still(pid: int) -> None:
    """Send SIGSTOP to a process and wait until it has stopped: on a busy machine its threads run on for 50 ms."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: stands_still(pid), "the process stands still")


def stands_still(pid: int) -> bool:
    """Return whether all threads of a process have stopped, whoever sent SIGSTOP."""
    try:
        threads = [psutil.Process(thread.id) for thread in psutil.Process(pid).threads()]
        return all(thread.status() == psutil.STATUS_STOPPED for thread in threads)
    except psutil.NoSuchProcess:  # a thread ended meanwhile
        return False


# ---------------------------------------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics and group of one run.

    Attributes:
        input: topic of incoming articles.
        unique: topic of unique articles.
        duplicates: topic of links.
        dead: topic of dead letters.
        clusters: compacted topic of clusters; the service creates it.
        group: consumer group.
    """

    input: str
    unique: str
    duplicates: str
    dead: str
    clusters: str
    group: str

    @property
    def outputs(self) -> tuple[str, str, str]:
        """The three output topics, which together get one message for each incoming one."""
        return self.unique, self.duplicates, self.dead

    def with_other_outputs(self, bootstrap: str) -> "Topics":
        """Return the same input with new outputs and a new group, for another run over it."""
        other = named_topics()
        create_topics(bootstrap, *map(new_topic, other.outputs))
        return replace(other, input=self.input)


def named_topics() -> Topics:
    """Return names that no other test uses; no topic is created."""
    prefix = f"t{uuid4().hex[:12]}"
    return Topics(
        input=f"{prefix}.in",
        unique=f"{prefix}.unique",
        duplicates=f"{prefix}.duplicates",
        dead=f"{prefix}.dead",
        clusters=f"{prefix}.clusters",
        group=prefix,
    )


def fresh_topics(bootstrap: str, *, partitions: int = 1, dead_bytes: int = LARGE) -> Topics:
    """Create an input, and outputs of one partition each, so that their order shows.

    Args:
        bootstrap: the broker.
        partitions: of the input.
        dead_bytes: largest batch that the topic of dead letters accepts.
    """
    topics = named_topics()
    create_topics(
        bootstrap,
        new_topic(topics.input, partitions),
        new_topic(topics.unique),
        new_topic(topics.duplicates),
        new_topic(topics.dead, max_bytes=dead_bytes),
    )
    return topics


def create_topic(bootstrap: str, name: str, partitions: int = 1, *, max_bytes: int = LARGE) -> None:
    """Create a topic that accepts batches of `max_bytes`."""
    create_topics(bootstrap, new_topic(name, partitions, max_bytes=max_bytes))


def new_topic(name: str, partitions: int = 1, *, max_bytes: int = LARGE) -> NewTopic:
    """Return a topic to create."""
    return NewTopic(name, partitions, -1, config={"max.message.bytes": str(max_bytes)})


def create_topics(bootstrap: str, *topics: NewTopic) -> None:
    """Create topics and wait until the broker lists them: at first only the controller knows them."""
    admin = _admin(bootstrap)  # kept: a client that is freed drops its requests
    for created in admin.create_topics([*topics]).values():
        created.result(_ADMIN_SECONDS)
    wait_until(lambda: all(_partitions(admin, topic.topic) for topic in topics), "the topics are listed")


def existing_topics(bootstrap: str) -> set[str]:
    """Return the names of all topics."""
    return set(_admin(bootstrap).list_topics(timeout=_ADMIN_SECONDS).topics)


def changelogs(bootstrap: str, topics: Topics) -> list[str]:
    """Return the changelogs of a run, one per set of settings that it was run with."""
    return sorted(name for name in existing_topics(bootstrap) if name.startswith(f"{topics.group}.changelog."))


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = _admin(bootstrap)
    admin.delete_topics([name])[name].result(_ADMIN_SECONDS)
    wait_until(lambda: not _partitions(admin, name), f"{name} is gone")


def delete_group(bootstrap: str, group: str) -> None:
    """Delete a group's offsets, as soon as it has no members."""
    admin = _admin(bootstrap)

    def gone() -> bool:
        try:
            admin.delete_consumer_groups([group])[group].result(_ADMIN_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
                raise
            return False
        return True

    wait_until(gone, f"the group {group} is gone")


def _partitions(admin: AdminClient, topic: str) -> list[int]:
    """Return a topic's partitions; none if it does not exist. A list of all topics would get longer with each test."""
    return [*admin.list_topics(topic, timeout=_ADMIN_SECONDS).topics[topic].partitions]


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


# -------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message to produce.

    Attributes:
        value: None is a tombstone.
        key: of the message.
        headers: of the message.
        partition: of the input.
        timestamp_ms: of the message, in milliseconds since 1970, UTC; 0 for now.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    partition: int = 0
    timestamp_ms: int = 0


def article(name: str, body: str, **fields: object) -> Incoming:
    """Return the message of an article."""
    return Incoming(json.dumps({"id": name, "body": body, **fields}, ensure_ascii=False).encode())


def produce(
    bootstrap: str,
    topic: str,
    messages: Iterable[Incoming],
    *,
    transaction: bool = False,
    compression: str = "none",
) -> list[int]:
    """Write messages in order, wait until the broker has them, and return their offsets."""
    # One request at a time keeps the order, and saves the half second that an idempotent producer takes to start.
    properties: dict[str, str | int] = {
        "bootstrap.servers": bootstrap,
        "message.max.bytes": LARGE,
        "linger.ms": 5,
        "compression.type": compression,
        "max.in.flight.requests.per.connection": 1,
        "log_level": 0,
    }
    if transaction:
        properties["transactional.id"] = f"test-{uuid4().hex[:12]}"
    producer = Producer(properties)
    if transaction:
        producer.init_transactions(_ADMIN_SECONDS)
        producer.begin_transaction()
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset() or 0)

    for message in messages:
        producer.produce(
            topic,
            message.value,
            message.key,
            partition=message.partition,
            headers=[*message.headers],  # a copy: the stub needs a wider element type
            timestamp=message.timestamp_ms,
            on_delivery=delivered,
        )
        producer.poll(0)
    assert producer.flush(30) == 0
    if transaction:
        producer.commit_transaction(_ADMIN_SECONDS)
    return offsets


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a topic."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int = 0

    def own(self, name: str) -> str | None:
        """Return the value of one of the service's headers; there is at most one of each name."""
        values = [value for header, value in self.headers if header == OWN_PREFIX + name]
        assert len(values) < 2, f"{name} is there {len(values)} times"
        return values[0].decode() if values and values[0] is not None else None

    def incoming_headers(self) -> Headers:
        """Return the headers that are not the service's."""
        return [(name, value) for name, value in self.headers if not name.startswith(OWN_PREFIX)]

    def json(self) -> dict[str, Any]:
        """Return the value as a JSON object."""
        fields = json.loads(self.value or b"")
        assert isinstance(fields, dict)
        return fields


@dataclass(frozen=True, slots=True)
class Outputs:
    """Everything that came out, in the order of each topic."""

    unique: list[Record]
    duplicates: list[Record]
    dead: list[Record]

    def links(self) -> dict[str, dict[str, Any]]:
        """Return the links by article id; no id has two."""
        links = {(record.key or b"").decode(): record.json() for record in self.duplicates}
        assert len(links) == len(self.duplicates)
        return links

    def total(self) -> int:
        """Return how many messages there are."""
        return len(self.unique) + len(self.duplicates) + len(self.dead)


def collect(
    bootstrap: str, topics: Topics, count: int, service: "Service | None" = None, seconds: float = PATIENCE_SECONDS
) -> Outputs:
    """Read the outputs, read_committed, from beginning to end, once they hold `count` messages.

    Args:
        bootstrap: the broker.
        topics: whose outputs.
        count: messages to wait for, in all three.
        service: writes them; once it has ended there is nothing to wait for.
        seconds: deadline.

    Raises:
        AssertionError: they hold fewer at the deadline, or when the service has ended.
    """

    def check_service(counts: str) -> None:
        assert service is None or service.running, f"it ended before {count} outputs: {counts}"

    found = read_topics(bootstrap, topics.outputs, count, seconds, check_service)
    return Outputs(*(found[name] for name in topics.outputs))


def read_topics(
    bootstrap: str,
    names: Sequence[str],
    count: int = 0,
    seconds: float = PATIENCE_SECONDS,
    while_waiting: Callable[[str], None] = lambda _counts: None,
) -> dict[str, list[Record]]:
    """Read topics, read_committed, from beginning to end, once they hold `count` messages together.

    Args:
        bootstrap: the broker.
        names: of the topics; one that does not exist is empty.
        count: messages to wait for.
        seconds: deadline.
        while_waiting: called repeatedly with the counts so far; may raise to give up.

    Raises:
        AssertionError: they hold fewer at the deadline.
    """
    found: dict[str, list[Record]] = {name: [] for name in names}
    with _reading(bootstrap, names) as (consumer, partitions):
        ended: set[tuple[str, int]] = set()
        deadline = time.monotonic() + seconds
        while sum(map(len, found.values())) < count or len(ended) < partitions:
            counts = str({name: len(records) for name, records in found.items()})
            assert time.monotonic() < deadline, f"not {count} messages within {seconds:g} s: {counts}"
            while_waiting(counts)
            for message in consumer.consume(500, 0.05):
                place = str(message.topic()), int(message.partition() or 0)
                error = message.error()
                if error is None:
                    ended.discard(place)
                    found[place[0]].append(_record(message))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001  # librdkafka's name
                    ended.add(place)
    return found


@contextmanager
def _reading(bootstrap: str, names: Sequence[str]) -> Iterator[tuple[Consumer, int]]:
    admin = _admin(bootstrap)
    places = [
        TopicPartition(name, partition, OFFSET_BEGINNING) for name in names for partition in _partitions(admin, name)
    ]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid4().hex[:12]}",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": "60",
            "log_level": "0",
        }
    )
    with closing(consumer):
        consumer.assign(places)
        yield consumer, len(places)


def _record(message: Message) -> Record:
    headers: Any = message.headers() or []
    return Record(
        str(message.topic()),
        int(message.offset() or 0),
        message.key(),
        message.value(),
        list(headers),
        int(message.partition() or 0),
    )


class Arrivals:
    """The number of committed messages in the output topics, polled repeatedly; a context manager."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._reading = _reading(bootstrap, topics.outputs)
        self._count = 0

    def __enter__(self) -> Self:
        self._consumer, _ = self._reading.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.__exit__(kind, error, trace)

    def count(self) -> int:
        """Return how many have arrived so far."""
        self._count += sum(message.error() is None for message in self._consumer.consume(500, _LOOK_SECONDS))
        return self._count


# --------------------------------------------------------------------------------------------- service


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit code; negative for a signal.
        seconds: from the request to the end.
    """

    code: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from the HTTP port."""

    status: int
    kind: str
    text: str


class Service:
    """The service as a process; killed on leaving the context if it is still running.

    Args:
        directory: of its settings file, its state (`state` in it, unless a flag says otherwise) and its log.
        bootstrap: the broker.
        topics: what it reads and writes.
        flags: more settings, as `group.name=value`.
        environment: more variables.
        program: module that runs the service's command line, and its own arguments.
        loads: whether it starts with nothing loaded, as it does for users, even if other services are forked.
    """

    started: "list[Service]" = []  # noqa: RUF012  # the processes whose logs a failing test shows
    forks = False  # whether services are forked from a process that has loaded everything; see `fork_server`

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        topics: Topics,
        *flags: str,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = ("stream_dedup",),
        loads: bool = False,
    ) -> None:
        self.directory = directory
        self.log_file = directory / f"log-{uuid4().hex[:8]}.jsonl"
        self._module, *own = program
        self._arguments = [
            *own,
            "run",
            "--config",
            str(write_settings(directory, bootstrap, topics)),
            *set_flags(flags),
        ]
        self._environment = clean_environment(environment)
        self._loads = loads

    def __enter__(self) -> Self:
        self._process = self._forked() if Service.forks and not self._loads else self._loading()
        Service.started.append(self)
        return self

    def _forked(self) -> Forked:
        return fork_server().start(self._module, self._arguments, self._environment, self.log_file)

    def _loading(self) -> "subprocess.Popen[bytes]":
        with self.log_file.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", self._module, *self._arguments],
                cwd=REPOSITORY,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def state(self) -> Path:
        """Directory of the state for its settings."""
        wait_until(lambda: bool(self.events("starting")) or not self._still_running(), "the state's directory")
        return Path(self.events("starting")[0]["state"])

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self._process.poll() is None

    def wait_starting(self) -> None:
        """Wait until it logs that it is starting: from then on it handles signals, and its log has the HTTP port."""
        wait_until(lambda: self._still_running() and bool(self.events("starting")), "starting")

    def wait_ready(self, seconds: float = READY_SECONDS) -> Self:
        """Wait until /readyz says it is ready."""
        wait_until(lambda: self._still_running() and self._is_ready(), "ready", seconds)
        return self

    def terminate(self, seconds: float = 3 * STOP_SECONDS) -> Ended:
        """Send SIGTERM and wait for the exit."""
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        return Ended(self._process.wait(seconds), time.monotonic() - began)

    def stop(self) -> None:
        """Send SIGTERM and check that it exits properly: in time, with exit code 0."""
        ended = self.terminate()
        assert ended.code == 0
        assert ended.seconds < STOP_SECONDS

    def kill(self) -> None:
        """Send SIGKILL and wait for the exit."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Send SIGSTOP: it is frozen until `resume`."""
        stand_still(self.pid)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def wait_end(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until it exits by itself and return its exit code."""
        return self._process.wait(seconds)

    def log(self) -> str:
        """Return everything it wrote to standard output and standard error."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def log_tail(self) -> str:
        """Return the end of its log, without librdkafka's debug lines."""
        lines = [line for line in self.log().splitlines(keepends=True) if "[debug" not in line]
        return "".join(lines)[-_LOG_TAIL_BYTES:]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of this name in its log."""
        lines = [line for line in self.log().splitlines(keepends=True) if line.startswith("{") and name in line]
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event.get("event") == name]

    @property
    def address(self) -> tuple[str, int]:
        """Address of its HTTP port: a service that discards a damaged state restarts, on another port."""
        self.wait_starting()
        parts = urlsplit(self.events("starting")[-1]["http"])
        return str(parts.hostname), int(parts.port or 0)

    def ask(self, path: str, method: str = "GET") -> Answer:
        """Send a request to its HTTP port."""
        host, port = self.address
        with closing(HTTPConnection(host, port, timeout=10)) as connection:
            connection.request(method, path)
            response: HTTPResponse = connection.getresponse()
            return Answer(response.status, response.getheader("Content-Type", ""), response.read().decode("utf-8"))

    def metrics(self) -> "Metrics":
        """Return what /metrics shows."""
        answer = self.ask("/metrics")
        assert answer.status == 200
        return Metrics(answer.text)

    def _is_ready(self) -> bool:
        return self.ask("/readyz").status == 200

    def _still_running(self) -> bool:
        assert self.running, f"it ended with exit code {self._process.returncode}:\n{self.log_tail()}"
        return True


class Metrics:
    """The samples of a scrape, as parsed by Prometheus' client library."""

    def __init__(self, text: str) -> None:
        self.samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def by(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the sums of a metric by some of its labels, without zeros."""
        sums: dict[tuple[str, ...], float] = {}
        for sample in self.samples:
            if sample.name == OWN_PREFIX.replace(".", "_") + name and sample.value:
                key = tuple(sample.labels[label] for label in labels)
                sums[key] = sums.get(key, 0.0) + sample.value
        return sums

    def series(self, name: str) -> list[float]:
        """Return the values of all series of a metric."""
        return [sample.value for sample in self.samples if sample.name == OWN_PREFIX.replace(".", "_") + name]


def write_settings(directory: Path, bootstrap: str, topics: Topics) -> Path:
    """Write a settings file and return its path; the state is beside it."""
    file = directory / "stream-dedup.toml"
    quoted = {name: json.dumps(getattr(topics, name)) for name in ("input", "unique", "duplicates", "dead", "clusters")}
    file.write_text(
        f"""
[input]
topics = [{quoted["input"]}]
group = {json.dumps(topics.group)}
[output]
unique = {quoted["unique"]}
duplicates = {quoted["duplicates"]}
dead = {quoted["dead"]}
clusters = {quoted["clusters"]}
[state]
directory = "state"
[http]
port = 0
[log]
format = "json"
[kafka]
bootstrap.servers = {json.dumps(bootstrap)}
""",
        encoding="utf-8",
    )
    return file


def set_flags(flags: Sequence[str]) -> list[str]:
    """Return settings as arguments."""
    return [argument for flag in flags for argument in ("--set", flag)]


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without any settings of the service."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_DEDUP_")}
    return {**kept, **(more or {})}


def run_once(*arguments: str, environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command of the service that exits by itself, the same way as `Service`."""
    if not Service.forks:
        command, cleaned = [sys.executable, "-m", "stream_dedup", *arguments], clean_environment(environment)
        return subprocess.run(
            command, cwd=REPOSITORY, env=cleaned, capture_output=True, text=True, timeout=60, check=False
        )
    with TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        process = fork_server().start("stream_dedup", arguments, clean_environment(environment), out, errors)
        code = process.wait(60)
        told = [file.read_text(encoding="utf-8") for file in (out, errors)]
    return subprocess.CompletedProcess(arguments, code, *told)
