"""What the service promises: a real process between topics of a real Kafka.

Knows messages, decisions, signals and exit codes; how texts are judged is tested in tests/engine.
"""

import base64
import json
import random
import re
import shutil
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from deploy.broker import KafkaBroker
from deploy.demo.samples import Sample, sample_stream
from deploy.demo.samples.corpus import Form, base_texts
from stream_dedup import Deduplicator
from stream_dedup.index.records.ledger import load_positions
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.stream.kafka.places import IDENTITY
from tests.stream.harness import (
    READY_SECONDS,
    STOP_SECONDS,
    Arrivals,
    Ended,
    Headers,
    Incoming,
    Outputs,
    Record,
    Service,
    Topics,
    article,
    changelogs,
    collect,
    create_topic,
    delete_topic,
    existing_topics,
    fresh_topics,
    named_topics,
    produce,
    read_topics,
    run_once,
    set_flags,
    wait_until,
    write_settings,
)
from tests.stream.recount import counted, recount, told

_FIRST_HAND = ("original", "event-pair", "bulletin")
_HEX = re.compile(r"[0-9a-f]{16}")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DEFAULT_LIMIT = 1_048_588  # Kafka's own max.message.bytes
_LARGEST_VALUE = _DEFAULT_LIMIT - (64 << 10)  # the rest is for key and headers
_SECRET = "correct-horse-battery-staple"  # noqa: S105  # invented, and looked for in logs


@cache
def _texts() -> tuple[str, ...]:
    """Bodies of articles, none a copy of another."""
    return tuple(text.body for text in base_texts() if text.form is Form.NEWS)


def _numbered(messages: Iterable[Incoming], headers: Headers | None = None) -> list[Incoming]:
    """Number messages in a header, so that each can be found in the outputs."""
    return [
        replace(message, headers=[("number", str(number).encode()), *(headers or [])])
        for number, message in enumerate(messages)
    ]


def _number(record: Record) -> int:
    """Return the number of a message that came out whole."""
    return int(dict(record.headers)["number"] or b"")


def _numbers(outputs: Outputs) -> list[int]:
    """Return the numbers of all messages that came out; links name offsets, which equal the numbers."""
    whole = [_number(record) for record in (*outputs.unique, *outputs.dead)]
    return sorted(whole + [int(record.json()["offset"]) for record in outputs.duplicates])


# ------------------------------------------------------------------------------ the sample stream, once through


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sample stream, followed by a message of 10 MB, and what the service made of it.

    Attributes:
        topics: of the run.
        service: still running.
        samples: the stream; a message's number is its index here.
        sent: the messages.
        outputs: everything that came out.
        began: a moment before the first message was sent.
    """

    topics: Topics
    service: Service
    samples: list[Sample]
    sent: list[Incoming]
    outputs: Outputs
    began: datetime


@pytest.fixture(scope="module")
def sampled(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sampled]:
    """The sample stream through a service with default settings."""
    topics, samples, began = fresh_topics(bootstrap), sample_stream(), datetime.now(UTC)
    giant = article("giant", "x" * (10 << 20))
    headers: Headers = [
        ("crawler", b"first"),
        ("stream_dedup.fingerprint", b"of an earlier run"),
        ("crawler", b"second"),
        ("without value", None),
        ("stream_dedup.reason", b"of an earlier run"),
    ]
    sent = _numbered([*(Incoming(sample.value, sample.key) for sample in samples), giant], headers)
    with Service(tmp_path_factory.mktemp("sampled"), bootstrap, topics) as service:
        assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
        outputs = collect(bootstrap, topics, len(sent), service)
        yield Sampled(topics, service, samples, sent, outputs, began)


def test_every_message_comes_out_exactly_once(sampled: Sampled) -> None:
    """Together the outputs hold each message once: none is lost, none comes out twice."""
    assert _numbers(sampled.outputs) == list(range(len(sampled.sent)))


def test_first_hand_articles_are_unique(sampled: Sampled) -> None:
    """No first-hand article is taken for a copy, not even another report of an event or a bulletin of a template."""
    unique = {_number(record) for record in sampled.outputs.unique}
    wanted = {number for number, sample in enumerate(sampled.samples) if sample.kind in _FIRST_HAND}
    assert wanted <= unique


def test_reposts_are_linked_to_their_originals(sampled: Sampled) -> None:
    """At least 95% of the labelled reposts are links to the article that they copy."""
    found = {record.json()["offset"]: record.json()["duplicate_of"] for record in sampled.outputs.duplicates}
    reposts = {number: sample.repost_of for number, sample in enumerate(sampled.samples) if sample.repost_of}
    right = sum(found.get(number) == original for number, original in reposts.items())
    assert right / len(reposts) >= 0.95


def test_broken_messages_are_dead_letters_with_their_reason(sampled: Sampled) -> None:
    """Each broken message, and no other, is a dead letter with its labelled reason."""
    reasons = {_number(record): record.own("reason") for record in sampled.outputs.dead}
    labelled: dict[int, str | None] = {
        number: sample.dead_reason for number, sample in enumerate(sampled.samples) if sample.dead_reason
    }
    assert reasons == labelled | {len(sampled.samples): "too_large"}


def test_unique_articles_carry_the_bytes_that_came(sampled: Sampled) -> None:
    """A unique article has the incoming bytes as its value and its id as its key."""
    for record in sampled.outputs.unique:
        sample = sampled.samples[_number(record)]
        assert record.value == sample.value
        if sample.id is None:
            assert re.fullmatch(rb"(url|content):[0-9a-f]{32}", record.key or b"")
        else:
            assert record.key == sample.id.encode()


def test_unique_articles_carry_fingerprint_epoch_and_incoming_headers(sampled: Sampled) -> None:
    """The service adds fingerprint and epoch to the incoming headers and removes its own headers from earlier runs."""
    for record in sampled.outputs.unique:
        assert _HEX.fullmatch(record.own("fingerprint") or "")
        assert record.own("idf_epoch") == "0"
        assert record.own("reason") is None
        assert len(record.headers) == len(record.incoming_headers()) + 2
        incoming = sampled.sent[_number(record)].headers
        assert record.incoming_headers() == [pair for pair in incoming if not pair[0].startswith("stream_")]


_LINK_TYPES: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "duplicate_of": str,
    "matched": str,
    "relation": str,
    "jaccard": float,
    "containment": float,
    "hamming": int,
    "fingerprint": str,
    "idf_epoch": int,
    "candidate_source": str,
    "source": str,
    "url": str,
    "topic": str,
    "partition": int,
    "offset": int,
    "published_at": (str, type(None)),
    "received_at": str,
    "decided_at": str,
}


def test_links_have_all_fields_with_their_types(sampled: Sampled) -> None:
    """A link is a JSON object of 18 fields; its key is the article's id."""
    assert sampled.outputs.duplicates
    for record in sampled.outputs.duplicates:
        link = record.json()
        assert list(link) == list(_LINK_TYPES)
        for name, kind in _LINK_TYPES.items():
            assert isinstance(link[name], kind), name
        assert record.key == link["id"].encode()


