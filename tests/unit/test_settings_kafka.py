"""Properties of librdkafka in the settings: where they come from, and which are refused.

Knows no broker: librdkafka itself says which properties there are.
"""

from pathlib import Path

import pytest

from stream_dedup.settings import Settings, SettingsError, load_settings
from stream_dedup.stream.kafka.clients import check_properties, consumer_properties, producer_properties
from tests.unit.given_settings import faults_of, toml


def test_kafka_properties_come_from_every_layer(tmp_path: Path) -> None:
    """Quoted or not in the file, with underscores in the environment, or as flags: all become dotted names."""
    file = toml(
        tmp_path,
        '[kafka]\nsecurity.protocol = "ssl"\n"ssl.ca.location" = "ca.pem"\nconsumer.fetch.wait.max.ms = 50\n'
        "socket.keepalive.enable = true\n",
    )
    environment = {
        "STREAM_DEDUP_KAFKA__SASL_PASSWORD": "pw",
        "STREAM_DEDUP_KAFKA__SECURITY_PROTOCOL": "sasl_ssl",
        "STREAM_DEDUP_KAFKA__CONSUMER__FETCH_MIN_BYTES": "5",
    }
    kafka = load_settings(file, environment, ["kafka.bootstrap.servers=b:9092", "kafka.client.id=me"]).kafka
    assert kafka == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": "ca.pem",
        "consumer.fetch.wait.max.ms": "50",
        "consumer.fetch.min.bytes": "5",
        "socket.keepalive.enable": "true",
        "sasl.password": "pw",
        "client.id": "me",
    }


def test_lists_are_properties_with_commas(tmp_path: Path) -> None:
    """In the file, several brokers may be a list."""
    file = toml(tmp_path, '[kafka]\n"bootstrap.servers" = ["a:1", "b:2"]\n')
    assert load_settings(file, {}).kafka["bootstrap.servers"] == "a:1,b:2"


def test_broker_has_a_default() -> None:
    """Without any properties, the broker is on the local machine."""
    assert Settings().kafka == load_settings().kafka == {"bootstrap.servers": "127.0.0.1:9092"}


def test_properties_without_a_name_are_refused() -> None:
    """A value for the group itself is not a property; the message shows how one is set."""
    named = "kafka: a value is set without the name of its property: write it as in kafka.bootstrap.servers=kafka:9092"
    assert named in faults_of("kafka=hunter2")
    assert named in faults_of("kafka.consumer.=hunter2")
    assert named in faults_of(environment={"STREAM_DEDUP_KAFKA": "x"})
    assert "write it as in registry.url=http://registry:8081" in faults_of("registry=http://r")


@pytest.mark.parametrize("servers", ["", " "])
def test_broker_without_a_name_is_refused(servers: str) -> None:
    """An unset shell variable would otherwise mean one that librdkafka waits for in vain."""
    assert "bootstrap.servers is empty: name at least one broker" in faults_of(f"kafka.bootstrap.servers={servers}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", "true"),
        ("consumer.enable.auto.commit", "true"),
        ("enable.auto.offset.store", "true"),
        ("enable.partition.eof", "true"),
        ("group.id", "other"),
    ],
)
def test_consumer_properties_that_the_service_depends_on_are_refused(name: str, value: str) -> None:
    """Overriding one of these could lose or duplicate articles; the fault names it and its required value."""
    settings = load_settings(flags=[f"kafka.{name}={value}"])
    with pytest.raises(SettingsError, match=name.removeprefix("consumer.").replace(".", r"\.")):
        consumer_properties(settings)


@pytest.mark.parametrize(("name", "value"), [("acks", "1"), ("producer.enable.idempotence", "false")])
def test_producer_properties_that_the_service_depends_on_are_refused(name: str, value: str) -> None:
    """The same holds for the producer."""
    with pytest.raises(SettingsError, match="the service requires"):
        producer_properties(load_settings(flags=[f"kafka.{name}={value}"]))


def test_properties_go_to_the_client_that_they_name() -> None:
    """A prefix selects a client and overrides the common value; the service's defaults can be overridden."""
    flags = ["linger.ms=7", "consumer.auto.offset.reset=latest", "producer.linger.ms=9", "client.id=me"]
    settings = load_settings(flags=[f"kafka.{flag}" for flag in flags])
    consumer, producer = consumer_properties(settings), producer_properties(settings)
    assert (consumer["auto.offset.reset"], consumer["linger.ms"], consumer["client.id"]) == ("latest", "7", "me")
    assert (producer["linger.ms"], producer["acks"], producer["client.id"]) == ("9", "all", "me")
    assert "auto.offset.reset" not in producer
    assert consumer["group.id"] == settings.input.group


@pytest.mark.parametrize("flag", ["kafka.no.such.property=1", "kafka.security.protocol=carrier-pigeon"])
def test_properties_that_librdkafka_refuses_are_found_without_a_broker(flag: str) -> None:
    """A misspelt property or value is reported before anything starts."""
    with pytest.raises(SettingsError, match="librdkafka"):
        check_properties(load_settings(flags=[flag]))


@pytest.mark.parametrize("name", ["error_cb", "consumer.stats_cb", "producer.logger", "default.topic.config"])
def test_objects_of_the_python_client_are_no_properties(name: str) -> None:
    """Text in the place of a function is a fault with a name, not a crash of the client."""
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{name}=x"]))
    assert str(told.value) == f"kafka.{name} = 'x': it is not a property of librdkafka"


def test_all_properties_that_are_refused_are_told() -> None:
    """Each has a line with its name as set and its value, whichever client it is for and whatever refuses it."""
    given = {
        "acks": "1",
        "nonsense": "7",
        "consumer.session.timeout.ms": "0",
        "producer.linger.ms": "soon",
        "enable.auto.commit": "true",
        "transactional.id": "mine",
        "client.id": "me",
    }
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{name}={value}" for name, value in given.items()]))
    lines = str(told.value).splitlines()
    del given["client.id"]
    assert sorted(line.partition(": ")[0] for line in lines) == sorted(f"kafka.{n} = {v!r}" for n, v in given.items())


@pytest.mark.parametrize("given", [(), ("sasl.username=me",)], ids=["neither", "username"])
def test_missing_password_is_one_fault(given: tuple[str, ...]) -> None:
    """It is told once, not again for each client, nor because the user name was left out to find other faults."""
    flags = ["security.protocol=sasl_ssl", "sasl.mechanism=PLAIN", *given]
    with pytest.raises(SettingsError, match=r"sasl\.password must be set") as told:
        check_properties(load_settings(flags=[f"kafka.{flag}" for flag in flags]))
    assert len(str(told.value).splitlines()) == 1


def test_librdkafka_takes_what_the_largest_commits_need() -> None:
    """Sizes that follow from settings are no larger than it allows."""
    check_properties(load_settings(flags=[f"{name}={1 << 30}" for name in ("commit.bytes", "input.max_message_bytes")]))


@pytest.mark.parametrize("acks", ["all", "-1", "ALL"])
def test_property_may_be_written_as_librdkafka_has_it(acks: str) -> None:
    """That of all replicas has two names; whichever is set, it is what the service requires."""
    assert producer_properties(load_settings(flags=[f"kafka.acks={acks}"]))["acks"] == "all"
