"""A few minutes in the life of an index: articles and copies, dead letters, a kill, a restored state.

Knows processes, topics and the time of each event; knows nothing of what is shown of them.
"""

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.broker import kafka_for_session
from deploy.demo.samples import operators
from deploy.demo.samples.operators import Text
from deploy.demo.samples.walks import Walks
from deploy.demo.service import Service
from deploy.demo.topics import Topics, demo_topics
from deploy.ports import free_port
from deploy.prometheus.ruleset import write_config
from deploy.prometheus.server import Prometheus

SCRAPE_SECONDS = 1.0
RULES_FACTOR = 12.0  # by which the alerts' waits and look-backs are shortened
_SECONDS = 210.0
_WAVE_SECONDS = 105.0
_MEAN_RATE, _SWING = 220.0, 120.0  # messages a second
_POISON = (50.0, 66.0)
_KILL, _REVIVE = 110.0, 140.0
_SHARES = {"copy": 0.46, "withdrawal": 0.01, "broken": 0.01}
_POISON_SHARE = 0.5
_REMEMBERED = 3_000
_LEAPS, _LONGEST = 0.8, 3  # otherwise the words of English texts would be phrases that all texts share
_ADMIN_SECONDS = 20.0
_EDITS = (
    *(operators.verbatim, operators.boiler, operators.retitle, operators.dateline, operators.cut_sentences),
    *(operators.truncated_50, operators.replaced_characters, operators.inserted_sentences),
)
_SOURCES = ("石桥资讯", "海棠财经", "朝露客户端", "江畔晚报", "北岭在线", "雁南都市报")


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """What has been scraped.

    Attributes:
        prometheus: the one that scraped; it is still running.
        begin: seconds since 1970.
        end: the same.
    """

    prometheus: Prometheus
    begin: float
    end: float


@contextmanager
def run_scenario(program: Path, report: Callable[[str], None]) -> Iterator[ScenarioResult]:
    """Let two processes live through all events, scraped by a Prometheus.

    Args:
        program: Prometheus's executable.
        report: called with what is going on.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="stream-dedup-picture-")))
        report("starting Kafka")
        bootstrap = stack.enter_context(kafka_for_session())
        topics = stack.enter_context(demo_topics(bootstrap))
        posts = f"{topics.run}.posts.in"
        _make_topic(bootstrap, posts)
        replicas = [_Replica(bootstrap, topics, folder / name, posts) for name in ("one", "two")]
        for replica in replicas:
            stack.callback(replica.end)
        (folder / "prometheus").mkdir()
        config = write_config(
            folder / "prometheus",
            [f"127.0.0.1:{replica.port}" for replica in replicas],
            interval=SCRAPE_SECONDS,
            factor=RULES_FACTOR,
        )
        prometheus = stack.enter_context(Prometheus(program, config, folder / "prometheus"))
        report("starting the service twice")
        replicas[0].start()
        replicas[0].wait_ready()
        replicas[1].start()
        begin = time.time()
        _live(bootstrap, topics, posts, replicas, report)
        yield ScenarioResult(prometheus, begin, time.time())


def _make_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient(
        {"bootstrap.servers": bootstrap}
    )  # in a variable: a client that is garbage-collected drops its requests
    admin.create_topics([NewTopic(name, 2, -1)])[name].result(_ADMIN_SECONDS)


@dataclass(slots=True)
class _Replica:
    """A directory and a port, and the processes that live there one after another."""

    bootstrap: str
    topics: Topics
    folder: Path
    posts: str
    port: int = field(default_factory=free_port)
    _service: Service | None = field(default=None, init=False)

    def start(self) -> None:
        """Start a process."""
        self.folder.mkdir(exist_ok=True)
        settings = {
            "http.port": self.port,
            "input.topics": f"{self.topics.articles},{self.posts}",
            "idf.first_epoch_articles": 1_000,
            "idf.epoch_articles": 8_000,
            "state.write_buffer_bytes": 4 << 20,
            "kafka.statistics.interval.ms": 1_000,
            "shadow.enabled": True,
            "shadow.topic": f"{self.topics.run}.shadow",
            "shadow.verify.near_jaccard": 0.6,
        }
        self._service = Service(self.bootstrap, self.topics, self.folder, settings=settings)

    def wait_ready(self) -> None:
        """Wait until it reads its input."""
        if self._service is not None:
            self._service.wait_until_ready(lambda _: None)

    def kill(self) -> None:
        """Kill the process."""
        if self._service is not None:
            self._service.kill()

    def end(self) -> None:
        """End the process if it is still running."""
        if self._service is not None:
            self._service.close()

    def start_anew(self) -> None:
        """Start a process that finds no state."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.start()


def _live(bootstrap: str, topics: Topics, posts: str, replicas: list[_Replica], report: Callable[[str], None]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    events: list[tuple[float, str, Callable[[], None]]] = [
        (_POISON[0], "half of the messages are broken", lambda: None),
        (_KILL, "the active process is killed", replicas[0].kill),
        (_REVIVE, "it restarts without its state", replicas[0].start_anew),
    ]
    report(f"sending articles for {_SECONDS:.0f} s")
    began, due = time.monotonic(), 0.0
    stream = _Stream(Random(20))
    while (now := time.monotonic() - began) < _SECONDS:
        while events and now >= events[0][0]:
            _, line, happen = events.pop(0)
            report(line)
            happen()
        while due <= now:
            value, key = stream.message(due)
            with suppress(BufferError, KafkaException):
                producer.produce(posts if stream.turn % 3 == 0 else topics.articles, value, key)
            due += 1 / (_MEAN_RATE + _SWING * math.sin(2 * math.pi * due / _WAVE_SECONDS))
        producer.poll(0.02)
    producer.flush(20)


class _Stream:
    """Messages of all kinds, without end."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._walks = Walks(_LEAPS, _LONGEST)
        self._known: list[tuple[str, Text]] = []
        self.turn = 0

    def message(self, at: float) -> tuple[bytes | None, bytes]:
        """Return value and key of the next message, `at` seconds after the beginning."""
        self.turn += 1
        name = f"n-{self.turn}"
        chance = self._rng.random()
        poison = _POISON_SHARE if _POISON[0] <= at < _POISON[1] else 0.0
        if chance < poison + _SHARES["broken"]:
            return self._rng.choice((b"{", b'{"id": "x"}', "内容".encode("gbk"))), name.encode()
        if self._known and chance > 1 - _SHARES["withdrawal"]:
            return None, self._rng.choice(self._known)[0].encode()
        text = self._copy() if self._known and self._rng.random() < _SHARES["copy"] else self._original(name)
        fields = {
            "id": name,
            "title": text.title,
            "body": text.body,
            "source": self._rng.choice(_SOURCES),
            "published_at": round(time.time()),
        }
        return json.dumps(fields, ensure_ascii=False).encode(), name.encode()

    def _original(self, name: str) -> Text:
        body = self._walks.text(self._rng.randrange(120, 500), self._rng)
        text = Text(body[:20], body)
        self._known.append((name, text))
        del self._known[: max(0, len(self._known) - _REMEMBERED)]
        return text

    def _copy(self) -> Text:
        (_, text), (_, other) = self._rng.choice(self._known), self._rng.choice(self._known)
        return self._rng.choice(_EDITS)(text, self._rng, other)
