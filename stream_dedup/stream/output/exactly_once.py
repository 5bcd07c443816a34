"""The guarantee `exactly_once`: outputs, changelog and input offsets of a batch in one Kafka transaction.

Knows the order of the calls, which is retried, and what an error means; knows nothing of how messages are sent.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import closing
from functools import partial
from typing import NoReturn

import structlog
from confluent_kafka import KafkaError, KafkaException

from stream_dedup.background import begun
from stream_dedup.settings import Settings
from stream_dedup.stream import protocol
from stream_dedup.stream.kafka.clients import BrokerError, OnStatistics
from stream_dedup.stream.kafka.places import offsets_of
from stream_dedup.stream.kafka.transactions import has_open_transaction
from stream_dedup.stream.output.errors import (
    OF_DELETED_TOPICS,
    FencedError,
    OutcomeUnknownError,
    StuckError,
    is_refused,
)
from stream_dedup.stream.output.writer import SLICE_SECONDS, GroupOffsets, Writer

_PAUSE_SECONDS = 0.1  # before a call is retried
_STUCK_SECONDS = 10.0  # after which a call that ignores its timeout is given up
_CLOSE_SECONDS = 2.0  # to end a transaction that is still open
_LOOK_SECONDS = 5.0  # for the broker to list its topics

log = structlog.get_logger()


class ExactlyOnceWriter(Writer):
    """Writes a batch all or nothing: each is a transaction.

    The changelog's name is the transactional id: a writer of the same changelog that is opened later fences this one.

    Args:
        settings: see `Writer`.
        changelog: see `Writer`.
        while_waiting: see `Writer`.
        on_statistics: see `Writer`.

    Attributes:
        in_transaction: whether a transaction is open, as far as is known.
    """

    def __init__(
        self,
        settings: Settings,
        changelog: str,
        while_waiting: Callable[[], None],
        on_statistics: OnStatistics | None = None,
    ) -> None:
        super().__init__(settings, changelog, while_waiting, on_statistics, transactional_id=changelog)
        self._committing = False
        self.in_transaction = False

    def open(self) -> None:
        """See `Writer`. An earlier writer of this changelog is fenced, and what it left open is aborted."""
        try:
            self._until(self._producer.init_transactions, self._deadline())
        except KafkaException as error:
            raise self._final("cannot start writing", error.args[0]) from None

    def begin(self) -> None:
        """See `Writer`."""
        self._forget_reports()
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._final("cannot begin a transaction", error.args[0]) from None
        self.in_transaction = True
        protocol.reached(protocol.Step.BEGUN)

    def commit(self, records: Sequence[tuple[bytes, bytes | None]], group: GroupOffsets | None) -> int | None:
        """See `Writer`."""
        deadline = self._deadline()
        self._write_records(records, deadline)
        self._send_offsets(group, deadline)
        self._commit_transaction(deadline)
        return self._behind

    def abort(self) -> None:
        """See `Writer`."""
        if self.in_transaction:
            try:
                self._until(self._producer.abort_transaction, self._deadline())
            except KafkaException as error:
                raise self._final("cannot abort a transaction", error.args[0]) from None
            self.in_transaction = False

    def poll(self) -> None:
        """See `Writer`."""
        if not self.in_transaction:
            super().poll()

    def close(self) -> None:
        """End an open transaction, as far as the broker allows within a moment, and drop what is not sent yet."""
        if self.in_transaction:
            # A commit that was requested cannot be taken back: all one can do is wait for its end.
            end = self._producer.commit_transaction if self._committing else self._producer.abort_transaction
            try:
                self._until(end, time.monotonic() + _CLOSE_SECONDS, while_waiting=lambda: None)
                self.in_transaction = False
            except KafkaException as error:
                # The next writer with this id ends it, or the broker after transaction.timeout.ms.
                log.warning("transaction_left_open", id=self._changelog, error=error.args[0].str())
        super().close()

    def _send_offsets(self, group: GroupOffsets | None, deadline: float) -> None:
        if group is None or not group.offsets:
            return
        places = offsets_of(group.offsets)
        try:
            self._until(
                lambda seconds: self._beside(
                    partial(self._producer.send_offsets_to_transaction, places, group.metadata, seconds)
                ),
                deadline,
            )
        except KafkaException as error:
            self._give_up("cannot commit the input's offsets", error.args[0])
        protocol.reached(protocol.Step.OFFSETS_SENT)

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
        self._committing = self.in_transaction = False
        protocol.reached(protocol.Step.COMMITTED)

    def _give_up(self, what: str, fault: KafkaError) -> NoReturn:
        if fault.fatal():
            raise self._final(what, fault)
        known = self._refusal() or fault
        if is_refused(known):
            self._abort_refused()
            raise self._final(what, known)
        self.abort()
        raise self._aborted(what, known)

    def _reason(self) -> KafkaError | None:
        return self._refusal() or self._fault

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
        try:
            # Refused inside a transaction, with the reason why that failed.
            self._producer.begin_transaction()
        except KafkaException as error:
            return None if error.args[0].code() == KafkaError._STATE else error.args[0]  # noqa: SLF001  # librdkafka's name
        return None

    def _final(self, what: str, fault: KafkaError) -> BrokerError:
        if fault.fatal():
            self.in_transaction = False  # librdkafka accepts no further call; the broker ends the transaction
        if fault.code() in OF_DELETED_TOPICS and (deleted := self._deleted()):
            what = f"the broker no longer has {', '.join(deleted)}"
        return super()._final(what, fault)

    def _deleted(self) -> list[str]:
        """Return the topics of the transaction that the broker does not have: the transaction's error names none."""
        try:
            # All topics: asked for one by its name, a broker may create it.
            known = self._producer.list_topics(timeout=_LOOK_SECONDS).topics
        except KafkaException:
            return []
        return sorted(self._topics - known.keys())

    def _until(
        self, call: Callable[[float], object], deadline: float, while_waiting: Callable[[], None] | None = None
    ) -> None:
        """Retry a call until it succeeds.

        Raises:
            KafkaException: an error that is not transient, or persists at the deadline.
        """
        while True:
            try:
                call(min(SLICE_SECONDS, max(deadline - time.monotonic(), _PAUSE_SECONDS)))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() >= deadline:
                    raise
            else:
                return
            (while_waiting or self._while_waiting)()
            time.sleep(_PAUSE_SECONDS)

    def _beside(self, call: Callable[[], object]) -> None:
        """Make a call in a thread of its own: in it librdkafka ignores the timeout while a coordinator is silent.

        Whatever the call raises is raised here.

        Raises:
            StuckError: the call does not return.
        """
        done, began = begun(call, "offsets"), time.monotonic()
        while not wait([done], SLICE_SECONDS).done:
            if time.monotonic() - began > _STUCK_SECONDS:
                # Even once a coordinator that went away is back, the call may keep waiting for minutes.
                raise StuckError("librdkafka's call that sends the input's offsets does not return")
            self._while_waiting()
        done.result()


def abort_open_transaction(settings: Settings, changelog: str, while_waiting: Callable[[], None]) -> None:
    """Abort what an earlier writer left open in a changelog, if anything: until then it may yet be committed.

    Args:
        settings: see `Writer`.
        changelog: see `Writer`.
        while_waiting: see `Writer`.

    Raises:
        BrokerError: no answer within `commit.deadline_seconds`, or a refusal.
    """
    if has_open_transaction(settings, changelog, while_waiting):
        with closing(ExactlyOnceWriter(settings, changelog, while_waiting)) as writer:
            writer.open()
