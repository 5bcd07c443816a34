"""librdkafka's clients and their properties.

Knows which properties the service depends on, which errors are transient and what others ask for; knows nothing of
topics or messages.
"""

import logging
import re
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.picklable import PicklableError
from stream_dedup.settings import REDACTED, Settings, SettingsError
from stream_dedup.settings.redaction import resembles_secret

_PREFIX = "stream-dedup-"  # of the names by which brokers know the clients
_FETCH_BYTES = 256 << 10
_LARGEST = 1_000_000_000  # bytes: what librdkafka allows for a message
_TRANSACTION_MARGIN_SECONDS = 30.0
_REPLAY_FETCH_BYTES = 16 << 20
_REPLAY_QUEUE_KILOBYTES = 64 << 10
_BROWSED_KILOBYTES = 1 << 10
_STATISTICS_MS = "10000"  # between two statistics of a client: most scrapes are less frequent
_STARTING = "load in progress"  # from a broker that has just started; librdkafka retries by itself

# Of a consumer that belongs to a group.
_GROUP_DEFAULTS = {
    # After a kill the broker hands the partitions to the next process once the session has expired; 6 s is the minimum
    # that brokers allow by default.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1500",
    "allow.auto.create.topics": "false",
    "topic.metadata.refresh.interval.ms": "10000",  # until a deleted topic is noticed
}

# The service's guarantees rest on these: overriding one would break them, so it is refused.
_FIXED_CONSUMER = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "false",
    "partition.assignment.strategy": "cooperative-sticky",
}
_FIXED_PRODUCER = {"enable.idempotence": "true", "acks": "all"}

# What the Python client expects as objects: text from the settings would make it fail without naming them.
_OBJECTS = frozenset(
    {"default.topic.config", "error_cb", "logger", "oauth_cb", "on_commit", "on_delivery", "stats_cb", "throttle_cb"}
)

# The names by which librdkafka reports properties that have two (its CONFIGURATION.md calls these aliases).
_OWN_NAMES = {
    "acks": "request.required.acks",
    "bootstrap.servers": "metadata.broker.list",
    "compression.type": "compression.codec",
    "delivery.timeout.ms": "message.timeout.ms",
    "linger.ms": "queue.buffering.max.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "retries": "message.send.max.retries",
    "sasl.mechanism": "sasl.mechanisms",
}

_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001  # librdkafka's own codes have this form
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001  # the same
        KafkaError._RESOLVE,  # noqa: SLF001  # the same
        KafkaError._TIMED_OUT,  # noqa: SLF001  # the same
        # A request that never left the client, because earlier ones were not answered.
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001  # the same
        # The cluster has stopped listing the broker that was asked, as for a moment after a restart.
        KafkaError._DESTROY_BROKER,  # noqa: SLF001  # the same
        # The group continues without this consumer, which rejoins at the next poll.
        KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001  # the same
        # A group was asked while its broker was gone, for as long as a session.
        KafkaError._WAIT_COORD,  # noqa: SLF001  # the same
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)

# Errors that refuse a connection, and where to look.
_SASL = "check kafka.sasl.mechanism and its credentials, and whether the broker uses SASL on this port"
_REFUSALS = {
    KafkaError._AUTHENTICATION: _SASL,  # noqa: SLF001  # the same
    KafkaError.SASL_AUTHENTICATION_FAILED: _SASL,
    KafkaError._SSL: "check kafka.ssl.ca.location, and whether the broker uses TLS",  # noqa: SLF001  # the same
}

# Where to look if no broker was reached at all, and the errors that mean that.
WHERE_TO_LOOK = "see kafka.bootstrap.servers"
_SILENT = (
    KafkaError._TRANSPORT,  # noqa: SLF001  # the same
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001  # the same
    KafkaError._RESOLVE,  # noqa: SLF001  # the same
    KafkaError._TIMED_OUT,  # noqa: SLF001  # the same
)
# How librdkafka reports that a new leader's log ends before what was read, and where.
TRUNCATED = re.compile(r"log truncation .* end offset is (\d+)")
# What to do about errors of a reader. All readers name the input's group, whether they join it or not.
_READING = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant the right Read on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant the right Read on the group that input.group names",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "the group that input.group names has a member that is not this service: "
    "stop it, or choose another group",
    **dict.fromkeys(_SILENT, WHERE_TO_LOOK),
}

log = structlog.get_logger()

