"""Encoded outputs are read by confluent-kafka's own deserializers, with every field."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from google.protobuf import json_format

from stream_dedup.article import (
    Article,
    Decision,
    Link,
    Origin,
    Relation,
    Source,
    Succession,
    SuccessionReason,
    Withdrawal,
    Withdrawn,
)
from stream_dedup.decode.fields import Paths
from stream_dedup.decode.protobuf import ProtobufFormat
from stream_dedup.encode import Encoder, JsonEncoder
from stream_dedup.encode.registered import RegisteredEncoder, registration
from stream_dedup.engine.clusters import Cluster, Member, cluster_fields
from stream_dedup.output_fields import link_fields, succession_fields, withdrawal_fields
from stream_dedup.output_shapes import CLUSTER, LINK
from stream_dedup.registry import RegistryError
from stream_dedup.registry import client as registry_client
from stream_dedup.registry.client import Registry
from stream_dedup.settings import FormatName, OutputSettings, Settings, load_settings
from stream_dedup.stream.formats import Formats
from tests.unit.registered import NAMES, NOON_MS, context, mock_registry

_LINK = Link("a", "b", Relation.NEAR, 0.9, None, 0, Source.LANDMARK)
_COPY = Article("甲-2", "正文", url="https://a.example/", source="甲报", published_ms=NOON_MS, scope="租户")
_WHOLE = Article("甲-2", "正文", origin=Origin("articles.in", 0, 7, NOON_MS + 1))
LINKS = {
    "link": link_fields(Decision(_COPY, False, 2**64 - 1, 0, _LINK, False), _LINK, NOON_MS + 5),
    "of a message": link_fields(Decision(_WHOLE, False, None, 3, _LINK, False), _LINK, NOON_MS),
    "withdrawn": withdrawal_fields(Withdrawn(Withdrawal("a"), "a", None), NOON_MS),
    "succession": succession_fields(Succession("a", "b", SuccessionReason.POLICY), NOON_MS),
}
CLUSTERS = {
    "of one source": cluster_fields(Cluster.founded(1, Member("a", 1, True, None, NOON_MS, 2, "甲报"), None), NOON_MS),
    "of no time": cluster_fields(Cluster.founded(1, Member("a", 1, True, None, None, 2, ""), None), NOON_MS),
}
_READERS: dict[str, Callable[[SchemaRegistryClient], Any]] = {
    "avro": AvroDeserializer,
    "json-schema": lambda client: JSONDeserializer(None, None, client),
}


def _encoder(client: SchemaRegistryClient, name: str, *, register: bool = True) -> Encoder:
    settings = OutputSettings.model_validate({"format": name, "register_schemas": register})
    return RegisteredEncoder(settings, Registry(client))


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null, with times as ISO 8601."""

    def shown(value: Any) -> Any:  # noqa: ANN401  # whatever a field holds
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return value

    return {name: shown(value) for name, value in fields.items() if value is not None}


@pytest.mark.parametrize("name", ["avro", "json-schema"])
@pytest.mark.parametrize("fields", [*LINKS.values(), *CLUSTERS.values()], ids=[*LINKS, *CLUSTERS])
def test_outputs_are_read_by_deserializers_of_their_own(name: str, fields: dict[str, Any]) -> None:
    """Each JSON field has the same value; fields that are null or missing in JSON are null or missing here too."""
    client, is_link = mock_registry(), "id" in fields
    encoder = _encoder(client, name)
    value = encoder.link(fields) if is_link else encoder.cluster(fields)
    topic = "articles.duplicates" if is_link else "articles.clusters"
    assert _plain(_READERS[name](client)(value, context(topic))) == _plain(orjson.loads(JsonEncoder.link(fields)))


