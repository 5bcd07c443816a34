"""Two replicas of one index: one decides, the other follows and takes over if it leaves, is killed or is fenced.

Knows roles, signals and exit codes; compares all outputs with those of a single undisturbed engine.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.demo.samples import sample_stream
from stream_dedup import Article, Deduplicator
from stream_dedup.decode import Decoder, UndecodableError
from stream_dedup.settings import InputSettings
from tests.stream.messages import Incoming, article, produce
from tests.stream.metrics import Metrics
from tests.stream.records import Arrivals, Outputs, Record, collect
from tests.stream.service import Service
from tests.stream.topics import ADMIN_SECONDS, Topics, changelogs, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")

_AFTER_SIGTERM = 60.0  # seconds; about one on an idle machine, and far less than the session of the old owner
_AFTER_SIGKILL = 60.0  # seconds, up to ten of them for the session of the input's group
_SMALL_COMMITS = "commit.articles=4"
_LONG_SESSION = "kafka.session.timeout.ms=120000"
_OTHER = "今年的龙舟赛改在城南水库举行，共有四十支队伍报名参加，水上公安派出八艘快艇维持秩序。"
_SHARES = 3  # of the stream: one for each life


@dataclass(slots=True)
class Scene:
    """What replicas did one after the other; each part of the stream goes to another pair of them.

    Attributes:
        topics: of the run.
        sent: all messages, numbered in a header.
        outputs: everything that came out of all lives.
        standby: metrics of the standby once it had caught up, by name; roles and readiness of both.
        after: seconds from each signal until the successor read the input.
        lives: the processes in the order of their start; they have ended.
        refused: a replica with other settings, started beside both: exit code, log, and the changelogs at that time.
    """

    topics: Topics
    sent: list[Incoming]
    outputs: Outputs = field(default_factory=lambda: Outputs([], [], []))
    standby: dict[str, Any] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    lives: list[Service] = field(default_factory=list)
    refused: tuple[int, str, list[str]] = (0, "", [])


@pytest.fixture(scope="module")
def scene(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The samples in three parts: SIGTERM hits the first owner in the second part, SIGKILL the next in the third."""
    samples = [(sample.value, sample.key) for sample in sample_stream()]
    sent = [Incoming(*one, headers=[("number", b"%d" % number)]) for number, one in enumerate(samples)]
    scene, share = Scene(fresh_topics(bootstrap), sent), len(sent) // _SHARES
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    with (
        Service(one, bootstrap, scene.topics, _SMALL_COMMITS, _LONG_SESSION) as first,
        Arrivals(bootstrap, scene.topics) as arrivals,
    ):
        wait_until(lambda: _role(first) == "active", "the first is active")
        with Service(two, bootstrap, scene.topics, _SMALL_COMMITS) as second:
            wait_until(lambda: _role(second) == "standby", "the second stands by")
            produce(bootstrap, scene.topics.input, sent[:share])
            wait_until(lambda: arrivals.count() == share, "the first part is out")
            scene.standby = _observed(first, second)
            with Service(tmp_path_factory.mktemp("refused"), bootstrap, scene.topics, "sketch.gram=6") as refused:
                scene.refused = refused.wait_end(), refused.log(), changelogs(bootstrap, scene.topics)
            produce(bootstrap, scene.topics.input, sent[share : 2 * share])
            scene.after["SIGTERM"] = _handed_over(arrivals, share, first.stop, second)
            with Service(one, bootstrap, scene.topics, _SMALL_COMMITS) as third:
                wait_until(lambda: _role(third) == "standby", "the third stands by")
                produce(bootstrap, scene.topics.input, sent[2 * share :])
                scene.after["SIGKILL"] = _handed_over(arrivals, 2 * share, second.kill, third)
                collect(bootstrap, scene.topics, len(sent), third)
                third.stop()
            scene.lives = [first, second, third]
    scene.outputs = collect(bootstrap, scene.topics, 0)
    return scene


def _role(service: Service) -> str:
    """Return the role a process reports; empty until it has decided on one."""
    roles = service.metrics().by("role", "role") if service.running else {}
    return "".join(role for (role,) in roles)


