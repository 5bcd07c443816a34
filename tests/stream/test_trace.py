"""Trace context on a real broker: it is passed on to everything a message causes; and spans, as a collector gets them.

Knows headers, spans and how they relate; knows nothing of how decisions are made.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from deploy.demo.samples.corpus import Form, base_texts
from stream_dedup.version import __version__
from tests.stream.collector import Collector, attributes_of
from tests.stream.messages import Headers, Incoming, article, produce
from tests.stream.records import Outputs, Record, collect, read_topics
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

_STATE = b"vendor=1,other=2"
_SOON = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
_BODIES = [text.body for text in base_texts() if text.form is Form.NEWS]


def _trace(number: int) -> str:
    return f"{number:032x}"


def _parent(number: int, *, sampled: bool = True) -> bytes:
    return f"00-{_trace(number)}-{number:016x}-0{int(sampled)}".encode()


def _traced(message: Incoming, number: int, *, sampled: bool = True) -> Incoming:
    return replace(message, headers=[*message.headers, *_context(number, sampled=sampled)])


def _context(number: int, *, sampled: bool = True) -> Headers:
    return [("traceparent", _parent(number, sampled=sampled)), ("tracestate", _STATE)]


def _event(name: str, body: str, number: int) -> Incoming:
    """Return a CloudEvent in structured mode, with the trace context as extension attributes."""
    members = {
        "specversion": "1.0",
        "id": name,
        "source": "//crawler",
        "type": "news",
        "traceparent": _parent(number).decode(),
        "tracestate": _STATE.decode(),
        "data": {"id": name, "body": body},
    }
    return Incoming(json.dumps(members).encode(), headers=[("content-type", b"application/cloudevents+json")])


def _binary_event(name: str, body: str, number: int) -> Incoming:
    named = {"specversion": "1.0", "id": name, "source": "//crawler", "type": "news"}
    headers: Headers = [(f"ce_{key}", value.encode()) for key, value in named.items()]
    extension: Headers = [("ce_traceparent", _parent(number)), ("ce_tracestate", _STATE)]
    return replace(article(name, body), headers=[*headers, *extension])


# ---------------------------------------------------------------------------------------------- what is passed on

_ORIGINAL, _COPY, _BROKEN, _BETTER, _WITHDRAWAL, _EVENT, _EVENT_COPY, _UNSAMPLED, _BINARY_COPY = range(1, 10)
_SENT = [
    _traced(article("first", _BODIES[0], source="b"), _ORIGINAL),
    _traced(article("copy", f"本报讯 {_BODIES[0]}", source="b"), _COPY),
    article("silent copy", f"本报讯 {_BODIES[0]}", source="b"),
    _traced(Incoming(b'{"id": "broken"'), _BROKEN),
    _traced(article("better", f"{_BODIES[0]} 完", source="preferred"), _BETTER),
    _event("event", _BODIES[1], _EVENT),
    _event("event copy", f"本报讯 {_BODIES[1]}", _EVENT_COPY),
    _traced(article("unsampled copy", f"本报讯 {_BODIES[1]}"), _UNSAMPLED, sampled=False),
    _binary_event("binary copy", f"本报讯 {_BODIES[1]} 完", _BINARY_COPY),
    replace(article("invalid copy", f"本报讯 {_BODIES[1]}"), headers=[("traceparent", b"00-xyz-1-01")]),
    _traced(Incoming(None, b"better"), _WITHDRAWAL),
]
_FLAGS = (
    "input.cloudevents=accept",
    "cluster.canonical=preferred_source",
    "cluster.preferred_sources=preferred",
)
# It is due once all are there, or after a time that no busy machine needs in between.
_ONE_COMMIT = (f"commit.articles={len(_SENT)}", "commit.interval_ms=10000")


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of the messages above, sent once.

    Attributes:
        topics: of the run.
        outputs: all of them; a withdrawal and a succession are among the duplicates.
        clusters: the records of their topic.
        collector: has the spans.
    """

    topics: Topics
    outputs: Outputs
    clusters: list[Record]
    collector: Collector


