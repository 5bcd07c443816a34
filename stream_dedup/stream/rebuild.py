"""A state rebuilt from the input topics with the current settings.

Knows the input up to the group's committed offsets; publishes nothing, and knows nothing of the terminal.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from stream_dedup.decode import Decoder
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.stores.rocks import open_store
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.registry import RegistryError, RegistryUnreachableError
from stream_dedup.settings import Settings
from stream_dedup.stream.commit.committer import Committer
from stream_dedup.stream.formats import Formats
from stream_dedup.stream.input.decoded import decode_all
from stream_dedup.stream.input.time_order import TimeOrder
from stream_dedup.stream.kafka.clients import BrokerError, consumer_properties, is_transient, make_consumer
from stream_dedup.stream.kafka.patience import Patience
from stream_dedup.stream.kafka.places import Place, identity_updates, offset_of, place_of
from stream_dedup.stream.kafka.topics import Topics, matching_topics, state_topics
from stream_dedup.stream.output.errors import AbortedError
from stream_dedup.stream.output.guarantees import make_writer
from stream_dedup.stream.state.restore import Report, catch_up
from stream_dedup.stream.state.states import check_own, digest_of, state_directory

_READ_MESSAGES = 1_000
_POLL_SECONDS = 0.1
_AGAIN = "run the same command again to resume after the last commit"


class Rebuild:
    """Builds a state of the current settings from the input topics, up to the group's committed offsets.

    It publishes nothing. The next service that starts with these settings finds the state, judges what was decided
    since then, also without publishing it, and continues from there.

    Args:
        settings: the current ones.
        report: called with the progress.
        stopping: ends the run, which can be resumed later.
    """

    def __init__(self, settings: Settings, report: Report, stopping: threading.Event) -> None:
        self._settings = settings
        self._report = report
        self._stopping = stopping
        self._recurring_faults = RecurringFaults()

    def run(self) -> int:
        """Build the state; return how many articles were judged.

        Raises:
            StoreError: the directory is in use, or cannot be read or written.
            FencedError: a service with these settings has started in the meantime.
            BrokerError: the broker refuses, or gives no answer.
            RegistryError: the schema registry refuses, or has not answered when a stop is requested.
        """
        digest = digest_of(self._settings)
        names, topics = state_topics(self._settings, digest), Topics(self._settings)
        _check_decided(self._settings, topics.other_changelogs(digest), self._give_up_if_stopping)
        with (
            open_store(state_directory(self._settings, digest), self._settings.state) as store,
            closing(make_writer(self._settings, names.changelog, lambda: None)) as writer,
        ):
            engine = Deduplicator(settings=self._settings, store=store)
            check_own(engine.state.place, names.changelog)
            topics.prepare(names)
            identity = topics.identity(names.changelog)
            writer.open()
            catch_up(engine.state, self._settings, names.changelog, identity, self._report)
            judged = engine.progress.judged
            with (
                Formats(self._settings, self._await_registry) as formats,
                closing(
                    History(self._settings, engine.positions(), topics.identities, self._give_up_if_stopping)
                ) as history,
            ):
                committer = Committer(engine, writer, identity)
                decoder = formats.decoder(topics.max_message_bytes(self._settings.output.unique))
                for messages in history.batches(self._settings.commit.articles):
                    if self._stopping.is_set():
                        break
                    if not messages:
                        continue
                    try:
                        commit_without_publishing(messages, history.identities, engine, decoder, committer)
                    except AbortedError as error:
                        raise BrokerError(f"{error}: {_AGAIN}") from None
                    self._report("messages of the input", history.done, history.total)
            return engine.progress.judged - judged

    def _await_registry(self, outage: RegistryUnreachableError) -> None:
        self._recurring_faults.warning("registry_out_of_reach", error="registry", detail=str(outage))
        if self._stopping.is_set():
            raise RegistryError(f"{outage}: {_AGAIN}")

    def _give_up_if_stopping(self) -> None:
        if self._stopping.is_set():
            raise BrokerError(f"no broker has answered before the stop: {_AGAIN}")


def commit_without_publishing(
    messages: Sequence[Message],
    identities: Mapping[str, int],
    engine: Deduplicator,
    decoder: Decoder,
    committer: Committer,
) -> None:
    """Judge messages that the group has already decided: only the state changes, nothing is published.

    Args:
        messages: in order.
        identities: of the topics that they may come from.
        engine: decides.
        decoder: reads messages.
        committer: commits the change.

    Raises:
        AbortedError: the transaction was aborted; nothing has changed.
        FencedError: another process writes to the index now.
        BrokerError: the broker refuses, or gives no answer.
        StoreError: the state cannot be read or written.
    """
    judged = engine.decide([item for _, item in decode_all(messages, decoder).items])
    behind = {place_of(message): offset_of(message) + 1 for message in messages}
    positions = identity_updates(identities, engine.positions(), ()) | behind
    committer.commit_alone(judged.change, positions)


def _check_decided(settings: Settings, others: Sequence[str], while_waiting: Callable[[], None]) -> None:
    """Check that the group's offsets tell what was decided, if anything was.

    Args:
        settings: topics and group.
        others: the changelogs of the index under other settings.
        while_waiting: see `Patience`.

    Raises:
        BrokerError: they do not.
    """
    patience = Patience(settings, "cannot find out what the group has decided", while_waiting)
    with closing(make_consumer(settings)) as consumer:
        if not others or any(place.offset >= 0 for place in _committed(consumer, settings, patience)):
            return
        ends = {name: _bounds(consumer, TopicPartition(name, 0), patience)[1] for name in others}
    if written := [name for name, end in ends.items() if end > 0]:
        raise BrokerError(
            f"the group {settings.input.group} has no offsets, so it is unknown what was decided: start the "
            f"service once with the settings it last ran with, which commits them (changelogs: {', '.join(written)})"
        )


def _committed(consumer: Consumer, settings: Settings, patience: Patience) -> list[TopicPartition]:
    """Return the group's committed offset in each partition of the input."""
    topics = patience.answer(lambda seconds: consumer.list_topics(timeout=seconds).topics)
    places = [
        TopicPartition(name, partition)
        for name in matching_topics(settings, topics)
        if name in topics
        for partition in topics[name].partitions
    ]
    return patience.answer(lambda seconds: consumer.committed(places, timeout=seconds)) if places else []