@pytest.mark.parametrize("fields", [*LINKS.values(), *CLUSTERS.values()], ids=[*LINKS, *CLUSTERS])
def test_outputs_are_read_as_messages_of_protobuf(fields: dict[str, Any]) -> None:
    """The same holds for a reader that has only the descriptor from the registry."""
    client, is_link = mock_registry(), "id" in fields
    encoder = _encoder(client, "protobuf")
    value = encoder.link(fields) if is_link else encoder.cluster(fields)
    message: Any = ProtobufFormat(Registry(client)).fields(value, ())
    told = json_format.MessageToDict(
        message._message,  # noqa: SLF001  # the message as its library shows it
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
    numbers = {"hamming", "idf_epoch", "partition", "offset", "copies", "distinct_sources", "other_sources_articles"}
    for record in (told, *told.get("sources", ())):
        record |= {key: int(number) for key, number in record.items() if key in {*numbers, "articles"}}
    expected = _plain(orjson.loads(JsonEncoder.link(fields)))
    assert {key: _moment(key, item) for key, item in told.items()} == {
        key: _moment(key, item) for key, item in expected.items()
    }


def _moment(name: str, value: Any) -> Any:  # noqa: ANN401  # of any field
    """Return the value without the milliseconds of a whole second, as Protobuf writes it."""
    return datetime.fromisoformat(value) if name.endswith(("_at", "_seen")) else value


@pytest.mark.parametrize("name", ["json", *NAMES])
@pytest.mark.parametrize("fields", LINKS.values(), ids=LINKS)
def test_service_reads_its_own_links(name: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In every format the fields are those of JSON; with a registry, links in formerly used formats are read too."""
    client, told = mock_registry(), orjson.loads(JsonEncoder.link(fields))
    monkeypatch.setattr(registry_client, "make_client", lambda _: client)
    flags = [f"output.format={name}", "registry.url=http://registry"]
    wire = Formats(load_settings(flags=flags))
    read = wire.link_reader()
    assert read(wire.encoder().link(fields)) == told
    assert read(JsonEncoder.link(fields)) == told
    without = Formats(Settings()).link_reader()
    for other in NAMES:
        value = _encoder(client, other).link(fields)
        assert read(value) == told
        with pytest.raises(ValueError, match=r"registry\.url"):
            without(value)


@pytest.mark.parametrize("value", [b"{", b"{}", b"{no json}", b'{"id": "a"}'])
def test_what_begins_as_a_link_and_is_none(value: bytes) -> None:
    """Anyone may write to the topic, so an invalid link raises an error that lets a reader skip it."""
    with pytest.raises(ValueError, match=r"unexpected|a link must have an id"):
        Formats(Settings()).link_reader()(value)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_registered_by_topic_and_only_once(name: FormatName) -> None:
    """The subjects are TOPIC-value; a second start reuses what the first registered, even if it may not register."""
    client = mock_registry()
    first = _encoder(client, name).link(LINKS["link"])
    assert sorted(client.get_subjects()) == ["articles.clusters-value", "articles.duplicates-value"]
    assert _encoder(client, name, register=False).link(LINKS["link"]) == first
    assert client.get_versions("articles.duplicates-value") == [1]


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_not_registered_where_that_is_not_allowed(name: FormatName) -> None:
    """The error names the subject, the command that prints the schema, and the setting."""
    client = mock_registry()
    with pytest.raises(RegistryError, match=r"articles\.duplicates-value") as raised:
        _encoder(client, name, register=False)
    assert "--schema link" in str(raised.value)
    assert "output.register_schemas" in str(raised.value)
    assert client.get_subjects() == []


@pytest.mark.parametrize("name", NAMES)
def test_printed_schema_is_the_one_that_is_registered(name: FormatName) -> None:
    """After registering what `config --schema` prints, the service runs without permission to register."""
    client = mock_registry()
    _encoder(client, name)
    for shape, topic in ((LINK, "articles.duplicates"), (CLUSTER, "articles.clusters")):
        known = client.get_latest_version(f"{topic}-value").schema
        assert registration(shape, name) == {"schemaType": known.schema_type, "schema": known.schema_str}


def test_shapes_have_the_fields_of_json() -> None:
    """The schemas have exactly the fields of the JSON."""
    told = {name for fields in LINKS.values() for name in fields}
    assert {field.name for field in LINK.fields} == told
    assert {field.name for field in CLUSTER.fields} - {"scope"} == set(CLUSTERS["of one source"])
    assert Paths({"id": "canonical"}).value(CLUSTERS["of one source"], "id") == "a"
