"""Partitions whose next message to read is gone, until the broker has told where they can be read on.

Knows when it is asked again; knows nothing of what is read on, or of the client that told of the loss.
"""

import math
import time
from collections.abc import Callable, Collection

from confluent_kafka import KafkaException

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.stream.kafka.clients import is_transient, reading_error
from stream_dedup.stream.kafka.places import Place

_PAUSE_SECONDS = 5.0  # until the broker is asked again if it did not say


class Losses:
    """Losses that were told and are not handled yet.

    Args:
        recurring_faults: told when the broker does not answer.
    """

    def __init__(self, recurring_faults: RecurringFaults) -> None:
        self._recurring_faults = recurring_faults
        self._told: dict[Place, tuple[int, str]] = {}
        self._due = -math.inf

    def add(self, place: Place, offset: int, told: str) -> None:
        """Note a loss.

        Args:
            place: topic and partition.
            offset: the one that was requested; not above 0 if a new leader made the client look.
            told: the client's error message.
        """
        self._told[place] = offset, told

    def forget(self, places: Collection[Place]) -> None:
        """Note that partitions were revoked, or are begun anew: if there is still a loss, the client tells it again."""
        for place in places:
            self._told.pop(place, None)

    def handle(self, resume: Callable[[Place, int, str], None]) -> None:
        """Resume the partitions, unless the broker was asked in vain just now.

        Args:
            resume: called with what was told of a loss; may raise KafkaException if the broker does not answer.

        Raises:
            BrokerError: the broker refuses; or what `resume` raises.
        """
        if not self._told or time.monotonic() < self._due:
            return
        for place, (offset, told) in [*self._told.items()]:
            try:
                resume(place, offset, told)
            except KafkaException as error:
                fault = error.args[0]
                if not is_transient(fault):
                    raise reading_error(f"cannot read {place[0]}: {told}, and then", fault) from None
                # What has just lost its end may be without a leader, and the other partitions with it.
                self._recurring_faults.warning("input_waits", error=fault.name(), detail=fault.str())
                self._due = time.monotonic() + _PAUSE_SECONDS
                return
            self._told.pop(place, None)
