"""The topics on the broker: those of the outputs, the changelog, and the one whose partition decides the ownership.

Knows their names and how each must be configured; knows nothing of what is written to them.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings, is_expression, topic_matches
from stream_dedup.stream.kafka.clients import (
    BrokerError,
    connection_advice,
    is_transient,
    make_admin,
    max_produced_bytes,
)

_ADMIN_SECONDS = 20.0
_SLICE_SECONDS = 1.0  # of a wait
_UNKNOWN_SECONDS = 10.0
_UNKNOWN_PAUSE_SECONDS = 0.1
_COMPLAINT_SECONDS = 86_400.0  # between two complaints about missing rights
_FORGET_SECONDS = _IDENTITY_SECONDS = 2.0  # the service waits for it between two commits
_DEFAULT_MAX_MESSAGE = 1_048_588  # Kafka's own default of max.message.bytes
_OWN_BYTES = 64 << 10  # room for what the service adds: the article's id, its own headers, the batch around it
_DIGEST = "[0-9a-f]+"  # of settings: how the name of a changelog ends
NO_ID = str(Uuid(0, 0))  # of a topic, on brokers too old to give any
_KAFKAS_OWN = "__"  # how the names of Kafka's internal topics begin

# A cluster names up to 256 sources of 2,000 characters: more than the megabyte that Kafka takes by default.
_CLUSTERS = {"cleanup.policy": "compact", "max.message.bytes": str(4 << 20)}
CHANGELOG = {
    # `delete` lets the owner cut off the beginning, which Kafka refuses for a topic that is only compacted. Neither
    # time nor size may delete anything: the index would be lost with it.
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "min.cleanable.dirty.ratio": "0.3",
    "segment.bytes": str(64 << 20),
    "max.compaction.lag.ms": str(24 * 3_600_000),
    # A replica that was away for longer than this may miss that a key was deleted.
    "delete.retention.ms": str(7 * 24 * 3_600_000),
    "max.message.bytes": str(8 << 20),
}

_Answer = TypeVar("_Answer")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StateTopics:
    """The topics of an index.

    Attributes:
        owner: whoever holds its one partition writes to the index.
        changelog: every change of the index, in order.
    """

    owner: str
    changelog: str


def state_topics(settings: Settings, digest: str) -> StateTopics:
    """Return the names of the index's topics.

    Args:
        settings: `state.name`, or else the consumer group, names the index.
        digest: of the settings on which the meaning of the state depends.
    """
    return StateTopics(settings.owner_topic, f"{settings.changelog_prefix}{digest}")


def matching_topics(settings: Settings, existing: Collection[str]) -> list[str]:
    """Return the topics to read: those that are named, and the existing ones that an expression matches.

    No expression matches the index's own topics, which would make it read what it writes, or Kafka's internal ones.

    Args:
        settings: names and expressions.
        existing: topics that exist.
    """
    own = {settings.owner_topic, *_changelogs(settings, existing)}
    others = [name for name in existing if name not in own and not name.startswith(_KAFKAS_OWN)]
    named = [name for name in settings.input.topics if not is_expression(name)]
    expressions = filter(is_expression, settings.input.topics)
    found = {name for wanted in expressions for name in others if topic_matches(wanted, name)}
    return sorted(found.union(named))


def _changelogs(settings: Settings, existing: Collection[str]) -> set[str]:
    """Return which of the existing topics are changelogs of the index, under whatever settings."""
    changelog = re.compile(re.escape(settings.changelog_prefix) + _DIGEST)
    return set(filter(changelog.fullmatch, existing))


class Topics:
    """The topics on the broker.

    Args:
        settings: their names and how to reach the broker.
        while_waiting: called about once a second while the broker has not answered; may raise to give up.
    """

    def __init__(self, settings: Settings, while_waiting: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._while_waiting = while_waiting
        self._refusal: KafkaError | None = None
        self._admin = make_admin(settings, self._note_refusal)
        self._recurring_faults = RecurringFaults(_COMPLAINT_SECONDS)

    def prepare(self, state: StateTopics) -> None:
        """Create missing topics, and check the existing ones of the state.

        Raises:
            BrokerError: the broker cannot be reached, a topic is missing and cannot be created, or one would not keep
                the state.
        """
        existing = self._existing()
        wanted = self._wanted(state)
        missing = sorted(wanted.keys() - existing.keys())
        if missing and not self._settings.output.create:
            raise BrokerError(f"no topic {', '.join(missing)}: create it, or set output.create = true")
        self._check(state, existing)
        self._create([wanted[name] for name in missing])

    def check(self, state: StateTopics) -> None:
        """Check the existing topics of the state.

        Raises:
            BrokerError: the broker cannot be reached, or a topic would not keep the state.
        """
        self._check(state, self._existing())

    def max_message_bytes(self, topic: str) -> int:
        """Return the largest incoming message that fits a topic, in bytes of value, key and headers together.

        That leaves room for what the service adds, and is no more than the producer takes. If the broker does not
        report the topic's limit, because rights are missing, Kafka's default is assumed.
        """
        try:
            limit = int(self._configuration(topic)["max.message.bytes"])
        except (KafkaException, KeyError, ValueError) as error:
            log.warning("topic_limit_unknown", topic=topic, assumed=_DEFAULT_MAX_MESSAGE, error=str(error))
            limit = _DEFAULT_MAX_MESSAGE
        limit = min(limit, max_produced_bytes(self._settings))
        return max(limit - _OWN_BYTES, limit // 2)

    def exists(self, topic: str) -> bool:
        """Tell whether a topic exists.

        Raises:
            BrokerError: the broker cannot be reached.
        """
        return topic in self._existing()

    def identity(self, topic: str) -> str:
        """Return a topic's name and the id that Kafka gave it, `name/id`: a recreated topic has another id.

        Raises:
            BrokerError: the broker does not report it.
        """
        try:
            described = self._described(topic)
        except KafkaException as error:
            raise BrokerError(f"cannot describe {topic}: {error.args[0].str()}") from None
        return f"{topic}/{described.topic_id}"

    def identities(self, names: Collection[str]) -> dict[str, int]:
        """Return a number for each of some topics, derived from its id: a recreated topic has another one.

        There is none for a topic that does not exist, that the broker does not describe in time, or that has no id, as
        on brokers too old to have ids.
        """
        wanted = TopicCollection(sorted(names))
        asked = self._admin.describe_topics(wanted, request_timeout=_IDENTITY_SECONDS) if names else {}
        found: dict[str, int] = {}
        deadline = time.monotonic() + _IDENTITY_SECONDS
        for name, future in asked.items():
            with suppress(KafkaException, TimeoutError):
                found |= _numbered(name, future.result(max(0.0, deadline - time.monotonic())).topic_id)
        return found

    def known_identities(self, names: Collection[str]) -> dict[str, int]:
        """Return the same, for uses in which a topic must not pass for an unchanged one because an answer is late.

        Raises:
            BrokerError: the broker does not answer.
        """
        found: dict[str, int] = {}
        for name in sorted(names):
            try:
                found |= _numbered(name, self._described(name).topic_id)
            except KafkaException as error:
                # That there is no such topic, or that it must not be described, is an answer.
                if is_transient(error.args[0]) and error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise BrokerError(f"cannot describe {name}: {error.args[0].str()}") from None
        return found

    def other_changelogs(self, digest: str) -> list[str]:
        """Return the names of the changelogs that this index has under other settings, sorted.

        Raises:
            BrokerError: the broker cannot be reached.
        """
        return sorted(_changelogs(self._settings, self._existing()) - {state_topics(self._settings, digest).changelog})

    def members(self, group: str) -> list[str]:
        """Return the client ids of a group's members, none if there is no such group.

        Raises:
            BrokerError: the broker does not report them.
        """
        try:
            found = self._result(self._admin.describe_consumer_groups([group], request_timeout=_ADMIN_SECONDS)[group])
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise BrokerError(f"cannot describe the group {group}: {error.args[0].str()}") from None
        return [member.client_id for member in found.members]

    def delete_records_before(self, topic: str, offset: int) -> bool:
        """Delete the records before an offset in a topic's only partition; return whether that was done.

        No start needs them, they only take space: so a refusal is no error.
        """
        place = TopicPartition(topic, 0, offset)
        try:
            self._admin.delete_records([place], request_timeout=_FORGET_SECONDS)[place].result(2 * _FORGET_SECONDS)
        except (KafkaException, TimeoutError) as error:
            self._complain(topic, error)
            return False
        return True

    def _complain(self, topic: str, error: KafkaException | TimeoutError) -> None:
        fault = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001  # librdkafka's name
        needed = {
            KafkaError.TOPIC_AUTHORIZATION_FAILED: "the right Delete on the topic",
            KafkaError.POLICY_VIOLATION: "cleanup.policy = compact,delete and retention.ms = -1",
        }.get(fault.code(), "")
        self._recurring_faults.warning(
            "changelog_not_trimmed", error=fault.name(), topic=topic, detail=fault.str(), needed=needed
        )

    def _wanted(self, state: StateTopics) -> dict[str, NewTopic]:
        output = self._settings.output
        shadow = (self._settings.shadow.topic,) if self._settings.shadow.enabled else ()
        return {
            **{name: NewTopic(name, -1, -1) for name in (output.unique, output.duplicates, output.dead, *shadow)},
            output.clusters: NewTopic(output.clusters, -1, -1, config=_CLUSTERS),
            state.owner: NewTopic(state.owner, 1, -1),
            state.changelog: NewTopic(state.changelog, 1, -1, config=CHANGELOG),
        }

    def _create(self, topics: list[NewTopic]) -> None:
        for name, future in self._admin.create_topics(topics).items() if topics else ():
            try:
                self._result(future)
                log.info("topic_created", topic=name)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise BrokerError(f"cannot create topic {name}: {_why_not(error.args[0])}") from None

    def _check(self, state: StateTopics, existing: Mapping[str, int]) -> None:
        for name in (state.owner, state.changelog):
            if existing.get(name, 1) != 1:
                raise BrokerError(f"topic {name} has {existing[name]} partitions, but must have 1: {_remedy(name)}")
        if state.changelog in existing:
            self._check_retention(state.changelog)

    def _check_retention(self, changelog: str) -> None:
        try:
            found = self._configuration(changelog)
        except KafkaException as error:
            log.warning("changelog_configuration_unknown", topic=changelog, error=error.args[0].str())
            return
        policies = {policy.strip() for policy in found.get("cleanup.policy", "compact").split(",")}
        if "compact" not in policies:
            raise BrokerError(
                f"topic {changelog} has cleanup.policy = {found['cleanup.policy']}, but it must be compact or "
                f"compact,delete: {_remedy(changelog)}"
            )
        for name in ("retention.ms", "retention.bytes") if "delete" in policies else ():
            if found.get(name, "-1") != "-1":
                raise BrokerError(
                    f"topic {changelog} has {name} = {found[name]}, and Kafka would delete the state; it must be "
                    f"-1: {_remedy(changelog)}"
                )

    def _described(self, topic: str) -> TopicDescription:
        described: TopicDescription = self._patiently(
            lambda: self._admin.describe_topics(TopicCollection([topic]))[topic]
        )
        return described

    def _configuration(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._patiently(lambda: self._admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def _existing(self) -> dict[str, int]:
        """Return how many partitions each topic has."""
        self._refusal = None
        deadline = time.monotonic() + _ADMIN_SECONDS
        while True:
            try:
                # In short calls: signals are handled only between two of them.
                topics = self._admin.list_topics(timeout=_SLICE_SECONDS).topics
                return {name: len(topic.partitions) for name, topic in topics.items()}
            except KafkaException as error:
                self._check_refusal()
                if time.monotonic() < deadline:
                    self._while_waiting()
                    continue
                servers = self._settings.kafka["bootstrap.servers"]
                raise BrokerError(
                    f"no broker answered at {servers} within {_ADMIN_SECONDS:.0f} s ({error.args[0].str()}): check "
                    "kafka.bootstrap.servers, and kafka.security.protocol if the broker uses TLS or SASL"
                ) from None

    def _note_refusal(self, error: KafkaError) -> None:
        if connection_advice(error):
            self._refusal = error

    def _check_refusal(self) -> None:
        """Do not wait for a broker that refuses this client."""
        self._admin.poll(0)
        if self._refusal is not None:
            servers, error = self._settings.kafka["bootstrap.servers"], self._refusal
            raise BrokerError(
                f"the broker at {servers} refuses the connection ({error.str()}): {connection_advice(error)}"
            ) from None

    def _patiently(self, ask: Callable[[], "Future[_Answer]"]) -> _Answer:
        """Ask about a topic that should exist until the broker knows it: that may take a moment after its creation."""
        deadline = time.monotonic() + _UNKNOWN_SECONDS
        while True:
            try:
                return self._result(ask())
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() > deadline:
                    raise
            time.sleep(_UNKNOWN_PAUSE_SECONDS)

    def _result(self, future: "Future[_Answer]") -> _Answer:
        """Return the broker's answer; raise the client's exception if there is none in time."""
        deadline = time.monotonic() + _ADMIN_SECONDS
        while True:
            try:
                return future.result(_SLICE_SECONDS)
            except TimeoutError:
                if time.monotonic() > deadline:
                    # The client itself keeps waiting for a minute; `TimeoutError` has no message.
                    silence = f"no answer within {_ADMIN_SECONDS:.0f} s"
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, silence)) from None  # noqa: SLF001  # librdkafka's name
            self._while_waiting()


def is_same_topic(identity: str, other: str) -> bool:
    """Tell whether two of `Topics.identity` may be of the same topic: the broker may not have given ids to it once."""
    (name, _, topic_id), (other_name, _, other_id) = identity.partition("/"), other.partition("/")
    return name == other_name and (topic_id == other_id or NO_ID in {topic_id, other_id})


def _numbered(name: str, topic_id: Uuid) -> dict[str, int]:
    """Return a topic's name with the number that its id gives, nothing if it has no id."""
    if str(topic_id) == NO_ID:
        return {}
    return {name: int.from_bytes(blake2b(str(topic_id).encode(), digest_size=7).digest())}


def _why_not(error: KafkaError) -> str:
    if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        return f"{error.str()} Grant the right Create; or create the topic beforehand and set output.create = false"
    return error.str()


def _remedy(topic: str) -> str:
    return f"correct it, or delete {topic} and let the service create it, or choose another state.name"