OnStatistics = Callable[[str], None]  # a client calls it with its statistics, as JSON, while it is polled


class BrokerError(Exception):
    """The broker cannot be reached or refuses something. The message says what to do."""


class PropertyError(PicklableError, SettingsError):
    """Properties of librdkafka that cannot be used: one line each, with the value unless that is a secret.

    Attributes:
        names: as they are set, without `kafka.`; empty if the fault names none.
    """

    def __init__(self, faults: Mapping[str, str], other: str = "") -> None:
        self.names = tuple(faults)
        super().__init__("\n".join([*faults.values(), *([other] if other else [])]))


def end_at_loss(told: str, end: int) -> int:
    """Return where a partition ended when a client missed its next message.

    Args:
        told: the client's error message, which says so if a new leader's log is shorter.
        end: where it ends now: others may have arrived in the meantime.
    """
    truncated = TRUNCATED.search(told)
    return int(truncated[1]) if truncated else end


def is_transient(error: KafkaError) -> bool:
    """Tell whether a consumer recovers from an error by itself."""
    return not error.fatal() and (error.code() in _PASSING or error.retriable())


def connection_advice(error: KafkaError) -> str:
    """Return what to do about an error by which the broker refuses a connection; empty for other errors."""
    return _REFUSALS.get(error.code(), "")


def reading_error(what: str, error: KafkaError) -> BrokerError:
    """Return a reader's error as one that says what could not be done, and what to do or where to look."""
    advice = connection_advice(error) or _READING.get(error.code(), "")
    return BrokerError(f"{what}: {error.str()}{': ' if advice else ''}{advice}")


def consumer_properties(settings: Settings) -> dict[str, str]:
    """Return the consumer's properties: the service's defaults, overridden by the user's, overridden by the fixed ones.

    Raises:
        SettingsError: a property that the service depends on is set to another value.
    """
    defaults = {
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        **_GROUP_DEFAULTS,
        # Bounds what is held in memory besides the current batch.
        "queued.max.messages.kbytes": str(settings.commit.bytes >> 10),
        # Partitions are delivered by turns of this size, and what comes early is held until it is its turn. A larger
        # message is delivered all the same.
        "fetch.message.max.bytes": str(_FETCH_BYTES),
    }
    return _merged("consumer", defaults, settings.kafka, {**_FIXED_CONSUMER, "group.id": settings.input.group})


def ownership_properties(settings: Settings, group: str, digest: str) -> dict[str, str]:
    """Return the properties of the consumer whose membership in a group is the ownership of the index.

    Args:
        settings: the service's.
        group: of the possible owners.
        digest: of the settings that the process runs with, for the others to see.

    Raises:
        SettingsError: a property that the service depends on is set to another value.
    """
    chosen = _merged("consumer", _GROUP_DEFAULTS, settings.kafka, _FIXED_CONSUMER)
    # A static member keeps its partition when it leaves: the next owner would wait for the end of the session.
    chosen.pop("group.instance.id", None)
    return {**chosen, "client.id": _client_id(_owner_of(digest)), "group.id": group}


def runs_with(client_id: str, digest: str) -> bool:
    """Tell by the name of an owner, or a possible one, whether it runs with the settings that have a digest."""
    return client_id.startswith(f"{_PREFIX}{_owner_of(digest)}-")


def _owner_of(digest: str) -> str:
    return f"owner-{digest}"


def changelog_properties(settings: Settings) -> dict[str, str]:
    """Return the properties of the changelog's reader, which belongs to no group and replays as fast as it can.

    Raises:
        SettingsError: a property that the service depends on is set to another value.
    """
    chosen = _merged("consumer", {}, settings.kafka, _FIXED_CONSUMER)
    return {
        **chosen,
        # What is set for the input's consumer applies here as far as it concerns the connection to the broker.
        "client.id": _client_id("changelog"),
        # librdkafka needs one and asks for its coordinator, which needs the right Read on it; nothing joins it here.
        "group.id": settings.input.group,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",  # an offset that is gone must not be skipped silently
        "enable.partition.eof": "true",
        "allow.auto.create.topics": "false",
        "fetch.message.max.bytes": str(_REPLAY_FETCH_BYTES),
        "queued.max.messages.kbytes": str(_REPLAY_QUEUE_KILOBYTES),
        "fetch.queue.backoff.ms": "5",  # the default lets a full queue idle for a second
        "fetch.wait.max.ms": "50",
    }


