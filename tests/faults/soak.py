"""`python -m tests.faults.soak --minutes M`: constant load and random faults, measured, and the same check at the end.

Knows load, timed faults and measurements; knows nothing of what a record says.
"""

import argparse
import csv
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import matplotlib as mpl
import psutil
from confluent_kafka import Producer
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from deploy.broker import KafkaBroker
from deploy.demo.samples import Sample
from tests.benchmarks.throughput.articles import sample_articles
from tests.faults.chaos import Progress, Replica, active_one, delete_state, disk_bytes
from tests.faults.outcome import faults, read_outcome
from tests.faults.workload import Labelled, endless, sample_stories
from tests.stream.messages import Incoming
from tests.stream.topics import LARGE, Topics, fresh_topics
from tests.stream.waiting import wait_until

SESSION_SECONDS = 3.0
_FLAGS = (
    f"kafka.consumer.session.timeout.ms={int(SESSION_SECONDS * 1000)}",
    "kafka.consumer.heartbeat.interval.ms=500",
    "state.write_buffer_bytes=4194304",
)
_PART = 2_000  # varied articles made at a time
_FLUSH_SECONDS = 120.0
_DRAIN_SECONDS = 600.0
_LOOK_SECONDS = 0.02
_MEGABYTE = 1 << 20
console = Console()


# -------------------------------------------------------------------------------------------------- load


class Load:
    """Sends messages at a constant rate, in a thread, until the context is left; then the broker has them all.

    Args:
        bootstrap: the broker; may go away and come back.
        topic: to send to.
        rate: messages per second.
    """

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        self.sent = 0
        self._topic = topic
        self._rate = rate
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,  # a killed broker must not cause duplicates
                "message.timeout.ms": 0,
                "message.max.bytes": LARGE,
                "linger.ms": 5,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(_FLUSH_SECONDS) == 0, "the broker did not take the load"

    def _run(self) -> None:
        began = time.monotonic()
        for message in endless(stories=varied_stories):
            while (early := began + self.sent / self._rate - time.monotonic()) > 0 and not self._ended.is_set():
                self._producer.poll(min(early, 0.1))
            if self._ended.is_set():
                return
            self._send(stamped(message, time.time()))
            self.sent += 1

    def _send(self, message: Incoming) -> None:
        while True:
            try:
                self._producer.produce(self._topic, message.value, message.key, headers=[*message.headers])
            except BufferError:  # the broker is away for long
                self._producer.poll(0.1)
            else:
                return


def varied_stories(seed: int) -> Iterator[Sample]:
    """Yield the demo's stream and, between its messages, texts found nowhere else, so that the index keeps growing."""
    hand_written = sample_stories(seed)
    for part in count(seed):
        for value in sample_articles(_PART, part):
            fields = json.loads(value)
            name = f"{part}-{fields['id']}"
            yield Sample(name.encode(), json.dumps({**fields, "id": name}).encode(), "varied", name)
            yield next(hand_written)


def stamped(message: Labelled, moment: float) -> Incoming:
    """Return a message with its `published_at`, if any, set to a time in seconds since 1970; broken ones unchanged."""
    incoming = message.incoming
    fields = json.loads(incoming.value) if incoming.value and message.kind != "broken" else {}
    if "published_at" not in fields:
        return incoming
    return replace(incoming, value=json.dumps({**fields, "published_at": int(moment)}).encode())


# ------------------------------------------------------------------------------------------- measurements


@dataclass(frozen=True, slots=True)
class Row:
    """One second.

    Attributes:
        seconds: since the beginning.
        sent: total messages sent.
        done: total messages before the group's offsets.
        memory: resident bytes of all replicas.
        disk: bytes of all state directories.
    """

    seconds: float
    sent: int
    done: int
    memory: int
    disk: int

    @property
    def lag(self) -> int:
        """Messages waiting."""
        return max(self.sent - self.done, 0)


class Sampler:
    """Measures once a second, in a thread, until the context is left."""

    def __init__(self, load: Load, progress: Progress, replicas: list[Replica]) -> None:
        self.rows: list[Row] = []
        self._load = load
        self._progress = progress
        self._replicas = replicas
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def _run(self) -> None:
        while not self._ended.wait(1 - self.seconds % 1):
            memory, disk = sum(map(_memory, self._replicas)), sum(disk_bytes(one.state) for one in self._replicas)
            self.rows.append(Row(self.seconds, self._load.sent, self._progress.done, memory, disk))


def _memory(replica: Replica) -> int:
    with suppress(psutil.Error):
        return int(psutil.Process(replica.service.pid).memory_info().rss)
    return 0


