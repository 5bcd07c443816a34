"""Whether a transaction is open in a topic: what it holds may yet count, and hides what follows it.

Knows the two ends of a partition; knows nothing of who writes, or of how a transaction is ended.
"""

from collections.abc import Callable
from contextlib import closing

from confluent_kafka import TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import browsing_properties, make_consumer
from stream_dedup.stream.kafka.patience import Patience


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
        with closing(make_consumer(settings, {**browsing_properties(settings), "isolation.level": level})) as consumer:
            return int(patience.answer(lambda seconds: consumer.get_watermark_offsets(place, timeout=seconds)[1]))

    return end("read_committed") < end("read_uncommitted")
