"""Places in the input: a state's position in each partition, and how it tells what was there from what came since.

Knows names, numbers, offsets, leader epochs and timestamps; knows nothing of who reads or writes.
"""

from collections.abc import Collection, Iterable, Mapping

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message, TopicPartition

Place = tuple[str, int]  # topic and partition
_NO_TIMESTAMP = -1  # in Kafka's message format
_NO_EPOCH = -1  # in Kafka's protocol
IDENTITY = -1  # in place of a partition: the position is then the topic's identity, which changes if it is recreated


def place_of(message: Message) -> Place:
    """Return the topic and partition of a message."""
    return str(message.topic()), int(message.partition() or 0)


def offset_of(message: Message) -> int:
    """Return the offset of a message."""
    return int(message.offset() or 0)


def epoch_at(place: Place) -> Place:
    """Return what stands in place of a partition for the leader epoch of the last message before the position in it.

    A partition that has lost its end has a new leader epoch, and what has since taken the place of the lost messages
    was written in it. So an offset and the epoch tell whether messages are those that were read, as an offset alone
    does not: a client that is given both asks the broker before it reads on.
    """
    return place[0], IDENTITY - 1 - place[1]


def epochs_of(messages: Iterable[Message]) -> dict[Place, int]:
    """Return the leader epochs of messages, each in the form of a position; brokers too old to have any tell none."""
    return {epoch_at(place_of(message)): epoch for message in messages if (epoch := message.leader_epoch()) is not None}


def is_of_later_leader(message: Message, epoch: int | None) -> bool:
    """Tell whether a message was written after a leader epoch; not if either epoch is unknown."""
    own = message.leader_epoch()
    return epoch is not None and own is not None and own > epoch


def positions_after(last: Iterable[Message]) -> dict[Place, int]:
    """Return the positions after messages, with their leader epochs; of a partition the last message counts."""
    messages = {place_of(message): message for message in last}
    return {place: offset_of(message) + 1 for place, message in messages.items()} | epochs_of(messages.values())


def timestamp_of(message: Message) -> int | None:
    """Return the timestamp of a message, milliseconds since 1970 in UTC; None if it has none."""
    kind, timestamp = message.timestamp()
    # A producer that gives none sends -1, which librdkafka hands over as if it were a time.
    return None if kind == TIMESTAMP_NOT_AVAILABLE or timestamp == _NO_TIMESTAMP else timestamp


def by_time(messages: Iterable[Message]) -> list[Message]:
    """Return messages in the order of their timestamps, each partition's in its own order.

    A message counts as no older than those before it: the clock of their producer may have stepped back.

    Args:
        messages: those of a partition in order.
    """
    latest: dict[Place, int] = {}

    def time_of(message: Message) -> int:
        place, timestamp = place_of(message), message.timestamp()[1]
        latest[place] = max(timestamp, latest.get(place, timestamp))
        return latest[place]

    return sorted(messages, key=time_of)


def in_input(positions: Mapping[Place, int]) -> dict[Place, int]:
    """Return those positions of a state that are offsets in the input."""
    return {place: offset for place, offset in positions.items() if place[1] > IDENTITY}


def offsets_of(positions: Mapping[Place, int]) -> list[TopicPartition]:
    """Return those positions that are offsets in the input, in the form in which clients take them.

    A group that stores an offset stores the identity of its topic and the leader epoch with it, if they are among the
    positions.
    """
    return [
        TopicPartition(
            *place,
            offset,
            metadata=_noted(positions.get((place[0], IDENTITY))),
            leader_epoch=positions.get(epoch_at(place), _NO_EPOCH),
        )
        for place, offset in in_input(positions).items()
    ]


def is_of_deleted(stored: TopicPartition, identities: Mapping[str, int]) -> bool:
    """Tell whether a group stored an offset for a topic that was deleted since.

    Args:
        stored: the offset, with what was stored beside it: the topic's identity, if `offsets_of` made it; other
            programs store nothing, or something else.
        identities: of the topics that exist, by name.
    """
    noted, identity = stored.metadata or "", identities.get(stored.topic)
    return identity is not None and noted.isdecimal() and noted != _noted(identity)


def _noted(identity: int | None) -> str:
    return "" if identity is None else str(identity)


def identity_updates(
    identities: Mapping[str, int], positions: Mapping[Place, int], places: Collection[Place]
) -> dict[Place, int]:
    """Return the topic identities that a state has not recorded yet.

    For a topic that was recreated, which the state knows by another identity, also return position 0 in each partition.

    Args:
        identities: of the topics, by name.
        positions: of the state.
        places: further partitions, from which messages were read.
    """
    news: dict[Place, int] = {}
    for topic, identity in identities.items():
        known = positions.get((topic, IDENTITY))
        if known not in {None, identity}:
            # The leader epochs of a new topic begin at 0 as well.
            news |= {place: 0 for place in {*positions, *places} if place[0] == topic}
        if known != identity:
            news[topic, IDENTITY] = identity
    return news