def test_links_say_what_was_compared(sampled: Sampled) -> None:
    """Measures are within their bounds; relation and candidate source are documented values."""
    fingerprints = {(r.key or b"").decode(): int(r.own("fingerprint") or "", 16) for r in sampled.outputs.unique}
    for record in sampled.outputs.duplicates:
        link = record.json()
        assert link["relation"] in {"exact", "near", "contained", "contains", "redelivery"}
        assert link["candidate_source"] in {"content", "landmark", "simhash", "id"}
        assert 0 <= link["jaccard"] <= 1
        assert 0 <= link["containment"] <= 1
        assert _HEX.fullmatch(link["fingerprint"])
        if link["matched"] in fingerprints:
            other = fingerprints[link["matched"]]
            assert link["hamming"] == (int(link["fingerprint"], 16) ^ other).bit_count()
        if link["relation"] in {"exact", "redelivery"}:
            assert (link["jaccard"], link["containment"]) == (1.0, 1.0)


def test_links_name_the_message_that_they_are_about(sampled: Sampled) -> None:
    """Topic, partition, offset, source and URL of a link are those of the incoming message."""
    for record in sampled.outputs.duplicates:
        link = record.json()
        fields = json.loads(sampled.samples[link["offset"]].value or b"")
        assert (link["topic"], link["partition"]) == (sampled.topics.input, 0)
        assert link["id"] == fields["id"]
        assert (link["source"], link["url"]) == (fields["source"], fields["url"])


def test_links_have_times_in_iso_8601(sampled: Sampled) -> None:
    """Published, received and decided are UTC times with milliseconds, received before decided."""
    for record in sampled.outputs.duplicates:
        link = record.json()
        times = [link["published_at"], link["received_at"], link["decided_at"]]
        assert all(_ISO.fullmatch(moment) for moment in times)
        published, received, decided = map(datetime.fromisoformat, times)
        assert published == _moment(json.loads(sampled.samples[link["offset"]].value or b"")["published_at"])
        # Kafka keeps whole milliseconds.
        assert sampled.began.timestamp() - 0.001 <= received.timestamp() <= decided.timestamp()
        assert decided <= datetime.now(UTC)


def _moment(written: str | int) -> datetime:
    if isinstance(written, str):
        return datetime.fromisoformat(written)
    return datetime.fromtimestamp(written / 1000 if written > 10**11 else written, UTC)


def test_dead_letters_carry_the_original_and_where_it_came_from(sampled: Sampled) -> None:
    """A dead letter has the original key, value and headers, and names reason, exception and origin."""
    for record in sampled.outputs.dead:
        number = _number(record)
        sent = sampled.sent[number]
        assert (record.key, record.value) == (sent.key, sent.value)
        assert record.incoming_headers() == [pair for pair in sent.headers if not pair[0].startswith("stream_")]
        assert (record.own("exception") or "").startswith("UndecodableError: ")
        origin = (record.own("topic"), record.own("partition"), record.own("offset"))
        assert origin == (sampled.topics.input, "0", str(number))
        assert record.own("fingerprint") is None
        assert record.own("value_left_out") is None


def test_message_over_the_limit_is_a_whole_dead_letter(sampled: Sampled) -> None:
    """A message of 10 MB, over input.max_message_bytes, goes whole to a topic of dead letters that accepts it."""
    (record,) = [record for record in sampled.outputs.dead if _number(record) == len(sampled.samples)]
    assert record.own("reason") == "too_large"
    assert record.value == sampled.sent[-1].value
    assert "input.max_message_bytes = 8388608 is the limit" in (record.own("exception") or "")


def test_metrics_agree_with_what_came_out(sampled: Sampled) -> None:
    """Articles by decision and relation, and dead letters by reason, are counted exactly as the topics hold them."""
    outputs, service = sampled.outputs, sampled.service
    relations = Counter(("duplicate", str(record.json()["relation"])) for record in outputs.duplicates)
    articles = relations + Counter({("unique", "none"): len(outputs.unique)})
    reasons = Counter((record.own("reason") or "",) for record in outputs.dead)
    sources = Counter((str(record.json()["candidate_source"]),) for record in outputs.duplicates)
    # The counters are updated after the commit, a moment after the outputs are visible.
    wait_until(
        lambda: sum(service.metrics().by("dead_letters_total", "reason").values()) == len(outputs.dead),
        "all messages counted",
    )
    metrics = service.metrics()
    assert metrics.by("articles_total", "decision", "relation") == articles
    assert metrics.by("dead_letters_total", "reason") == reasons
    assert metrics.by("matches_total", "source") == sources
    assert metrics.by("commit_messages_sum") == {(): len(sampled.sent)}
    assert metrics.by("decision_seconds_count") == {(): len(sampled.sent)}
    (commits,) = metrics.series("commit_messages_count")
    assert metrics.by("transactions_total", "outcome") == {("committed",): commits}
    assert {"decode", "features", "produce", "transaction", "apply"} <= {
        stage for (stage,) in metrics.by("stage_seconds_total", "stage")
    }