def _bounds(consumer: Consumer, place: TopicPartition, patience: Patience) -> tuple[int, int]:
    """Return the first offset of a partition that still exists, and its end."""
    return patience.answer(lambda seconds: consumer.get_watermark_offsets(place, timeout=seconds))


class History:
    """The messages of the input topics up to the group's committed offsets, in the order of their timestamps.

    See `TimeOrder`: a partition that has delivered nothing yet is waited for, however long it takes.

    Args:
        settings: topics and group.
        positions: of the state; a topic that was recreated since then is read from its beginning.
        identify: see `Source`.
        while_waiting: see `Patience`.

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
    ) -> None:
        self._patience = Patience(settings, "cannot read the input", while_waiting)
        self._consumer: Consumer = make_consumer(
            settings, {**consumer_properties(settings), "enable.partition.eof": "true"}
        )
        self._order = TimeOrder(self._consumer, bounded=False)
        self._ends: dict[Place, int] = {}
        self._starts: list[TopicPartition] = []
        self.total = self.done = 0
        with ExitStack() as closing_on_error:
            closing_on_error.callback(self._consumer.close)
            committed = _committed(self._consumer, settings, self._patience)
            self.identities = identify({place.topic for place in committed})
            self._find(committed, {**positions, **identity_updates(self.identities, positions, ())})
            closing_on_error.pop_all()

    def batches(self, size: int) -> Iterator[list[Message]]:
        """Yield batches of messages, and empty ones while none arrive, so that the caller can give up.

        Raises:
            BrokerError: the broker refuses.
        """
        batch: list[Message] = []
        while self._ends or self._order:
            some = self._fetch()
            while messages := self._order.take(size - len(batch), self._ends.__contains__):
                batch += messages
                self.done += len(messages)
                if len(batch) == size:
                    yield batch
                    batch = []
            self._order.keep_pace()
            if not some:
                yield []
        if batch:
            yield batch

    def close(self) -> None:
        """Release the connection."""
        self._consumer.close()

    def _find(self, committed: Sequence[TopicPartition], positions: Mapping[Place, int]) -> None:
        """Find out where to start and end in each partition, and start reading.

        Args:
            committed: the group's offsets.
            positions: next offset by topic and partition, of those read before.
        """
        for place in committed:
            key = place.topic, place.partition
            start, stop = positions.get(key, 0), place.offset
            if stop > start:
                first, end = _bounds(self._consumer, place, self._patience)
                # What the broker has lost, as after an unclean leader election, never arrives.
                start, stop = max(first, start), min(end, stop)
            if stop > start:
                self._ends[key] = stop
                self._starts.append(TopicPartition(*key, start))
                self.total += stop - start
        self._consumer.assign(self._starts)
        self._order.begin(self._ends)

    def _fetch(self) -> bool:
        """Hold what has arrived; return whether anything has."""
        messages = self._consumer.consume(_READ_MESSAGES, _POLL_SECONDS)
        for message in messages:
            error, key, offset = message.error(), place_of(message), offset_of(message)
            if error is None:
                if offset < self._ends.get(key, 0):
                    self._order.add(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's name
                # If the rest was deleted in the meantime, nothing else leads to the end.
                if offset >= self._ends.get(key, 0):
                    self._ends.pop(key, None)
            elif not is_transient(error):
                raise BrokerError(f"cannot read {message.topic()}: {error.str()}")
        self._end()
        return bool(messages)

    def _end(self) -> None:
        """Note which partitions have been read to their end: by position, since transactions end with a marker."""
        for place in self._consumer.position([TopicPartition(*key) for key in self._ends]) if self._ends else ():
            if place.offset >= self._ends[place.topic, place.partition]:
                del self._ends[place.topic, place.partition]
