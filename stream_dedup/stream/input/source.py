"""The input: batches of messages from the state's positions on.

Knows assignment and offsets; knows nothing of which topics there are, or of what messages hold.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.settings import Settings
from stream_dedup.stream.input.losses import Losses
from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.positions import Identify, InputPositions
from stream_dedup.stream.input.subscription import Subscription
from stream_dedup.stream.input.time_order import TimeOrder
from stream_dedup.stream.input.under_way import UnderWay
from stream_dedup.stream.kafka.clients import (
    BrokerError,
    OnStatistics,
    consumer_properties,
    end_at_loss,
    is_transient,
    make_consumer,
    reading_error,
)
from stream_dedup.stream.kafka.ends import ends
from stream_dedup.stream.kafka.places import (
    Place,
    epochs_of,
    in_input,
    is_of_later_leader,
    offset_of,
    offsets_of,
    place_of,
    timestamp_of,
)

_CHUNK = 64  # messages taken at a time, so that a batch of huge ones is noticed before it fills the memory
_PIECE_SECONDS = 0.01  # to collect messages before they are looked at
_ANSWER_SECONDS = 2.0  # longest wait for the broker to say which offsets there are
_IDLE_SECONDS = 0.1  # without a message, after which the loop goes round
_KEEP_ALIVE_SECONDS = 5.0  # between two signs of life to the group, and polls, while a commit takes long

log = structlog.get_logger()


class Lag(NamedTuple):
    """What is still to be committed of a partition.

    Attributes:
        messages: how many there are.
        since_ms: timestamp of the oldest of them if it has been read, else of the last committed message before it,
            milliseconds since 1970 in UTC; None if there are none, or neither is known.
    """

    messages: int
    since_ms: int | None


class Source:
    """Reads the input topics from the state's positions on.

    If the state has no position in a partition, reading begins as `auto.offset.reset` says (the earliest message by
    default), and the state records where it began if that is the end; partitions that are added to a topic later are
    read from their beginning. The group's committed offsets are only for lag monitoring and for rebuilding a state. A
    topic that was deleted and recreated is read from its beginning: its identity is kept among the positions. A
    partition that has lost the next messages to read is resumed at its first offset if they were deleted, and at its
    end if messages already read are lost as well, as after an unclean leader election.

    Messages that have arrived are handed out in the order of their timestamps, see `TimeOrder`.

    Args:
        settings: topics, group and commit bounds.
        positions: next offset by topic and partition; kept up to date by `advance`.
        identify: see `InputPositions`.
        on_statistics: called with the client's statistics; None if they are not needed.
    """

    def __init__(
        self,
        settings: Settings,
        positions: Mapping[Place, int],
        identify: Identify = lambda _: {},
        on_statistics: OnStatistics | None = None,
    ) -> None:
        self._settings = settings
        self._commit = settings.commit
        properties = consumer_properties(settings)
        # On its own the client would start over, or skip messages that still exist.
        self._consumer: Consumer = make_consumer(settings, {**properties, "auto.offset.reset": "error"}, on_statistics)
        self._order = TimeOrder(self._consumer, bounded=True)
        self._unproved: dict[Place, TopicPartition] = {}  # where reading began, until a message shows that it may
        self._from_end = properties["auto.offset.reset"] in {"latest", "largest", "end"}
        self._positions = InputPositions(positions, identify, OFFSET_END if self._from_end else OFFSET_BEGINNING)
        self._recurring_faults = RecurringFaults()
        self._subscription = Subscription(
            settings, self._consumer, properties, self._assigned, self._revoked, self._recurring_faults
        )
        self._losses = Losses(self._recurring_faults)
        self._fault: BrokerError | None = None
        self._polled_at = time.monotonic()
        self.assigned: set[Place] = set()
        self.rebalances = 0
        self.lost = 0  # offsets that the broker no longer had when they were to be read
        self._under_way = UnderWay()
        self._committed_ms: dict[Place, int | None] = {}  # timestamp of the last committed message
        self._look_for_topics()

    def _look_for_topics(self) -> None:
        """Update the subscription, once in a while.

        Raises:
            BrokerError: a topic was deleted and recreated while it was read.
        """
        if self._subscription.is_due:
            self._positions.check(self.assigned)
            self._subscription.look(self.assigned)

    def batch(self) -> MessageBatch:
        """Return a new batch, after those not committed yet."""
        return self._under_way.begin()

    def take(self, batch: MessageBatch, stopping: threading.Event) -> bool:
        """Read some messages into a batch; return whether there may be more for it.

        There is nothing more if the batch is as large as a commit may be, if a commit is due and everything that has
        arrived is taken, or if nothing has arrived at all.

        Args:
            batch: the last one.
            stopping: ends the reading.

        Raises:
            BrokerError: the broker refuses for good, for instance because rights are missing.
        """
        room = self._room(batch)
        if not room or stopping.is_set():
            return False
        if batch.due is None:
            # consume() waits for its full timeout unless it gets all it asks for: so ask for one message.
            return self._take(batch, 1, _IDLE_SECONDS)
        remaining = batch.due - time.monotonic()
        if remaining <= 0:
            return self._take(batch, room, 0.0)
        self._take(batch, room, min(_PIECE_SECONDS, remaining))
        return True

    def take_at_once(self, batch: MessageBatch) -> None:
        """Read what has already arrived, as far as the batch has room for it; see `take`."""
        while (room := self._room(batch)) and self._take(batch, room, 0.0):
            pass

    def holds(self, batch: MessageBatch) -> bool:
        """Tell whether this process has held the partitions ever since the batch was read, and has lost none of it."""
        return batch.stayed(self.assigned) and not batch.lost

    def positions_after(self, batch: MessageBatch) -> dict[Place, int]:
        """Return the state's positions after a batch, with the topic identities that it has not recorded yet."""
        return self.unrecorded() | batch.positions()

    def unrecorded(self) -> dict[Place, int]:
        """Return what the state has not recorded yet; see `InputPositions.unrecorded`."""
        unrecorded = self._positions.unrecorded()
        # What is left of a batch that has lost its end is still to be committed.
        return unrecorded | {place: first for place, first in self._firsts_at_loss().items() if place in unrecorded}

    def mark_recorded(self, positions: Mapping[Place, int]) -> None:
        """Note that the state has recorded what `positions_after` or `unrecorded` returned last."""
        self._positions.mark_recorded(positions)

    def offsets_after(self, batch: MessageBatch) -> dict[Place, int]:
        """Return what the group stores after a batch: its offsets, with what `InputPositions.identified` adds."""
        return self._positions.identified(batch.positions())

    def group(self) -> object:
        """Return the group's current metadata: every transaction needs its own."""
        return self._consumer.consumer_group_metadata()

    def advance(self, batch: MessageBatch, positions: Mapping[Place, int]) -> None:
        """Note that a batch is committed. Without transactions, commit its offsets to the group as well.

        Args:
            batch: the first one that was not committed.
            positions: what `positions_after` returned: the state's positions now.
        """
        self._under_way.end(batch)
        # A partition that has lost its end meanwhile goes on before it, which is still to be recorded.
        self.mark_recorded({place: offset for place, offset in positions.items() if place not in batch.lost})
        self._committed_ms |= {place: timestamp_of(message) for place, message in batch.last.items()}
        if batch.moved:
            self._read_on(batch.newest.keys())
        if self._commit.guarantee != "exactly_once":
            # Not those of the batch: a topic that was recreated in the meantime stands at its beginning.
            self._tell_group(self._positions.known(batch.newest.keys()))

    def _tell_group(self, positions: Mapping[Place, int]) -> None:
        """Commit to the group how far it has decided."""
        offsets = offsets_of(self._positions.identified(positions))
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._recurring_faults.warning(
                "group_commit_failed", error=error.args[0].name(), detail=error.args[0].str()
            )

    def _read_on(self, committed: AbstractSet[Place]) -> None:
        """Continue after a commit: partitions that were reassigned in the meantime were started before it."""
        # What has been read ahead from a partition that stayed is not read again.
        again = (committed & self.assigned) - self._under_way.places()
        try:
            self._read_from(self._positions.starts(again), keep=False)
        except KafkaException as error:
            self._fault = _not_started(error)

    def rewind(self) -> bool:
        """Go back to the first uncommitted message in each partition; return whether that was possible.

        It is not if one of the partitions was revoked, even if it was assigned again: then this source is unusable.

        Raises:
            BrokerError: the broker or librdkafka refuses.
        """
        # The group may have continued without this process: it rejoins, and learns what it still holds.
        self._look_in()
        if not self._under_way.stayed(self.assigned):
            return False
        at_loss, firsts = self._firsts_at_loss(), self._under_way.firsts()
        try:
            # A seek would be refused in a partition that the client has only begun to start.
            offsets = {place: offset_of(message) for place, message in firsts.items()} | at_loss
            self._read_from(offsets | epochs_of(firsts.values()), keep=False)
        except KafkaException as error:
            raise BrokerError(f"cannot rewind the input: {error.args[0].str()}") from None
        self._positions.begin_at(at_loss)
        self._under_way.clear()
        return True

    def _firsts_at_loss(self) -> dict[Place, int]:
        """Return the first uncommitted offset of each partition that has lost one: a message there may be new."""
        lost = self._under_way.lost()
        firsts = self._under_way.firsts() if lost else {}
        return {place: min(offset_of(firsts[place]), self._positions.position(place)) for place in lost}

    def keep_alive(self) -> None:
        """Stay in the group during a long commit, without reading anything."""
        if time.monotonic() - self._polled_at < _KEEP_ALIVE_SECONDS:
            return
        self._look_in()

    def _look_in(self) -> None:
        """Handle what the group has to say, without reading anything."""
        self._polled_at = time.monotonic()
        self._consumer.pause([TopicPartition(*place) for place in self.assigned])
        self._hold(self._consumer.consume(1, 0.0))
        self._consumer.resume([TopicPartition(*place) for place in self.assigned - self._order.paused])

    @property
    def unread_topics(self) -> set[str]:
        """Topics that the settings name and of which no partition is assigned, while there are some of others."""
        return self._subscription.unread(self.assigned)

    def lag(self) -> dict[Place, Lag]:
        """Return what is still to be committed of each assigned partition, as far as is known."""
        under_way = self._under_way.by_place()
        lags = {}
        for place in self.assigned:
            if (coming := self._coming(place)) is None:
                continue
            read, held = under_way.get(place, []), self._order.held(place)
            messages = coming + len(read) + (held.messages if held else 0)
            first = read[0] if read else held.first if held else None
            since_ms = timestamp_of(first) if first is not None else self._committed_ms.get(place)
            lags[place] = Lag(messages, since_ms if messages else None)
        return lags

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _room(self, batch: MessageBatch) -> int:
        """Return how many messages to take next, 0 if the batch is full."""
        return min(_CHUNK, self._commit.articles - len(batch.messages)) if batch.size < self._commit.bytes else 0

    def _take(self, batch: MessageBatch, most: int, seconds: float) -> bool:
        """Add what arrives within some time, and what is held, as far as its turn has come.

        Returns:
            Whether there may be more at once.
        """
        self._look_for_topics()
        # What is held may be due before anything else arrives.
        arrived = self._consumer.consume(most, min(seconds, _PIECE_SECONDS) if self._order else seconds)
        self._polled_at = time.monotonic()
        self._hold(arrived)
        if self._fault is not None:
            raise self._fault
        added = batch.add(self._order.take(most, lambda place: self._coming(place) != 0))
        if added and batch.due is None:
            batch.due = time.monotonic() + self._commit.interval_ms / 1000
        self._order.keep_pace()
        return max(len(arrived), added) == most

    def _hold(self, messages: Iterable[Message]) -> None:
        """Hold messages that have arrived until it is their turn."""
        again: set[Place] = set()
        for message in messages:
            error = message.error()
            if error is None:
                place = place_of(message)
                if place in again or not self._follows(place, message):
                    again.add(place)
                else:
                    self._order.add(message)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001  # librdkafka's name
                if (place := place_of(message)) in self.assigned:
                    self._losses.add(place, offset_of(message), error.str())
            elif not is_transient(error):
                raise reading_error(f"cannot read {message.topic() or 'the input'}", error)
            else:
                self._recurring_faults.warning("input_waits", error=error.name(), detail=error.str())
        self._losses.handle(self._resume_after_loss)

    def _follows(self, place: Place, message: Message) -> bool:
        """Tell whether a message of a partition follows those before the position at which reading began.

        If it may not, the client asks the broker, and either tells of a loss or delivers the message again. It does so
        by itself only if it hears of a new leader while it reads.
        """
        begun = self._unproved.pop(place, None)
        if begun is None or not is_of_later_leader(message, begun.leader_epoch):
            return True
        try:
            self._consumer.seek(begun)
        except KafkaException:
            # Refused while the client is busy with a new leader: then it begins once more.
            self._consumer.incremental_unassign([begun])
            self._start([begun])
        return False

    def _coming(self, place: Place) -> int | None:
        """Return how many messages of a partition have not arrived yet; None if unknown."""
        # The consumer's position, not the last message's: a transaction ends with a marker, which is not a message.
        (position,) = self._consumer.position([TopicPartition(*place)])
        low, high = self._consumer.get_watermark_offsets(position, cached=True)
        # Before the first message there is none; what was deleted before it was read does not come.
        start = position.offset if position.offset >= 0 else max(low, self._positions.position(place))
        return max(0, high - start) if high >= 0 else None

    def _resume_after_loss(self, place: Place, offset: int, told: str) -> None:
        """Resume a partition where it has messages, since the next one to read is gone; see `Losses.add`.

        Raises:
            BrokerError: the topic was recreated.
            KafkaException: the broker does not say which offsets it has.
        """
        self._positions.check(self.assigned)
        lasts = self._under_way.lasts(place)
        if held := self._order.held(place):
            lasts.append(held.last)
        read_to = max(offset, self._positions.position(place), *(offset_of(message) + 1 for message in lasts), 0)
        first, end = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=_ANSWER_SECONDS)
        goes_on = max(first, min(read_to, end_at_loss(told, end)))
        log.warning("input_lost", topic=place[0], partition=place[1], read_to=read_to, goes_on=goes_on)
        self.lost += abs(goes_on - read_to)
        if lost := goes_on < read_to:
            self._under_way.mark_lost(place)
            if held:
                goes_on = max(first, min(goes_on, offset_of(held.first)))
        self._positions.begin_at({place: goes_on})
        self._read_from(self._positions.identified({place: goes_on}) | epochs_of(lasts), keep=not lost)

    def _read_from(self, offsets: Mapping[Place, int], *, keep: bool) -> None:
        """Move assigned partitions to other offsets; what is held of them is discarded, or kept."""
        places = offsets_of(offsets)
        self._consumer.resume(places)  # the client would stay paused in them
        self._consumer.incremental_unassign(places)
        self._start(places)
        self._order.begin(in_input(offsets), keep=keep)

    def _start(self, places: list[TopicPartition]) -> None:
        """Start reading partitions, at their offsets."""
        self._consumer.incremental_assign(places)
        started = {(place.topic, place.partition): place for place in places}
        self._losses.forget(started)
        self._unproved |= started

    def _move(self, places: set[Place]) -> None:
        """Note that partitions were revoked or assigned."""
        self.rebalances += 1
        self._under_way.mark_moved(places)

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = {(partition.topic, partition.partition) for partition in partitions}
        try:
            self._positions.take_up(places, self._under_way.places(), self.assigned - places)
            if self._from_end:
                # As numbers, which the state records: else the next start would skip what arrives until then.
                added = self._positions.added(places)  # all that is in them is new
                self._positions.begin_at(dict.fromkeys(added, 0))
                unknown = places - self._positions.known(places).keys()
                self._positions.begin_at(ends(self._consumer, unknown, _ANSWER_SECONDS))
            self._start(offsets_of(self._positions.starts(places)))
        except KafkaException as error:
            # An exception would be lost in a callback: `take` raises it instead.
            self._fault = _not_started(error)
            return
        except BrokerError as error:
            self._fault = error
            return
        # A group that is new, or whose offsets were lost, has none for a partition that gets no messages. For the
        # partitions under way it may already have the offsets that are being committed. What the state has not recorded
        # is left out: with a new state, everything before it would be judged without publishing.
        self._tell_group(self._positions.recorded(places - self._under_way.places()))
        self._move(places)
        self._order.begin(places)
        self.assigned |= places
        log.info("partitions_assigned", partitions=_named(partitions))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.resume(partitions)  # the client would still be paused in them when it is assigned them again
        places = {(partition.topic, partition.partition) for partition in partitions}
        self._move(places)
        self._order.end(places)
        for place in places:
            self._unproved.pop(place, None)
        self._losses.forget(places)
        self.assigned -= places
        log.info("partitions_revoked", partitions=_named(partitions))


def _not_started(error: KafkaException) -> BrokerError:
    return BrokerError(f"cannot start to read the assigned partitions: {error.args[0].str()}")


def _named(partitions: list[TopicPartition]) -> list[str]:
    return sorted(f"{partition.topic}/{partition.partition}" for partition in partitions)
