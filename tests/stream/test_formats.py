"""The formats on a real broker: a round trip of each, outages of the registry, events, dead letters."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer

from deploy.demo.samples.corpus import Form, base_texts
from stream_dedup.decode.protobuf import ProtobufFormat
from stream_dedup.registry.client import Registry
from tests.stream.harness import (
    Headers,
    Incoming,
    Service,
    article,
    collect,
    fresh_topics,
    produce,
    read_topics,
    run_once,
    set_flags,
    wait_until,
)
from tests.stream.schemas import SchemaServer, schema_server
from tests.unit.registered import NAMES, NOON, NOON_MS, avro, context, sample

pytestmark = pytest.mark.usefixtures("compiled")

_TEXT, _OTHER = [text.body for text in base_texts() if text.form is Form.NEWS][:2]
_COPY = f"本报讯 {_TEXT}"
_Fields = dict[str, Any]


@pytest.fixture
def registry() -> Iterator[SchemaServer]:
    """Return a registry for this test alone."""
    with schema_server() as server:
        yield server


def _reader(name: str, client: SchemaRegistryClient) -> Callable[[bytes, str], Any]:
    """Return a reader of links and clusters: confluent-kafka's deserializer, or a Protobuf reader without classes."""
    if name == "protobuf":
        one = ProtobufFormat(Registry(client))
        return lambda value, _: one.fields(value, ())
    read: Any = AvroDeserializer(client) if name == "avro" else JSONDeserializer(None, None, client)
    return lambda value, topic: read(value, context(topic))


def _time(value: object) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value  # type: ignore[return-value]  # a time


@pytest.mark.parametrize("name", NAMES)
def test_round_trip(bootstrap: str, tmp_path: Path, registry: SchemaServer, name: str) -> None:
    """Articles come in, and links and clusters go out, in one format; unique articles are the original bytes.

    Includes a withdrawal with its announcement, and a restart that looks its schemas up instead of registering them.
    """
    topics, client = fresh_topics(bootstrap), registry.client
    values = [
        sample(client, name, id="story", body=_TEXT),
        sample(client, name, id="copy", body=_COPY),
        sample(client, name, id="other", body=_OTHER),
        sample(client, name, id="copy", deleted=True, body=""),
    ]
    flags = (f"registry.url={registry.url}", f"input.format={name}", f"output.format={name}")
    produce(bootstrap, topics.input, [Incoming(value) for value in values])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        outputs = collect(bootstrap, topics, len(values), service)
        service.stop()
    assert [record.value for record in outputs.unique] == [values[0], values[2]]
    assert outputs.dead == []
    read = _reader(name, client)
    link, withdrawn = [read(record.value or b"", topics.duplicates) for record in outputs.duplicates]
    assert (link["id"], link["duplicate_of"], link["matched"]) == ("copy", "story", "story")
    assert (link["relation"], link["candidate_source"], link["offset"]) == ("near", "landmark", 1)
    assert 0.9 < link["jaccard"] < 1
    assert _time(link["published_at"]) == NOON
    assert (withdrawn["id"], withdrawn["relation"], withdrawn.get("matched")) == ("copy", "withdrawn", None)
    clusters = [record.value for record in read_topics(bootstrap, [topics.clusters])[topics.clusters]]
    assert read(clusters[0] or b"", topics.clusters)["canonical"] == "story"
    assert {f"{topics.duplicates}-value", f"{topics.clusters}-value"} < set(client.get_subjects())

    # The next start remembers the decisions, and needs no permission to register.
    produce(bootstrap, topics.input, [Incoming(sample(client, name, id="again", body=_COPY))])
    with Service(tmp_path, bootstrap, topics, *flags, "output.register_schemas=false") as service:
        outputs = collect(bootstrap, topics, len(values) + 1, service)
        service.stop()
    assert read(outputs.duplicates[-1].value or b"", topics.duplicates)["duplicate_of"] == "story"


