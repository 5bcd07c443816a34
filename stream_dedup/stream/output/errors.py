"""What may go wrong while outputs are written: what librdkafka's errors mean, and what to do about them.

Knows errors; knows nothing of what is written or of when a call is retried.
"""

from confluent_kafka import KafkaError

from stream_dedup.stream.kafka.clients import BrokerError

_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001  # librdkafka's own codes have this form
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)

# What the owners' group says to a process that it no longer counts as a member.
NO_LONGER_MEMBER = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.FENCED_INSTANCE_ID}
)

_NO_TOPIC = frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  # the same
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001  # the same, of one that was deleted
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)

# What a transaction fails with, as a whole, if one of its topics was deleted.
OF_DELETED_TOPICS = _NO_TOPIC | {KafkaError.INVALID_TXN_STATE}

_CREATE = "create the topic"

# The same batch would be refused again, so retrying is no use: what to do instead.
_REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise the topic's max.message.bytes (kafka.producer.batch.size must not exceed it)",
    KafkaError.RECORD_LIST_TOO_LARGE: "raise the topic's max.message.bytes, or its segment.bytes",
    KafkaError.INVALID_MSG: "check the broker's log",
    KafkaError.INVALID_RECORD: "a compacted topic accepts no message without a key",
    KafkaError.POLICY_VIOLATION: "check the broker's policies",
    KafkaError.TOPIC_EXCEPTION: "choose another topic",
    **dict.fromkeys(_NO_TOPIC, _CREATE),
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant the right Write on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant the right Read on the consumer group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "grant the right IdempotentWrite on the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant the rights Write and Describe on the transactional id, or "
    "set commit.guarantee = at_least_once",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "set kafka.producer.transaction.timeout.ms to what the broker's "
    "transaction.max.timeout.ms allows, and commit.deadline_seconds below it",
    KafkaError._UNSUPPORTED_FEATURE: "set commit.guarantee = at_least_once",  # noqa: SLF001  # the same
    KafkaError.UNSUPPORTED_VERSION: "set commit.guarantee = at_least_once",
}

# What to do once nothing is retried; a batch that is decided again finds out whether it would be refused.
_ADVICE = _REFUSED | {
    KafkaError._DESTROY: _CREATE,  # noqa: SLF001  # the same, of a message that waited when it was deleted
}


class AbortedError(Exception):
    """The transaction was aborted: nothing of it counts, and the batch can be decided again."""


class StuckError(AbortedError):
    """A librdkafka call does not return. Nothing of the transaction counts, but a new writer is needed."""


class FencedError(BrokerError):
    """Another writer was opened with the same transactional id: it owns the index from now on.

    Kafka says the same if a transaction lasted longer than `transaction.timeout.ms`, as after a process was suspended.
    """


class OutcomeUnknownError(BrokerError):
    """A commit was requested, and it is unknown whether it was done. The changelog will tell the next start."""


def is_refused(fault: KafkaError) -> bool:
    """Tell whether the same batch would be refused again."""
    return fault.code() in _REFUSED


def final_error(transactional_id: str, what: str, fault: KafkaError, seconds: float) -> BrokerError:
    """Return the error after which a writer is unusable.

    Args:
        transactional_id: of the writer.
        what: what it could not do.
        fault: the error it met.
        seconds: for which it has retried, if the fault is transient.
    """
    if fault.code() in _FENCED:
        return FencedError(
            f"{transactional_id}: another process has taken over, or this one was suspended too long ({fault.str()})"
        )
    advice = _ADVICE.get(fault.code(), f"no success within {seconds:.0f} s" if fault.retriable() else "")
    return BrokerError(f"{what}: {fault.str()} ({fault.name()}){': ' + advice if advice else ''}")
