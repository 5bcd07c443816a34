"""The topics that the service creates, those that it refuses, and trimming the beginning of a changelog."""

import json
import re
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    ConfigResource,
    NewTopic,
    ResourceType,
)
from structlog.testing import capture_logs

from stream_dedup.engine.clusters import MOST_SOURCES, Cluster, cluster_fields
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.topics import NO_ID, StateTopics, Topics, is_same_topic, state_topics
from stream_dedup.stream.state.restore import restore
from stream_dedup.stream.state.states import digest_of
from tests.stream.messages import Incoming, produce
from tests.stream.topics import LARGE, admin_of, create_topics, delete_topic, existing_topics, partitions_of
from tests.stream.waiting import wait_until

SECONDS = 20.0
DIGEST = "0123abcd"


def settings(bootstrap: str, name: str, *, create: bool = True) -> Settings:
    """Return settings whose topics share a prefix."""
    outputs = {output: f"{name}.{output}" for output in ("unique", "duplicates", "dead", "clusters")}
    return Settings.model_validate(
        {
            "input": {"topics": [f"{name}.in"], "group": name},
            "output": {**outputs, "create": create},
            "kafka": {"bootstrap.servers": bootstrap},
        }
    )


@pytest.fixture(autouse=True)
def _answers_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a busy broker: a service that has to go on with the stream waits for two seconds, and asks again."""
    monkeypatch.setattr("stream_dedup.stream.kafka.topics._FORGET_SECONDS", 60.0)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"t{uuid4().hex[:12]}"


def create(bootstrap: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """Create a topic as another program would."""
    create_topics(bootstrap, NewTopic(topic, partitions, -1, config=dict(config or {})))


def configuration(bootstrap: str, topic: str) -> dict[str, str]:
    """Return how a topic is configured; one created a moment ago may not be known yet."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_of(bootstrap)
    found: dict[str, str] = {}

    def described() -> bool:
        try:
            entries = admin.describe_configs([resource])[resource].result(SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return False
        found.update({name: entry.value for name, entry in entries.items()})
        return True

    wait_until(described, "the broker knows the topic")
    return found


def partitions(bootstrap: str, topic: str) -> int:
    """Return how many partitions a topic has."""
    return len(partitions_of(admin_of(bootstrap), topic))


def first_offset(bootstrap: str, topic: str) -> int:
    """Return the first offset that remains."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"look-{uuid4().hex[:8]}"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)[0])
    finally:
        consumer.close()


def test_missing_topics_are_created_and_a_second_start_finds_them_right(bootstrap: str, name: str) -> None:
    """Four outputs, the owner topic and the changelog are created; preparing them again changes nothing."""
    chosen = settings(bootstrap, name)
    state = state_topics(chosen, DIGEST)
    for _ in range(2):
        Topics(chosen).prepare(state)
    made = {topic for topic in existing_topics(bootstrap) if topic.startswith(name)}
    assert made == {
        *(f"{name}.{output}" for output in ("unique", "duplicates", "dead", "clusters")),
        f"{name}.owner",
        f"{name}.changelog.{DIGEST}",
    }
    assert partitions(bootstrap, state.owner) == 1
    assert partitions(bootstrap, state.changelog) == 1


def test_topics_that_another_process_creates_meanwhile_are_taken(
    bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two replicas may start at the same moment, and both find none."""
    chosen = settings(bootstrap, name)
    state, late = state_topics(chosen, DIGEST), Topics(chosen)
    monkeypatch.setattr(late, "_existing", dict)
    Topics(chosen).prepare(state)
    late.prepare(state)


def test_largest_cluster_fits_its_topic(bootstrap: str, name: str) -> None:
    """As many sources as are counted by name, with the longest names: more than a topic takes by Kafka's default."""
    Topics(settings(bootstrap, name)).prepare(state_topics(settings(bootstrap, name), DIGEST))
    sources = {f"{number:03}".ljust(2_000, "\x01"): 1 for number in range(MOST_SOURCES)}
    cluster = Cluster(0, "a", len(sources) - 1, 0, 0, sources, 0, ())
    value = json.dumps(cluster_fields(cluster, 0))
    limit = int(configuration(bootstrap, f"{name}.clusters")["max.message.bytes"])
    assert len(value) < limit < LARGE  # which is the default of the tests' own broker


def test_state_is_kept_by_compaction_alone(bootstrap: str, name: str) -> None:
    """Changelog and clusters are compacted, and neither time nor size deletes anything from the changelog."""
    chosen = settings(bootstrap, name)
    state = state_topics(chosen, DIGEST)
    Topics(chosen).prepare(state)
    found = configuration(bootstrap, state.changelog)
    assert found["cleanup.policy"] == "compact,delete"
    assert (found["retention.ms"], found["retention.bytes"]) == ("-1", "-1")
    # What is cut off or compacted takes space until its segment is full: Kafka's own are of a gigabyte.
    assert int(found["segment.bytes"]) < 1 << 27
    assert int(found["max.message.bytes"]) >= 2 << 20
    assert configuration(bootstrap, f"{name}.clusters")["cleanup.policy"] == "compact"
    assert configuration(bootstrap, f"{name}.unique")["cleanup.policy"] == "delete"


def test_all_missing_topics_are_named_where_none_may_be_created(bootstrap: str, name: str) -> None:
    """With output.create = false nothing is created, and one error lists everything to be done."""
    chosen = settings(bootstrap, name, create=False)
    create(bootstrap, f"{name}.unique")
    with pytest.raises(BrokerError, match=r"output\.create") as error:
        Topics(chosen).prepare(state_topics(chosen, DIGEST))
    missing = ("duplicates", "dead", "clusters", "owner", f"changelog.{DIGEST}")
    assert all(f"{name}.{topic}" in str(error.value) for topic in missing)
    assert f"{name}.unique" not in str(error.value)
    assert {topic for topic in existing_topics(bootstrap) if topic.startswith(name)} == {f"{name}.unique"}


@pytest.mark.parametrize(
    ("topic", "count", "config", "told"),
    [
        ("owner", 2, {}, "has 2 partitions"),
        (f"changelog.{DIGEST}", 3, {"cleanup.policy": "compact"}, "has 3 partitions"),
        (f"changelog.{DIGEST}", 1, {"cleanup.policy": "delete"}, "cleanup.policy = delete"),
        (
            f"changelog.{DIGEST}",
            1,
            {"cleanup.policy": "compact,delete", "retention.ms": "604800000"},
            "retention.ms = 604800000",
        ),
        (
            f"changelog.{DIGEST}",
            1,
            {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "1000000"},
            "retention.bytes = 1000000",
        ),
    ],
)
def test_topic_that_would_not_keep_the_state_is_refused(
    bootstrap: str, name: str, topic: str, count: int, config: dict[str, str], told: str
) -> None:
    """A wrongly configured topic of the state is named, with what is wrong, and nothing is created."""
    create(bootstrap, f"{name}.{topic}", count, config)
    chosen = settings(bootstrap, name)
    with pytest.raises(BrokerError) as error:
        Topics(chosen).prepare(state_topics(chosen, DIGEST))
    assert f"{name}.{topic}" in str(error.value)
    assert told in str(error.value)
    assert f"{name}.unique" not in existing_topics(bootstrap)


def test_no_state_is_restored_from_a_changelog_of_two_partitions(bootstrap: str, name: str, tmp_path: Path) -> None:
    """Only the first would be read: the topic is named, as at a start, and no state directory is made."""
    chosen, directory = settings(bootstrap, name), tmp_path / "state"
    chosen = chosen.model_copy(update={"state": chosen.state.model_copy(update={"directory": directory})})
    changelog = state_topics(chosen, digest_of(chosen)).changelog
    create(bootstrap, changelog, 2, {"cleanup.policy": "compact"})
    with pytest.raises(BrokerError, match=f"topic {changelog} has 2 partitions"):
        restore(chosen, lambda *_: None, fresh=False)
    assert not directory.exists()


def test_changelog_that_is_only_compacted_is_taken(bootstrap: str, name: str) -> None:
    """It keeps the state whatever its retention, which applies only to deletion."""
    chosen = settings(bootstrap, name)
    state = state_topics(chosen, DIGEST)
    create(bootstrap, state.changelog, config={"cleanup.policy": "compact", "retention.ms": "1000"})
    Topics(chosen).prepare(state)
    assert state.owner in existing_topics(bootstrap)


def test_state_has_its_own_name_or_that_of_the_group() -> None:
    """A configured name comes first; characters of the group that topics cannot have are replaced."""
    own = Settings.model_validate({"state": {"name": "wire"}, "kafka": {}})
    assert state_topics(own, "d") == StateTopics("wire.owner", "wire.changelog.d")
    groups = ["去重 a/b", "排重 a/b", "g" * 300, "g" * 301]
    named = [state_topics(Settings.model_validate({"input": {"group": group}, "kafka": {}}), "d") for group in groups]
    assert re.fullmatch(r"___a_b-[0-9a-f]{8}\.owner", named[0].owner)
    assert len({topics.owner for topics in named} | {topics.changelog for topics in named}) == 2 * len(groups)
    longest = state_topics(Settings.model_validate({"input": {"group": "g" * 300}, "kafka": {}}), "f" * 32)
    assert len(longest.changelog) <= 249


def test_changelogs_of_other_settings_are_found(bootstrap: str, name: str) -> None:
    """Those of the same name with another digest, not the topics of another index whose name begins with this one."""
    others = (f"{name}x.changelog.ddd", f"{name}.changelog.owner", f"{name}.changelog.changelog.eee")
    for topic in (f"{name}.changelog.bbb", f"{name}.changelog.aaa", f"{name}.changelog.ccc", *others):
        create(bootstrap, topic)
    topics = Topics(settings(bootstrap, name))
    assert topics.other_changelogs("ccc") == [f"{name}.changelog.aaa", f"{name}.changelog.bbb"]


def test_beginning_of_a_changelog_is_cut_off(bootstrap: str, name: str) -> None:
    """Records before the offset are gone; the rest remain."""
    chosen = settings(bootstrap, name)
    topics, state = Topics(chosen), state_topics(chosen, DIGEST)
    topics.prepare(state)
    produce(bootstrap, state.changelog, [Incoming(b"v", key=b"%d" % n) for n in range(10)])
    assert topics.delete_records_before(state.changelog, 7)
    assert first_offset(bootstrap, state.changelog) == 7


def test_refusal_to_cut_off_is_told_once_and_is_no_error(bootstrap: str, name: str) -> None:
    """Kafka deletes no records of a topic that is only compacted: the log says what would have to change."""
    chosen = settings(bootstrap, name)
    topics, state = Topics(chosen), state_topics(chosen, DIGEST)
    create(bootstrap, state.changelog, config={"cleanup.policy": "compact"})
    produce(bootstrap, state.changelog, [Incoming(b"v", key=b"%d" % n) for n in range(10)])
    with capture_logs() as lines:
        assert not topics.delete_records_before(state.changelog, 7)
        assert not topics.delete_records_before(state.changelog, 8)
    warnings = [line for line in lines if line["event"] == "changelog_not_trimmed"]
    assert len(warnings) == 1
    assert "compact,delete" in warnings[0]["needed"]
    assert first_offset(bootstrap, state.changelog) == 0


def test_topic_that_was_just_created_is_waited_for(bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka confirms a topic before all brokers know it, so whoever asks about it then waits a little."""
    monkeypatch.setattr("stream_dedup.stream.kafka.topics._UNKNOWN_SECONDS", 60.0)
    later = threading.Timer(1.0, create, (bootstrap, name), {"config": {"max.message.bytes": "3000000"}})
    later.start()
    try:
        assert Topics(settings(bootstrap, name)).identity(name).startswith(f"{name}/")
    finally:
        later.join()


def test_identities_are_known_of_topics_that_exist(bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of others there is none, also where an answer is waited for; a recreated topic has another one."""
    monkeypatch.setattr("stream_dedup.stream.kafka.topics._UNKNOWN_SECONDS", 0.5)
    monkeypatch.setattr("stream_dedup.stream.kafka.topics._IDENTITY_SECONDS", 60.0)
    topics = Topics(settings(bootstrap, name))
    create(bootstrap, name)
    wait_until(lambda: bool(topics.identities({name})), "the broker knows the topic")
    found = topics.known_identities({name, f"{name}.other"})
    assert found == topics.identities({name, f"{name}.other"})
    assert found.keys() == {name}
    delete_topic(bootstrap, name)
    create(bootstrap, name)
    assert topics.known_identities({name})[name] != found[name]


def test_identities_without_an_id_tell_nothing() -> None:
    """An upgraded broker gives an id to a topic that had none: it is still the same topic."""
    known, other, none = (f"t/{topic_id}" for topic_id in ("kqZ5bMO5R-KAIRaD4n-bQw", "s8C1/E7s/E2Yz2iXhyRr5A", NO_ID))
    assert [is_same_topic(known, one) for one in (known, other, none)] == [True, False, True]
    assert is_same_topic(none, known)
    assert not is_same_topic(none, f"u/{NO_ID}")


def test_broker_that_falls_silent_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the answer is required, there is an error with the cause; if it can be assumed, it is."""
    monkeypatch.setattr("stream_dedup.stream.kafka.topics._ADMIN_SECONDS", 0.5)
    monkeypatch.setattr("stream_dedup.stream.kafka.topics._IDENTITY_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asking = Topics(settings(f"127.0.0.1:{silent.getsockname()[1]}", name))
        with pytest.raises(BrokerError, match=f"cannot describe {name}: no answer within"):
            asking.identity(name)
        with pytest.raises(BrokerError, match=f"cannot describe {name}: no answer within"):
            asking.known_identities({name})
        assert asking.identities({name}) == {}
        with capture_logs() as lines:
            assert asking.max_message_bytes(name) > 0
    assert [line["event"] for line in lines] == ["topic_limit_unknown"]


def test_whoever_waits_for_an_answer_may_give_up(name: str) -> None:
    """A service that is to stop, or whose group waits for it, is told about once a second."""

    class GivenUpError(Exception):
        pass

    def give_up() -> None:
        raise GivenUpError

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asking = Topics(settings(f"127.0.0.1:{silent.getsockname()[1]}", name), give_up)
        with pytest.raises(GivenUpError):
            asking.identity(name)


def test_port_without_sasl_is_named_as_a_possible_cause(bootstrap: str, name: str) -> None:
    """It offers no mechanism, and librdkafka reports the same as for wrong credentials."""
    chosen = settings(bootstrap, name)
    chosen.kafka.update(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "hunter2",
        }
    )
    with pytest.raises(BrokerError, match=r"refuses the connection .* whether the broker uses SASL on this port"):
        Topics(chosen).exists(name)


def test_room_is_less_than_the_topic_takes(bootstrap: str, name: str) -> None:
    """The room leaves space for what the service adds to a message."""
    create(bootstrap, name, config={"max.message.bytes": "3000000"})
    assert 2_900_000 < Topics(settings(bootstrap, name)).max_message_bytes(name) < 3_000_000


def test_some_room_is_left_of_a_small_topic(bootstrap: str, name: str) -> None:
    """Else every article would be too large for it, however short."""
    create(bootstrap, name, config={"max.message.bytes": "50000"})
    assert 20_000 < Topics(settings(bootstrap, name)).max_message_bytes(name) < 50_000


@pytest.mark.parametrize("limit", ["message.max.bytes=2000000", "producer.queue.buffering.max.kbytes=1953"])
def test_room_is_no_more_than_the_producer_takes(bootstrap: str, name: str, limit: str) -> None:
    """Otherwise a message between the two limits would end the service at every start."""
    create(bootstrap, name, config={"max.message.bytes": "3000000"})
    made = settings(bootstrap, name)
    prop, _, value = limit.partition("=")
    limited = made.model_copy(update={"kafka": {**made.kafka, prop: value}})
    assert 1_900_000 < Topics(limited).max_message_bytes(name) < 2_000_000