def _observed(active: Service, standby: Service) -> dict[str, Any]:
    """Return what both report once the standby has caught up."""
    wait_until(lambda: _followed(active, standby), "the standby has followed")
    # The state's metrics are updated once a second.
    wait_until(lambda: _held(active)[0] > 0 and _held(active) == _held(standby), "both say that they hold the same")
    metrics = standby.metrics()
    return {
        "assigned": metrics.series("assigned_partitions"),
        "articles": metrics.by("articles_total", "decision"),
        "roles": (_role(active), _role(standby)),
        "probes": {
            path: (active.ask(path).status, standby.ask(path).status) for path in ("/startupz", "/healthz", "/readyz")
        },
    }


def _rests(metrics: Metrics) -> bool:
    """Return whether a process reports that it does not read the input."""
    idle = metrics.series("ready") == metrics.series("assigned_partitions") == [0.0]
    return idle and metrics.series("consumer_lag_messages") == []


def _held(service: Service) -> list[float]:
    """Return what a process reports about its state."""
    metrics = service.metrics()
    names = ("index_entries", "state_articles_judged", "window_generations", "window_span_seconds")
    return [value for name in (*names, "stream_time_seconds") for value in metrics.series(name)]


def _followed(active: Service, standby: Service) -> bool:
    """Return whether both have the same changelog position, up to the marker after the last transaction."""
    ahead, behind = (service.metrics().series("changelog_position")[0] for service in (active, standby))
    # The active one updates its position after its commit, when the standby may already know of records to come.
    return 0 < ahead <= behind and standby.metrics().series("changelog_records_remaining") == [0.0]


def _handed_over(arrivals: Arrivals, before: int, end: Callable[[], None], follower: Service) -> float:
    """End the owner when it has begun with the next part, and return the seconds until another one reads the input.

    Args:
        arrivals: of all parts.
        before: messages of the parts before.
        end: ends the owner.
        follower: the other one.
    """
    wait_until(lambda: arrivals.count() > before, "the owner is at work")
    began = datetime.now(UTC)
    end()
    wait_until(lambda: bool(follower.events("partitions_assigned")), "the other one reads")
    moment = datetime.fromisoformat(follower.events("partitions_assigned")[0]["timestamp"])
    return (moment - began).total_seconds()


# ---------------------------------------------------------------------------------------------------- the scene


def test_second_replica_stands_by_and_follows(scene: Scene) -> None:
    """It follows an active one to the end of the changelog, is ready by all probes, and decides nothing."""
    assert scene.standby == {
        "roles": ("active", "standby"),
        "probes": dict.fromkeys(("/startupz", "/healthz", "/readyz"), (200, 200)),
        "assigned": [0.0],
        "articles": {},
    }


def test_replica_of_other_settings_is_refused(scene: Scene) -> None:
    """It ends with exit code 1, names the changelog it cannot follow, and creates none; the others carry on."""
    code, log, (changelog,) = scene.refused
    assert code == 1
    assert changelog in log
    assert "state rebuild" in log


def test_standby_takes_over_at_once_after_sigterm(scene: Scene, record_property: Callable[[str, object], None]) -> None:
    """An owner that gets SIGTERM hands over within moments and ends with exit code 0."""
    record_property("seconds from SIGTERM to reading", round(scene.after["SIGTERM"], 2))
    assert 0 < scene.after["SIGTERM"] < _AFTER_SIGTERM


def test_standby_takes_over_after_sigkill_once_the_session_has_run_out(
    scene: Scene, record_property: Callable[[str, object], None]
) -> None:
    """Until its session expires, a killed owner looks like a slow one; then the standby takes over by itself."""
    record_property("seconds from SIGKILL to reading", round(scene.after["SIGKILL"], 2))
    assert 0 < scene.after["SIGKILL"] < _AFTER_SIGKILL


def test_each_message_comes_out_once_over_all_lives(scene: Scene) -> None:
    """No life loses or repeats what another one was working on: each message has one output."""
    whole = [_number(record) for record in (*scene.outputs.unique, *scene.outputs.dead)]
    links = [record.json()["offset"] for record in scene.outputs.duplicates]
    assert sorted(whole + links) == list(range(len(scene.sent)))


