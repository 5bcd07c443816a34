"""The subscription: which topics the input reads, looked up anew once in a while.

Knows topics and who has their partitions; knows nothing of offsets or messages.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings, is_expression
from stream_dedup.stream.kafka.places import Place
from stream_dedup.stream.kafka.topics import matching_topics

_ANSWER_SECONDS = 2.0  # longest wait for the broker to say which topics there are
_AGAIN_SECONDS = 10.0  # until it is asked again if it did not say

Handler = Callable[[Consumer, list[TopicPartition]], None]

log = structlog.get_logger()


class Subscription:
    """The topics that a consumer is subscribed to: expressions also match topics that are created later.

    Args:
        settings: the topics.
        consumer: the consumer.
        properties: those of the consumer, which say how often topics are looked up.
        assigned: called when the group gives it partitions.
        revoked: called when the group takes partitions from it.
        recurring_faults: logs faults.
    """

    def __init__(
        self,
        settings: Settings,
        consumer: Consumer,
        properties: Mapping[str, str],
        assigned: Handler,
        revoked: Handler,
        recurring_faults: RecurringFaults,
    ) -> None:
        self._settings = settings
        self._consumer = consumer
        self._assigned = assigned
        self._revoked = revoked
        self._recurring_faults = recurring_faults
        refresh_ms = int(properties["topic.metadata.refresh.interval.ms"])  # -1: never
        self._pause_seconds = refresh_ms / 1000 if refresh_ms > 0 else math.inf
        self._look_at = -math.inf
        self._topics: list[str] = []
        self._elsewhere: AbstractSet[Place] = frozenset()  # partitions that another member had at the last look

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() >= self._look_at

    def look(self, held: AbstractSet[Place]) -> None:
        """Look which topics there are, subscribe to those to read, and tell of partitions that somebody else reads.

        Args:
            held: partitions that this process holds.
        """
        pause, waits = self._pause_seconds, any(map(is_expression, self._settings.input.topics))
        existing: Mapping[str, Collection[int]] | None = None  # partitions by topic
        fault: KafkaError | None = None
        try:
            if waits or held:
                listed = self._consumer.list_topics(timeout=_ANSWER_SECONDS).topics
                existing = {name: topic.partitions for name, topic in listed.items()}
        except KafkaException as error:
            # Named topics need no answer: if they cannot be read, reading will tell.
            if waits:
                fault, pause = error.args[0], min(pause, _AGAIN_SECONDS)
        topics = matching_topics(self._settings, self._topics if existing is None else existing)
        if not topics and fault is None:
            told = f"no topic matches {', '.join(self._settings.input.topics)}"
            fault = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, told)
        if fault is not None:
            self._recurring_faults.warning("input_waits", error=fault.name(), detail=fault.str())
        self._subscribe(topics)
        self._compare(existing, held)
        self._look_at = time.monotonic() + pause

    def unread(self, held: AbstractSet[Place]) -> set[str]:
        """Return the topics that the settings name and of which no partition is held, while there are some of others.

        Args:
            held: partitions that this process holds.
        """
        if not held:
            return set()
        named = {topic for topic in self._settings.input.topics if not is_expression(topic)}
        return named - {topic for topic, _ in held}

    def _subscribe(self, topics: list[str]) -> None:
        if topics == self._topics:
            return
        if topics:
            self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        else:
            self._consumer.unsubscribe()
        self._topics = topics
        log.info("topics_taken_in", topics=topics)

    def _compare(self, existing: Mapping[str, Collection[int]] | None, held: AbstractSet[Place]) -> None:
        """Warn of partitions that are not this process's from one look to the next: copies of what is in them are lost.

        Another index with the same group has them, or some other program. Partitions that were just added, or are
        being handed over, have come by the next look. While none is held, or the broker does not say which there are,
        nothing is known of any.
        """
        if existing is None or not held:
            self._elsewhere = frozenset()
            return
        there = {(topic, partition) for topic in self._topics for partition in existing.get(topic, ())}
        before, self._elsewhere = self._elsewhere, there - held
        if kept := sorted(before & self._elsewhere):
            first = f"{kept[0][0]}/{kept[0][1]}"
            self._recurring_faults.warning(
                "partitions_elsewhere", error="shared_group", partitions=len(kept), first=first
            )