def test_topic_of_clusters_agrees_with_the_links(bootstrap: str, sampled: Sampled) -> None:
    """Copies and sources of each cluster equal what a reader counts from unique articles and links."""
    counted_here = counted(recount(sampled.outputs, _number))
    assert sum(copies for copies, _ in counted_here.values()) > 200
    # The topics of one transaction need not show it at the same moment.
    wait_until(lambda: _told(bootstrap, sampled.topics) == counted_here, "the clusters agree")


def _told(bootstrap: str, topics: Topics) -> dict[str, tuple[int, Counter[str]]]:
    return told(read_topics(bootstrap, [topics.clusters])[topics.clusters])


def test_gauges_say_that_all_is_read(sampled: Sampled) -> None:
    """Once everything is judged the lag is 0, and ready, role, partitions, epoch and progress are right."""
    service, articles = sampled.service, len(sampled.outputs.unique) + len(sampled.outputs.duplicates)
    wait_until(lambda: service.metrics().series("consumer_lag_messages") == [0.0], "lag of 0")
    metrics = service.metrics()
    assert metrics.series("ready") == [1.0]
    assert metrics.series("assigned_partitions") == [1.0]
    assert metrics.series("idf_epoch") == [0.0]
    assert metrics.series("state_articles_judged") == [articles]
    assert metrics.series("index_entries")[0] >= len(sampled.outputs.unique)
    assert metrics.series("idf_vocabulary_words")[0] > 1000
    assert metrics.by("role", "role") == {("active",): 1.0}
    assert metrics.series("changelog_records_remaining") == [0.0]
    assert metrics.series("changelog_position")[0] > 0
    assert metrics.series("window_generations") == [1.0]


def test_health_and_readiness_answer(sampled: Sampled) -> None:
    """/startupz, /healthz and /readyz are 200 while the service reads, as plain text; /metrics is Prometheus text."""
    for path in ("/startupz", "/healthz", "/readyz"):
        answer = sampled.service.ask(path)
        assert (answer.status, answer.text) == (200, "ok\n")
        assert answer.kind.startswith("text/plain")
    assert sampled.service.ask("/metrics").kind.startswith("text/plain; version=")


def test_other_paths_and_methods_are_refused(sampled: Sampled) -> None:
    """Unknown paths get 404, methods other than GET and HEAD 405; nothing can be changed through the port."""
    assert sampled.service.ask("/").status == 404
    assert sampled.service.ask("/metrics/x").status == 404
    for method in ("POST", "PUT", "DELETE"):
        assert sampled.service.ask("/readyz", method).status == 405
    assert sampled.service.ask("/readyz", "HEAD").status == 200