def browsing_properties(settings: Settings) -> dict[str, str]:
    """Return the properties of a reader of single messages, which belongs to no group.

    Raises:
        SettingsError: a property that the service depends on is set to another value.
    """
    return {
        **changelog_properties(settings),
        "client.id": _client_id("browser"),
        "fetch.message.max.bytes": str(_FETCH_BYTES),
        "queued.max.messages.kbytes": str(_BROWSED_KILOBYTES),
        "fetch.wait.max.ms": "10",
    }


def producer_properties(settings: Settings, transactional_id: str = "") -> dict[str, str]:
    """Return the producer's properties, transactional if an id is given; see `consumer_properties`.

    Raises:
        SettingsError: a property that the service depends on is set to another value.
    """
    deadline = settings.commit.deadline_seconds
    defaults = {
        "compression.type": "lz4",
        "linger.ms": "5",
        # Room for the outputs of a batch and one message of the largest size, by which a batch may exceed its bound.
        "queue.buffering.max.kbytes": str(
            min(2 * (settings.commit.bytes + settings.input.max_message_bytes) >> 10, 2_097_151)
        ),
        "delivery.timeout.ms": str(int(deadline * 1000)),
        # The broker decides which size a topic accepts.
        "message.max.bytes": str(min(_LARGEST, 2 * settings.commit.bytes + settings.input.max_message_bytes)),
    }
    if not transactional_id:
        return _merged("producer", defaults, settings.kafka, _FIXED_PRODUCER)
    # The outputs and the commit may each take until the deadline. After this time the broker aborts what a killed
    # process left open, unless another process takes over before.
    defaults |= {
        "transaction.timeout.ms": str(int((2 * deadline + _TRANSACTION_MARGIN_SECONDS) * 1000)),
        # librdkafka waits this long for a broker that does not answer, whatever timeout a call is given.
        "socket.timeout.ms": "10000",
    }
    return _merged("producer", defaults, settings.kafka, {**_FIXED_PRODUCER, "transactional.id": transactional_id})


def max_produced_bytes(settings: Settings) -> int:
    """Return the largest message that the producer takes, in bytes."""
    properties = producer_properties(settings)
    return min(int(properties["message.max.bytes"]), int(properties["queue.buffering.max.kbytes"]) << 10)


def _merged(
    role: str, defaults: Mapping[str, str], given: Mapping[str, str], fixed: Mapping[str, str]
) -> dict[str, str]:
    names = _chosen(role, given)
    faults = {
        name: f"{_shown(name, given)}: {demand}"
        for known, name in names.items()
        if (demand := _demand(role, known, given[name], fixed))
    }
    if faults:
        raise PropertyError(faults)
    return {"client.id": _client_id(role), **defaults, **{known: given[name] for known, name in names.items()}, **fixed}


