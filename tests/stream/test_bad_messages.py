"""Faulty, huge and repeated messages: each comes out once, where it belongs, and none stops the service.

Knows what crawlers get wrong and the reasons of dead letters; how a message is decoded is tested in tests/unit.
"""

import base64
import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tests.engine.samples import bodies
from tests.stream.messages import Headers, Incoming, article, produce
from tests.stream.numbered import number_of, numbered, numbers_of
from tests.stream.records import Outputs, Record, collect
from tests.stream.service import Service
from tests.stream.topics import create_topic, fresh_topics, named_topics

pytestmark = pytest.mark.usefixtures("compiled")

_DEFAULT_LIMIT = 1_048_588  # Kafka's own max.message.bytes
_LARGEST_VALUE = _DEFAULT_LIMIT - (64 << 10)  # the rest is for key and headers


class Bad(NamedTuple):
    """A faulty message from a crawler, and its expected fate: `unique`, a relation, or the reason of a dead letter."""

    value: bytes | None
    fate: str
    key: bytes | None = None


_TEXT, _FIRST, *_TEXTS = bodies()
_NOW = int(time.time())
_HALVES = {"url": "http://a/\ude00", "source": "\ud83d"}


def _json(**fields: object) -> bytes:
    """Return a sound article with some fields changed; half an emoji is written as its escape."""
    return json.dumps({"id": "bad", "body": _TEXT, **fields}, ensure_ascii=False).encode(errors="backslashreplace")


