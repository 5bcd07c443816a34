"""What a real service writes to its log: only events, and no text of articles.

Knows lines and texts that must not be in them; knows nothing of what is decided.
"""

import json
import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stream_dedup.observe.events import GROUPS
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import Outputs, collect
from tests.stream.service import Service
from tests.stream.topics import fresh_topics
from tests.stream.waiting import wait_until

_MARK = "绝密标记"  # in each text, in different places
_ASCII_MARK = "CONFIDENTIALMARK"
_TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105  # used only in this test
_BODY = f"花椒树上的空中小道{_MARK}，村里修了三年，老人们说{_ASCII_MARK}从前要绕二十里山路才能到镇上。" * 3
_TITLE = f"{_MARK}：山路 {_ASCII_MARK}"
_START_SECONDS = 120.0  # for the API, whose loops may compile


def _articles() -> list[Incoming]:
    """Return valid articles: new ones, and copies and revisions of every relation."""
    shared = {"title": _TITLE, "source": "石桥资讯"}
    others = [
        f"第{n}条{_MARK}：" + "".join(chr(0x4E00 + (n * 97 + k * 31) % 2_000) for k in range(120)) for n in range(8)
    ]
    return [
        article("one", _BODY, **shared),
        article("exact", _BODY, **shared),
        article("near", f"本报讯 {_BODY} 完", **shared),
        article("cut", _BODY[: len(_BODY) // 2], **shared),
        article("round-up", "".join([_BODY, *others]), **shared),
        article("one", others[0] * 2, **shared),
        article("one", others[0] * 2, **shared),
        *(article(f"n{n}", text, **shared) for n, text in enumerate(others)),
        Incoming(None, b"near"),
    ]


def _broken() -> list[Incoming]:
    """Return messages that cannot be judged, each containing the text."""
    sound: dict[str, Any] = {"id": "x", "body": _BODY, "title": _TITLE}
    objects: list[Any] = [
        {**sound, "title": {"text": _TITLE}},
        {**sound, "id": {"text": _TITLE}},
        {**sound, "id": _BODY * 10},
        {**sound, "title": _TITLE * 500},
        {**sound, "body": [_BODY]},
        {**sound, "published_at": _TITLE},
        {**sound, "published_at": "2999-01-01"},
        {**sound, "deleted": _TITLE},
        {"id": "x", "title": _TITLE, "text": _BODY},
        {"id": _TITLE, "deleted": True},
        [sound],
        _BODY,
    ]
    values = [json.dumps(one, ensure_ascii=False).encode() for one in objects]
    whole = json.dumps(sound, ensure_ascii=False)
    halves = [whole[:-20].encode(), whole.encode("gbk"), whole.replace("}", ', "n": NaN}').encode()]
    ascii_only = json.dumps(sound)  # with \\u escapes
    return [
        *map(Incoming, [*values, *halves, ascii_only[:-30].encode()]),
        Incoming(None, _TITLE.encode()),
        Incoming(whole.encode(), headers=[("content-type", b"application/cloudevents+json")]),
        Incoming(whole.encode(), headers=[("ce_specversion", _TITLE.encode())]),
    ]


@dataclass(frozen=True, slots=True)
class Run:
    """Valid and broken messages through one service, with its API.

    Attributes:
        outputs: what came out.
        lines: of the log, of both processes.
        log: the raw log.
    """

    outputs: Outputs
    lines: list[dict[str, Any]]
    log: str


@pytest.fixture(scope="module")
def run(bootstrap: str, compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Run:  # noqa: ARG001  # needed for its effect
    """See `Run`."""
    topics, sent = fresh_topics(bootstrap), [*_articles(), *_broken(), *_articles()]
    flags = (
        "log.level=info",
        "input.cloudevents=accept",
        "idf.first_epoch_articles=10",
        "api.enabled=true",
        "api.port=0",
    )
    directory = tmp_path_factory.mktemp("logged")
    environment = {"STREAM_DEDUP_API__TOKEN": _TOKEN}
    with Service(directory, bootstrap, topics, *flags, environment=environment) as service:
        produce(bootstrap, topics.input, sent)
        outputs = collect(bootstrap, topics, len(sent), service)
        wait_until(lambda: bool(service.events("answering")), "the API", _START_SECONDS)
        _ask(service.events("answering")[-1]["api"])
        os.kill(service.pid, signal.SIGUSR1)
        wait_until(lambda: bool(service.events("stacks_asked_for")), "the stacks")
        service.stop()
        log = service.log()
    return Run(outputs, [json.loads(line) for line in log.splitlines()], log)


def _ask(api: str) -> None:
    """Query the API with the text, correctly and incorrectly."""
    with httpx2.Client(base_url=api, timeout=20, headers={"Authorization": f"Bearer {_TOKEN}"}) as client:
        assert client.post("/v1/similar", json={"body": _BODY, "title": _TITLE}).status_code == 200
        assert client.post("/v1/similar", json={"text": _BODY}).status_code == 422
        assert client.post("/v1/similar", content=_BODY.encode()).status_code == 415
        kind = {"Content-Type": "application/json"}
        assert client.post("/v1/similar", content=_BODY.encode(), headers=kind).status_code == 400
        assert client.get("/v1/article", params={"id": _TITLE}).status_code == 404
        assert client.get("/v1/reason", params={"id": "near", "other": _BODY}).status_code == 404


def test_messages_came_out_as_they_were_meant(run: Run) -> None:
    """There were valid and broken ones, and the dead letters, unlike the log, do contain the text."""
    relations = {record.json()["relation"] for record in run.outputs.duplicates}
    assert {"exact", "near", "contains", "redelivery", "withdrawn"} <= relations
    reasons = {record.own("reason") for record in run.outputs.dead}
    assert {"invalid_json", "invalid_utf8", "wrong_type", "invalid_time", "too_large", "invalid_event"} <= reasons
    assert _MARK in str([record.own("exception") for record in run.outputs.dead])


def test_every_line_is_an_event_of_the_catalogue(run: Run) -> None:
    """JSON, with a time, the level and the fields that the catalogue lists."""
    catalogue = {event.name: event for events in GROUPS.values() for event in events}
    assert {"starting", "active", "epoch", "answering", "stopped"} <= {line["event"] for line in run.lines}
    for line in run.lines:
        event = catalogue[line["event"]]
        assert line["level"] == event.level
        assert datetime.fromisoformat(line["timestamp"]).tzinfo is UTC
        assert {*line} - {"timestamp", "level", "event", "repeated"} <= {*event.fields}


def test_no_line_holds_text_of_an_article(run: Run) -> None:
    """Neither verbatim nor escaped, at level info."""
    for written in (_MARK, json.dumps(_MARK)[1:-1], repr(_MARK.encode())[2:-1], _ASCII_MARK):
        assert written not in run.log


def test_no_line_holds_a_secret(run: Run) -> None:
    """The API's token is in none, though requests carried it."""
    assert _TOKEN not in run.log


def test_end_with_a_message_is_an_event(bootstrap: str, tmp_path: Path) -> None:
    """What people would see as a line of text is a JSON event, with the exit code."""
    topics = fresh_topics(bootstrap)
    with Service(tmp_path, bootstrap, topics, "http.host=no-such-host.invalid") as service:
        assert service.wait_end() == 1
    lines = [json.loads(line) for line in service.log().splitlines()]
    assert [(line["event"], line["level"], line["exit_code"]) for line in lines][-1] == ("failed", "error", 1)
    assert "http.host" in lines[-1]["error"]
