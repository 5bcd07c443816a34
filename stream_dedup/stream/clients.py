"""librdkafka's clients and their properties, and the topics of the outputs.

Knows which properties the service depends on; knows nothing of messages.
"""

import logging
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from stream_dedup.settings import Settings, SettingsError

_LARGEST = 1_000_000_000  # bytes: what librdkafka allows for a message
_ADMIN_SECONDS = 20.0
_ADMIN_SLICE_SECONDS = 2.0
_QUIET_SECONDS = 10.0
_DEFAULT_MAX_MESSAGE = 1_048_588  # Kafka's own default of max.message.bytes
_OWN_BYTES = 64 << 10  # room for what the service adds: the article's id, its own headers, the batch around it

# The service's promises rest on these: whoever overrides one breaks them, so it is refused.
_FIXED_CONSUMER = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "false",
    "partition.assignment.strategy": "cooperative-sticky",
}
_FIXED_PRODUCER = {"enable.idempotence": "true", "acks": "all"}

log = structlog.get_logger()


class BrokerError(Exception):
    """The broker cannot be reached or refuses something. The message says what to do."""


def consumer_properties(settings: Settings) -> dict[str, str]:
    """Return the consumer's properties: the defaults of the service, then the user's, then what is fixed.

    Raises:
        SettingsError: a property is set that the service depends on.
    """
    defaults = {
        "group.id": settings.input.group,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        # After a kill the broker hands the partitions to the next process once the session has run out.
        "session.timeout.ms": "10000",
        "allow.auto.create.topics": "false",
        "topic.metadata.refresh.interval.ms": "10000",
        # Bounds what is held in memory beside the batch at hand.
        "queued.max.messages.kbytes": str(settings.batch.bytes >> 10),
        "fetch.message.max.bytes": str(min(settings.batch.bytes, settings.input.max_message_bytes, _LARGEST)),
    }
    return _merged("consumer", defaults, settings.kafka, {**_FIXED_CONSUMER, "group.id": settings.input.group})


def producer_properties(settings: Settings) -> dict[str, str]:
    """Return the producer's properties; see `consumer_properties`.

    Raises:
        SettingsError: a property is set that the service depends on.
    """
    defaults = {
        "compression.type": "lz4",
        "linger.ms": "5",
        # Room for the outputs of a batch and a largest message: its reading is bounded by its bytes but for one.
        "queue.buffering.max.kbytes": str(
            min(2 * (settings.batch.bytes + settings.input.max_message_bytes) >> 10, 2_097_151)
        ),
        "delivery.timeout.ms": str(int(settings.output.flush_seconds * 1000)),
        # Which size a topic takes is for the broker to say.
        "message.max.bytes": str(min(_LARGEST, 2 * settings.batch.bytes + settings.input.max_message_bytes)),
    }
    return _merged("producer", defaults, settings.kafka, _FIXED_PRODUCER)


def _merged(
    role: str, defaults: Mapping[str, str], given: Mapping[str, str], fixed: Mapping[str, str]
) -> dict[str, str]:
    own = {name.removeprefix(f"{role}."): value for name, value in given.items() if name.startswith(f"{role}.")}
    common = {name: value for name, value in given.items() if not name.startswith(("consumer.", "producer."))}
    chosen = {**common, **own}
    for name, value in fixed.items():
        if chosen.get(name, value).lower() not in {value, "-1" if value == "all" else value}:
            raise SettingsError(f"kafka.{name} = {chosen[name]!r}: the service depends on {value!r}")
    client = {"client.id": f"stream-dedup-{role}-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"}
    return {**client, **defaults, **chosen, **fixed}


def make_consumer(settings: Settings) -> Consumer:
    """Return a consumer which has not subscribed yet.

    Raises:
        SettingsError: librdkafka refuses a property.
    """
    with _refusals():
        return Consumer(consumer_properties(settings), logger=_RdkafkaLogger())