def _chosen(role: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the name under which each property of a client is set: one with its role overrides the common one."""
    common = {name: name for name in given if not name.startswith(("consumer.", "producer."))}
    return {**common, **{name.removeprefix(f"{role}."): name for name in given if name.startswith(f"{role}.")}}


def _demand(role: str, known: str, value: str, fixed: Mapping[str, str]) -> str:
    """Return what the service requires of a property, empty if its value is allowed."""
    if role == "producer" and known == "transactional.id":
        return "the service sets it itself, from state.name"
    if known in _OBJECTS:
        return "it is not a property of librdkafka"
    wanted = fixed.get(known, value)
    if value.lower() in {wanted.lower(), "-1" if wanted == "all" else wanted.lower()}:
        return ""
    return f"the service requires {wanted!r}"


def _shown(name: str, given: Mapping[str, str]) -> str:
    return f"kafka.{name} = {REDACTED if resembles_secret(name) else repr(given[name])}"


def _client_id(role: str) -> str:
    # Clients with the same name in one process interfere with each other (librdkafka's issue 4783).
    return f"{_PREFIX}{role}-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"


def make_consumer(
    settings: Settings, properties: Mapping[str, Any] | None = None, on_statistics: OnStatistics | None = None
) -> Consumer:
    """Return a consumer that has not subscribed yet.

    Args:
        settings: how to reach the broker.
        properties: of librdkafka, with callbacks; None for those of the input's consumer.
        on_statistics: called with its statistics; it must then be polled as long as it is open, or they pile up.

    Raises:
        SettingsError: librdkafka refuses a property.
    """
    chosen = consumer_properties(settings) if properties is None else properties
    with _refusals("consumer", settings.kafka):
        return Consumer(_with_statistics(chosen, on_statistics), logger=RdkafkaLogger())


def make_producer(
    settings: Settings, transactional_id: str = "", on_statistics: OnStatistics | None = None
) -> Producer:
    """Return a producer, a transactional one if an id is given.

    Args:
        settings: how to reach the broker.
        transactional_id: see above.
        on_statistics: called with its statistics; see `make_consumer`.

    Raises:
        SettingsError: librdkafka refuses a property.
    """
    properties = producer_properties(settings, transactional_id)
    with _refusals("producer", settings.kafka):
        return Producer(_with_statistics(properties, on_statistics), logger=RdkafkaLogger())


def _with_statistics(properties: Mapping[str, Any], on_statistics: OnStatistics | None) -> dict[str, Any]:
    """Return a client's properties, with those that make it report statistics if there is a callback for them."""
    if on_statistics is None:
        return dict(properties)
    return {"statistics.interval.ms": _STATISTICS_MS, **properties, "stats_cb": on_statistics}


def make_admin(settings: Settings, on_error: Callable[[KafkaError], None]) -> AdminClient:
    """Return a client for topics.

    Args:
        settings: how to reach the broker.
        on_error: called with errors of its connections, while it is polled.

    Raises:
        SettingsError: librdkafka refuses a property.
    """
    given = {name: value for name, value in settings.kafka.items() if not name.startswith(("consumer.", "producer."))}
    properties: Any = {**given, "error_cb": on_error}  # its types do not allow a function
    with _refusals("admin", settings.kafka):
        return AdminClient(properties, logger=RdkafkaLogger())


@contextmanager
def _refusals(role: str, given: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise _refused(role, given, error.args[0].str()) from None


def _refused(role: str, given: Mapping[str, str], reason: str) -> PropertyError:
    """Return what librdkafka says about a client's properties, with the one it names as the user set it."""
    words = {word.strip(".") for word in re.findall(r"[\w.]+", reason)}
    for name, value in given.items():
        if value and resembles_secret(name):
            reason = reason.replace(value, REDACTED)
    told = f"{' '.join(reason.split())} (a property of librdkafka; see its CONFIGURATION.md)"
    for known, name in _chosen(role, given).items():
        if known in words or _OWN_NAMES.get(known) in words:
            return PropertyError({name: f"{_shown(name, given)}: {told}"})
    return PropertyError({}, f"kafka: {told}")


def check_properties(settings: Settings) -> None:
    """Check that the service and librdkafka accept the properties, without a broker.

    Raises:
        SettingsError: some are refused; the message lists all of them.
    """
    transactional_id = "check" if settings.commit.guarantee == "exactly_once" else ""
    checks: tuple[Callable[[Settings], object], ...] = (
        lambda quiet: make_consumer(quiet).close(),
        lambda quiet: make_producer(quiet, transactional_id),
    )
    given, faults = {**settings.kafka, "bootstrap.servers": ""}, dict[str, None]()
    for check in checks:
        # librdkafka reports one at a time: what it refuses is left out until it accepts the rest.
        while (error := _error_of(check, settings.model_copy(update={"kafka": given}))) is not None:
            if not error.names:
                # Perhaps only because of what is left out.
                faults = faults or {str(error): None}
                break
            faults |= dict.fromkeys(str(error).splitlines())
            given = {name: value for name, value in given.items() if name not in error.names}
    if faults:
        raise SettingsError("\n".join(faults))


def _error_of(check: Callable[[Settings], object], settings: Settings) -> PropertyError | None:
    try:
        check(settings)
    except PropertyError as error:
        return error
    return None


class RdkafkaLogger:
    """Hands librdkafka's own log lines to the service's log; librdkafka uses it like a `logging.Logger`.

    While a broker is away librdkafka says so many times a second: `RecurringFaults` limits how often that is logged.
    """

    def __init__(self) -> None:
        self._recurring_faults = RecurringFaults()

    def log(self, level: int, _format: str, *details: object) -> None:
        """Log one line of librdkafka; connection problems are only warnings, since they are retried."""
        line = " ".join(map(str, details))
        if level < logging.WARNING or _STARTING in line:
            log.debug("kafka_client_debug", detail=line)
        else:
            self._recurring_faults.warning("kafka_client", error=str(details[0] if details else ""), detail=line)