# ------------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault.

    Attributes:
        seconds: since the beginning.
        name: of the fault.
        pause: seconds until decisions were committed again.
    """

    seconds: float
    name: str
    pause: float


@dataclass
class Disorder:
    """Faults for two replicas and their broker.

    Attributes:
        broker: of both.
        replicas: the two.
        progress: of their group.
        rng: chooses the faults.
    """

    broker: KafkaBroker
    replicas: list[Replica]
    progress: Progress
    rng: random.Random
    _kinds: dict[str, Callable[[], None]] = field(init=False, repr=False)
    _resuming: threading.Timer | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self._kinds = {
            "kill active": self._kill_active,
            "kill standby": self._kill_standby,
            "pause active": self._pause_active,
            "kill broker": self._kill_broker,
            "delete state": self._delete_state,
        }

    def strike(self, began: Callable[[], float]) -> Hit:
        """Cause one fault, wait until decisions are made again, and return the fault."""
        name = self.rng.choice(list(self._kinds))
        seconds, start = began(), time.monotonic()
        self._kinds[name]()
        before = self.progress.done
        while self.progress.done <= before and time.monotonic() < start + _DRAIN_SECONDS:
            time.sleep(_LOOK_SECONDS)
            self.revive()
        return Hit(seconds, name, time.monotonic() - start)

    def revive(self) -> None:
        """Restart replicas that have ended."""
        for replica in self.replicas:
            replica.revive()

    def settle(self) -> None:
        """Wait until the last fault is over: a replica that was paused may end only then, as another has taken over."""
        if self._resuming is not None:
            self._resuming.join()

        def is_settled() -> bool:
            self.revive()
            return sorted(replica.role for replica in self.replicas) == ["active", "standby"]

        wait_until(is_settled, "one active replica and one standby", _DRAIN_SECONDS)

    def _standby(self) -> Replica:
        active = active_one(self.replicas)
        return next(replica for replica in self.replicas if replica is not active)

    def _kill_active(self) -> None:
        active_one(self.replicas).service.kill()

    def _kill_standby(self) -> None:
        self._standby().service.kill()

    def _pause_active(self) -> None:
        active = active_one(self.replicas)
        active.pause()
        self._resuming = threading.Timer(2 * SESSION_SECONDS, _resume, [active])
        self._resuming.start()

    def _kill_broker(self) -> None:
        self.broker.kill()
        self.broker.restart()

    def _delete_state(self) -> None:
        standby = self._standby()
        standby.service.kill()
        delete_state(standby.state)


def _resume(replica: Replica) -> None:
    with suppress(psutil.Error):  # killed meanwhile
        replica.resume()


# ------------------------------------------------------------------------------------------------- report


def draw(rows: list[Row], hits: list[Hit], file: Path) -> None:
    """Plot throughput, lag, memory and disk over time, with a line for each fault."""
    mpl.use("Agg")
    figure = Figure(figsize=(11, 11), layout="constrained")
    seconds = [row.seconds for row in rows]
    speeds = [after.done - before.done for before, after in pairwise(rows)]
    curves = {
        "decided, messages/s": [0, *speeds],
        "waiting, messages": [row.lag for row in rows],
        "memory of both replicas, MB": [row.memory / _MEGABYTE for row in rows],
        "disk of both replicas, MB": [row.disk / _MEGABYTE for row in rows],
    }
    for axes, (title, values) in zip(figure.subplots(len(curves), 1, sharex=True), curves.items(), strict=True):
        axes.plot(seconds, values, linewidth=1)
        axes.set_ylabel(title)
        axes.set_ylim(bottom=0)
        for hit in hits:
            axes.axvline(hit.seconds, color="red" if "broker" in hit.name else "orange", linewidth=0.6, alpha=0.7)
    axes.set_xlabel("seconds; orange: a fault of a replica, red: of the broker")
    figure.savefig(file, dpi=110)


def save(rows: list[Row], hits: list[Hit], directory: Path) -> None:
    """Write the measurements as CSV and PNG."""
    with (directory / "soak.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    draw(rows, hits, directory / "soak.png")


def table(rows: list[Row], hits: list[Hit], codes: Counter[int]) -> Table:
    """Return the figures."""
    report = Table("figure", "value", title="soak", title_justify="left")
    half = rows[len(rows) // 2 :]
    report.add_row("messages", f"{rows[-1].sent:,} in {rows[-1].seconds:,.0f} s")
    for name, total in Counter(hit.name for hit in hits).most_common():
        pauses = sorted(hit.pause for hit in hits if hit.name == name)
        report.add_row(name, f"{total}; no decisions for {pauses[len(pauses) // 2]:.1f} s (median), {pauses[-1]:.1f} s")
    report.add_row("exit codes of replicas", ", ".join(f"{code}: {times}" for code, times in codes.most_common()))
    report.add_row("most messages that waited", f"{max(row.lag for row in rows):,}")
    report.add_row(
        "memory, most / most of the second half", _span(row.memory for row in rows) + _span_of(half, "memory")
    )
    report.add_row("disk, most / most of the second half", _span(row.disk for row in rows) + _span_of(half, "disk"))
    return report


def _span(values: Iterator[int]) -> str:
    return f"{max(values) / _MEGABYTE:,.0f} MB"


def _span_of(rows: list[Row], name: str) -> str:
    return f" / {_span(int(getattr(row, name)) for row in rows)}"


# ---------------------------------------------------------------------------------------------------- run


@dataclass(frozen=True, slots=True)
class Soak:
    """A finished soak.

    Attributes:
        rows: one per second.
        hits: the faults.
        codes: how replicas ended.
        last_words: the last lines of those that ended by themselves.
        found: faults of the outcome.
    """

    rows: list[Row]
    hits: list[Hit]
    codes: Counter[int]
    last_words: list[str]
    found: list[str]


def soak(options: argparse.Namespace, directory: Path) -> Soak:
    """Run load and faults for the given minutes, finish, and check against an undisturbed run."""
    flags = (*_FLAGS, f"window.days={options.window_days}", *options.set)
    with ExitStack() as stack:
        broker = stack.enter_context(KafkaBroker({"group.min.session.timeout.ms": 1000}))
        topics = fresh_topics(broker.bootstrap)
        progress = stack.enter_context(Progress(broker.bootstrap, topics))
        watched = stack.enter_context(Progress(broker.bootstrap, topics))
        replicas = [
            stack.enter_context(Replica(directory / name, broker.bootstrap, topics, *flags)) for name in ("one", "two")
        ]
        for replica in replicas:
            replica.start().service.wait_ready()
        disorder = Disorder(broker, replicas, progress, random.Random(options.seed))
        with (
            Load(broker.bootstrap, topics.input, options.rate) as load,
            Sampler(load, watched, replicas) as sampler,
        ):
            hits = _strike_by_the_clock(disorder, sampler, options)
        progress.finish(replicas, seconds=_DRAIN_SECONDS)
        disorder.settle()
        for replica in replicas:
            replica.stop()
        found = _check(broker.bootstrap, topics, directory, flags)
    codes = Counter(code for replica in replicas for code in replica.codes)
    last_words = [line for replica in replicas for line in replica.last_words]
    return Soak(sampler.rows, hits, codes, last_words, found)


def _strike_by_the_clock(disorder: Disorder, sampler: Sampler, options: argparse.Namespace) -> list[Hit]:
    hits: list[Hit] = []
    while sampler.seconds < options.minutes * 60:
        time.sleep(disorder.rng.uniform(0.5, 1.5) * options.every)
        disorder.revive()
        hits.append(disorder.strike(lambda: sampler.seconds))
        console.print(f"{hits[-1].seconds:6.0f} s  {hits[-1].name}: decides again after {hits[-1].pause:.1f} s")
    return hits


def _check(bootstrap: str, topics: Topics, directory: Path, flags: tuple[str, ...]) -> list[str]:
    """Run once more, undisturbed, over the same input, and compare."""
    others = topics.with_other_outputs(bootstrap)
    with (
        Replica(directory / "undisturbed", bootstrap, others, *flags) as replica,
        Progress(bootstrap, others) as progress,
    ):
        progress.finish([replica.start()], seconds=_DRAIN_SECONDS)
        replica.stop()
    return faults(read_outcome(bootstrap, topics), read_outcome(bootstrap, others))


def main() -> int:
    """Run the service under constant load and random faults; the exit code is 1 if the promise was broken."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stream-dedup-soak-") as directory:
        done = soak(options, Path(directory))
    save(done.rows, done.hits, options.out)
    console.print(table(done.rows, done.hits, done.codes))
    for line in done.last_words:
        console.print(f"a replica ended: {line}", markup=False)
    for fault in done.found:
        console.print(fault, markup=False, style="red")
    verdict = "[red]broken" if done.found else "[green]kept: each message once, decisions as without faults"
    console.print(f"the promise was {verdict}[/]; measurements in {options.out}")
    return int(bool(done.found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=100.0, help="messages a second")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between faults, on the average")
    parser.add_argument("--window-days", type=float, default=0.002, help="so short that it turns over (0.002: 3 min)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--set", action="append", default=[], help="a setting of the service, group.name=value")
    parser.add_argument("--out", type=Path, default=Path("soak"), help="folder of soak.png and soak.csv")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