# In the order in which they are sent. Those that are judged have texts of their own, to be no copies of one another.
_BAD = {
    "null value, unknown key": Bad(None, "unknown_article", b"tombstone"),
    "null value without key": Bad(None, "null_value"),
    "null value, blank key": Bad(None, "null_value", b" \n"),
    "null value, key of no text": Bad(None, "null_value", b"\xff\xfe"),
    "null value, endless key": Bad(None, "null_value", b"k" * 513),
    "withdrawn without a name": Bad(b'{"deleted": true}', "missing_field"),
    "withdrawn, unknown": Bad(b'{"id": "nobody", "deleted": true}', "unknown_article"),
    "withdrawn by a word": Bad(b'{"id": "nobody", "deleted": "yes"}', "wrong_type"),
    "empty value": Bad(b"", "invalid_json"),
    "empty body": Bad(_json(body=""), "empty_body"),
    "blank body": Bad(_json(body=" \u3000\n\t\u00a0"), "empty_body"),
    "null body": Bad(_json(body=None), "missing_field"),
    "no body": Bad(b'{"id": "bad", "title": "x"}', "missing_field"),
    "empty object": Bad(b"{}", "missing_field"),
    "body of 10 MB": Bad(_json(body="x" * (10 << 20)), "too_large"),
    "body of 10 MB of Han": Bad(_json(body="水" * ((10 << 20) // 3)), "too_large"),
    "body over the characters": Bad(_json(body="y" * 1_000_001), "too_large"),
    "endless title": Bad(_json(title="t" * 2001), "too_large"),
    "invalid UTF-8": Bad(b'{"id": "bad", "body": "' + _TEXT.encode()[:-1] + b'"}', "invalid_utf8"),
    "invalid UTF-8 key": Bad(b"nonsense", "invalid_json", b"\xff\xfe\x00"),
    "cut off": Bad(_json()[:-20], "invalid_json"),
    "two objects": Bad(b'{"id": 1, "body": "x"} {"id": 2}', "invalid_json"),
    "not a number": Bad(b'{"id": "bad", "body": "x", "n": NaN}', "invalid_json"),
    "deep nesting": Bad(b"[" * 200_000, "invalid_json"),
    "array": Bad(b"[]", "not_an_object"),
    "string": Bad(b'"text"', "not_an_object"),
    "number": Bad(b"42", "not_an_object"),
    "null": Bad(b"null", "not_an_object"),
    "body is a number": Bad(_json(body=7), "wrong_type"),
    "body is a list": Bad(_json(body=["x"]), "wrong_type"),
    "title is an object": Bad(_json(title={}), "wrong_type"),
    "url is a number": Bad(_json(url=5), "wrong_type"),
    "id is an object": Bad(_json(id={"a": 1}), "wrong_type"),
    "id is a boolean": Bad(_json(id=True), "wrong_type"),
    "time is a list": Bad(_json(published_at=[]), "wrong_type"),
    "time is nonsense": Bad(_json(published_at="昨天"), "invalid_time"),
    "time is before 1900": Bad(_json(published_at="1066-10-14"), "invalid_time"),
    "time is far ahead": Bad(_json(published_at="2999-01-01"), "future_time"),
    "time is a year ahead": Bad(_json(published_at=1000 * (_NOW + 400 * 86_400)), "future_time"),
    "time is an hour ahead": Bad(_json(id="early", published_at=_NOW + 3600, body=_TEXTS[0]), "unique"),
    "endless id": Bad(_json(id="x" * 513), "invalid_id"),
    "half an emoji as id": Bad(_json(id="\ud83d"), "invalid_id"),
    "half an emoji in the body": Bad(_json(id="half", body=f"{_TEXTS[1]}\ud83d"), "unique"),
    "endless character reference": Bad(_json(id="endless", body=f"{'r' * 40}&#{'1' * 5_000};"), "unique"),
    "half an emoji everywhere else": Bad(_json(id="halves", body=_TEXTS[2], title="\ud83d", **_HALVES), "unique"),
    "copy with half an emoji in its URL": Bad(_json(id="halves again", body=_TEXTS[3], **_HALVES), "unique"),
    "no id": Bad(json.dumps({"body": _TEXTS[4]}).encode(), "unique"),
    "integer id": Bad(_json(id=2**63 - 1, body=_TEXTS[5]), "unique"),
    "integer id beyond 64 bits": Bad(_json(id=123456789012345678901234567890, body="q" * 40), "unique"),
    "first of an id": Bad(_json(id="known", body=_FIRST), "unique"),
    "same id, same text": Bad(_json(id="known", body=_FIRST, title="another headline"), "redelivery"),
    "same id, other text": Bad(_json(id="known", body=_TEXTS[6]), "unique"),
    "same id, first text again": Bad(_json(id="known", body=_FIRST), "redelivery"),
}


@dataclass(frozen=True, slots=True)
class BadRun:
    """The bad messages, 10,000 identical ones, and a normal article with its copy, through one service.

    Attributes:
        repeats: how many identical messages there were.
        seconds: of CPU that the service took for them.
        outputs: everything that came out.
        links: links by offset.
        whole: unique articles and dead letters by number.
    """

    repeats: int
    seconds: float
    outputs: Outputs
    links: dict[int, dict[str, Any]]
    whole: dict[int, Record]


@pytest.fixture(scope="module")
def bad_run(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> BadRun:
    """The bad messages through a service whose topic of dead letters has Kafka's default limit of 1 MB."""
    topics, repeats = fresh_topics(bootstrap, dead_bytes=_DEFAULT_LIMIT), 10_000
    same = article("same", bodies()[50])
    last = [article("normal", bodies()[60]), article("its copy", "本报讯 " + bodies()[60])]
    sent = numbered([*(Incoming(one.value, one.key) for one in _BAD.values()), *[same] * repeats, *last])
    with Service(tmp_path_factory.mktemp("bad"), bootstrap, topics) as service:
        service.wait_ready()
        before = _cpu_seconds(service)
        assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
        outputs = collect(bootstrap, topics, len(sent), service)
        seconds = _cpu_seconds(service) - before
        service.stop()
    return BadRun(
        repeats,
        seconds,
        outputs,
        {record.json()["offset"]: record.json() for record in outputs.duplicates},
        {number_of(record): record for record in (*outputs.unique, *outputs.dead)},
    )


def _cpu_seconds(service: Service) -> float:
    return sum(psutil.Process(service.pid).cpu_times()[:2])


def test_bad_messages_come_out_exactly_once(bad_run: BadRun) -> None:
    """Whatever comes in comes out once; nothing stops the service."""
    assert numbers_of(bad_run.outputs) == list(range(len(_BAD) + bad_run.repeats + 2))


@pytest.mark.parametrize("name", _BAD)
def test_bad_message_ends_where_it_belongs(bad_run: BadRun, name: str) -> None:
    """Each bad message is judged, or becomes a dead letter with the right reason and its key unchanged."""
    number, bad = list(_BAD).index(name), _BAD[name]
    link, record = bad_run.links.get(number), bad_run.whole.get(number)
    if bad.fate == "redelivery":
        assert link is not None
        assert link["relation"] == bad.fate
        return
    assert record is not None
    if bad.fate == "unique":
        assert record.value == bad.value
        assert record.own("reason") is None
    else:
        assert record.own("reason") == bad.fate
        assert record.key == bad.key


def test_revision_goes_on_under_its_id_and_says_so(bad_run: BadRun) -> None:
    """Another text under a known id reaches readers of unique articles, marked as a revision."""
    record = bad_run.whole[list(_BAD).index("same id, other text")]
    assert record.key == b"known"
    assert (record.own("relation"), record.own("matched")) == ("revision", "known")


def test_value_larger_than_the_dead_topic_takes_is_left_out(bad_run: BadRun) -> None:
    """If a value is too large for the topic of dead letters, the letter is sent without it and says so."""
    large = {name for name, bad in _BAD.items() if bad.value and len(bad.value) > _LARGEST_VALUE}
    assert len(large) == 3
    for number, (name, bad) in enumerate(_BAD.items()):
        record = bad_run.whole.get(number)
        if name in large:
            assert record is not None
            assert record.value is None
            assert re.match(rf"{len(bad.value or b'')} bytes", record.own("value_left_out") or "")
        elif record is not None:
            assert record.value == bad.value
            assert record.own("value_left_out") is None


def test_ten_thousand_identical_messages_give_one_article(bad_run: BadRun) -> None:
    """Of 10,000 identical messages, the first is unique and the others are redeliveries, in reasonable time."""
    first = len(_BAD)
    assert bad_run.whole[first].key == b"same"
    links = [bad_run.links[first + place] for place in range(1, bad_run.repeats)]
    assert Counter((link["relation"], link["duplicate_of"]) for link in links) == {
        ("redelivery", "same"): bad_run.repeats - 1
    }
    assert bad_run.seconds < 30


def test_normal_article_is_judged_after_bad_ones(bad_run: BadRun) -> None:
    """After all bad messages, a normal article is unique and its copy is linked to it."""
    last = len(_BAD) + bad_run.repeats
    assert bad_run.whole[last].key == b"normal"
    assert bad_run.links[last + 1]["duplicate_of"] == "normal"


def test_message_that_no_output_takes_does_not_stop_the_service(bootstrap: str, tmp_path: Path) -> None:
    """Messages whose values fit the outputs, but not together with headers or key, do not block it."""
    topics = named_topics()
    create_topic(bootstrap, topics.input)
    for name in topics.outputs:
        create_topic(bootstrap, name, max_bytes=_DEFAULT_LIMIT)
    rng = random.Random(1)  # incompressible
    image, more = base64.b64encode(rng.randbytes(700_000)).decode(), rng.randbytes(200_000)
    sound = Incoming(json.dumps({"id": "heavy", "body": bodies()[0], "image": image}).encode())
    broken = Incoming(json.dumps({"id": "broken", "image": image}).encode())
    one: Headers = [("screenshot", more)]
    # Fewer characters than bytes, and no more than librdkafka reads.
    many: Headers = [(f"标{number}", None) for number in range(100_000)]
    heavy = [replace(message, headers=headers) for message in (sound, broken) for headers in (one, many)]
    sent = [*heavy, replace(broken, key=more), article("light", bodies()[1])]
    with Service(tmp_path, bootstrap, topics, "kafka.producer.compression.type=none") as service:
        produce(bootstrap, topics.input, sent)
        outputs = collect(bootstrap, topics, len(sent), service)
        assert outputs.total() == len(sent)
        assert [record.key for record in outputs.unique] == [b"light"]
        service.stop()
