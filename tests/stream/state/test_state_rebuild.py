"""`state rebuild`: what was decided is judged again with other settings, and none of it comes out again.

Knows commands, topics and the group's offsets; knows nothing of the state's bytes.
"""

import json
import shutil
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.demo.samples import sample_stream
from stream_dedup.engine.state import State
from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.input import history as history_
from stream_dedup.stream.input.history import History
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.output.errors import FencedError
from stream_dedup.stream.rebuild import Rebuild
from stream_dedup.stream.state import replay as replay_
from stream_dedup.stream.state.restore import opened_to_read
from tests.engine.samples import bodies
from tests.stream.arguments import set_flags, write_settings
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.service import Service, run_once
from tests.stream.state.site import FLAGS, SEED, Site
from tests.stream.topics import ADMIN_SECONDS, changelogs, create_topic, delete_group, delete_topic, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_MANY = 200  # batches, most of them empty: more than needed
_OTHER = ("sketch.gram=4", "idf.epoch_articles=100")


def test_rebuilt_state_is_taken_by_the_next_start(bootstrap: str, tmp_path: Path) -> None:
    """The service refuses other settings; after a rebuild beside it, the next start accepts them and repeats nothing.

    What the old service decides after the rebuild is judged again at that start, and not published.
    """
    topics = fresh_topics(bootstrap, partitions=2)
    samples = [sample for sample in sample_stream(SEED) if sample.dead_reason is None]
    messages = [Incoming(sample.value, sample.key, partition=at % 2) for at, sample in enumerate(samples)]
    half = len(messages) // 2
    with Service(tmp_path, bootstrap, topics, *FLAGS) as service:
        site = Site(bootstrap, topics, tmp_path, service, len(messages))
        produce(bootstrap, topics.input, messages[:half])
        collect(bootstrap, topics, half, service)
        code, _, refused = _run(site, _OTHER)
        assert (code, "sketch.gram" in refused, "state rebuild" in refused) == (1, True, True)
        code, printed, told = site.state("rebuild", flags=(*FLAGS, *_OTHER))
        assert code == 0, told
        assert "the next start will use it" in printed
        assert collect(bootstrap, topics, half, service).total() == half  # it published nothing
        produce(bootstrap, topics.input, messages[half:])
        before = collect(bootstrap, topics, len(messages), service)
        service.stop()
    assert len(changelogs(bootstrap, topics)) == 2
    copies = [
        article(f"late-{at}", _body(sample.value)) for at, sample in enumerate(samples[:20] + samples[half:][:20])
    ]
    with Service(tmp_path, bootstrap, topics, *FLAGS, *_OTHER) as service:
        service.wait_ready()
        produce(bootstrap, topics.input, copies)
        after = collect(bootstrap, topics, len(messages) + len(copies), service)
        wait_until(lambda: bool(service.events("judged_again_in_silence")), "it says what it judges again")
        service.stop()
    assert after.total() == before.total() + len(copies)
    new = {record.json()["id"] for record in after.duplicates} - {record.json()["id"] for record in before.duplicates}
    assert new == {f"late-{at}" for at in range(len(copies))}
    assert replace(site, service=service).state("verify", flags=(*FLAGS, *_OTHER))[0] == 0


