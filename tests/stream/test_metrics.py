"""What a running service shows on /metrics: exactly the catalogue, with the right values."""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import psutil
import pytest

from deploy.demo.samples.corpus import Form, base_texts
from stream_dedup.observe.catalogue import CLIENT_LIBRARY_METRICS
from stream_dedup.observe.metric import metrics_of
from stream_dedup.observe.metrics import THEMES
from tests.prometheus import program
from tests.stream.messages import Incoming, article, produce
from tests.stream.metrics import Metrics
from tests.stream.records import Outputs, collect
from tests.stream.service import Service
from tests.stream.topics import Topics, create_topic, fresh_topics
from tests.stream.waiting import wait_until

_BODIES = [text.body for text in base_texts() if text.form is Form.NEWS]
_OFTEN = "kafka.statistics.interval.ms=100"
_PLAIN = "kafka.producer.compression.type=none"
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Shown:
    """Two topics through a service that is still running.

    Attributes:
        topics: of the run; its input is the first topic.
        second: the other topic.
        service: the service.
        sent: messages of each topic.
        outputs: everything that came out.
        metrics: once everything was judged.
    """

    topics: Topics
    second: str
    service: Service
    sent: dict[str, list[Incoming]]
    outputs: Outputs
    metrics: Metrics


@pytest.fixture(scope="module")
def shown(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """Articles in one topic; copies of them and messages that cannot be judged in another."""
    topics = fresh_topics(bootstrap, partitions=2)
    second = f"{topics.group}.wire"
    create_topic(bootstrap, second)
    sent = {
        topics.input: [
            replace(article(f"a{place}", body), partition=place % 2) for place, body in enumerate(_BODIES[:20])
        ],
        second: [
            *(article(f"b{place}", body) for place, body in enumerate(_BODIES[10:25])),
            Incoming(b"no JSON"),
            Incoming(None, b"nobody"),
        ],
    }
    flags = (f"input.topics={topics.input},{second}", _OFTEN, _PLAIN)
    with Service(tmp_path_factory.mktemp("shown"), bootstrap, topics, *flags) as service:
        produce(bootstrap, topics.input, sent[topics.input])
        collect(bootstrap, topics, 20, service)
        produce(bootstrap, second, sent[second])
        outputs = collect(bootstrap, topics, 37, service)
        wait_until(lambda: _is_told(service.metrics()), "all of it is told")
        yield Shown(topics, second, service, sent, outputs, service.metrics())


def _is_told(metrics: Metrics) -> bool:
    """Return whether the gauges and the clients' statistics are up to date."""
    messages = metrics.series("commit_messages_sum") == [37.0]
    connected = len(metrics.by("kafka_connected_brokers", "client")) == 3
    return messages and connected and metrics.series("consumer_lag_seconds") == [0.0] * 3


def test_all_of_the_catalogue_is_shown_and_nothing_else(shown: Shown) -> None:
    """While a service is working, each metric has a value with its declared labels, and no other metric is shown."""
    values: dict[str, list[dict[str, str]]] = {}

    def look() -> bool:
        # A client that has not made a request for a moment shows no round trip.
        for sample in shown.service.metrics().samples:
            name = sample.name
            for suffix in ("_bucket", "_sum", "_count"):
                name = name.removesuffix(suffix)
            values.setdefault(name, []).append({key: value for key, value in sample.labels.items() if key != "le"})
        return "stream_dedup_kafka_round_trip_seconds" in values

    wait_until(look, "a round trip")
    catalogue = {metric.shown(name): metric.labels for theme in THEMES for name, metric in metrics_of(theme)}
    catalogue |= {one.name: one.labels for one in CLIENT_LIBRARY_METRICS}
    assert {*values} == {*catalogue}
    for name, labels in catalogue.items():
        for sample in values[name]:
            assert {*sample} == {label.name for label in labels}
            for label in labels:
                assert label.bound or sample[label.name] in label.values, (name, sample)


def test_articles_are_counted_by_topic(shown: Shown) -> None:
    """By topic, decision and relation, the counts equal what came out; links name the topic."""
    relations = Counter(
        (str(record.json()["topic"]), "duplicate", str(record.json()["relation"]))
        for record in shown.outputs.duplicates
        if record.json()["topic"] is not None
    )
    own = {message.value for message in shown.sent[shown.second]}
    unique = Counter(
        (shown.second if record.value in own else shown.topics.input, "unique", "none")
        for record in shown.outputs.unique
    )
    assert sum(unique.values()) + sum(relations.values()) == 35
    assert relations[shown.second, "duplicate", "exact"] == 10
    assert shown.metrics.by("articles_total", "topic", "decision", "relation") == relations + unique


def test_commits_are_told_in_bytes(shown: Shown) -> None:
    """The bytes of all commits are those of all messages, keys and values; none has headers."""
    sent = [message for messages in shown.sent.values() for message in messages]
    assert not any(message.headers for message in sent)
    size = sum(len(message.value or b"") + len(message.key or b"") for message in sent)
    assert shown.metrics.series("commit_bytes_sum") == [size]


def test_clients_tell_what_they_have_sent_and_received(shown: Shown, bootstrap: str) -> None:
    """The consumer receives at least what was produced, and the producer sends at least what came out."""

    def traffic() -> tuple[float, float]:
        metrics = shown.service.metrics()
        received, sent = (metrics.by(f"kafka_{way}_bytes_total", "client") for way in ("received", "sent"))
        return received["consumer",], sent["producer",]

    came_in = sum(len(message.value or b"") for messages in shown.sent.values() for message in messages)
    came_out = sum(len(record.value or b"") for record in (*shown.outputs.unique, *shown.outputs.duplicates))
    wait_until(lambda: traffic()[0] > came_in and traffic()[1] > came_out, "the traffic so far is told")
    received, sent = traffic()
    # Not a copy, and larger than what clients and brokers otherwise exchange meanwhile.
    characters = [*"".join(_BODIES)]
    random.Random(1).shuffle(characters)
    large = article("large", "".join(characters))
    produce(bootstrap, shown.topics.input, [large])
    size = len(large.value or b"")
    assert size > 80_000
    wait_until(lambda: traffic()[0] >= received + size and traffic()[1] >= sent + size, "the traffic is told")
    assert traffic()[0] < received + 2 * size
    quick = shown.service.metrics().by("kafka_round_trip_seconds", "client", "stat")
    assert all(0 < seconds < 30 for seconds in quick.values())


def test_gauges_of_the_process_are_those_of_the_system(shown: Shown) -> None:
    """Memory by kind adds up to what the system reports, and a running loop has a recent heartbeat."""
    metrics = shown.service.metrics()
    kinds = metrics.by("memory_bytes", "kind")
    resident = psutil.Process(shown.service.pid).memory_info().rss
    assert kinds["anonymous",] + kinds["file",] == pytest.approx(resident, rel=0.1)
    wait_until(lambda: shown.service.metrics().series("heartbeat_age_seconds")[0] < 5, "a recent heartbeat")
    assert metrics.series("registry_waiting") == [0.0]
    assert 0 < metrics.series("state_disk_free_bytes")[0] < metrics.series("state_disk_size_bytes")[0]
    assert metrics.by("build_info") == {(): 1.0}


def test_promtool_takes_what_a_service_shows(shown: Shown) -> None:
    """Prometheus' own check of names, units, types and help has no complaints."""
    text = shown.service.ask("/metrics").text
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------ lag


def test_lag_in_seconds_is_the_age_of_the_oldest_message_that_waits(
    bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In a backlog of messages a minute apart, the lag is the age of the oldest one waiting; finally it is 0."""
    topics, count = fresh_topics(bootstrap), 300
    began_ms = time.time_ns() // 1_000_000 - (count + 60) * _MINUTE_MS
    times = [began_ms + place * _MINUTE_MS for place in range(count)]
    backlog = [
        replace(article(f"a{place}", f"{_BODIES[place % len(_BODIES)]}{place}"), timestamp_ms=stamp)
        for place, stamp in enumerate(times)
    ]
    produce(bootstrap, topics.input, backlog)
    seen: dict[int, tuple[float, float]] = {}
    flags = ("commit.articles=2", "commit.interval_ms=1")
    with Service(tmp_path_factory.mktemp("backlog"), bootstrap, topics, *flags) as service:
        while service.metrics().series("commit_messages_sum") != [count]:
            asked = time.time()
            metrics = service.metrics()
            if metrics.series("consumer_lag_seconds"):
                (waiting,), (age,) = metrics.series("consumer_lag_messages"), metrics.series("consumer_lag_seconds")
                seen[int(waiting)] = asked - age, time.time() - age
        wait_until(lambda: service.metrics().series("consumer_lag_seconds") == [0.0], "no lag")
        assert service.metrics().series("consumer_lag_messages") == [0.0]
    waited = {waiting: since for waiting, since in seen.items() if waiting}
    assert waited
    for waiting, (earliest, latest) in waited.items():
        # If a message has been read, its own time is known; otherwise the time of the last committed one is used.
        oldest = times[count - waiting] / 1000
        # The service itself may be late, though by less than a message.
        assert oldest - 60 - 25 < latest
        assert earliest < oldest + 25
