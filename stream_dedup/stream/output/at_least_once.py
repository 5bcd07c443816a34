"""The guarantee `at_least_once`: the outputs of a batch are confirmed before the changelog knows of it.

Knows the order of the steps, and how to find out who owns the index; knows nothing of how messages are sent.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import structlog
from confluent_kafka import KafkaError, KafkaException

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import OnStatistics, is_transient
from stream_dedup.stream.output.errors import NO_LONGER_MEMBER
from stream_dedup.stream.output.exactly_once import abort_open_transaction
from stream_dedup.stream.output.writer import SLICE_SECONDS, GroupOffsets, Writer

_PAUSE_SECONDS = 0.1  # before the group is asked again
_CONNECT_SECONDS = 5.0

log = structlog.get_logger()


class AtLeastOnceWriter(Writer):
    """Writes a batch in order: after a kill in the middle of it, its outputs are sent again.

    Args:
        settings: see `Writer`.
        changelog: see `Writer`.
        while_waiting: see `Writer`.
        on_statistics: see `Writer`.
        ask_group: waits some seconds for the owners' group to confirm that this process is a member, and returns
            whether it has; raises librdkafka's error if it is not.
    """

    def __init__(
        self,
        settings: Settings,
        changelog: str,
        while_waiting: Callable[[], None],
        on_statistics: OnStatistics | None = None,
        ask_group: Callable[[float], bool] = lambda _: True,
    ) -> None:
        super().__init__(settings, changelog, while_waiting, on_statistics)
        self._settings = settings
        self._ask_group = ask_group

    def open(self) -> None:
        """See `Writer`. What an earlier writer with the other guarantee left open in the changelog is aborted.

        Until then nobody can read what follows it, and it may yet be committed: the changelog would hold two steps of
        one number.
        """
        self._find_broker()
        abort_open_transaction(self._settings, self._changelog, self._while_waiting)

    def _find_broker(self) -> None:
        """Let the producer find the broker now, so that the first batch need not wait for it."""
        try:
            self._producer.list_topics(self._changelog, timeout=_CONNECT_SECONDS)
        except KafkaException as error:
            log.warning("producer_waits", error=error.args[0].str())

    def begin(self) -> None:
        """See `Writer`."""
        self._forget_reports()
        self._check_owner(self._deadline())

    def commit(self, records: Sequence[tuple[bytes, bytes | None]], _group: GroupOffsets | None) -> int | None:
        """See `Writer`. The group's offsets are left out: only a transaction could commit them with the rest."""
        deadline = self._deadline()
        self._confirm(deadline)
        self._check_owner(deadline)
        self._write_records(records, deadline)
        return self._behind

    def abort(self) -> None:
        """See `Writer`. What the broker has already stays there."""
        self._producer.purge()
        self._served(partial(self._producer.flush, SLICE_SECONDS))

    def _check_reports(self) -> None:
        # In a transaction all messages fail together; here the first that does is the cause.
        if self._fault is not None and self._failed is not None:
            self._give_up(f"the broker did not accept a message to {self._failed.topic()}", self._fault)

    def _give_up(self, what: str, fault: KafkaError) -> NoReturn:
        raise self._final(what, fault)

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
                    raise self._aborted(what, fault) from None
                if not is_transient(fault):
                    raise self._final("cannot find out whether another process has taken over", fault) from None
                time.sleep(_PAUSE_SECONDS)
            if time.monotonic() > deadline:
                self._give_up("no answer from the owners' group", KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
            self._while_waiting()
