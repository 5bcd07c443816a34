"""Input topics that are missing at first, are created later, or are recreated between two starts of a service.

Knows services and topics; the reader alone is tested in test_source.
"""

import re
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stream_dedup.index.records.ledger import load_positions
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.stream.kafka.places import IDENTITY
from tests.engine.samples import bodies
from tests.stream.messages import article, produce
from tests.stream.records import Outputs, collect, read_topics
from tests.stream.service import Service
from tests.stream.topics import (
    add_partitions,
    changelogs,
    create_topic,
    delete_records,
    delete_topic,
    existing_topics,
    fresh_topics,
    named_topics,
)
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("compiled")


def test_ready_once_it_reads_and_ends_in_order_when_idle(bootstrap: str, tmp_path: Path) -> None:
    """Before its input exists, the service is healthy but not ready; it finds the topic, and when idle ends with 0."""
    topics = named_topics()
    with Service(tmp_path, bootstrap, topics, "kafka.topic.metadata.refresh.interval.ms=200") as service:
        answer = service.ask("/readyz")
        assert answer.status == 503
        assert answer.text.startswith("waiting for ")
        wait_until(lambda: service.ask("/readyz").text == "waiting for partitions\n", "started")
        assert service.ask("/healthz").status == 200
        create_topic(bootstrap, topics.input)
        service.wait_ready()
        produce(bootstrap, topics.input, [article("late", bodies()[0])])
        collect(bootstrap, topics, 1, service)
        service.stop()
    (changelog,) = changelogs(bootstrap, topics)
    assert changelog == f"{topics.group}.changelog.{service.state.name}"
    assert existing_topics(bootstrap) >= {*topics.outputs, topics.clusters, f"{topics.group}.owner"}


@dataclass(frozen=True, slots=True)
class Patterned:
    """A run with a regular expression: two topics, and a third created later.

    Attributes:
        names: of the inputs.
        lags: the final lag of each partition.
        outputs: everything that came out.
    """

    names: list[str]
    lags: list[float]
    outputs: Outputs


