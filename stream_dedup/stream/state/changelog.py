"""The changelog as it is read: from a position to the end, as fast as the broker delivers it.

Knows positions, transaction markers and what it means when an offset is gone; knows nothing of what records hold.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.picklable import PicklableError
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import (
    TRUNCATED,
    BrokerError,
    OnStatistics,
    changelog_properties,
    is_transient,
    make_consumer,
    reading_error,
)
from stream_dedup.stream.kafka.patience import Patience, watermarks
from stream_dedup.stream.kafka.places import offset_of

_MOST_RECORDS = 10_000  # taken at a time
_FIRST_RECORDS = 1  # taken at a time while their size is not known yet
_POLL_SECONDS = 0.05
# Fetching has ended, as for a position that the topic does not hold. The names with an underscore are librdkafka's.
_OUT_OF_RANGE = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001
_BEHIND_END = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE).str()  # or before the beginning

log = structlog.get_logger()


class ReadRecord(NamedTuple):
    """A record of the changelog; a value of None deletes the key."""

    offset: int
    key: bytes
    value: bytes | None


class ChangelogTruncatedError(BrokerError):
    """The position is before the first record that still exists: what was between them is lost to this reader."""


class ChangelogLostError(PicklableError, BrokerError):
    """The position is, or was, after the end: the topic has lost its end, or is not the one that was read before.

    Args:
        topic: the changelog.
        end: offset after its last record; behind the position if the topic has grown since.
        position: of the state.
    """

    def __init__(self, topic: str, end: int, position: int) -> None:
        ends = f"ends at {end}" if end < position else f"had ended before it grew to {end}"
        super().__init__(
            f"{topic} {ends}, but the state is at {position}: the broker has lost the end of the topic, or it "
            "was deleted and recreated. Remove the state directory: the state is restored from what the changelog "
            "holds, and what else the group has decided is judged again without being published"
        )


class ChangelogIncompleteError(BrokerError):
    """Its first records are gone, although the window still needs them: no state can be restored from it."""


class ChangelogReader:
    """Reads the committed records of a changelog's only partition.

    Call `seek` first. Replay is done when `remaining` returns 0: it goes by the position, which moves past transaction
    markers and aborted records as well, as the last record's offset does not.

    Args:
        settings: how to reach the broker.
        topic: the changelog.
        while_waiting: called about every second while the broker is waited for; may raise to give up.
        on_statistics: called with the client's statistics; None if they are not needed.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        while_waiting: Callable[[], None] = lambda: None,
        on_statistics: OnStatistics | None = None,
    ) -> None:
        self._topic = topic
        self._patience = Patience(settings, f"cannot read {topic}", while_waiting)
        self._consumer: Consumer = make_consumer(settings, changelog_properties(settings), on_statistics)
        self._position = self._end = 0
        self._reads = False
        self._record_bytes = 0.0  # of a typical recent record
        self._recurring_faults = RecurringFaults()

    @property
    def position(self) -> int:
        """The offset after everything that was read, transaction markers included."""
        return self._position

    def bounds(self) -> tuple[int, int]:
        """Ask the broker for the first offset that still exists, and for the end: the last stable offset.

        Raises:
            BrokerError: a refusal, or no answer within `commit.deadline_seconds`.
        """
        first, self._end = watermarks(self._consumer, TopicPartition(self._topic, 0), self._patience)
        return first, self._end

    def seek(self, position: int) -> None:
        """Continue reading at a position.

        Raises:
            ChangelogTruncatedError: it is before the first offset that still exists.
            ChangelogLostError: it is after the end.
            BrokerError: the broker cannot be reached or refuses.
        """
        self._position = position
        first, end = self.bounds()
        if position < first:
            raise ChangelogTruncatedError(f"{self._topic} begins at {first}, but the state is at {position}")
        if position > end:
            raise ChangelogLostError(self._topic, end, position)
        self._consumer.assign([TopicPartition(self._topic, 0, position)])
        self._reads = True

    def read(self, seconds: float, most_bytes: int) -> list[ReadRecord]:
        """Return the next records: those already received, or the first that arrive within the waiting time.

        Args:
            seconds: how long to wait for the first.
            most_bytes: of keys and values, after which no more are taken; the last record may exceed it.

        Raises:
            ChangelogTruncatedError: the next record to read was deleted.
            ChangelogLostError: the topic is not the one that was read before.
            BrokerError: a refusal.
        """
        records: list[ReadRecord] = []
        size = 0
        deadline = time.monotonic() + seconds
        while size < most_bytes:
            wait = 0.0 if records else max(0.0, min(_POLL_SECONDS, deadline - time.monotonic()))
            chunk = self._records(self._consumer.consume(self._room(most_bytes - size), wait))
            records += chunk
            size += self._weigh(chunk)
            if not chunk and (records or time.monotonic() >= deadline):
                break
        return records

    def rest(self) -> None:
        """Read nothing until the next `seek`. Call it repeatedly: it serves the client, which fetches no more."""
        if self._reads:
            self._reads = False
            self._consumer.unassign()
        self._consumer.poll(0)

    def remaining(self) -> int:
        """Return how many offsets there are up to the end that `bounds` saw last."""
        return max(0, self._end - self._position)

    def close(self) -> None:
        """Release the connection."""
        self._consumer.close()

    def _room(self, size: int) -> int:
        """Return how many records to ask for: `consume` bounds only their number, and continues while some arrive."""
        if not self._record_bytes:
            return _FIRST_RECORDS
        return max(1, min(_MOST_RECORDS, int(size / self._record_bytes)))

    def _weigh(self, records: list[ReadRecord]) -> int:
        size = sum(len(record.key) + len(record.value or b"") for record in records)
        if records:
            # The larger of two chunks counts, and decays: a run of small records must not invite a flood of large ones.
            self._record_bytes = max(size / len(records), 0.9 * self._record_bytes, 1.0)
        return size

    def _records(self, messages: list[Message]) -> list[ReadRecord]:
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(ReadRecord(offset_of(message), message.key() or b"", message.value()))
                self._position = offset_of(message) + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's name
                # If the broker has compacted the last records and markers away, nothing else leads to the end.
                self._position = max(self._position, offset_of(message))
            else:
                self._fail(error)
        (place,) = self._consumer.position([TopicPartition(self._topic, 0)])
        self._position = max(self._position, place.offset)  # negative before the first record
        return records

    def _fail(self, error: KafkaError) -> None:
        if error.code() in _OUT_OF_RANGE:
            self.seek(self._position)
            if _tells_of_loss(error):
                # What follows need not fit even if its steps do: of a commit that began before the position, the counts
                # from there would pass for records that compaction has taken away.
                raise ChangelogLostError(self._topic, self._end, self._position)
        elif not is_transient(error):
            raise reading_error(f"cannot read {self._topic}", error)
        self._recurring_faults.warning("changelog_waits", error=error.name(), detail=error.str())


def _tells_of_loss(error: KafkaError) -> bool:
    """Tell whether a partition that begins before the position is reported to have ended before it."""
    return _BEHIND_END in error.str() or TRUNCATED.search(error.str()) is not None
