"""Whether a transaction is open: what it holds may yet count, and hides what follows it, and a group's offsets.

Knows the two ends of a partition and the two answers of a group; knows nothing of who writes, or of how a transaction
is ended.
"""

from collections.abc import Callable, Sequence
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import browsing_properties, make_consumer
from stream_dedup.stream.kafka.patience import Patience, watermarks


def has_open_transaction(settings: Settings, topic: str, while_waiting: Callable[[], None]) -> bool:
    """Tell whether a transaction is open in a topic's only partition.

    Args:
        settings: how to reach the broker.
        topic: the topic.
        while_waiting: called about every second while the broker is waited for; may raise to give up.

    Raises:
        BrokerError: a refusal, or no answer within `commit.deadline_seconds`.
    """
    patience, place = Patience(settings, f"cannot read {topic}", while_waiting), TopicPartition(topic, 0)

    def end(level: str) -> int:
        with closing(_reader(settings, level)) as consumer:
            return watermarks(consumer, place, patience)[1]

    # In this order: what is committed between the two questions was not left open.
    behind = end("read_uncommitted")
    return end("read_committed") < behind


def tells_unstable_offsets(settings: Settings, places: Sequence[TopicPartition], seconds: float) -> bool:
    """Tell whether the broker tells what the input's group has decided, if open transactions are left aside.

    If it does not tell otherwise, one of them hides it.

    Args:
        settings: how to reach the broker, and the group.
        places: of the input.
        seconds: longest wait for the answer.
    """
    with closing(_reader(settings, "read_uncommitted")) as consumer:
        try:
            consumer.committed(list(places), timeout=seconds)
        except KafkaException:
            return False
    return True


def _reader(settings: Settings, level: str) -> Consumer:
    return make_consumer(settings, {**browsing_properties(settings), "isolation.level": level})