def test_http_port_is_on_loopback_only(sampled: Sampled) -> None:
    """By default nothing listens on an address that other machines can reach."""
    connections = psutil.Process(sampled.service.pid).net_connections("inet")
    listening = {connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_second_instance_on_the_same_state_is_refused(bootstrap: str, sampled: Sampled) -> None:
    """A second instance ends with exit code 3 and names the directory; the first carries on."""
    first = sampled.service
    with Service(first.directory, bootstrap, sampled.topics) as second:
        assert second.wait_end() == 3
    assert f"state directory {first.state} is in use" in second.log()
    assert first.running
    assert first.ask("/readyz").status == 200


def test_taken_http_port_is_named(bootstrap: str, sampled: Sampled, tmp_path: Path) -> None:
    """If the port is taken, the service ends with exit code 1 and a message that names the port."""
    _, port = sampled.service.address
    with Service(tmp_path, bootstrap, sampled.topics, f"http.port={port}") as second:
        assert second.wait_end() == 1
    assert str(port) in second.log()


# ------------------------------------------------------------------------------------------------ bad input


class Bad(NamedTuple):
    """A faulty message from a crawler, and its expected fate: `unique`, a relation, or the reason of a dead letter."""

    value: bytes | None
    fate: str
    key: bytes | None = None


def _json(name: object, body: object, **fields: object) -> bytes:
    return json.dumps({"id": name, "body": body, **fields}, ensure_ascii=False).encode()


def _bad_messages() -> dict[str, Bad]:
    """Return the bad messages, in the order in which they are sent."""
    text = iter(_texts())
    twice, cut = next(text), next(text).encode()
    future = int(time.time() * 1000) + 400 * 86_400_000
    return {
        "null value, unknown key": Bad(None, "unknown_article", b"tombstone"),
        "null value without key": Bad(None, "null_value"),
        "null value, blank key": Bad(None, "null_value", b" \n"),
        "null value, key of no text": Bad(None, "null_value", b"\xff\xfe"),
        "null value, endless key": Bad(None, "null_value", b"k" * 513),
        "withdrawn without a name": Bad(b'{"deleted": true}', "missing_field"),
        "withdrawn, unknown": Bad(b'{"id": "nobody", "deleted": true}', "unknown_article"),
        "withdrawn by a word": Bad(b'{"id": "nobody", "deleted": "yes"}', "wrong_type"),
        "empty value": Bad(b"", "invalid_json"),
        "empty body": Bad(_json("b1", ""), "empty_body"),
        "blank body": Bad(_json("b2", " \u3000\n\t\u00a0"), "empty_body"),
        "null body": Bad(_json("b3", None), "missing_field"),
        "no body": Bad(b'{"id": "b4", "title": "x"}', "missing_field"),
        "empty object": Bad(b"{}", "missing_field"),
        "body of 10 MB": Bad(_json("b5", "x" * (10 << 20)), "too_large"),
        "body of 10 MB of Han": Bad(_json("b6", "水" * ((10 << 20) // 3)), "too_large"),
        "body over the characters": Bad(_json("b7", "y" * 1_000_001), "too_large"),
        "endless title": Bad(_json("b8", next(text), title="t" * 2001), "too_large"),
        "invalid UTF-8": Bad(b'{"id": "b9", "body": "' + cut[:-1] + b'"}', "invalid_utf8"),
        "invalid UTF-8 key": Bad(b"nonsense", "invalid_json", b"\xff\xfe\x00"),
        "cut off": Bad(_json("b10", next(text))[:-20], "invalid_json"),
        "two objects": Bad(b'{"id": 1, "body": "x"} {"id": 2}', "invalid_json"),
        "not a number": Bad(b'{"id": "b11", "body": "x", "n": NaN}', "invalid_json"),
        "deep nesting": Bad(b"[" * 200_000, "invalid_json"),
        "array": Bad(b"[]", "not_an_object"),
        "string": Bad(b'"text"', "not_an_object"),
        "number": Bad(b"42", "not_an_object"),
        "null": Bad(b"null", "not_an_object"),
        "body is a number": Bad(_json("b12", 7), "wrong_type"),
        "body is a list": Bad(_json("b13", ["x"]), "wrong_type"),
        "title is an object": Bad(_json("b14", next(text), title={}), "wrong_type"),
        "url is a number": Bad(_json("b15", next(text), url=5), "wrong_type"),
        "id is an object": Bad(_json({"a": 1}, next(text)), "wrong_type"),
        "id is a boolean": Bad(_json(True, next(text)), "wrong_type"),
        "time is a list": Bad(_json("b16", next(text), published_at=[]), "wrong_type"),
        "time is nonsense": Bad(_json("b17", next(text), published_at="昨天"), "invalid_time"),
        "time is before 1900": Bad(_json("b18", next(text), published_at="1066-10-14"), "invalid_time"),
        "time is far ahead": Bad(_json("b19", next(text), published_at="2999-01-01"), "future_time"),
        "time is a year ahead": Bad(_json("b20", next(text), published_at=future), "future_time"),
        "time is an hour ahead": Bad(_json("b21", next(text), published_at=int(time.time()) + 3600), "unique"),
        "endless id": Bad(_json("x" * 513, next(text)), "invalid_id"),
        "half an emoji as id": Bad(b'{"id": "\\ud83d", "body": "x"}', "invalid_id"),
        "half an emoji in the body": Bad(
            b'{"id": "b22", "body": "' + next(text).replace("\n", "").encode() + b'\\ud83d"}', "unique"
        ),
        "half an emoji everywhere else": Bad(
            b'{"id": "b23", "title": "\\ud83d", "url": "http://a/\\ude00", "source": "\\ud83d", "body": "'
            + next(text).replace("\n", "").encode()
            + b'"}',
            "unique",
        ),
        "copy with half an emoji in its URL": Bad(
            b'{"id": "b24", "url": "http://a/\\ude00", "source": "\\ud83d", "body": "'
            + _texts()[2].replace("\n", "").encode()
            + b'"}',
            "unique",
        ),
        "no id": Bad(json.dumps({"body": next(text)}).encode(), "unique"),
        "integer id": Bad(_json(2**63 - 1, next(text)), "unique"),
        "integer id beyond 64 bits": Bad(
            b'{"id": 123456789012345678901234567890, "body": "' + b"q" * 40 + b'"}', "unique"
        ),
        "first of an id": Bad(_json("b25", twice), "unique"),
        "same id, same text": Bad(_json("b25", twice, title="another headline"), "redelivery"),
        "same id, other text": Bad(_json("b25", next(text)), "unique"),
        "same id, first text again": Bad(_json("b25", twice), "redelivery"),
    }


@dataclass(frozen=True, slots=True)
class BadRun:
    """The bad messages, 10,000 identical ones, and a normal article with its copy, through one service.

    Attributes:
        bad: by name.
        repeats: how many identical messages there were.
        seconds: from sending them to their last output.
        outputs: everything that came out.
        links: links by offset.
        whole: unique articles and dead letters by number.
    """

    bad: dict[str, Bad]
    repeats: int
    seconds: float
    outputs: Outputs
    links: dict[int, dict[str, Any]]
    whole: dict[int, Record]


@pytest.fixture(scope="module")
def bad_run(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> BadRun:
    """The bad messages through a service whose topic of dead letters has Kafka's default limit of 1 MB."""
    topics, bad, repeats = fresh_topics(bootstrap, dead_bytes=_DEFAULT_LIMIT), _bad_messages(), 10_000
    same = article("same", _texts()[50])
    last = [article("normal", _texts()[60]), article("its copy", "本报讯 " + _texts()[60])]
    sent = _numbered([*(Incoming(one.value, one.key) for one in bad.values()), *[same] * repeats, *last])
    with Service(tmp_path_factory.mktemp("bad"), bootstrap, topics) as service:
        service.wait_ready()
        began = time.monotonic()
        assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
        outputs = collect(bootstrap, topics, len(sent), service)
        seconds = time.monotonic() - began
        service.stop()
    return BadRun(
        bad,
        repeats,
        seconds,
        outputs,
        {record.json()["offset"]: record.json() for record in outputs.duplicates},
        {_number(record): record for record in (*outputs.unique, *outputs.dead)},
    )


def test_bad_messages_come_out_exactly_once(bad_run: BadRun) -> None:
    """Whatever comes in comes out once; nothing stops the service."""
    assert _numbers(bad_run.outputs) == list(range(len(bad_run.bad) + bad_run.repeats + 2))


@pytest.mark.parametrize("name", _bad_messages())
def test_bad_message_ends_where_it_belongs(bad_run: BadRun, name: str) -> None:
    """Each bad message is judged, or becomes a dead letter with the right reason and its key unchanged."""
    number, bad = list(bad_run.bad).index(name), bad_run.bad[name]
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
    record = bad_run.whole[list(bad_run.bad).index("same id, other text")]
    assert record.key == b"b25"
    assert (record.own("relation"), record.own("matched")) == ("revision", "b25")


def test_value_larger_than_the_dead_topic_takes_is_left_out(bad_run: BadRun) -> None:
    """If a value is too large for the topic of dead letters, the letter is sent without it and says so."""
    large = {name for name, bad in bad_run.bad.items() if bad.value and len(bad.value) > _LARGEST_VALUE}
    assert len(large) == 3
    for number, (name, bad) in enumerate(bad_run.bad.items()):
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
    first = len(bad_run.bad)
    assert bad_run.whole[first].key == b"same"
    links = [bad_run.links[first + place] for place in range(1, bad_run.repeats)]
    assert Counter((link["relation"], link["duplicate_of"]) for link in links) == {
        ("redelivery", "same"): bad_run.repeats - 1
    }
    assert bad_run.seconds < 30


def test_normal_article_is_judged_after_bad_ones(bad_run: BadRun) -> None:
    """After all bad messages, a normal article is unique and its copy is linked to it."""
    last = len(bad_run.bad) + bad_run.repeats
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
    sound = Incoming(json.dumps({"id": "heavy", "body": _texts()[0], "image": image}).encode())
    broken = Incoming(json.dumps({"id": "broken", "image": image}).encode())
    headers: Headers = [("screenshot", more)]
    heavy = [replace(sound, headers=headers), replace(broken, headers=headers), replace(broken, key=more)]
    with Service(tmp_path, bootstrap, topics) as service:
        produce(bootstrap, topics.input, [*heavy, article("light", _texts()[1])])
        assert collect(bootstrap, topics, 4, service).total() == 4
        service.stop()


# -------------------------------------------------------------------------------------------- interruptions

_EPOCHS = "idf.epoch_articles=100"
_REVISIONS = "verify.duplicates=exact,near,contained,contains,revision,redelivery"
_SMALL_BATCHES = (_EPOCHS, _REVISIONS, "commit.articles=4")
# A static member replaces the killed one at once, instead of after the session timeout of 45 s.
_STATIC = "kafka.consumer.group.instance.id=the-one"


@dataclass(frozen=True, slots=True)
class Reference:
    """An uninterrupted run.

    Attributes:
        topics: of the run; others may read its input.
        count: messages of the input.
        outputs: everything that came out.
    """

    topics: Topics
    count: int
    outputs: Outputs


@pytest.fixture(scope="module")
def reference(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Two sample streams in a row, so that ids recur with other texts; the epoch changes often."""
    topics = fresh_topics(bootstrap)
    samples = [sample for seed in (20, 21) for sample in sample_stream(seed)]
    sent = _numbered(Incoming(sample.value, sample.key) for sample in samples)
    assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
    with Service(tmp_path_factory.mktemp("reference"), bootstrap, topics, _EPOCHS, _REVISIONS) as service:
        outputs = collect(bootstrap, topics, len(sent), service)
        service.stop()
    return Reference(topics, len(sent), outputs)


def test_reference_has_what_interruptions_could_break(reference: Reference) -> None:
    """The uninterrupted run spans several epochs and has revisions and redeliveries."""
    relations = {record.json()["relation"] for record in reference.outputs.duplicates}
    assert {"revision", "redelivery", "exact", "near", "contained", "contains"} <= relations
    assert {record.own("idf_epoch") for record in reference.outputs.unique} >= {"0", "1", "2", "3"}
    assert _numbers(reference.outputs) == list(range(reference.count))


def test_stream_interrupted_by_sigterm_gives_the_same_outputs(
    bootstrap: str, reference: Reference, tmp_path: Path
) -> None:
    """Stops at random moments change nothing: the same decisions in the same order, each once.

    Each stop under load ends within 10 s with exit code 0.
    """
    topics = reference.topics.with_other_outputs(bootstrap)
    rng = random.Random(7)  # when to stop
    for stop in sorted(rng.randrange(reference.count * 9 // 10) for _ in range(2)):
        with (
            Arrivals(bootstrap, topics) as arrivals,
            Service(tmp_path, bootstrap, topics, *_SMALL_BATCHES) as service,
        ):
            wait_until(lambda: arrivals.count() >= stop, f"{stop} outputs")  # noqa: B023  # called at once
            service.stop()
    with Service(tmp_path, bootstrap, topics, *_SMALL_BATCHES) as service:
        outputs = collect(bootstrap, topics, reference.count, service)
        service.stop()
    _assert_same(outputs, reference.outputs)


def test_sigkill_loses_nothing_and_doubles_nothing(bootstrap: str, reference: Reference, tmp_path: Path) -> None:
    """After kills, read_committed readers find what an uninterrupted run gives: everything once, in order."""
    topics = reference.topics.with_other_outputs(bootstrap)
    outputs = _killed_at((150, 500), bootstrap, topics, tmp_path, *_SMALL_BATCHES)
    _assert_same(outputs, reference.outputs)


def test_sigkill_without_transactions_repeats_the_same_decisions_under_the_same_keys(
    bootstrap: str, reference: Reference, tmp_path: Path
) -> None:
    """With commit.guarantee=at_least_once nothing is missing, and repeated outputs differ only in decided_at."""
    topics = reference.topics.with_other_outputs(bootstrap)
    flags = (*_SMALL_BATCHES, "commit.guarantee=at_least_once")
    outputs = _killed_at((400,), bootstrap, topics, tmp_path, *flags)
    for found, wanted in zip(_parts(outputs), _parts(reference.outputs), strict=True):
        judgements: defaultdict[int, set[str]] = defaultdict(set)
        for record in found:
            judgements[_place(record)].add(_judgement(record))
        assert judgements == {_place(record): {_judgement(record)} for record in wanted}


def _killed_at(stops: Iterable[int], bootstrap: str, topics: Topics, directory: Path, *flags: str) -> Outputs:
    """Kill services at given numbers of outputs, let a last one run to the end, and return what came out."""
    for stop in stops:
        with (
            Arrivals(bootstrap, topics) as arrivals,
            Service(directory, bootstrap, topics, *flags, _STATIC) as service,
        ):
            wait_until(lambda: arrivals.count() >= stop, f"{stop} outputs")  # noqa: B023  # called at once
            service.kill()
    with Service(directory, bootstrap, topics, *flags, _STATIC) as service:
        service.wait_ready()
        wait_until(lambda: _reached_end(service), "everything judged")
        service.stop()
    return collect(bootstrap, topics, 0)


def _reached_end(service: Service) -> bool:
    metrics = service.metrics()
    return metrics.series("ready") == [1.0] and metrics.series("consumer_lag_messages") == [0.0]


def _parts(outputs: Outputs) -> tuple[list[Record], list[Record], list[Record]]:
    return outputs.unique, outputs.duplicates, outputs.dead


def _place(record: Record) -> int:
    """Return the input offset of an output."""
    return int(record.json()["offset"]) if not record.headers else _number(record)


def _judgement(record: Record) -> str:
    """Return all of an output except the time of the decision."""
    if record.headers:
        return repr((record.key, record.value, record.headers))
    return repr((record.key, {**record.json(), "decided_at": ""}))


def _assert_same(found: Outputs, wanted: Outputs) -> None:
    for some, others in zip(_parts(found), _parts(wanted), strict=True):
        assert [_judgement(record) for record in some] == [_judgement(record) for record in others]


def test_sigterm_ends_in_time_when_the_broker_is_gone(background: "Background") -> None:
    """Without its broker, in mid-work, a service still ends within 10 s of SIGTERM."""
    ended = background.orphaned.result(120)
    assert ended.seconds < STOP_SECONDS
    assert ended.code in {0, 1}


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
        produce(bootstrap, topics.input, [article("late", _texts()[0])])
        collect(bootstrap, topics, 1, service)
        service.stop()
    (changelog,) = changelogs(bootstrap, topics)
    assert changelog == f"{topics.group}.changelog.{service.state.name}"
    assert existing_topics(bootstrap) >= {*topics.outputs, topics.clusters, f"{topics.group}.owner"}


# ---------------------------------------------------------------------------------------------------- topics


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
    topics, text = fresh_topics(bootstrap), iter(_texts())
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
    """Return the lags once they are all 0, or as they are after half a minute."""
    deadline = time.monotonic() + 30
    while any(lags := service.metrics().series("consumer_lag_messages")) and time.monotonic() < deadline:
        time.sleep(0.1)
    return lags


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_input_topic_that_was_made_anew_is_read_whole(bootstrap: str, tmp_path: Path, guarantee: str) -> None:
    """Recreated with fewer partitions than the state and the group know; each start resumes where the last ended."""
    topics, texts, flags = fresh_topics(bootstrap, partitions=2), iter(_texts()), (f"commit.guarantee={guarantee}",)

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


def test_regular_expression_reads_topics_created_later(patterned: Patterned) -> None:
    """A regular expression covers all partitions of all matching topics, including one created later."""
    ids = {(record.key or b"").decode() for record in patterned.outputs.unique}
    wanted = {f"{name}{part}" for name in patterned.names[:2] for part in (0, 1)}
    assert ids == wanted | {patterned.names[2]}
    assert patterned.outputs.total() == 5


def test_lag_is_zero_behind_a_transaction(patterned: Patterned) -> None:
    """The lag becomes 0 even if a partition ends with the marker of a transaction."""
    assert patterned.lags == [0.0] * 5


def test_missing_output_topics_are_not_created_against_the_settings(bootstrap: str, tmp_path: Path) -> None:
    """With output.create=false, a missing output topic ends the service with a message that names it."""
    topics = named_topics()
    create_topic(bootstrap, topics.duplicates)
    with Service(tmp_path, bootstrap, topics, "output.create=false") as service:
        assert service.wait_end() == 1
    own = (f"{topics.group}.changelog.{service.events('starting')[0]['state'][-8:]}", f"{topics.group}.owner")
    missing = sorted({topics.clusters, topics.dead, topics.unique, *own})
    assert f"no topic {', '.join(missing)}: create it, or set output.create" in service.log()
    assert not {*missing} & existing_topics(bootstrap)


# --------------------------------------------------------------------------------------------------- offsets


def _commit(bootstrap: str, topics: Topics, offsets: dict[int, int]) -> None:
    """Commit offsets of the input as the service's group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group, "enable.auto.commit": "false"})
    with closing(consumer):
        consumer.commit(
            offsets=[TopicPartition(topics.input, part, offset) for part, offset in offsets.items()],
            asynchronous=False,
        )


def _committed(bootstrap: str, topics: Topics, partitions: int) -> list[int]:
    """Return the offsets that the service's group has committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})
    with closing(consumer):
        places = [TopicPartition(topics.input, partition) for partition in range(partitions)]
        return [place.offset for place in consumer.committed(places, timeout=20)]


@dataclass(slots=True)
class Stock:
    """Articles of one run with two partitions, each with its own text.

    Attributes:
        bodies: by id.
    """

    bodies: dict[str, str] = field(default_factory=dict)

    def articles(self, names: str) -> list[Incoming]:
        """Return new articles, one per letter and partition: a0, a1, b0, b1 and so on."""
        return [self._article(f"{name}{partition}", partition) for name in names for partition in (0, 1)]

    def copies(self, names: str) -> list[Incoming]:
        """Return copies of them under new ids."""
        return [
            replace(
                article(f"copy of {name}{partition}", f"本报讯 {self.bodies[f'{name}{partition}']}"),
                partition=partition,
            )
            for name in names
            for partition in (0, 1)
        ]

    def _article(self, name: str, partition: int) -> Incoming:
        self.bodies[name] = _texts()[len(self.bodies)]
        return replace(article(name, self.bodies[name]), partition=partition)


def _ids(records: Iterable[Record]) -> list[str]:
    return sorted((record.key or b"").decode() for record in records)


def _named(names: str) -> list[str]:
    return [f"{name}{partition}" for name in names for partition in (0, 1)]


def _links_of(outputs: Outputs) -> dict[str, str]:
    """Return the canonical article of each link."""
    return {name: str(link["duplicate_of"]) for name, link in outputs.links().items()}


def _copied(names: str) -> dict[str, str]:
    """Return the links that the copies must have."""
    return {f"copy of {name}": name for name in _named(names)}


def test_positions_of_the_state_win_over_those_of_the_group(bootstrap: str, tmp_path: Path) -> None:
    """A group that is set back repeats nothing; what it is ahead of the state was decided, so it is only learnt."""
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("abc"))
    with Service(tmp_path, bootstrap, topics) as service:
        assert _ids(collect(bootstrap, topics, 6, service).unique) == _named("abc")
        service.stop()
    assert _committed(bootstrap, topics, 2) == [3, 3]
    produce(bootstrap, topics.input, [*stock.articles("de"), *stock.copies("d")])
    _commit(bootstrap, topics, {0: 4, 1: 0})
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 11, service)
        service.stop()
    assert _ids(outputs.unique) == sorted({*_named("abcde")} - {"d0"})
    assert _links_of(outputs) == _copied("d")
    assert outputs.total() == 11
    assert _committed(bootstrap, topics, 2) == [6, 6]


def test_lost_state_is_restored_from_the_changelog(bootstrap: str, tmp_path: Path) -> None:
    """A service that lost its directory continues as if nothing had happened, and publishes nothing again."""
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("abc"))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 6, service)
        service.stop()
    shutil.rmtree(tmp_path / "state")
    produce(bootstrap, topics.input, [*stock.copies("abc"), *stock.articles("d")])
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 14, service)
        service.stop()
    assert service.events("restored")[0]["articles"] == 6
    assert not service.events("judged_again_in_silence")
    assert _ids(outputs.unique) == _named("abcd")
    assert _links_of(outputs) == _copied("abc")
    assert outputs.total() == 14


def test_lost_state_and_changelog_are_made_again_in_silence(bootstrap: str, tmp_path: Path) -> None:
    """Without both, the input is judged again up to the group's offsets, and none of it is published again.

    A state whose changelog alone was deleted could not be restored: it is refused, with the way out.
    """
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("abc"))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 6, service)
        service.stop()
    for name in changelogs(bootstrap, topics):
        delete_topic(bootstrap, name)
    with Service(tmp_path, bootstrap, topics) as service:
        assert service.wait_end() == 1
    assert "the topic was deleted and recreated" in service.log()
    shutil.rmtree(tmp_path / "state")
    produce(bootstrap, topics.input, [*stock.copies("abc"), *stock.articles("d")])
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 14, service)
        silent = service.metrics().by("articles_silent_total")
        service.stop()
    assert [event["messages"] for event in service.events("judged_again_in_silence")] == [6]
    assert silent == {(): 6}
    assert _ids(outputs.unique) == _named("abcd")
    assert _links_of(outputs) == _copied("abc")
    assert outputs.total() == 14


@pytest.mark.parametrize("setting", ["state.name", "input.group"])
def test_state_of_another_index_is_told_by_the_settings_that_name_it(
    setting: str, bootstrap: str, tmp_path: Path
) -> None:
    """No topic was recreated: the message names the settings and the index; with that state.name the service runs."""
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("a"))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 2, service)
        service.stop()
    other = f"{setting}={topics.group}-other"
    with Service(tmp_path, bootstrap, topics, other) as service:
        assert service.wait_end() == 1
    assert f"state.name = {topics.group} to continue with this index" in service.log()
    assert "recreated" not in service.log()
    assert not [name for name in existing_topics(bootstrap) if name.startswith(f"{topics.group}-other")]
    produce(bootstrap, topics.input, stock.copies("a"))
    with Service(tmp_path, bootstrap, topics, other, f"state.name={topics.group}") as service:
        assert collect(bootstrap, topics, 4, service).total() == 4
        service.stop()


# ------------------------------------------------------------------------------------- without a broker


@dataclass(frozen=True, slots=True)
class Background:
    """Services whose broker is missing or disappears.

    Attributes:
        left_alone: never found a broker, and ended by itself.
        loading: got SIGTERM while starting; how it ended, and its log.
        waiting: got SIGTERM while waiting for a broker that never came; how it ended, and its log.
        orphaned: lost its broker in mid-work and then got SIGTERM; how it ended.
    """

    left_alone: Service
    loading: "Future[tuple[Ended, str]]"
    waiting: "Future[tuple[Ended, str]]"
    orphaned: "Future[Ended]"


@pytest.fixture(scope="module", autouse=True)
def background(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Background]:  # noqa: ARG001  # needed for its effect
    """Runs alongside the other tests from the start, because waiting for a broker takes time."""
    with socket.socket() as taken, ExitStack() as stack:
        taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        dead_end = f"127.0.0.1:{taken.getsockname()[1]}"
        secret = {"STREAM_DEDUP_KAFKA__SASL_PASSWORD": _SECRET}
        flags = [
            "log.level=debug",
            "kafka.debug=all",
            "kafka.security.protocol=sasl_plaintext",
            "kafka.sasl.mechanisms=PLAIN",
            "kafka.sasl.username=reader",
        ]
        pool = stack.enter_context(ThreadPoolExecutor(3))
        orphaned = pool.submit(_lose_broker, tmp_path_factory.mktemp("orphaned"))
        alone, loading, waiting = (
            stack.enter_context(
                Service(tmp_path_factory.mktemp(name), dead_end, named_topics(), *more, environment=secret, loads=True)
            )
            for name, more in (("alone", flags), ("loading", []), ("waiting", []))
        )
        yield Background(
            alone,
            pool.submit(_stop_at, loading, "waiting for "),
            pool.submit(_stop_at, waiting, "waiting for the broker"),
            orphaned,
        )


def _stop_at(service: Service, state: str) -> tuple[Ended, str]:
    """Stop a starting service as soon as /readyz reports a given state."""
    wait_until(lambda: service.ask("/readyz").text.startswith(state), state, READY_SECONDS)
    ended = service.terminate()
    return ended, service.log()


def _lose_broker(directory: Path) -> Ended:
    """Take the broker away from a working service, and then stop it."""
    with KafkaBroker() as broker:
        topics = fresh_topics(broker.bootstrap)
        bodies = _texts()
        produce(
            broker.bootstrap,
            topics.input,
            (article(f"n{n}", f"{n} {bodies[n % len(bodies)]} {n}") for n in range(10_000)),
        )
        with (
            Service(directory, broker.bootstrap, topics, "commit.articles=16") as service,
            Arrivals(broker.bootstrap, topics) as arrivals,
        ):
            wait_until(lambda: arrivals.count() > 100, "outputs")
            broker.kill()
            return service.terminate()


def test_unreachable_broker_is_named(background: Background) -> None:
    """If no broker answers, the service ends with exit code 1 and a message that says what to check."""
    assert background.left_alone.wait_end() == 1
    log = background.left_alone.log()
    assert "no broker answered at 127.0.0.1:" in log
    assert "kafka.bootstrap.servers" in log


def test_secrets_never_appear_in_the_log(background: Background) -> None:
    """Even with all debugging on, the log does not contain the SASL password from the environment."""
    background.left_alone.wait_end()
    log = background.left_alone.log()
    assert "sasl" in log.lower()
    assert _SECRET not in log


def test_sigterm_ends_in_time_while_the_service_starts(background: Background) -> None:
    """A service that is still loading ends within 10 s of SIGTERM, cleanly: code 0 and no traceback."""
    ended, log = background.loading.result(60)
    assert ended.seconds < STOP_SECONDS
    assert "Traceback" not in log
    assert ended.code == 0


def test_sigterm_ends_in_time_when_the_broker_never_was_there(background: Background) -> None:
    """A service that is still waiting for its broker ends within 10 s of SIGTERM, without a traceback."""
    ended, log = background.waiting.result(60)
    assert ended.seconds < STOP_SECONDS
    assert "Traceback" not in log
    assert ended.code in {0, 1}


# -------------------------------------------------------------------------------------------------- settings


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    """`config --print` shows that a secret is set, but not what it is."""
    settings = write_settings(tmp_path, "127.0.0.1:9092", named_topics())
    flags = set_flags((f"kafka.sasl.password={_SECRET}", f"kafka.producer.ssl.key.password={_SECRET}"))
    shown = run_once("config", "--print", "--config", str(settings), *flags)
    assert shown.returncode == 0
    printed = json.loads(shown.stdout)["kafka"]
    assert printed["sasl.password"] == printed["producer.ssl.key.password"] == "[redacted]"
    assert _SECRET not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (
            ("commit.articles=0", "input.topcs=x", "verify.near_jaccard=2", "http.port=many"),
            ("commit.articles", "input.topics", "verify.near_jaccard", "http.port"),
        ),
        (("kafka.consumer.enable.auto.commit=true",), ("enable.auto.commit",)),
        (("kafka.no.such.property=1",), ("no.such.property",)),
        (("text.stop_words=nowhere.txt",), ("text.stop_words", "nowhere.txt")),
    ],
)
def test_settings_faults_are_named_before_anything_starts(
    tmp_path: Path, flags: tuple[str, ...], named: tuple[str, ...]
) -> None:
    """Unusable settings end the service with exit code 2; all faults are named, and nothing is touched."""
    settings = write_settings(tmp_path, "127.0.0.1:1", named_topics())
    ended = run_once("run", "--config", str(settings), *set_flags(flags))
    assert ended.returncode == 2
    for name in named:
        assert name in ended.stderr
    assert not (tmp_path / "state").exists()


def test_state_of_other_settings_is_refused_by_name(bootstrap: str, tmp_path: Path) -> None:
    """A state made with other settings ends the service with exit code 1; the setting and the way out are named.

    If only the changelog of those settings exists, as on a new machine, it is named instead. Neither is touched.
    """
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, [article("a", _texts()[0])])
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 1, service)
        service.stop()
    (changelog,) = changelogs(bootstrap, topics)
    for flags, named in (
        (("sketch.gram=6",), "sketch.gram = 5 in the state, 6 in the settings"),
        (("sketch.gram=6", "state.directory=elsewhere"), changelog),
    ):
        with Service(
            tmp_path, bootstrap, topics, *(flag.replace("elsewhere", f"{tmp_path}/e") for flag in flags)
        ) as other:
            assert other.wait_end() == 1
        assert named in other.log()
        assert "state rebuild" in other.log()
        assert "Traceback" not in other.log()
    assert changelogs(bootstrap, topics) == [changelog]
    assert [path.name for path in (tmp_path / "state").iterdir()] == [service.state.name]


def test_state_directory_of_the_old_format_is_refused(bootstrap: str, tmp_path: Path) -> None:
    """A database directly in the directory, as the earlier version kept it, is left alone, and the way out is named."""
    Deduplicator(tmp_path / "state").close()
    before = sorted(path.name for path in (tmp_path / "state").iterdir())
    with Service(tmp_path, bootstrap, named_topics()) as service:
        assert service.wait_end() == 1
    assert "Choose a new directory (state.directory)" in service.log()
    assert "Traceback" not in service.log()
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == before