def test_api_reads_what_the_service_reads_and_writes(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """Links look the same as in JSON, texts are those of the messages; without the registry the answer is 503."""
    topics, client = fresh_topics(bootstrap), registry.client
    flags = (f"registry.url={registry.url}", "input.format=protobuf", "output.format=protobuf")
    values = [sample(client, "protobuf", id=name, body=body) for name, body in (("story", _TEXT), ("copy", _COPY))]
    produce(bootstrap, topics.input, [Incoming(value) for value in values])
    more = ("api.enabled=true", "api.port=0", "api.refresh_ms=100")
    with Service(tmp_path, bootstrap, topics, *flags, *more) as service:
        collect(bootstrap, topics, 2, service)
        wait_until(lambda: bool(service.events("answering")), "the API")
        with httpx2.Client(base_url=service.events("answering")[-1]["api"], timeout=20) as asking:
            known = partial(asking.get, "/v1/article", params={"id": "copy"})
            wait_until(lambda: known().status_code == 200, "the API has seen the copy")
            registry.away.set()
            away = asking.get("/v1/reason", params={"id": "copy"})
            assert (away.status_code, "schema registry" in away.text) == (503, True)
            registry.away.clear()
            reason = asking.get("/v1/reason", params={"id": "copy"}).json()
            (link,) = asking.get("/v1/latest").json()
        service.stop()
    assert (reason["first"]["body"], reason["second"]["body"]) == (_COPY, _TEXT)
    assert (link["id"], link["duplicate_of"], link["published_at"]) == ("copy", "story", "2026-10-18T12:00:00.000Z")


def test_decisions_are_read_in_whatever_format_they_are(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """Unique articles in the format of their topic; links in one that is no longer the output format."""
    topics, client, other = fresh_topics(bootstrap), registry.client, fresh_topics(bootstrap).input
    flags = (f"input.topics={topics.input},{other}", f"input.formats={other}=avro", f"registry.url={registry.url}")
    produce(bootstrap, other, [Incoming(sample(client, "avro", id="story", body=_TEXT))])
    with Service(tmp_path, bootstrap, topics, *flags, "output.format=protobuf") as service:
        collect(bootstrap, topics, 1, service)
        produce(bootstrap, topics.input, [article("copy", _COPY, published_at="2026-10-18T13:00:00Z")])
        collect(bootstrap, topics, 2, service)
        service.stop()
    command = ("tail", "--from-beginning", "--no-follow", "--json", "-c", str(tmp_path / "stream-dedup.toml"))
    told = run_once(*command, *set_flags(flags)).stdout.splitlines()
    story, copy = sorted(map(json.loads, told), key=lambda one: one["decision"], reverse=True)
    assert (story["id"], story["title"], story["published_at"]) == ("story", "夜市重开", "2026-10-18T12:00:00.000Z")
    assert (copy["id"], copy["duplicate_of"]) == ("copy", "story")


def test_topics_of_several_formats_are_one_stream(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """A copy in one format is linked to an original in another; links are JSON unless a setting says otherwise."""
    topics, client = fresh_topics(bootstrap), registry.client
    others = {name: fresh_topics(bootstrap).input for name in NAMES}
    names = ",".join([topics.input, *others.values()])
    formats = ",".join(f"{topic}={name}" for name, topic in others.items())
    flags = (f"input.topics={names}", f"input.formats={formats}", f"registry.url={registry.url}")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        produce(bootstrap, topics.input, [Incoming(json.dumps({"id": "story", "body": _TEXT}).encode())])
        collect(bootstrap, topics, 1, service)
        for name, topic in others.items():
            produce(bootstrap, topic, [Incoming(sample(client, name, id=name, body=_COPY, published_at=NOON))])
        outputs = collect(bootstrap, topics, 4, service)
        service.stop()
    assert {name: link["duplicate_of"] for name, link in outputs.links().items()} == dict.fromkeys(NAMES, "story")


def test_registry_that_is_away_loses_nothing(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """During the outage the service waits, alive but not ready, and says so; then every message gets its decision.

    It can be stopped meanwhile, and the next start resumes where it was.
    """
    topics, client = fresh_topics(bootstrap), registry.client
    flags = (f"registry.url={registry.url}", "input.format=avro")
    registry.away.set()
    values = [sample(client, "avro", id=f"{n}", body=f"{n} {_TEXT}") for n in range(20)]
    produce(bootstrap, topics.input, [Incoming(value) for value in values])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        wait_until(lambda: bool(service.events("registry_out_of_reach")), "the outage is told")
        assert service.ask("/healthz").status == 200
        # Throughout, whatever its loop is doing: for longer than the first pauses between attempts.
        for _ in range(100):
            answer = service.ask("/readyz")
            assert (answer.status, answer.text) == (503, "waiting for the schema registry\n")
            time.sleep(0.01)
        assert service.metrics().series("registry_waiting") == [1.0]
        service.stop()
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        wait_until(lambda: bool(service.events("registry_out_of_reach")), "the outage is told again")
        assert collect(bootstrap, topics, 0).total() == 0
        registry.away.clear()
        outputs = collect(bootstrap, topics, len(values), service)
        service.wait_ready()
        wait_until(lambda: service.metrics().series("registry_waiting") == [0.0], "it waits no more")
        service.stop()
    assert (len(outputs.unique), len(outputs.duplicates), outputs.dead) == (1, 19, [])


def test_dead_letters_of_formats_are_what_came_in(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """With the reason; the others are judged."""
    topics, client = fresh_topics(bootstrap), registry.client
    sound = sample(client, "avro", id="story", body=_TEXT)
    values = {
        "invalid_frame": json.dumps({"id": "a", "body": _TEXT}).encode(),
        "unknown_schema": b"\0\0\0\x0f\xff" + sound[5:],
        "invalid_record": sound[:-20],
        "missing_field": avro(
            client, {"id": "a"}, {"type": "record", "name": "A", "fields": [{"name": "id", "type": "string"}]}
        ),
    }
    produce(bootstrap, topics.input, [Incoming(value) for value in [*values.values(), sound]])
    with Service(tmp_path, bootstrap, topics, "input.format=avro", f"registry.url={registry.url}") as service:
        outputs = collect(bootstrap, topics, len(values) + 1, service)
        service.stop()
    assert {record.own("reason"): record.value for record in outputs.dead} == values
    assert [record.value for record in outputs.unique] == [sound]


def test_refused_credentials_of_the_registry_end_the_service(
    bootstrap: str, tmp_path: Path, registry: SchemaServer
) -> None:
    """The message names the setting but not the secret; with the right ones the service resumes there."""
    topics, client = fresh_topics(bootstrap), registry.client
    registry.user = "Basic bWU6cmlnaHQ="  # me:right
    produce(bootstrap, topics.input, [Incoming(sample(client, "avro", id="story", body=_TEXT))])
    flags, variable = (
        ("input.format=avro", f"registry.url={registry.url}"),
        "STREAM_DEDUP_REGISTRY__BASIC_AUTH_USER_INFO",
    )
    with Service(tmp_path, bootstrap, topics, *flags, environment={variable: "me:hunter2"}) as service:
        assert service.wait_end(120) == 1
    assert "registry.basic.auth.user.info" in service.log()
    assert "hunter2" not in service.log()
    assert collect(bootstrap, topics, 0).total() == 0
    with Service(tmp_path, bootstrap, topics, *flags, environment={variable: "me:right"}) as service:
        assert collect(bootstrap, topics, 1, service).unique[0].key == b"story"
        service.stop()


def test_lost_state_is_judged_again_in_the_same_formats(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """`state rebuild` reads what the group has decided again, with its schemas, and publishes none of it."""
    topics, client = fresh_topics(bootstrap), registry.client
    flags = ("input.format=protobuf", f"registry.url={registry.url}")
    produce(bootstrap, topics.input, [Incoming(sample(client, "protobuf", id="story", body=_TEXT))])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 1, service)
        service.stop()
    more = (*flags, "landmarks.keys=12")
    arguments = [argument for flag in more for argument in ("--set", flag)]
    rebuilt = run_once("state", "rebuild", "--config", str(tmp_path / "stream-dedup.toml"), *arguments)
    assert rebuilt.returncode == 0, rebuilt.stderr
    produce(bootstrap, topics.input, [Incoming(sample(client, "protobuf", id="copy", body=_COPY))])
    with Service(tmp_path, bootstrap, topics, *more) as service:
        outputs = collect(bootstrap, topics, 2, service)
        service.stop()
    assert outputs.links()["copy"]["duplicate_of"] == "story"


def test_messages_of_every_codec_are_read(bootstrap: str, tmp_path: Path) -> None:
    """Each producer may choose its compression; outputs are compressed as the setting says."""
    topics = fresh_topics(bootstrap)
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        produce(bootstrap, topics.input, [article(codec, f"{codec} {_TEXT}")], compression=codec)
    with Service(tmp_path, bootstrap, topics, "kafka.producer.compression.type=gzip") as service:
        outputs = collect(bootstrap, topics, len(codecs), service)
        service.stop()
    assert [record.key for record in outputs.unique] == [b"none"]
    assert set(outputs.links()) == set(codecs[1:])


def test_events_are_accepted_and_stay_events(bootstrap: str, tmp_path: Path) -> None:
    """In both modes; unique articles keep the value and headers that came in."""
    topics = fresh_topics(bootstrap)
    attributes = {"specversion": "1.0", "id": "e-1", "source": "//crawler/7", "type": "news", "time": NOON.isoformat()}
    binary: Headers = [(f"ce_{name}", value.encode()) for name, value in attributes.items()]
    structured: Headers = [("content-type", b"application/cloudevents+json")]
    envelope = {**attributes, "id": "e-2", "data": {"id": "ours", "body": _COPY}}
    messages = [
        Incoming(json.dumps({"id": "theirs", "body": _TEXT}).encode(), headers=binary),
        Incoming(json.dumps(envelope).encode(), headers=structured),
        Incoming(json.dumps({"id": "plain", "body": _OTHER}).encode()),
        Incoming(b"{}", headers=[*binary, ("ce_specversion", b"7")]),
    ]
    produce(bootstrap, topics.input, messages)
    flags = ("input.cloudevents=accept", "input.fields.id=ce_id", "input.fields.published_at=ce_time")
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        outputs = collect(bootstrap, topics, len(messages), service)
        service.stop()
    first, plain = outputs.unique
    assert (first.key, first.value, first.incoming_headers()) == (b"e-1", messages[0].value, binary)
    assert (plain.key or b"").startswith(b"content:")
    link = outputs.links()["e-2"]
    assert (link["duplicate_of"], link["published_at"]) == ("e-1", "2026-10-18T12:00:00.000Z")
    assert datetime.fromtimestamp(NOON_MS / 1000, UTC) == NOON
    assert [record.own("reason") for record in outputs.dead] == ["invalid_event"]
