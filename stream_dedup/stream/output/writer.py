"""The producer: outputs, changelog and input offsets in one transaction, or in order without transactions.

Knows the order of calls and when one is retried; knows nothing of what is written or what the state makes of it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import NoReturn

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings
from stream_dedup.stream import protocol
from stream_dedup.stream.kafka.clients import BrokerError, OnStatistics, is_transient, make_producer
from stream_dedup.stream.kafka.headers import Headers
from stream_dedup.stream.output.errors import (
    NO_LONGER_MEMBER,
    AbortedError,
    FencedError,
    OutcomeUnknownError,
    StuckError,
    final_error,
    is_refused,
)

_SLICE_SECONDS = 1.0  # longest blocking call, so that signals and heartbeats get their turn
_PAUSE_SECONDS = 0.1  # before a call is retried
_FULL_QUEUE_SECONDS = 0.05
_REPORTS_SERVED = 64  # messages after which the delivery reports on earlier ones are handled
_STUCK_SECONDS = 10.0  # after which a call that ignores its timeout is given up
_CLOSE_SECONDS = 2.0  # to end a transaction that is still open
_CONNECT_SECONDS = 5.0
_ANY_PARTITION = -1  # librdkafka chooses one by the key

_QUEUE_TOO_SMALL = "raise kafka.producer.queue.buffering.max.kbytes"

log = structlog.get_logger()

_Report = Callable[[KafkaError | None, Message], None]


class Writer:
    """Writes the outputs of a batch and what it changes, all or nothing if `commit.guarantee` is `exactly_once`.

    A transaction is `begin`, any number of `send`, and `commit`. A call that raises in between has aborted it, unless
    the error says that the process must end.

    Args:
        settings: the guarantee, the deadline and how to reach the broker.
        transactional_id: a writer that is opened with the same id later fences this one.
        changelog: the topic of the records.
        while_waiting: called at least about every second while the broker is waited for; may raise to give up.
        on_statistics: called with the client's statistics; None if they are not needed.
        ask_group: waits some seconds for the owners' group to confirm that this process is a member, and returns
            whether it has; raises librdkafka's error if it is not.
    """

    def __init__(
        self,
        settings: Settings,
        transactional_id: str,
        changelog: str,
        while_waiting: Callable[[], None],
        on_statistics: OnStatistics | None = None,
        ask_group: Callable[[float], bool] = lambda _: True,
    ) -> None:
        self._exactly_once = settings.commit.guarantee == "exactly_once"
        self._id = transactional_id
        self._changelog = changelog
        self._while_waiting = while_waiting
        self._ask_group = ask_group
        self._seconds = settings.commit.deadline_seconds
        self._producer = make_producer(settings, transactional_id if self._exactly_once else "", on_statistics)
        self._recurring_faults = RecurringFaults()
        self._unserved = 0  # messages since reports were last handled
        self._fault: KafkaError | None = None
        self._behind: int | None = None
        self._committing = False
        self._in_transaction = False

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as far as is known."""
        return self._in_transaction

    def open(self) -> None:
        """Connect. An earlier writer with the same id is fenced, and what it left open is aborted.

        Raises:
            FencedError: yet another process did the same in the meantime.
            BrokerError: no answer within `commit.deadline_seconds`, or a refusal.
        """
        if not self._exactly_once:
            self._find_broker()
            return
        try:
            self._until(self._producer.init_transactions, self._deadline())
        except KafkaException as error:
            raise self._final("cannot start writing", error.args[0]) from None

    def begin(self) -> None:
        """Begin a transaction.

        Raises:
            AbortedError: without transactions, another process may have taken over.
            FencedError: another process has taken over.
            BrokerError: the producer is unusable.
        """
        self._fault = self._behind = None
        if not self._exactly_once:
            self._check_owner(self._deadline())
            return
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._final("cannot begin a transaction", error.args[0]) from None
        self._in_transaction = True
        protocol.reached(protocol.Step.BEGUN)

    def send(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Start sending a message.

        Raises:
            AbortedError: the transaction was aborted; nothing of it counts.
            FencedError: another process has taken over.
            BrokerError: the broker refuses the message for good, or it is too large.
        """
        self._produce(topic, key, value, self._delivered, headers)

    def commit(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        offsets: Mapping[tuple[str, int], int],
        group: object | None,
    ) -> int | None:
        """Write the records to the changelog, and commit them with everything that was sent.

        Without transactions the outputs are confirmed before the first record goes out, and the offsets are left out.

        Args:
            records: keys and values.
            offsets: next offset to read, by topic and partition.
            group: the current group metadata of the input's consumer.

        Returns:
            The offset after the last record; None if there were none.

        Raises:
            AbortedError: the transaction was aborted; nothing of it counts.
            StuckError: it will be aborted by the next writer; this one is unusable.
            FencedError: another process has taken over.
            OutcomeUnknownError: the broker did not say whether it committed.
            BrokerError: the broker refuses something for good.
        """
        deadline = self._deadline()
        if not self._exactly_once:
            self._confirm(deadline)
            self._check_owner(deadline)
        for key, value in records:
            self._produce(self._changelog, key, value, self._logged, partition=0)
        protocol.reached(protocol.Step.LOGGED)
        self._confirm(deadline)
        protocol.reached(protocol.Step.CONFIRMED)
        if self._exactly_once:
            self._send_offsets(offsets, group, deadline)
            self._commit_transaction(deadline)
        return self._behind

    def abort(self) -> None:
        """Take back what was sent since `begin`, as far as possible.

        Raises:
            FencedError: another process has taken over.
            BrokerError: no answer within `commit.deadline_seconds`.
        """
        if not self._exactly_once:
            self._producer.purge()
            self._served(partial(self._producer.flush, _SLICE_SECONDS))
        elif self._in_transaction:
            try:
                self._until(self._producer.abort_transaction, self._deadline())
            except KafkaException as error:
                raise self._final("cannot abort a transaction", error.args[0]) from None
            self._in_transaction = False
        self._fault = None

    def poll(self) -> None:
        """Handle the client's reports while no transaction is open; an error is reported to the next one too."""
        if not self._in_transaction:
            with suppress(KafkaException, SystemError):
                self._producer.poll(0)

    def close(self) -> None:
        """End an open transaction, as far as the broker allows within a moment, and drop what is not sent yet."""
        if self._in_transaction:
            # A commit that was requested cannot be taken back: all one can do is wait for its end.
            end = self._producer.commit_transaction if self._committing else self._producer.abort_transaction
            try:
                self._until(end, time.monotonic() + _CLOSE_SECONDS, while_waiting=lambda: None)
                self._in_transaction = False
            except KafkaException as error:
                # The next writer with this id ends it, or the broker after transaction.timeout.ms.
                log.warning("transaction_left_open", id=self._id, error=error.args[0].str())
        self._producer.purge()
        try:
            self._producer.flush(_SLICE_SECONDS)
        except (KafkaException, SystemError) as error:
            log.debug("producer_closed", error=str(error))

    def _find_broker(self) -> None:
        """Let the producer find the broker now, so that the first batch need not wait for it."""
        try:
            self._producer.list_topics(self._changelog, timeout=_CONNECT_SECONDS)
        except KafkaException as error:
            log.warning("producer_waits", error=error.args[0].str())

    def _produce(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        report: _Report,
        headers: Headers | None = None,
        partition: int = _ANY_PARTITION,
    ) -> None:
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
        while self._served(partial(self._producer.flush, _SLICE_SECONDS)):
            self._check_reports()
            if time.monotonic() > deadline:
                self._give_up("no confirmation", KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
            self._while_waiting()
        self._check_reports()

    def _send_offsets(self, offsets: Mapping[tuple[str, int], int], group: object | None, deadline: float) -> None:
        if not offsets or group is None:
            return
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        try:
            self._until(
                lambda seconds: self._beside(
                    partial(self._producer.send_offsets_to_transaction, places, group, seconds)
                ),
                deadline,
            )
        except KafkaException as error:
            self._give_up("cannot commit the input's offsets", error.args[0])
        protocol.reached(protocol.Step.OFFSETS_SENT)

    def _check_owner(self, deadline: float) -> None:
        """Make sure that no other process has taken over: without transactions the broker fences none.

        A process that was suspended does not know it yet, and the records of two writers would ruin the changelog.
        """
        while True:
            try:
                if self._ask_group(_PAUSE_SECONDS):
                    return
            except KafkaException as error:
                fault = error.args[0]
                if fault.code() in NO_LONGER_MEMBER:
                    what = "the owners' group no longer counts this process as a member"
                    self._recurring_faults.warning(
                        "transaction_aborted", error=fault.name(), what=what, detail=fault.str()
                    )
                    raise AbortedError(f"{what}: {fault.str()} ({fault.name()})") from None
                if not is_transient(fault):
                    raise self._final("cannot find out whether another process has taken over", fault) from None
                time.sleep(_PAUSE_SECONDS)
            if time.monotonic() > deadline:
                self._give_up("no answer from the owners' group", KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
            self._while_waiting()

    def _commit_transaction(self, deadline: float) -> None:
        self._committing = True
        try:
            self._until(self._producer.commit_transaction, deadline)
        except KafkaException as error:
            fault = error.args[0]
            if fault.fatal():
                raise self._final("cannot commit", fault) from None
            # Even an error that asks for an abort does not mean that the broker has not committed: librdkafka may
            # abort by taking a new epoch, which also succeeds on a transaction that is committed.
            raise OutcomeUnknownError(
                f"the broker did not say whether it committed ({fault.str()}): the next start finds out"
            ) from None
        self._committing = self._in_transaction = False
        protocol.reached(protocol.Step.COMMITTED)

    def _until(
        self, call: Callable[[float], object], deadline: float, while_waiting: Callable[[], None] | None = None
    ) -> None:
        """Retry a call until it succeeds.

        Raises:
            KafkaException: an error that is not transient, or persists at the deadline.
        """
        while True:
            try:
                call(min(_SLICE_SECONDS, max(deadline - time.monotonic(), _PAUSE_SECONDS)))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() >= deadline:
                    raise
            else:
                return
            (while_waiting or self._while_waiting)()
            time.sleep(_PAUSE_SECONDS)

    def _beside(self, call: Callable[[], object]) -> None:
        """Make a call in a thread of its own: in it librdkafka ignores the timeout while a coordinator is silent.

        Raises:
            KafkaException: as the call does.
            StuckError: the call does not return.
        """
        errors: list[KafkaException] = []

        def make() -> None:
            try:
                call()
            except KafkaException as error:
                errors.append(error)

        thread = Thread(target=make, name="offsets", daemon=True)
        thread.start()
        thread.join(_SLICE_SECONDS)
        began = time.monotonic()
        while thread.is_alive():
            if time.monotonic() - began > _STUCK_SECONDS:
                # Even once a coordinator that went away is back, the call may keep waiting for minutes.
                raise StuckError("librdkafka's call that sends the input's offsets does not return")
            self._while_waiting()
            thread.join(_SLICE_SECONDS)
        for error in errors:
            raise error

    def _served(self, call: Callable[[], int]) -> int:
        """Let librdkafka report. A fatal error is raised as an exception, wrapped or lost if a report followed it."""
        try:
            return call()
        except (KafkaException, SystemError) as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KafkaException):
                cause = cause.__cause__
            fault = cause.args[0] if cause is not None else self._refusal() or self._fault
            if fault is None:
                raise
            self._give_up("cannot write", fault)

    def _check_reports(self) -> None:
        if self._fault is not None:
            self._give_up("the broker did not accept a message", self._fault)

    def _give_up(self, what: str, fault: KafkaError) -> NoReturn:
        """Abort the transaction and raise what the error means for the batch."""
        if fault.fatal() or not self._exactly_once:
            raise self._final(what, fault)
        known = self._refusal() or fault
        if is_refused(known):
            self._abort_refused()
            raise self._final(what, known)
        self.abort()
        self._recurring_faults.warning("transaction_aborted", error=known.name(), what=what, detail=known.str())
        raise AbortedError(f"{what}: {known.str()} ({known.name()})")

    def _abort_refused(self) -> None:
        """Abort what was refused. If nothing of it had reached the broker, the abort may be refused too."""
        try:
            self.abort()
        except FencedError:
            raise
        except BrokerError as error:
            log.debug("refused_transaction_not_aborted", error=str(error))

    def _refusal(self) -> KafkaError | None:
        """Return why the producer accepts no more: a message dropped for that reason does not say so."""
        if not self._exactly_once:
            return None
        try:
            # Refused inside a transaction, with the reason why that failed.
            self._producer.begin_transaction()
        except KafkaException as error:
            return None if error.args[0].code() == KafkaError._STATE else error.args[0]  # noqa: SLF001  # the same
        return None

    def _final(self, what: str, fault: KafkaError) -> BrokerError:
        """Return the error after which this writer is unusable."""
        if fault.fatal():
            self._in_transaction = False  # librdkafka accepts no further call; the broker ends the transaction
        return final_error(self._id, what, fault, self._seconds)

    def _deadline(self) -> float:
        return time.monotonic() + self._seconds

    # librdkafka calls these with an exception pending if it has just failed for good: then any call in them fails.

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and self._fault is None:
            self._fault = error

    def _logged(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._behind = (message.offset() or 0) + 1
        elif self._fault is None:
            self._fault = error