def make_producer(settings: Settings) -> Producer:
    """Return a producer.

    Raises:
        SettingsError: librdkafka refuses a property.
    """
    with _refusals():
        return Producer(producer_properties(settings), logger=_RdkafkaLogger())


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        reason = error.args[0].str()
        raise SettingsError(f"kafka: {reason} (a property of librdkafka; see its CONFIGURATION.md)") from None


def check_properties(settings: Settings) -> None:
    """Check that librdkafka takes the properties, without a broker.

    Raises:
        SettingsError: it refuses one.
    """
    quiet = settings.model_copy(update={"kafka": {**settings.kafka, "bootstrap.servers": ""}})
    make_consumer(quiet).close()
    make_producer(quiet)


class _RdkafkaLogger:
    """Hands librdkafka's own log lines to the service's log: the shape of a `logging.Logger`.

    While a broker is away librdkafka tells so many times a second: one line of a kind in a while is enough.
    """

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def log(self, level: int, _format: str, *details: object) -> None:
        """Log one line of librdkafka; connection troubles are warnings here, they are retried."""
        if "load in progress" in str(details):
            level = logging.DEBUG  # a broker that has just started; tried again by itself
        kind, now = str(details[0] if details else ""), time.monotonic()
        if level >= logging.WARNING and now - self._told.get(kind, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        self._told[kind] = now
        (log.warning if level >= logging.WARNING else log.debug)("kafka_client", line=" ".join(map(str, details)))


class Topics:
    """The topics of the outputs on the broker.

    Args:
        settings: their names and the way to the broker.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        properties: dict[str, str | int | float | bool] = {
            name: value for name, value in settings.kafka.items() if not name.startswith(("consumer.", "producer."))
        }
        self._admin = AdminClient(properties, logger=_RdkafkaLogger())

    def prepare(self) -> None:
        """Create the output topics that are missing.

        Raises:
            BrokerError: the broker cannot be reached, or a topic is missing and cannot be created.
        """
        output = self._settings.output
        names = {output.unique, output.duplicates, output.dead}
        missing = sorted(names - self._existing())
        if missing and not output.create:
            raise BrokerError(f"no topic {', '.join(missing)}: create it, or set output.create = true")
        for name, future in (
            self._admin.create_topics([NewTopic(name, -1, -1) for name in missing]).items() if missing else ()
        ):
            try:
                future.result(_ADMIN_SECONDS)
                log.info("topic_created", topic=name)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise BrokerError(f"cannot create topic {name}: {error.args[0].str()}") from None

    def room(self, topic: str) -> int:
        """Return how much a message may bring along to a topic: bytes of value, key and headers together.

        Where the broker does not tell, for want of rights, Kafka's default is assumed.
        """
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            entries = self._admin.describe_configs([resource])[resource].result(_ADMIN_SECONDS)
            limit = int(entries["max.message.bytes"].value)
        except (KafkaException, KeyError, TypeError, ValueError) as error:
            log.warning("topic_limit_unknown", topic=topic, assumed=_DEFAULT_MAX_MESSAGE, error=str(error))
            limit = _DEFAULT_MAX_MESSAGE
        return max(limit - _OWN_BYTES, limit // 2)

    def _existing(self) -> set[str]:
        deadline = time.monotonic() + _ADMIN_SECONDS
        while True:
            try:
                # In short calls: a signal is heard between two of them only.
                return set(self._admin.list_topics(timeout=_ADMIN_SLICE_SECONDS).topics)
            except KafkaException as error:
                if time.monotonic() < deadline:
                    continue
                servers = self._settings.kafka["bootstrap.servers"]
                raise BrokerError(
                    f"no broker answers at {servers} within {_ADMIN_SECONDS:.0f} s ({error.args[0].str()}): check "
                    "kafka.bootstrap.servers, and security.protocol where the broker wants TLS or SASL"
                ) from None
