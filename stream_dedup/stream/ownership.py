"""Which process may write to the index: the one that holds the first partition of the owner topic.

Knows the group and its rebalances; knows nothing of what an owner does. Fencing, not this, keeps a late owner harmless.
"""

import time

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError, is_transient, make_consumer, ownership_properties

_RIGHTS = "grant the rights Read on that group, and Read and Describe on the topic of the same name"
_REMEDIES = {
    KafkaError.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.INVALID_SESSION_TIMEOUT: "set kafka.session.timeout.ms to what the broker allows "
    "(group.min.session.timeout.ms to group.max.session.timeout.ms)",
}

_MISSING_SECONDS = 10.0  # that brokers may take to learn of a topic that was just created
_ASK_SECONDS = 1.0  # to wait for the answer whether the topic exists
_LOOK_SECONDS = 0.002  # a poll blocks for its full timeout, even if callbacks run meanwhile

log = structlog.get_logger()


class Ownership:
    """A membership in the group of possible writers: Kafka assigns the owner topic's partition to one of them.

    A member that joins does not take it from the one that has it. A member that is killed loses it after
    `session.timeout.ms`, one that does not `poll` after `max.poll.interval.ms`.

    Args:
        settings: how to reach the broker.
        owner_topic: a topic of one partition, which also names the group; further ones decide nothing.
        digest: of the settings that this process runs with; the others see it.
    """

    def __init__(self, settings: Settings, owner_topic: str, digest: str) -> None:
        self._topic = owner_topic
        self._owner = self._joined = self._left = False
        self._term = 0
        self._fault: KafkaError | None = None
        self._missing_since: float | None = None
        self._asking = False
        self._answers: list[KafkaError | None] = []  # to the last question; one at most
        self._recurring_faults = RecurringFaults()
        self._consumer: Consumer = make_consumer(
            settings, {**ownership_properties(settings, owner_topic, digest), "on_commit": self._answered}
        )

    @property
    def owner(self) -> bool:
        """Whether this process held the partition at the last `poll`."""
        return self._owner

    @property
    def term(self) -> int:
        """How often ownership was gained. If this has grown, another process may have owned the index in between."""
        return self._term

    def poll(self, seconds: float = 0.0) -> None:
        """Take part in the group: handle assignments and revocations, for at most this long. The first call joins it.

        Raises:
            BrokerError: the broker refuses for good, for instance because rights are missing, or the topic is gone.
        """
        if not self._joined:
            # Not earlier: a member that has never polled may get the partition, and then no silence takes it away.
            self._joined = True
            self._consumer.subscribe(
                [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )
        message = self._consumer.poll(seconds)
        if self._fault is not None:
            raise BrokerError(f"cannot take the partition of {self._topic}: {self._fault.str()}")
        self._check_topic()
        error = message.error() if message is not None else None
        if error is None:
            return
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            self._missing_since = self._missing_since or time.monotonic()
        if not is_transient(error):
            remedy = _REMEDIES.get(error.code(), "")
            raise BrokerError(
                f"cannot join the group {self._topic}: {error.str()} ({error.name()}){remedy and f'; {remedy}'}"
            )
        self._recurring_faults.warning("ownership_waits", error=error.name(), detail=error.str())

    def ask(self, seconds: float) -> bool:
        """Ask the group whether this process is still a member: a process that was suspended hears of its loss later.

        Args:
            seconds: how long to wait for the answer; a further call keeps waiting for it.

        Returns:
            Whether the answer has come.

        Raises:
            KafkaException: this process is not a member any more, or the group cannot be asked.
            BrokerError: as in `poll`.
        """
        if not self._asking:
            self._asking = True
            # The offset means nothing: the group accepts one only from its current members.
            self._consumer.commit(offsets=[TopicPartition(self._topic, 0, 0)], asynchronous=True)
        deadline = time.monotonic() + seconds
        while not self._answers and time.monotonic() < deadline:
            self.poll(_LOOK_SECONDS)
        if not self._answers:
            return False
        self._asking, answer = False, self._answers.pop()
        if answer is not None:
            raise KafkaException(answer)
        return True

    def leave(self) -> None:
        """Leave the group for good: the next owner need not wait for the session to expire."""
        if not self._left:
            self._left = True
            self._consumer.close()
            self._owner = False

    def _check_topic(self) -> None:
        """Check that the topic exists, if it was reported missing a while ago: without it nobody ever owns the index.

        Raises:
            BrokerError: it does not.
        """
        if self._missing_since is None or time.monotonic() - self._missing_since < _MISSING_SECONDS:
            return
        self._missing_since = None
        try:
            found = self._consumer.list_topics(self._topic, _ASK_SECONDS).topics[self._topic]
        except KafkaException:
            self._missing_since = time.monotonic()
            return
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise BrokerError(
                f"the topic {self._topic} was deleted, and without it no process can own the index: start again, which "
                "creates it if output.create is true"
            )

    def _answered(self, error: KafkaError | None, _partitions: list[TopicPartition]) -> None:
        self._answers = [error]

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not partitions:
            return  # another member came or went
        for partition in partitions:
            partition.offset = 0  # arbitrary: nothing is read
        try:
            consumer.incremental_assign(partitions)
            consumer.pause(partitions)
        except KafkaException as error:
            # An exception would be lost in a callback: `poll` raises it instead.
            self._fault = error.args[0]
            return
        if not _decides(partitions):
            return
        self._owner = True
        self._term += 1
        log.info("ownership_gained", group=self._topic, term=self._term)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if _decides(partitions):
            self._owner = False
            log.info("ownership_lost", group=self._topic, term=self._term)


def _decides(partitions: list[TopicPartition]) -> bool:
    """Tell whether the partition that decides who is owner is among some; those that somebody has added do not."""
    return any(partition.partition == 0 for partition in partitions)