def test_rebuild_knows_what_was_decided_or_says_that_nobody_does(bootstrap: str, tmp_path: Path) -> None:
    """Without the group's offsets a rebuild would judge nothing, so it is refused; a start commits them again."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, [article("a", _body(sample_stream(SEED)[0].value))])
    with Service(tmp_path, bootstrap, topics, *FLAGS) as service:
        site = Site(bootstrap, topics, tmp_path, service, 1)
        collect(bootstrap, topics, 1, service)
        service.stop()
    delete_group(bootstrap, topics.group)
    for _ in range(2):
        code, _, told = site.state("rebuild", flags=(*FLAGS, *_OTHER))
        assert (code, f"the group {topics.group} has no offsets" in told) == (1, True)
    assert len(changelogs(bootstrap, topics)) == 1  # a refusal leaves nothing behind
    with Service(tmp_path, bootstrap, topics, *FLAGS) as service:
        wait_until(lambda: bool(service.events("partitions_assigned")), "it reads the input")
        service.stop()
    code, printed, told = site.state("rebuild", flags=(*FLAGS, *_OTHER))
    assert (code, "1 article judged" in printed) == (0, True), told


def test_state_from_before_a_topic_was_made_anew_goes_on_behind_what_was_decided_since(
    bootstrap: str, tmp_path: Path
) -> None:
    """After other settings, under which the topic was recreated, and the first ones again, nothing comes out twice.

    The first state's offsets are of the old topic. Even a state that was only rebuilt knows which topic its offsets are
    of.
    """
    topics = fresh_topics(bootstrap)
    messages = (article(name, body) for name, body in zip("abcdefghijk", bodies(), strict=False))
    site = None

    def decided(count: int, total: int, flags: tuple[str, ...]) -> list[str]:
        nonlocal site
        produce(bootstrap, topics.input, [next(messages) for _ in range(count)])
        with Service(tmp_path, bootstrap, topics, *FLAGS, *flags) as service:
            site = site or Site(bootstrap, topics, tmp_path, service, total)
            outputs = collect(bootstrap, topics, total, service)
            service.stop()
        return sorted((record.key or b"").decode() for record in (*outputs.unique, *outputs.duplicates))

    decided(5, 5, ())
    assert site is not None
    code, _, told = site.state("rebuild", flags=(*FLAGS, *_OTHER))
    assert code == 0, told
    delete_topic(bootstrap, topics.input)
    create_topic(bootstrap, topics.input)
    assert decided(4, 9, _OTHER) == list("abcdefghi")  # the rebuilt state's offset 5 is of a deleted topic
    assert decided(2, 11, ()) == list("abcdefghijk")


def test_what_was_decided_of_a_deleted_topic_hides_nothing_of_the_new_one(bootstrap: str, tmp_path: Path) -> None:
    """A service that has not noticed yet stores offsets for the deleted topic, and a new state knows neither topic.

    A rebuild says that it does not know what was decided; a start without state and changelog reads from the beginning.
    """
    topics = fresh_topics(bootstrap)
    names = list("abcdefgh")
    messages = [article(name, body) for name, body in zip(names, bodies(), strict=False)]
    produce(bootstrap, topics.input, messages[:3])
    with Service(tmp_path, bootstrap, topics, *FLAGS) as service:
        site = Site(bootstrap, topics, tmp_path, service, 3)
        collect(bootstrap, topics, 3, service)
        service.stop()
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as group:
        (stored,) = group.committed([TopicPartition(topics.input, 0)], ADMIN_SECONDS)
        delete_topic(bootstrap, topics.input)
        create_topic(bootstrap, topics.input)
        produce(bootstrap, topics.input, messages[3:])
        late = TopicPartition(topics.input, 0, 3, metadata=stored.metadata)
        group.commit(offsets=[late], asynchronous=False)
    told = site.refusal("rebuild", flags=(*FLAGS, *_OTHER))
    assert f"the group {topics.group} has offsets only in a deleted topic {topics.input}" in told
    shutil.rmtree(tmp_path / "state")
    for changelog in changelogs(bootstrap, topics):
        delete_topic(bootstrap, changelog)
    with Service(tmp_path, bootstrap, topics, *FLAGS) as service:
        outputs = collect(bootstrap, topics, len(names), service)
        service.stop()
    assert sorted((record.key or b"").decode() for record in (*outputs.unique, *outputs.duplicates)) == names


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_settings_of_a_running_service_are_not_rebuilt(bootstrap: str, tmp_path: Path, guarantee: str) -> None:
    """Two writers would ruin the changelog, or one would fence the other: a forgotten `--set` is refused."""
    topics, flags = fresh_topics(bootstrap), (*FLAGS, f"commit.guarantee={guarantee}")
    produce(bootstrap, topics.input, [article("a", bodies()[0])])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 1, service)
        site = Site(bootstrap, topics, tmp_path, service, 1)
        code, _, told = site.state("rebuild", flags=(*flags, f"state.directory={tmp_path / 'elsewhere'}"))
        assert (code, "a service with these settings is running" in told) == (4, True), told
        assert not (tmp_path / "elsewhere").exists()
        produce(bootstrap, topics.input, [article("b", bodies()[1])])
        collect(bootstrap, topics, 2, service)
        service.stop()


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_rebuild_ends_before_it_writes_beside_a_service(bootstrap: str, tmp_path: Path, guarantee: str) -> None:
    """A service with the new settings, on another machine, may be started too early; it continues what is there."""
    topics, size = fresh_topics(bootstrap), 12
    flags = (*FLAGS, "commit.articles=2", f"commit.guarantee={guarantee}")
    produce(bootstrap, topics.input, [article(f"{at}", body) for at, body in enumerate(bodies()[:size])])
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as group:
        group.commit(offsets=[TopicPartition(topics.input, 0, size)], asynchronous=False)
    settings = load_settings(write_settings(tmp_path, bootstrap, topics), {}, (*flags, f"state.directory={tmp_path}/r"))
    with ExitStack() as running:
        services: list[Service] = []

        def start(*_: object) -> None:
            if not services:
                services.append(running.enter_context(Service(tmp_path, bootstrap, topics, *flags)))
                services[0].wait_ready()
                wait_until(lambda: bool(services[0].events("partitions_assigned")), "it reads the input")

        with pytest.raises(FencedError):
            Rebuild(settings, start, Event()).run()
        produce(bootstrap, topics.input, [article("late", bodies()[size])])
        collect(bootstrap, topics, 1, services[0])
        services[0].stop()
    code, printed, told = Site(bootstrap, topics, tmp_path, services[0], size).state("verify", flags=flags)
    assert (code, "consistent" in printed) == (0, True), told


def test_history_ends_where_the_rest_of_it_is_deleted_meanwhile(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention may delete what is still to be judged again, and nothing new may ever arrive in that partition."""
    monkeypatch.setattr(history_, "_READ_MESSAGES", 1)  # at a time: otherwise all might be read in a tenth of a second
    topics, size = fresh_topics(bootstrap), 40
    for at in range(size):
        produce(bootstrap, topics.input, [article(f"{at}", "很" * 1_000)])  # each fetched separately
    kafka = {
        "bootstrap.servers": bootstrap,
        "consumer.queued.max.messages.kbytes": "1",
        "consumer.fetch.message.max.bytes": "1024",
    }
    settings = Settings.model_validate(
        {"input": {"topics": [topics.input], "group": topics.group}, "kafka": kafka, "commit": {"articles": 1}}
    )
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as group:
        group.commit(offsets=[TopicPartition(topics.input, 0, size)], asynchronous=False)
    with closing(History(settings, {})) as history:
        batches = history.batches()
        assert any(next(batches) for _ in range(_MANY))
        rest = TopicPartition(topics.input, 0, size)
        admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: a client that is freed drops its requests
        admin.delete_records([rest])[rest].result(ADMIN_SECONDS)
        assert None in (next(batches, None) for _ in range(_MANY))
        assert history.done < size