@pytest.fixture(scope="module")
def run(bootstrap: str, compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:  # noqa: ARG001  # needed for its effect
    """The messages above through a service that traces, all in one commit."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, _SENT)
    with Collector() as collector:
        tracing = ("tracing.enabled=true", f"tracing.endpoint={collector.url}", "tracing.sample=0")
        directory = tmp_path_factory.mktemp("traced")
        with Service(directory, bootstrap, topics, *_FLAGS, *tracing, *_ONE_COMMIT, environment=_SOON) as service:
            outputs = collect(bootstrap, topics, len(_SENT) + 1, service)
            service.stop()
        yield Run(topics, outputs, read_topics(bootstrap, [topics.clusters])[topics.clusters], collector)


def _context_of(record: Record) -> Headers:
    return [(name, value) for name, value in record.headers if name in {"traceparent", "tracestate"}]


def _records(run: Run, relation: str) -> dict[str, Record]:
    found = [record for record in run.outputs.duplicates if record.json()["relation"] == relation]
    return {record.json()["id"]: record for record in found}


def test_unique_articles_and_dead_letters_have_the_context_as_it_came(run: Run) -> None:
    """With the other headers; an event in structured mode has it only in its value."""
    unique = {record.key: record for record in run.outputs.unique}
    assert _context_of(unique[b"first"]) == _context(_ORIGINAL)
    assert _context_of(unique[b"event"]) == []
    assert _parent(_EVENT) in (unique[b"event"].value or b"")
    (dead,) = run.outputs.dead
    assert _context_of(dead) == _context(_BROKEN)


def test_links_have_the_context_of_the_copy(run: Run) -> None:
    """From a header or a CloudEvents extension, sampled or not; none if it is missing or invalid."""
    links = {
        (record.key or b"").decode(): _context_of(record)
        for record in run.outputs.duplicates
        if record.json()["relation"] not in {"withdrawn", "succession"}
    }
    assert links == {
        "copy": _context(_COPY),
        "silent copy": [],
        "better": _context(_BETTER),
        "event copy": _context(_EVENT_COPY),
        "unsampled copy": _context(_UNSAMPLED, sampled=False),
        "binary copy": _context(_BINARY_COPY),
        "invalid copy": [],
    }


def test_announcements_have_the_context_of_what_led_to_them(run: Run) -> None:
    """A withdrawal confirms one; a better article succeeds the canonical one."""
    assert _context_of(_records(run, "withdrawn")["better"]) == _context(_WITHDRAWAL)
    assert _context_of(_records(run, "succession")["first"]) == _context(_BETTER)


def test_clusters_have_none(run: Run) -> None:
    """A cluster results from many messages."""
    assert run.clusters
    assert all(record.headers == [] for record in run.clusters)


# ---------------------------------------------------------------------------------------------------------- spans

_SAMPLED = [_ORIGINAL, _COPY, _BETTER, _EVENT, _EVENT_COPY, _BINARY_COPY, _WITHDRAWAL, _BROKEN]


def _commit(run: Run) -> Span:
    """Return the span of the only commit."""
    spans = run.collector.spans()
    (commit,) = [span for span in spans if not span.parent_span_id]
    return commit


def _seconds(span: Span) -> float:
    return (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9


def test_commit_has_a_span_with_links_to_the_sampled_messages(run: Run) -> None:
    """By OpenTelemetry's conventions for messaging; unsampled messages have no link."""
    commit = _commit(run)
    assert (commit.name, commit.kind) == (f"process {run.topics.input}", Span.SPAN_KIND_CONSUMER)
    links = [(link.trace_id.hex(), int(link.span_id.hex(), 16)) for link in commit.links]
    assert links == [(_trace(number), number) for number in _SAMPLED]
    told = attributes_of(commit.attributes)
    assert told.pop("stream_dedup.seconds.decode") > 0
    assert told.pop("stream_dedup.seconds.features") > 0
    assert told == {
        "messaging.system": "kafka",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.consumer.group.name": run.topics.group,
        "messaging.destination.name": run.topics.input,
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": len(_SENT),
        "stream_dedup.messages.unique": 2,
        "stream_dedup.messages.duplicate": 7,
        "stream_dedup.messages.withdrawn": 1,
        "stream_dedup.messages.dead": 1,
        "stream_dedup.messages.sampled": len(_SAMPLED),
    }


def test_stages_lie_within_the_commit_one_behind_the_other(run: Run) -> None:
    """From its beginning to its end without a gap; the parts of the decision lie within that stage."""
    commit, spans = _commit(run), run.collector.spans()
    stages = [span for span in spans if span.parent_span_id == commit.span_id]
    assert [stage.name for stage in stages] == ["await", "decide", "produce", "transaction", "apply"]
    starts = [stage.start_time_unix_nano for stage in stages]
    ends = [stage.end_time_unix_nano for stage in stages]
    assert starts == [commit.start_time_unix_nano, *ends[:-1]]
    assert ends[-1] == commit.end_time_unix_nano
    decide = stages[1]
    parts = [span for span in spans if span.parent_span_id == decide.span_id]
    assert {"simhash", "look_up", "judge", "change"} >= {part.name for part in parts} >= {"look_up", "judge"}
    assert sum(map(_seconds, parts)) <= _seconds(decide)
    assert {span.trace_id for span in (*stages, *parts)} == {commit.trace_id}


def test_sampled_message_has_a_span_in_its_own_trace(run: Run) -> None:
    """As a child of the span it was sent in, with its outcome; a dead letter is an error."""
    commit = _commit(run)
    spans = {span.trace_id.hex(): span for span in run.collector.spans() if span.trace_id != commit.trace_id}
    assert set(spans) == {_trace(number) for number in _SAMPLED}
    told: dict[int, dict[str, Any]] = {}
    for number in _SAMPLED:
        span = spans[_trace(number)]
        assert (span.parent_span_id.hex(), span.trace_state) == (f"{number:016x}", _STATE.decode())
        assert [link.span_id for link in span.links] == [commit.span_id]
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
            commit.start_time_unix_nano,
            commit.end_time_unix_nano,
        )
        told[number] = attributes_of(span.attributes)
        assert told[number]["messaging.kafka.offset"] == _offset(number)
    own = {
        number: {name: value for name, value in found.items() if name.startswith(("stream_dedup", "error"))}
        for number, found in told.items()
    }
    assert own[_ORIGINAL] == {"stream_dedup.decision": "unique", "stream_dedup.article.id": "first"}
    assert own[_COPY] == {
        "stream_dedup.decision": "duplicate",
        "stream_dedup.article.id": "copy",
        "stream_dedup.relation": "near",
        "stream_dedup.duplicate_of": "first",
    }
    assert own[_WITHDRAWAL] == {"stream_dedup.decision": "withdrawn", "stream_dedup.article.id": "better"}
    assert own[_BROKEN] == {"stream_dedup.decision": "dead", "error.type": "invalid_json"}
    failed = [number for number in _SAMPLED if spans[_trace(number)].status.code == Status.STATUS_CODE_ERROR]
    assert failed == [_BROKEN]


