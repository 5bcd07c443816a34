"""Where the state stands in the input, and what it is to be told of topics that it does not know.

Knows positions and the identities of topics; knows nothing of the client that reads.
"""

from collections.abc import Callable, Collection, Mapping

import structlog
from confluent_kafka import OFFSET_BEGINNING

from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY, Place, news_of

log = structlog.get_logger()

Identify = Callable[[Collection[str]], Mapping[str, int]]


class Standing:
    """Where the state stands in each partition, by topics that it knows by their identities.

    Args:
        positions: of the state: next offset by topic and partition.
        identify: returns a number for each of some topics, another one once it is made anew; those that it leaves out
            are taken for what they were.
        first_offset: from which a partition is read in which the state has none.
    """

    def __init__(self, positions: Mapping[Place, int], identify: Identify, first_offset: int) -> None:
        self._positions = dict(positions)
        self._noted: dict[Place, int] = {}  # positions and identities of which the state does not know yet
        self._telling: dict[Place, int] = {}  # those that it is being told
        self._identify = identify
        self._first_offset = first_offset

    def known(self, places: Collection[Place]) -> dict[Place, int]:
        """Return the positions in those of some partitions in which the state has one."""
        return {place: self._positions[place] for place in places if place in self._positions}

    def position(self, place: Place) -> int:
        """Return the next offset of a partition, 0 where the state has none."""
        return self._positions.get(place, 0)

    def offset_of(self, place: Place) -> int:
        """Return from where a partition is read."""
        # What stands at 0 begins with the oldest message there is, also where that is another by now.
        return self._positions.get(place, self._first_offset) or OFFSET_BEGINNING

    def go_on(self, place: Place, offset: int) -> None:
        """Note that a partition is read on from another offset."""
        self._positions[place] = offset

    def noted(self) -> dict[Place, int]:
        """Return what was found out about topics that the state does not know: to be told to it now."""
        self._telling = self._noted.copy()
        return self._telling

    def told(self, positions: Mapping[Place, int]) -> None:
        """Note that the state knows positions, and what `noted` has returned last."""
        identities = self._telling.items() & self._noted.items()
        told = {topic for (topic, partition), _ in identities if partition == IDENTITY}
        self._noted = {place: offset for place, offset in self._noted.items() if place[0] not in told}
        # What was found to be made anew since then stands where it was put.
        self._positions |= {place: offset for place, offset in positions.items() if place not in self._noted}

    def take_up(self, places: set[Place], under_way: set[Place]) -> None:
        """Note the identities of the topics of some partitions, and begin those anew that have another one.

        Args:
            places: that are to be read.
            under_way: further ones, of which something was read.

        Raises:
            KafkaException: the broker does not tell.
        """
        news = news_of(self._identify({topic for topic, _ in places}), self._positions, places | under_way)
        anew = {topic for topic, partition in news.keys() & self._positions.keys() if partition == IDENTITY}
        for topic in sorted(anew):
            log.warning("topic_made_anew", topic=topic, then="it is read from its beginning")
        self._positions |= news
        self._noted |= news

    def check(self, places: Collection[Place]) -> None:
        """Check that the topics of some partitions are those that they were.

        Args:
            places: that are read.

        Raises:
            BrokerError: one was deleted and made anew: it has other messages under the same offsets.
        """
        for topic, identity in self._identify({topic for topic, _ in places}).items():
            known = self._positions.get((topic, IDENTITY))
            if known is None:
                self._positions[topic, IDENTITY] = self._noted[topic, IDENTITY] = identity
            elif known != identity:
                raise BrokerError(f"topic {topic} was deleted and made anew: a new start reads it from its beginning")
