"""A shadow beside a real service: it reports the difference of two offline runs, and has no effect.

Knows topics and processes; what counts as a disagreement is tested in tests/unit.
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from typer.testing import CliRunner

from deploy.demo.samples import sample_stream
from stream_dedup import Article, Deduplicator
from stream_dedup.article import Decision, Withdrawal
from stream_dedup.cli.main import app
from stream_dedup.decode import Decoder
from stream_dedup.settings import InputSettings, Settings, load_settings
from stream_dedup.stream.input.decoded import decode_all
from tests.stream.messages import Incoming, produce
from tests.stream.records import collect, read_topics
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_LIVE = ["idf.first_epoch_articles=100", "commit.articles=64"]
_SHADOW = ["verify.near_jaccard=0.9", "verify.min_containment=0.97", "verify.numbers_overlap=0.9"]
_MESSAGES = [Incoming(sample.value, sample.key) for sample in sample_stream(20)]

_ALL = ("--from-beginning", "--no-follow", "--json")

Outcome = tuple[bool, str | None, str | None]


def _flags(topics: Topics, *more: str) -> list[str]:
    thresholds = [f"shadow.{flag}" for flag in _SHADOW]
    return [*_LIVE, "shadow.enabled=true", f"shadow.topic={topics.group}.shadow", *thresholds, *more]


def _items(bootstrap: str, topics: Topics) -> list[Article | Withdrawal]:
    """Return the items that the service decodes from its input, with the message times by which articles age."""
    properties = {"bootstrap.servers": bootstrap, "group.id": f"{topics.group}-test"}
    messages: list[Message] = []
    with closing(Consumer(properties)) as consumer:
        consumer.assign([TopicPartition(topics.input, 0, OFFSET_BEGINNING)])
        wait_until(lambda: _read(consumer, messages) >= len(_MESSAGES), "the input")
    return [item for _, item in decode_all(messages, Decoder(InputSettings()), 0).items]


def _read(consumer: Consumer, messages: list[Message]) -> int:
    messages += [message for message in consumer.consume(500, 0.5) if message.error() is None]
    return len(messages)


def _offline(settings: Settings, items: Sequence[Article | Withdrawal]) -> list[Outcome | None]:
    """Return the decision on each item by an in-memory engine: unique, relation and original."""
    with Deduplicator(settings=settings) as engine:
        return [_told(outcome) for outcome in engine.process(items).outcomes]


def _told(outcome: object) -> Outcome | None:
    if not isinstance(outcome, Decision):
        return None
    link = outcome.link
    return outcome.unique, link.relation if link else None, link.duplicate_of if link else None


def _expected(items: Sequence[Article | Withdrawal]) -> list[tuple[str, Outcome, Outcome]]:
    """Return the difference of two offline runs: ids with both decisions, in order."""
    live, shadow = (_offline(load_settings(flags=[*_LIVE, *more]), items) for more in ([], _SHADOW))
    return [
        (item.id, one, other)
        for item, one, other in zip(items, live, shadow, strict=True)
        if one is not None and other is not None and one != other
    ]


def _disagreements(bootstrap: str, topics: Topics, count: int) -> list[tuple[str, Outcome, Outcome]]:
    name = f"{topics.group}.shadow"
    found = [record.json() for record in read_topics(bootstrap, [name], count)[name]]
    return [(one["id"], _side(one["live"]), _side(one["shadow"])) for one in found]


def _side(told: dict[str, Any]) -> Outcome:
    return told["decision"] == "unique", told["relation"], told["duplicate_of"]


def _counted(service: Service) -> tuple[float, float]:
    """Return how many articles the shadow has judged alike, and how many differently."""
    counts = service.metrics().by("shadow_articles_total", "disagreement")
    alike = counts.get(("none",), 0.0)
    return alike, sum(counts.values()) - alike


@pytest.fixture(scope="module")
def filled(bootstrap: str) -> Topics:
    """Topics with a sample stream in the input."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, _MESSAGES)
    return topics


def test_disagreements_are_the_difference_of_two_runs(bootstrap: str, filled: Topics, tmp_path: Path) -> None:
    """All of them, in order, with both decisions; what is published is the same as without a shadow."""
    items = _items(bootstrap, filled)
    expected = _expected(items)
    with Service(tmp_path, bootstrap, filled, *_flags(filled)) as service:
        outputs = collect(bootstrap, filled, len(_MESSAGES), service)
        assert _disagreements(bootstrap, filled, len(expected)) == expected
        # They are counted a moment after they are sent.
        wait_until(lambda: _counted(service)[1] >= len(expected), "all are counted")
        assert _counted(service)[1] == len(expected)
        assert service.metrics().by("shadow_running") == {(): 1}
        service.stop()
    assert len(expected) > 20
    live = [outcome for outcome in _offline(load_settings(flags=_LIVE), items) if outcome is not None]
    published = {(record.key or b"").decode() for record in outputs.unique}
    assert len(published) == sum(unique for unique, _, _ in live)
    links = [record.json() for record in outputs.duplicates]
    decided = [(link["relation"], link["duplicate_of"]) for link in links if link["candidate_source"]]
    assert decided == [(relation, original) for unique, relation, original in live if not unique]