def _offset(number: int) -> int:
    """Return the index of the message with this trace among those sent."""
    return next(place for place, sent in enumerate(_SENT) if _trace(number).encode() in repr(sent).encode())


def test_service_says_who_it_is(run: Run) -> None:
    """Name, version and host are in the resource of the spans."""
    resource = run.collector.resource()
    assert resource["service.name"] == "stream-dedup"
    assert resource["host.name"] == socket.gethostname()
    assert resource["service.version"] == __version__


def test_commits_without_sampled_messages_are_sampled_by_their_share(bootstrap: str, tmp_path: Path) -> None:
    """A share of 1 means all; OpenTelemetry's variables set the endpoint and the service's name.

    When the collector disappears, the stream carries on, and the service stops in time.
    """
    topics = fresh_topics(bootstrap)
    with ExitStack() as until_gone:
        collector = until_gone.enter_context(Collector())
        environment = {
            **_SOON,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_SERVICE_NAME": "dedup-of-the-tests",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,service.instance.id=one",
        }
        flags = ("tracing.enabled=true", "tracing.sample=1")
        with Service(tmp_path, bootstrap, topics, *flags, environment=environment) as service:
            produce(bootstrap, topics.input, [_traced(article("a", _BODIES[0]), 1, sampled=False)])
            wait_until(lambda: any(not span.parent_span_id for span in collector.spans()), "the commit's span")
            until_gone.close()
            produce(bootstrap, topics.input, [article("b", _BODIES[1])])
            collect(bootstrap, topics, 2, service)
            wait_until(lambda: bool(service.events("library_warning")), "it is told that nobody takes the spans")
            produce(bootstrap, topics.input, [article("c", _BODIES[2])])
            collect(bootstrap, topics, 3, service)
            service.stop()
    assert service.events("tracing")[0]["endpoint"] == "OTEL_EXPORTER_OTLP_ENDPOINT"
    (commit,) = [span for span in collector.spans() if not span.parent_span_id]
    assert list(commit.links) == []
    assert {span.trace_id for span in collector.spans()} == {commit.trace_id}
    resource = collector.resource()
    assert resource["service.name"] == "dedup-of-the-tests"
    assert (resource["deployment.environment.name"], resource["service.instance.id"]) == ("test", "one")


def test_collector_that_never_answers_hurts_nobody(bootstrap: str, tmp_path: Path) -> None:
    """The stream carries on without waiting, and the service stops in time."""
    topics = fresh_topics(bootstrap)
    with Collector(silent=True) as collector:
        flags = ("tracing.enabled=true", f"tracing.endpoint={collector.url}", "tracing.sample=1", "commit.articles=4")
        with Service(tmp_path, bootstrap, topics, *flags, environment=_SOON) as service:
            produce(bootstrap, topics.input, [article(f"n{n}", f"{_BODIES[n % 40]} {n}") for n in range(200)])
            collect(bootstrap, topics, 200, service)
            wait_until(lambda: collector.asked > 0, "it was asked")
            service.stop()
    assert not service.events("crashed")