def test_stop_between_two_groups_of_replayed_commits_leaves_a_state_that_goes_on_from_there(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine, a rebuild first replays what the first one has judged."""
    monkeypatch.setattr(replay_, "_GROUP_ARTICLES", 4)
    topics, size = fresh_topics(bootstrap), 12
    produce(bootstrap, topics.input, [article(f"{at}", body) for at, body in enumerate(bodies()[:size])])
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as group:
        group.commit(offsets=[TopicPartition(topics.input, 0, size)], asynchronous=False)
    path, one_group = write_settings(tmp_path, bootstrap, topics), "commit.articles=4"
    first, second = (
        load_settings(path, {}, (*FLAGS, one_group, f"state.directory={tmp_path / name}")) for name in ("one", "two")
    )
    assert Rebuild(first, lambda *_: None, Event()).run() == size
    stopping, replay = Event(), State.replay

    def replay_and_stop(*given: Any) -> None:  # noqa: ANN401  # whatever it is given
        replay(*given)
        stopping.set()

    with monkeypatch.context() as patched:
        patched.setattr(State, "replay", replay_and_stop)
        with pytest.raises(BrokerError, match="the changelog was being replayed: run the same command again"):
            Rebuild(second, lambda *_: None, stopping).run()
    assert _judged(second) == 4
    assert Rebuild(second, lambda *_: None, Event()).run() == 0
    assert _judged(second) == size


def _judged(settings: Settings) -> int:
    with opened_to_read(settings) as (_, state):
        return state.progress.judged


def _run(site: Site, flags: tuple[str, ...]) -> tuple[int, str, str]:
    settings = write_settings(site.directory, site.bootstrap, site.topics)
    ended = run_once("run", "--config", str(settings), *set_flags((*FLAGS, *flags)))
    return ended.returncode, ended.stdout, ended.stderr


def _body(value: bytes | None) -> str:
    body = json.loads(value or b"{}")["body"]
    assert isinstance(body, str)
    return body
