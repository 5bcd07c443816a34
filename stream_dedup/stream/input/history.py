"""The past of the input: the messages that the group has decided, in order of their timestamps.

Knows the group's committed offsets, and the bounds of partitions; knows nothing of what becomes of the messages.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings
from stream_dedup.stream.input.time_order import TimeOrder
from stream_dedup.stream.kafka.clients import (
    BrokerError,
    consumer_properties,
    end_at_loss,
    is_transient,
    make_consumer,
    reading_error,
)
from stream_dedup.stream.kafka.headers import size_of
from stream_dedup.stream.kafka.patience import Patience, watermarks
from stream_dedup.stream.kafka.places import (
    Place,
    identity_updates,
    is_of_deleted,
    is_of_later_leader,
    offset_of,
    offsets_of,
    place_of,
)
from stream_dedup.stream.kafka.topics import matching_topics
from stream_dedup.stream.kafka.transactions import tells_unstable_offsets

_READ_MESSAGES = 1_000
_POLL_SECONDS = 0.1
_BEAT_SECONDS = 1.0  # between two calls of `while_waiting` while partitions are asked about

log = structlog.get_logger()


class History:
    """The messages of the input topics up to the group's committed offsets, in the order of their timestamps.

    See `TimeOrder`: a partition that has delivered nothing yet is waited for, however long it takes.

    Args:
        settings: topics, group and commit bounds.
        positions: of the state; a topic that was recreated since then is read from its beginning.
        identify: see `Topics.known_identities`.
        while_waiting: called about every second until it is known where each partition begins and ends; see `Patience`.
        while_hidden: see `committed_offsets`.

    Attributes:
        identities: of the topics, as far as they are known.
        total: messages in all.
        done: messages handed out so far.

    Raises:
        BrokerError: the broker refuses, or gives no answer.
    """

    def __init__(
        self,
        settings: Settings,
        positions: Mapping[Place, int],
        identify: Callable[[Collection[str]], Mapping[str, int]] = lambda _: {},
        while_waiting: Callable[[], None] = lambda: None,
        while_hidden: Callable[[], None] = lambda: None,
    ) -> None:
        self._commit = settings.commit
        self._patience = Patience(settings, "cannot read the input", while_waiting)
        # On its own the client may go to the end if the next message is gone: what it skips would be published again.
        properties = {"auto.offset.reset": "error", "enable.partition.eof": "true"}
        self._consumer: Consumer = make_consumer(settings, {**consumer_properties(settings), **properties})
        self._order = TimeOrder(self._consumer, bounded=False)
        self._next: dict[Place, int] = {}  # offset to read next
        self._ends: dict[Place, int] = {}
        self._epochs: dict[Place, int | None] = {}  # leader epoch of the last decided message, if the group knows it
        self._recurring_faults = RecurringFaults()
        self.total = self.done = 0
        with ExitStack() as closing_on_error:
            closing_on_error.callback(self._consumer.close)
            committed = committed_offsets(self._consumer, settings, self._patience, while_hidden)
            self.identities = identify({place.topic for place in committed})
            news = identity_updates(self.identities, positions, ())
            decided = [place for place in committed if not is_of_deleted(place, self.identities)]
            self._find(decided, {**positions, **news}, while_waiting)
            closing_on_error.pop_all()

    def batches(self) -> Iterator[list[Message]]:
        """Yield batches as large as a commit may be, and empty ones while none arrive: then the caller can give up.

        Raises:
            BrokerError: the broker refuses, or gives no answer.
        """
        batch: list[Message] = []
        size = 0
        while self._ends or self._order:
            some = self._fetch()
            while messages := self._order.take(self._commit.articles - len(batch), self._ends.__contains__):
                batch += messages
                size += sum(map(size_of, messages))
                self.done += len(messages)
                if len(batch) == self._commit.articles or size >= self._commit.bytes:
                    yield batch
                    batch, size = [], 0
            self._order.keep_pace()
            if not some:
                yield []
        if batch:
            yield batch

    def close(self) -> None:
        """Release the connection."""
        self._consumer.close()

    def _find(
        self, decided: Sequence[TopicPartition], positions: Mapping[Place, int], while_waiting: Callable[[], None]
    ) -> None:
        """Find out where to start and end in each partition, and start reading.

        Args:
            decided: the group's offsets in the topics that exist.
            positions: next offset by topic and partition, of those read before.
            while_waiting: called about every second.
        """
        beat = time.monotonic()
        for place in decided:
            # A slow broker is not silent, but of many partitions it tells in minutes.
            if time.monotonic() - beat >= _BEAT_SECONDS:
                while_waiting()
                beat = time.monotonic()
            key = place.topic, place.partition
            start, stop = positions.get(key, 0), place.offset
            if stop > start:
                first, end = watermarks(self._consumer, place, self._patience)
                # What the broker has lost, as after an unclean leader election, never arrives.
                start, stop = max(first, start), min(end, stop)
            if stop > start:
                self._next[key], self._ends[key], self._epochs[key] = start, stop, place.leader_epoch
                self.total += stop - start
        self._consumer.assign(offsets_of(self._next))
        self._order.begin(self._ends)

    def _fetch(self) -> bool:
        """Hold what has arrived; return whether anything has."""
        messages = self._consumer.consume(_READ_MESSAGES, _POLL_SECONDS)
        for message in messages:
            error, key, offset = message.error(), place_of(message), offset_of(message)
            if error is None:
                if offset >= self._ends.get(key, 0):
                    continue
                # A place of a later leader is that of a message that was lost.
                if is_of_later_leader(message, self._epochs.get(key)):
                    self._end_early(key, offset)
                else:
                    self._order.add(message)
                    self._next[key] = offset + 1
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001  # librdkafka's name
                self._resume_after_loss(key, error.str())
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # likewise
                # If the rest was deleted in the meantime, or lost, nothing else leads to the end.
                self._look_at_end(key, offset, error)
            elif not is_transient(error):
                raise reading_error(f"cannot read {message.topic()}", error)
            else:
                self._tell(error, error.str())
        self._end()
        return bool(messages)

    def _tell(self, error: KafkaError, detail: str) -> None:
        self._recurring_faults.warning("input_waits", error=error.name(), detail=detail)

    def _look_at_end(self, place: Place, offset: int, error: KafkaError) -> None:
        """Note that a partition has no more messages for now.

        Args:
            place: topic and partition.
            offset: where it ends.
            error: by which the client tells.

        Raises:
            BrokerError: the broker does not say which offsets it has.
        """
        stop = self._ends.get(place, 0)
        if offset >= stop:
            self._ends.pop(place, None)
        elif watermarks(self._consumer, TopicPartition(*place), self._patience)[1] <= offset:
            self._end_early(place, offset)
        else:
            # A new leader may take a moment to find out how far its messages are confirmed.
            self._tell(error, f"{place[0]}/{place[1]} ends at {offset}, but the group has decided up to {stop}")

    def _end_early(self, place: Place, offset: int) -> None:
        """Note that a partition has lost what the group had decided from an offset on."""
        read_to = self._ends.pop(place)
        log.warning("input_lost", topic=place[0], partition=place[1], read_to=read_to, goes_on=offset)

    def _resume_after_loss(self, place: Place, told: str) -> None:
        """Resume a partition where it has messages, since the next one is gone.

        Args:
            place: topic and partition.
            told: the client's error message.

        Raises:
            BrokerError: the broker does not say which offsets it has.
        """
        if place not in self._ends:
            return
        first, end = watermarks(self._consumer, TopicPartition(*place), self._patience)
        read_to, stop = self._next[place], min(end_at_loss(told, end), self._ends[place])
        goes_on = min(max(first, read_to), stop)
        log.warning("input_lost", topic=place[0], partition=place[1], read_to=read_to, goes_on=goes_on)
        places = offsets_of({place: goes_on})
        self._consumer.resume(places)  # the client would stay paused in it
        self._consumer.incremental_unassign(places)
        if goes_on == stop:
            del self._ends[place]
            return
        self._next[place], self._ends[place] = goes_on, stop
        self._consumer.incremental_assign(places)
        self._order.begin({place}, keep=True)

    def _end(self) -> None:
        """Note which partitions have been read to their end: by position, since transactions end with a marker."""
        for place in self._consumer.position([TopicPartition(*key) for key in self._ends]) if self._ends else ():
            if place.offset >= self._ends[place.topic, place.partition]:
                del self._ends[place.topic, place.partition]


def committed_offsets(
    consumer: Consumer, settings: Settings, patience: Patience, while_hidden: Callable[[], None] = lambda: None
) -> list[TopicPartition]:
    """Return the group's committed offset in each partition of the input.

    Args:
        consumer: of the group.
        settings: names of the topics.
        patience: with which the broker is asked.
        while_hidden: called about every second while the broker answers, but not this: a transaction is open that may
            change the offsets.

    Raises:
        BrokerError: a refusal, or no answer within `commit.deadline_seconds`.
    """
    topics = patience.answer(lambda seconds: consumer.list_topics(timeout=seconds).topics)
    places = [
        TopicPartition(name, partition)
        for name in matching_topics(settings, topics)
        if name in topics
        for partition in topics[name].partitions
    ]

    hidden = False

    def ask(seconds: float) -> list[TopicPartition]:
        nonlocal hidden
        try:
            return consumer.committed(places, timeout=seconds)
        except KafkaException:
            hidden = tells_unstable_offsets(settings, places, seconds)
            if hidden:
                while_hidden()
            raise

    try:
        return patience.answer(ask) if places else []
    except BrokerError:
        if not hidden:
            raise
        raise BrokerError(
            "cannot read the input: a transaction that a killed process has left open hides what the group "
            f"{settings.input.group} has decided: start that service again, which ends it, or wait until it has timed "
            "out, some minutes at most"
        ) from None