def test_decisions_over_all_lives_are_those_of_one_engine(scene: Scene) -> None:
    """The replicas decide as a single engine does: the same copies of the same articles, in the same order."""
    links = [
        (link["offset"], link["duplicate_of"], link["matched"], link["relation"])
        for link in (record.json() for record in scene.outputs.duplicates)
    ]
    assert links == list(_links_of_one_engine(scene))


def _number(record: Record) -> int:
    return int(dict(record.headers)["number"] or b"")


def _links_of_one_engine(scene: Scene) -> Iterator[tuple[int, str, str, str]]:
    """Yield offset, canonical article, matched article and relation of each link."""
    numbers, articles = zip(*_articles(scene.sent), strict=True)
    with Deduplicator() as engine:
        for number, decision in zip(numbers, engine.add_batch(articles), strict=True):
            if decision.link is not None and not decision.unique:
                yield number, decision.link.duplicate_of, decision.link.matched, decision.link.relation


def _articles(sent: list[Incoming]) -> Iterator[tuple[int, Article]]:
    """Yield the articles among messages, with their numbers."""
    decoder = Decoder(InputSettings())
    for number, message in enumerate(sent):
        try:
            item = decoder.decode(message.value, time.time_ns() // 1_000_000, key=message.key)
        except UndecodableError:
            continue
        if isinstance(item, Article):
            yield number, item


def test_hand_over_judges_nothing_in_silence(scene: Scene) -> None:
    """The changelog had everything the input's group had committed: no state was behind it."""
    for service in scene.lives:
        assert not service.events("judged_again_in_silence")


# ------------------------------------------------------------------------------------------- what is not allowed


@dataclass(frozen=True, slots=True)
class Alone:
    """A working service, for others to interfere with.

    Attributes:
        topics: of the run.
        service: it has judged one article.
        directory: for the others to use.
    """

    topics: Topics
    service: Service
    directory: Path


@pytest.fixture
def alone(bootstrap: str, tmp_path: Path) -> Iterator[Alone]:
    """A service that has judged one article."""
    topics, directory = fresh_topics(bootstrap), tmp_path / "other"
    directory.mkdir()
    produce(bootstrap, topics.input, [article("one", "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开。")])
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 1, service)
        yield Alone(topics, service, directory)


def test_fenced_owner_ends_with_its_own_exit_code(bootstrap: str, alone: Alone) -> None:
    """Once someone else writes with its transactional id, it writes nothing more and ends with exit code 4."""
    (changelog,) = changelogs(bootstrap, alone.topics)
    usurper = Producer({"bootstrap.servers": bootstrap, "transactional.id": changelog, "log_level": 0})
    usurper.init_transactions(ADMIN_SECONDS)
    produce(bootstrap, alone.topics.input, [article("two", _OTHER)])
    assert alone.service.wait_end() == 4
    assert "another process has taken over" in alone.service.log()
    assert collect(bootstrap, alone.topics, 0).total() == 1


def test_owner_that_was_passed_over_stands_by_and_owns_again_later(bootstrap: str, alone: Alone) -> None:
    """A process frozen for longer than its session finds another owner, follows it, and may succeed it."""
    first, topics = alone.service, alone.topics
    with Service(alone.directory, bootstrap, topics) as second:
        wait_until(lambda: _role(second) == "standby", "the second stands by")
        first.pause()
        wait_until(lambda: _role(second) == "active", "the second is active", _AFTER_SIGKILL)
        first.resume()
        wait_until(lambda: _role(first) == "standby", "the first stands by")
        wait_until(lambda: _rests(first.metrics()), "it says that it does not read")
        produce(bootstrap, topics.input, [article("two", _OTHER)])
        assert len(collect(bootstrap, topics, 2, second).unique) == 2
        second.stop()
    wait_until(lambda: first.metrics().series("ready") == [1.0], "the first reads again")
    produce(bootstrap, topics.input, [article("three", f"本报讯 {_OTHER}")])
    outputs = collect(bootstrap, topics, 3, first)
    assert outputs.links()["three"]["duplicate_of"] == "two"
    first.stop()
