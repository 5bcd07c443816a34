"""The formats on a real broker: a round trip of each, topics of several, events, codecs and dead letters.

Knows services and a registry that answers; how a format is decoded is tested in tests/unit.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer

from stream_dedup.decode.protobuf import ProtobufFormat
from stream_dedup.registry.client import Registry
from tests.engine.samples import bodies
from tests.stream.messages import Headers, Incoming, article, produce
from tests.stream.records import collect, read_topics
from tests.stream.schemas import SchemaServer
from tests.stream.service import Service
from tests.stream.topics import fresh_topics
from tests.unit.registered import NAMES, NOON, NOON_MS, avro, context, sample

pytestmark = pytest.mark.usefixtures("compiled")

_TEXT, _OTHER = bodies()[:2]
_COPY = f"本报讯 {_TEXT}"


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
