"""The state's position in each input partition, and the first positions and topic identities it has yet to record.

Knows positions, their leader epochs and the identities of topics; knows nothing of the client that reads.
"""

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

import structlog
from confluent_kafka import OFFSET_BEGINNING

from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place, epoch_at, identity_updates, in_input

log = structlog.get_logger()

Identify = Callable[[Collection[str]], Mapping[str, int]]


class InputPositions:
    """The state's position in each partition, and the identities by which it tells recreated topics apart.

    Args:
        positions: of the state: next offset by topic and partition.
        identify: returns a number for each of some topics, which changes when a topic is recreated; topics that it
            leaves out are assumed to be unchanged.
        first_offset: where to start in a partition in which the state has no position.
    """

    def __init__(self, positions: Mapping[Place, int], identify: Identify, first_offset: int) -> None:
        self._positions = dict(positions)
        self._unrecorded: dict[Place, int] = {}  # identities and reset positions that the state has not recorded yet
        self._recording: dict[Place, int] = {}  # those being recorded
        self._begun: dict[Place, int] = {}  # where partitions begin or go on, which the state has not recorded yet
        self._identify = identify
        self._first_offset = first_offset

    def known(self, places: Collection[Place]) -> dict[Place, int]:
        """Return the state's positions in some partitions, without those in which it has none."""
        return {place: self._positions[place] for place in places if place in self._positions}

    def recorded(self, places: AbstractSet[Place]) -> dict[Place, int]:
        """Return the same without first positions that the state has not recorded yet."""
        return self.known(places - self._begun.keys())

    def identified(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Return positions with the identities of their topics and their leader epochs, as far as these are known."""
        places = in_input(positions)
        beside = {(topic, IDENTITY) for topic, _ in places} | set(map(epoch_at, places))
        return {**self.known(beside), **positions}

    def position(self, place: Place) -> int:
        """Return the next offset of a partition, 0 if the state has none."""
        return self._positions.get(place, 0)

    def starts(self, places: Collection[Place]) -> dict[Place, int]:
        """Return the offsets to start reading some partitions from; see `identified`."""
        # A position of 0 means the oldest message still in the topic, whatever its offset.
        return self.identified(
            {place: self._positions.get(place, self._first_offset) or OFFSET_BEGINNING for place in places}
        )

    def begin_at(self, offsets: Mapping[Place, int]) -> None:
        """Note where partitions begin, or go on after a loss; the state is to record that before any message."""
        self._positions |= offsets
        self._begun |= offsets

    def added(self, places: Collection[Place]) -> set[Place]:
        """Return which of some partitions were added to a topic that is read already: those after its last one."""
        last: dict[str, int] = {}
        for topic, partition in self._positions:
            last[topic] = max(partition, last.get(topic, IDENTITY))
        new = places - self._positions.keys()
        return {(topic, partition) for topic, partition in new if IDENTITY < last.get(topic, IDENTITY) < partition}

    def unrecorded(self) -> dict[Place, int]:
        """Return the identities, reset and first positions that the state has not recorded yet, to be recorded."""
        self._recording = self._unrecorded.copy()
        return self._begun | self._recording

    def mark_recorded(self, positions: Mapping[Place, int]) -> None:
        """Note that the state has recorded positions, and what `unrecorded` returned last."""
        identities = self._recording.items() & self._unrecorded.items()
        told = {topic for (topic, partition), _ in identities if partition == IDENTITY}
        self._unrecorded = {place: offset for place, offset in self._unrecorded.items() if place[0] not in told}
        self._begun = {place: offset for place, offset in self._begun.items() if place not in positions}
        # Topics found to be recreated since then keep their reset positions.
        self._positions |= {place: offset for place, offset in positions.items() if place not in self._unrecorded}

    def take_up(self, places: set[Place], under_way: set[Place], held: set[Place]) -> None:
        """Note the topic identities of some partitions, and start topics over whose identity has changed.

        Args:
            places: partitions to be read.
            under_way: further partitions, from which messages were read.
            held: further partitions, which are being read.

        Raises:
            KafkaException: the broker does not report them.
            BrokerError: one of the topics has changed while partitions of it were being read: these would be read on.
        """
        news = identity_updates(self._identify({topic for topic, _ in places}), self._positions, places | under_way)
        anew = {topic for topic, partition in news.keys() & self._positions.keys() if partition == IDENTITY}
        if kept := anew & {topic for topic, _ in held}:
            raise _made_anew(min(kept))
        for topic in sorted(anew):
            log.warning("topic_made_anew", topic=topic, then="it is read from its beginning")
        self._positions |= news
        self._unrecorded |= news
        self._begun = {place: offset for place, offset in self._begun.items() if place not in news}

    def check(self, places: Collection[Place]) -> None:
        """Check that the topics of some partitions have not been recreated.

        Args:
            places: partitions being read.

        Raises:
            BrokerError: one was deleted and recreated: it has other messages at the same offsets.
        """
        for topic, identity in self._identify({topic for topic, _ in places}).items():
            known = self._positions.get((topic, IDENTITY))
            if known is None:
                self._positions[topic, IDENTITY] = self._unrecorded[topic, IDENTITY] = identity
            elif known != identity:
                raise _made_anew(topic)


def _made_anew(topic: str) -> BrokerError:
    return BrokerError(f"topic {topic} was deleted and recreated: restart the service to read it from its beginning")