@pytest.fixture(scope="module")
def patterned(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Patterned:
    """Topics with a common prefix through one service that finds them by a regular expression."""
    topics, text = fresh_topics(bootstrap), iter(bodies())
    names = [f"{topics.group}.wire.{name}" for name in ("a", "b", "c")]
    pattern = "^" + re.escape(f"{topics.group}.wire.") + ".*"
    flags = (f"input.topics={pattern}", "kafka.topic.metadata.refresh.interval.ms=200")
    for name in names[:2]:
        create_topic(bootstrap, name, 2)
    with Service(tmp_path_factory.mktemp("patterned"), bootstrap, topics, *flags) as service:
        for name in names[:2]:
            messages = [replace(article(f"{name}{part}", next(text)), partition=part) for part in (0, 1)]
            produce(bootstrap, name, messages)
        collect(bootstrap, topics, 4, service)
        create_topic(bootstrap, names[2])
        produce(bootstrap, names[2], [article(names[2], next(text))], transaction=True)
        outputs = collect(bootstrap, topics, 5, service)
        assert service.metrics().by("transactions_total", "outcome")
        with ExitStack() as patience:
            patience.callback(service.stop)
            wait_until(lambda: len(service.metrics().series("consumer_lag_messages")) == 5, "five lags")
            lags = _settled_lags(service)
    return Patterned(names, lags, outputs)


def _settled_lags(service: Service) -> list[float]:
    """Return the lags once they are all 0, or as they are when patience has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(lags := service.metrics().series("consumer_lag_messages")) and time.monotonic() < deadline:
        time.sleep(0.1)
    return lags


def test_regular_expression_reads_topics_created_later(patterned: Patterned) -> None:
    """A regular expression covers all partitions of all matching topics, including one created later."""
    ids = {(record.key or b"").decode() for record in patterned.outputs.unique}
    wanted = {f"{name}{part}" for name in patterned.names[:2] for part in (0, 1)}
    assert ids == wanted | {patterned.names[2]}
    assert patterned.outputs.total() == 5


def test_lag_is_zero_behind_a_transaction(patterned: Patterned) -> None:
    """The lag becomes 0 even if a partition ends with the marker of a transaction."""
    assert patterned.lags == [0.0] * 5


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_partitions_that_are_added_are_read_whole(bootstrap: str, tmp_path: Path, guarantee: str) -> None:
    """While the service runs, or before a start: from their beginning, and their copies are found in all others."""
    topics, texts = fresh_topics(bootstrap), bodies()
    flags = (f"commit.guarantee={guarantee}", "kafka.topic.metadata.refresh.interval.ms=200")

    def add(partitions: int, *names: str) -> None:
        add_partitions(bootstrap, topics.input, partitions)
        sent = [replace(article(name, texts[int(name[-1])]), partition=partitions - 1) for name in names]
        produce(bootstrap, topics.input, sent)

    produce(bootstrap, topics.input, [article("one-0", texts[0])])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 1, service)
        add(2, "two-0", "two-1")
        collect(bootstrap, topics, 3, service)
        service.stop()
    add(3, "three-0", "three-1", "three-2")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        outputs = collect(bootstrap, topics, 6, service)
        service.stop()
    assert sorted((record.key or b"").decode() for record in outputs.unique) == ["one-0", "three-2", "two-1"]
    assert {name: link["duplicate_of"] for name, link in outputs.links().items()} == {
        "two-0": "one-0",
        "three-0": "one-0",
        "three-1": "two-1",
    }


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_input_topic_that_was_made_anew_is_read_whole(bootstrap: str, tmp_path: Path, guarantee: str) -> None:
    """Recreated with fewer partitions than the state and the group know; each start resumes where the last ended."""
    topics, texts, flags = fresh_topics(bootstrap, partitions=2), iter(bodies()), (f"commit.guarantee={guarantee}",)

    def judged(names: str, partition: int = 0) -> None:
        messages = [replace(article(name, next(texts)), partition=partition) for name in names]
        produce(bootstrap, topics.input, messages)

    judged("ab", 0)
    judged("cd", 1)
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 4, service)
        service.stop()
    delete_topic(bootstrap, topics.input)
    create_topic(bootstrap, topics.input)
    judged("efg")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 7, service)
        assert [event["topic"] for event in service.events("topic_made_anew")] == [topics.input]
        service.stop()
    judged("h")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        outputs = collect(bootstrap, topics, 8, service)
        assert service.events("topic_made_anew") == []
        service.stop()
    assert sorted((record.key or b"").decode() for record in outputs.unique) == list("abcdefgh")


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_input_topic_that_was_made_anew_while_it_was_read_is_read_whole(
    bootstrap: str, tmp_path: Path, guarantee: str
) -> None:
    """Until the service notices, it reads the new topic from the old position on: that decides nothing before it."""
    topics, texts = fresh_topics(bootstrap), iter(bodies())
    flags = (
        f"commit.guarantee={guarantee}",
        "kafka.topic.metadata.refresh.interval.ms=600000",  # it does not notice
        "kafka.session.timeout.ms=30000",
    )

    def send(names: str) -> None:
        produce(bootstrap, topics.input, [article(name, next(texts)) for name in names])

    send("ab")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 2, service)
        service.pause()
        delete_topic(bootstrap, topics.input)
        create_topic(bootstrap, topics.input)
        send("cdef")
        service.resume()
        read_on = collect(bootstrap, topics, 4, service)
        service.stop()
    assert sorted((record.key or b"").decode() for record in read_on.unique) == list("abef")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        outputs = collect(bootstrap, topics, 8, service)
        assert [event["topic"] for event in service.events("topic_made_anew")] == [topics.input]
        service.stop()
    assert sorted((record.key or b"").decode() for record in outputs.unique) == list("abcdef")
    assert {name: link["relation"] for name, link in outputs.links().items()} == dict.fromkeys("ef", "redelivery")


def test_nothing_is_to_come_of_a_partition_that_retention_has_emptied(bootstrap: str, tmp_path: Path) -> None:
    """Its first offset is not 0, and no message tells where to begin: neither at the first start nor at the second."""
    topics = fresh_topics(bootstrap, partitions=2)
    for partition in (0, 1):
        produce(bootstrap, topics.input, [replace(article(f"{at}", "正文"), partition=partition) for at in range(5)])
    delete_records(bootstrap, topics.input, 5)

    def wait_for_the_end(service: Service) -> None:
        collect(bootstrap, topics, 5, service)
        wait_until(lambda: service.metrics().series("consumer_lag_messages") == [0, 0], "nothing is to come")
        service.stop()

    for _ in range(2):
        with Service(tmp_path, bootstrap, topics) as service:
            wait_for_the_end(service)


def test_topics_are_known_before_anything_comes(bootstrap: str, tmp_path: Path) -> None:
    """A topic that is recreated while the service is down is recognised, even if nothing was read from it."""
    topics = fresh_topics(bootstrap)
    with Service(tmp_path, bootstrap, topics) as service:
        wait_until(lambda: bool(service.events("partitions_assigned")), "the topic is found")
        read_topics(bootstrap, changelogs(bootstrap, topics), 1)
        service.stop()
    (database,) = (tmp_path / "state").iterdir()
    with RocksStore(database) as store:
        assert set(load_positions(store)) == {(topics.input, IDENTITY)}
