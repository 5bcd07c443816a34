"""One commit: messages in, decisions out, the state after them. The steps are those of `protocol`.

Knows the order of the steps and what to drop when one fails; knows nothing of who may write.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from stream_dedup.article import Article, Decision, Unjudged, Withdrawal, Withdrawn
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Judged
from stream_dedup.fingerprint.drift import Drift
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream import protocol
from stream_dedup.stream.commit.committer import Committer
from stream_dedup.stream.commit.shadowing import Shadow
from stream_dedup.stream.input.decoded import Decoded, decode_all, prepared_all
from stream_dedup.stream.input.reader import PendingCommit, Reader
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.places import identity_updates, offset_of, place_of, positions_after
from stream_dedup.stream.output.errors import AbortedError
from stream_dedup.stream.output.sink import Sink
from stream_dedup.stream.output.writer import GroupOffsets, Writer
from stream_dedup.stream.protocol import Step


@dataclass(frozen=True, slots=True)
class Committed:
    """What was committed.

    Attributes:
        messages: all of them.
        size: of the messages, in bytes.
        judged: the decisions.
        dead: messages that were not judged, and why.
        seconds: time by stage.
    """

    messages: Sequence[Message]
    size: int
    judged: Judged
    dead: Sequence[tuple[Message, UndecodableError]]
    seconds: Mapping[str, float]


class Pipeline:
    """Takes messages through the steps of a commit.

    Args:
        engine: decides.
        source: tells which partitions are held.
        reader: reads ahead meanwhile.
        sink: sends the outputs.
        writer: begins and aborts transactions.
        committer: commits the engine's changes with the writer.
        while_waiting: called about every second until the messages are prepared; may raise to give up.
        shadow: judges committed messages a second time; None if there is none.
    """

    def __init__(
        self,
        engine: Deduplicator,
        source: Source,
        reader: Reader,
        sink: Sink,
        writer: Writer,
        committer: Committer,
        while_waiting: Callable[[], None],
        shadow: Shadow | None,
    ) -> None:
        self._engine = engine
        self._source = source
        self._reader = reader
        self._sink = sink
        self._writer = writer
        self._committer = committer
        self._while_waiting = while_waiting
        self._shadow = shadow

    def commit(self, pending: PendingCommit) -> Committed:
        """Decide messages and commit the results.

        Raises:
            AbortedError: the transaction was aborted: nothing has changed, the same messages can be committed again.
            FencedError: another process writes to the index now.
            BrokerError: the broker refuses, or gives no answer.
            RegistryError: the schema registry refuses.
            StoreError: the state cannot be read or written. What was committed before is in the changelog.
        """
        protocol.reached(Step.READ)
        self._reader.read_ahead()
        watch, batch = Stopwatch(), pending.batch
        taken = pending.taken(self._while_waiting)
        watch.lap("await")
        items = taken.decoded.items
        judged = self._engine.decide([item for _, item in items], taken.prepared)
        dead = [*taken.decoded.dead, *_undecided(items, judged)]
        watch.lap("decide")
        protocol.reached(Step.DECIDED)
        self._writer.begin()
        self._publish(Decoded(items, dead), judged)
        watch.lap("produce")
        protocol.reached(Step.PUBLISHED)
        # Prepare what has arrived in the meantime while waiting for the broker.
        self._reader.read_ahead()
        if not self._source.holds(batch):
            self._writer.abort()
            raise AbortedError("the group has assigned some of the partitions to another process")
        positions = self._source.positions_after(batch)
        group = GroupOffsets(self._source.offsets_after(batch), self._source.group())
        self._committer.commit(judged.change, positions, watch, group)
        self._source.advance(batch, positions)
        protocol.reached(Step.APPLIED)
        if self._shadow is not None:
            self._shadow.judge([item for _, item in items], taken.prepared, judged.outcomes, positions)
            watch.lap("shadow")
        seconds = {**taken.seconds, **watch.seconds}
        return Committed(batch.messages, batch.size, judged, dead, seconds)

    def note(self) -> bool:
        """Commit what was found out about the input topics when no message arrives to commit it with.

        Returns:
            Whether there was anything to commit.

        Raises:
            AbortedError: as in `commit`.
            FencedError: as in `commit`.
            BrokerError: as in `commit`.
            StoreError: as in `commit`.
        """
        positions = self._source.unrecorded()
        if not positions:
            return False
        self._committer.commit_alone(self._engine.decide([]).change, positions)
        self._source.mark_recorded(positions)
        if self._shadow is not None:
            self._shadow.judge([], None, [], positions)
        return True

    def _publish(self, decoded: Decoded, judged: Judged) -> None:
        decided_ms = time.time_ns() // 1_000_000
        for place, ((message, item), outcome) in enumerate(zip(decoded.items, judged.outcomes, strict=True)):
            if isinstance(outcome, Decision):
                self._sink.decision(message, outcome, decided_ms)
            elif isinstance(outcome, Withdrawn):
                self._sink.withdrawn(outcome, decided_ms)
            # Before the next decision: of two records with the same id the last one counts.
            self._sink.successions(judged.successions.get(place, ()), item, decided_ms)
        # In input order, which does not depend on where a commit ends.
        for message, error in sorted(decoded.dead, key=_place_of_letter):
            self._sink.dead_letter(message, error)
        self._sink.clusters(judged.clusters, decided_ms)


def commit_without_publishing(
    messages: Sequence[Message],
    identities: Mapping[str, int],
    engine: Deduplicator,
    decoder: Decoder,
    committer: Committer,
) -> Sequence[Drift]:
    """Judge messages that the group has already decided: only the state changes, nothing is published.

    Args:
        messages: in order.
        identities: of the topics that they may come from.
        engine: decides.
        decoder: reads messages.
        committer: commits the change.

    Returns:
        How far fingerprints moved with each epoch that has begun.

    Raises:
        AbortedError: the transaction was aborted; nothing has changed.
        FencedError: another process writes to the index now.
        BrokerError: the broker refuses, or gives no answer.
        StoreError: the state cannot be read or written.
    """
    decoded = decode_all(messages, decoder, engine.progress.stream_ms)
    decoded, prepared = prepared_all(decoded, engine.prepare)
    judged = engine.decide([item for _, item in decoded.items], prepared)
    positions = identity_updates(identities, engine.positions(), ()) | positions_after(messages)
    committer.commit_alone(judged.change, positions)
    return judged.drifts


def _undecided(
    items: Sequence[tuple[Message, Article | Withdrawal]], judged: Judged
) -> list[tuple[Message, UndecodableError]]:
    return [
        (message, UndecodableError(Reason(outcome.reason), outcome.detail))
        for (message, _), outcome in zip(items, judged.outcomes, strict=True)
        if isinstance(outcome, Unjudged)
    ]


def _place_of_letter(letter: tuple[Message, UndecodableError]) -> tuple[str, int, int]:
    message = letter[0]
    return *place_of(message), offset_of(message)
