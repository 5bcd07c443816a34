"""A producer: sends the outputs of a batch, and what the batch changes to the changelog.

Knows how messages are sent and when they are confirmed; knows nothing of what makes them count (`exactly_once`,
`at_least_once`), of what is written, or of what the state makes of it.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, NoReturn

import structlog
from confluent_kafka import KafkaError, KafkaException, Message

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings
from stream_dedup.stream import protocol
from stream_dedup.stream.kafka.clients import BrokerError, OnStatistics, make_producer
from stream_dedup.stream.kafka.headers import Headers
from stream_dedup.stream.kafka.places import Place
from stream_dedup.stream.output.errors import AbortedError, final_error

SLICE_SECONDS = 1.0  # longest blocking call, so that signals and heartbeats get their turn
_FULL_QUEUE_SECONDS = 0.05
_REPORTS_SERVED = 64  # messages after which the delivery reports on earlier ones are handled
_ANY_PARTITION = -1  # librdkafka chooses one by the key

_QUEUE_TOO_SMALL = "raise kafka.producer.queue.buffering.max.kbytes"

log = structlog.get_logger()

_Report = Callable[[KafkaError | None, Message], None]


class GroupOffsets(NamedTuple):
    """What a commit stores in the input's group.

    Attributes:
        offsets: next offset to read, by topic and partition, and the identities of the topics if they are known.
        metadata: current metadata of the group.
    """

    offsets: Mapping[Place, int]
    metadata: object


class Writer(ABC):
    """Writes the outputs of a batch and what it changes; what a failure leaves of them is the guarantee's.

    A batch is `begin`, any number of `send`, and `commit`. A call that raises in between has aborted it, unless the
    error says that the process must end.

    Args:
        settings: the deadline and how to reach the broker.
        changelog: the topic of the records; names this writer in errors.
        while_waiting: called at least about every second while the broker is waited for; may raise to give up.
        on_statistics: called with the client's statistics; None if they are not needed.
        transactional_id: of the producer, empty for one without transactions.
    """

    def __init__(
        self,
        settings: Settings,
        changelog: str,
        while_waiting: Callable[[], None],
        on_statistics: OnStatistics | None,
        transactional_id: str = "",
    ) -> None:
        self._changelog = changelog
        self._while_waiting = while_waiting
        self._seconds = settings.commit.deadline_seconds
        self._producer = make_producer(settings, transactional_id, on_statistics)
        self._recurring_faults = RecurringFaults()
        self._unserved = 0  # messages since reports were last handled
        self._fault: KafkaError | None = None
        self._failed: Message | None = None  # with the fault
        self._topics: set[str] = set()  # of the batch
        self._behind: int | None = None

    @abstractmethod
    def open(self) -> None:
        """Connect.

        Raises:
            FencedError: another process did the same in the meantime.
            BrokerError: no answer within `commit.deadline_seconds`, or a refusal.
        """

    @abstractmethod
    def begin(self) -> None:
        """Begin a batch.

        Raises:
            AbortedError: another process may have taken over.
            FencedError: another process has taken over.
            BrokerError: the producer is unusable.
        """

    def send(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Start sending a message.

        Raises:
            AbortedError: the batch was aborted; nothing of it counts.
            FencedError: another process has taken over.
            BrokerError: the broker refuses the message for good, or it is too large.
        """
        self._produce(topic, key, value, self._delivered, headers)

    @abstractmethod
    def commit(self, records: Sequence[tuple[bytes, bytes | None]], group: GroupOffsets | None) -> int | None:
        """Write the records to the changelog, and commit them with everything that was sent.

        Args:
            records: keys and values.
            group: what to store in the input's group; None for nothing.

        Returns:
            The offset after the last record; None if there were none.

        Raises:
            AbortedError: the batch was aborted; nothing of it counts.
            StuckError: it will be aborted by the next writer; this one is unusable.
            FencedError: another process has taken over.
            OutcomeUnknownError: the broker did not say whether it committed.
            BrokerError: the broker refuses something for good.
        """

    @abstractmethod
    def abort(self) -> None:
        """Take back what was sent since `begin`, as far as possible.

        Raises:
            FencedError: another process has taken over.
            BrokerError: no answer within `commit.deadline_seconds`.
        """

    def poll(self) -> None:
        """Handle the client's reports between two batches; an error is reported to the next one too."""
        with suppress(KafkaException, SystemError):
            self._producer.poll(0)

    def close(self) -> None:
        """Drop what is not sent yet."""
        self._producer.purge()
        try:
            self._producer.flush(SLICE_SECONDS)
        except (KafkaException, SystemError) as error:
            log.debug("producer_closed", error=str(error))

    @abstractmethod
    def _give_up(self, what: str, fault: KafkaError) -> NoReturn:
        """Abort the batch and raise what the error means for it."""

    def _reason(self) -> KafkaError | None:
        """Return why the producer accepts no more, if that is known."""
        return self._fault

    def _aborted(self, what: str, fault: KafkaError) -> AbortedError:
        """Log why a batch was aborted, and return the error that says so."""
        self._recurring_faults.warning("transaction_aborted", error=fault.name(), what=what, detail=fault.str())
        return AbortedError(f"{what}: {fault.str()} ({fault.name()})")

    def _final(self, what: str, fault: KafkaError) -> BrokerError:
        """Return the error after which this writer is unusable."""
        return final_error(self._changelog, what, fault, self._seconds)

    def _deadline(self) -> float:
        return time.monotonic() + self._seconds

    def _forget_reports(self) -> None:
        self._fault = self._behind = None
        self._topics.clear()

    def _write_records(self, records: Sequence[tuple[bytes, bytes | None]], deadline: float) -> None:
        """Write records to the changelog, and wait until the broker has confirmed them and everything before."""
        for key, value in records:
            self._produce(self._changelog, key, value, self._logged, partition=0)
        protocol.reached(protocol.Step.LOGGED)
        self._confirm(deadline)
        protocol.reached(protocol.Step.CONFIRMED)

    def _produce(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        report: _Report,
        headers: Headers | None = None,
        partition: int = _ANY_PARTITION,
    ) -> None:
        self._topics.add(topic)
        while True:
            try:
                self._producer.produce(topic, value, key, partition, report, headers=headers)
                break
            except BufferError:
                if len(self._producer) == 0:
                    self.abort()
                    raise BrokerError(f"{_QUEUE_TOO_SMALL}: a message to {topic} is larger than that") from None
                # The queue is full: a slow broker slows the reading.
                self._served(partial(self._producer.flush, _FULL_QUEUE_SECONDS))
                self._check_reports()
                self._while_waiting()
            except KafkaException as error:
                # After an earlier message has failed it says only that it refuses: the delivery reports say why.
                self._served(partial(self._producer.poll, 0))
                self._give_up(f"cannot write to {topic}", self._fault or error.args[0])
        self._unserved += 1
        if self._unserved >= _REPORTS_SERVED:
            self._unserved = 0
            self._served(partial(self._producer.poll, 0))

    def _confirm(self, deadline: float) -> None:
        """Wait until the broker has confirmed everything that was sent."""
        while self._served(partial(self._producer.flush, SLICE_SECONDS)):
            self._check_reports()
            if time.monotonic() > deadline:
                self._give_up("no confirmation", KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
            self._while_waiting()
        self._check_reports()

    def _served(self, call: Callable[[], int]) -> int:
        """Let librdkafka report. A fatal error is raised as an exception, wrapped or lost if a report followed it."""
        try:
            return call()
        except (KafkaException, SystemError) as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KafkaException):
                cause = cause.__cause__
            fault = cause.args[0] if cause is not None else self._reason()
            if fault is None:
                raise
            self._give_up("cannot write", fault)

    def _check_reports(self) -> None:
        """Give up if a message was not accepted."""
        if self._fault is not None:
            self._give_up("the broker did not accept a message", self._fault)

    # librdkafka calls these with an exception pending if it has just failed for good: then any call in them fails.

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._fault is None:
            self._fault, self._failed = error, message

    def _logged(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._behind = (message.offset() or 0) + 1
        elif self._fault is None:
            self._fault, self._failed = error, message