def test_the_command_line_tells_of_a_shadow(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tail --shadow` shows the topic, filtered by either decision, and `status` the number of disagreements."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, _MESSAGES)
    with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
        collect(bootstrap, topics, len(_MESSAGES), service)
        decided = sum(
            outcome is not None for outcome in _offline(load_settings(flags=_LIVE), _items(bootstrap, topics))
        )
        wait_until(lambda: sum(_counted(service)) >= decided, "the shadow")
        alike, otherwise = map(int, _counted(service))
        told = _disagreements(bootstrap, topics, otherwise)
        tailed = [json.loads(line) for line in _command(service, topics, "tail", "--shadow", *_ALL).splitlines()]
        assert [(one["id"], _side(one["live"]), _side(one["shadow"])) for one in tailed] == told
        exact = _command(service, topics, "tail", "--shadow", "--relation", "contained", *_ALL).splitlines()
        assert {json.loads(line)["id"] for line in exact} == {
            name for name, live, shadow in told if "contained" in {live[1], shadow[1]}
        }
        monkeypatch.setattr("stream_dedup.ask.figures._SECONDS", 60.0)  # for an answer of a busy machine
        status = json.loads(_command(service, topics, "status", "--json"))["shadow"]
        assert (status["judging"], status["articles"]) == (True, alike + otherwise)
        assert sum(status["disagreements"].values()) == otherwise > 20
        shown = " ".join(_command(service, topics, "status").split())
        assert f"running {otherwise:,} of {alike + otherwise:,} articles decided differently" in shown


def _command(service: Service, topics: Topics, name: str, *arguments: str) -> str:
    """Return the output of a command beside a service with a shadow."""
    host, port = service.address
    flags = [f"http.host={host}", f"http.port={port}", *_flags(topics)]
    file = service.directory / "stream-dedup.toml"
    done = CliRunner().invoke(
        app, [name, *arguments, "-c", str(file), *(part for flag in flags for part in ("-s", flag))]
    )
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_shadow_goes_on_after_a_stop_and_begins_anew_after_a_gap(bootstrap: str, tmp_path: Path) -> None:
    """It keeps its state if the live state has not moved on; about what it missed it reports nothing."""
    topics = fresh_topics(bootstrap)
    half = len(_MESSAGES) // 2
    produce(bootstrap, topics.input, _MESSAGES[:half])
    with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
        collect(bootstrap, topics, half, service)
        service.stop()
        assert service.events("shadow_begins")
    with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
        wait_until(lambda: bool(service.events("active")), "active")
        wait_until(lambda: bool(service.events("shadow_goes_on")), "the shadow goes on")
        produce(bootstrap, topics.input, _MESSAGES[half:])
        collect(bootstrap, topics, len(_MESSAGES), service)
        service.stop()
    expected = _expected(_items(bootstrap, topics))
    assert _disagreements(bootstrap, topics, len(expected)) == expected
    # Without a shadow its state is useless.
    with Service(tmp_path, bootstrap, topics, *_LIVE) as service:
        wait_until(lambda: bool(service.events("active")), "active")
        wait_until(lambda: not (tmp_path / "state" / "shadow").exists(), "its state is gone")
        service.stop()
    with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
        wait_until(lambda: bool(service.events("shadow_begins")), "the shadow begins anew")
        assert service.events("shadow_begins")[0]["judged"] > 0


def test_a_shadow_that_is_behind_begins_anew(bootstrap: str, tmp_path: Path) -> None:
    """A kill between the live commit and the shadow's leaves one that would miss messages for good."""
    topics = fresh_topics(bootstrap)
    third = len(_MESSAGES) // 3
    behind = tmp_path / "behind"
    for part in range(2):
        produce(bootstrap, topics.input, _MESSAGES[part * third : (part + 1) * third])
        with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
            collect(bootstrap, topics, (part + 1) * third, service)
            service.stop()
        if not part:
            shutil.copytree(tmp_path / "state" / "shadow", behind)
    shutil.rmtree(tmp_path / "state" / "shadow")
    behind.rename(tmp_path / "state" / "shadow")
    produce(bootstrap, topics.input, _MESSAGES[2 * third :])
    with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
        collect(bootstrap, topics, len(_MESSAGES), service)
        (discarded,), (begun,) = service.events("shadow_discarded"), service.events("shadow_begins")
        assert 0 < discarded["judged"] < discarded["live"] == begun["judged"]
        judged = sum(isinstance(item, Article) for item in _items(bootstrap, topics)) - begun["judged"]
        wait_until(lambda: sum(_counted(service)) >= judged, "it judges what came since")
        assert (sum(_counted(service)), service.events("shadow_goes_on")) == (judged, [])
        service.stop()


def test_what_fails_in_the_shadow_does_not_end_the_stream(bootstrap: str, tmp_path: Path) -> None:
    """If its state cannot be created, that is reported once; everything is decided as without a shadow."""
    topics = fresh_topics(bootstrap)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "shadow").write_text("a file where a directory should be")
    produce(bootstrap, topics.input, _MESSAGES[:100])
    with Service(tmp_path, bootstrap, topics, *_flags(topics)) as service:
        assert collect(bootstrap, topics, 100, service).total() >= 100
        assert len(service.events("shadow_ended")) == 1
        assert service.metrics().series("shadow_running") == [0]
        service.stop()
