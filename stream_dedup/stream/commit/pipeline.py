"""One commit: messages in, decisions out, the state after them. The steps are those of `protocol`.

Knows the order of the steps and what to drop when one fails; knows nothing of who may write.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message

from stream_dedup.article import Article, Decision, Unjudged, Withdrawal, Withdrawn
from stream_dedup.decode import Reason, UndecodableError
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Change, Judged
from stream_dedup.index.changelog import commit_records
from stream_dedup.index.records.ledger import ChangelogPlace
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream import protocol
from stream_dedup.stream.commit.shadowing import Shadow
from stream_dedup.stream.input.decoded import Decoded
from stream_dedup.stream.input.reader import Intake, Reader
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.places import Place, offset_of, place_of
from stream_dedup.stream.output.errors import AbortedError
from stream_dedup.stream.output.sink import Sink
from stream_dedup.stream.output.writer import Writer
from stream_dedup.stream.protocol import Step


@dataclass(frozen=True, slots=True)
class Committed:
    """What was committed.

    Attributes:
        messages: all of them.
        size: bytes of them.
        judged: the decisions.
        dead: messages that were not judged, and why.
        seconds: time by stage.
    """

    messages: Sequence[Message]
    size: int
    judged: Judged
    dead: Sequence[tuple[Message, UndecodableError]]
    seconds: Mapping[str, float]


class GroupOffsets(NamedTuple):
    """What the input's group is told with a commit.

    Attributes:
        offsets: the next to read, by topic and partition.
        metadata: of the group, as of now.
    """

    offsets: Mapping[Place, int]
    metadata: object


class Pipeline:
    """Takes messages through the steps of a commit.

    Args:
        engine: decides.
        source: tells which partitions are held.
        reader: reads ahead meanwhile.
        sink: sends the outputs.
        writer: commits.
        topic: name of the changelog, with the id that Kafka gave it.
        while_waiting: called about every second while messages are not read through yet; may raise to give up.
        shadow: judges what was committed once more; None where there is none.
    """

    def __init__(
        self,
        engine: Deduplicator,
        source: Source,
        reader: Reader,
        sink: Sink,
        writer: Writer,
        topic: str,
        while_waiting: Callable[[], None],
        shadow: Shadow | None = None,
    ) -> None:
        self._engine = engine
        self._source = source
        self._reader = reader
        self._sink = sink
        self._writer = writer
        self._topic = topic
        self._while_waiting = while_waiting
        self._shadow = shadow

    def commit(self, intake: Intake) -> Committed:
        """Decide messages and commit what becomes of them.

        Raises:
            AbortedError: the transaction was aborted: nothing has changed, the same messages can be committed again.
            FencedError: another process writes to the index now.
            BrokerError: the broker refuses, or gives no answer.
            RegistryError: the schema registry refuses.
            StoreError: the state cannot be read or written. What is committed by then is in the changelog.
        """
        protocol.reached(Step.READ)
        self._reader.read_ahead()
        watch, haul = Stopwatch(), intake.haul
        taken = intake.taken(self._while_waiting)
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
        # What came in meanwhile is worked through while the broker is waited for.
        self._reader.read_ahead()
        if not self._source.holds(haul):
            self._writer.abort()
            raise AbortedError("the group has given some of the partitions to another process")
        positions = self._source.behind(haul)
        group = GroupOffsets(haul.positions(), self._source.group())
        commit_change(judged.change, positions, self._engine, self._writer, self._topic, watch, group)
        self._source.advance(haul, positions)
        protocol.reached(Step.APPLIED)
        if self._shadow is not None:
            self._shadow.judge([item for _, item in items], taken.prepared, judged.outcomes, positions)
            watch.lap("shadow")
        seconds = {**taken.seconds, **watch.seconds}
        return Committed(haul.messages, haul.size, judged, dead, seconds)

    def note(self) -> None:
        """Commit what was found out about the topics of the input, where no message comes that it could go with.

        Raises:
            AbortedError: as in `commit`; so all that follows.
            FencedError: see `AbortedError`.
            BrokerError: see `AbortedError`.
            StoreError: see `AbortedError`.
        """
        positions = self._source.noted()
        if not positions:
            return
        self._writer.begin()
        change = self._engine.decide([]).change
        commit_change(change, positions, self._engine, self._writer, self._topic, Stopwatch())
        self._source.told(positions)
        if self._shadow is not None:
            self._shadow.judge([], None, [], positions)

    def _publish(self, decoded: Decoded, judged: Judged) -> None:
        decided_ms = time.time_ns() // 1_000_000
        for place, ((message, item), outcome) in enumerate(zip(decoded.items, judged.outcomes, strict=True)):
            if isinstance(outcome, Decision):
                self._sink.decision(message, outcome, decided_ms)
            elif isinstance(outcome, Withdrawn):
                self._sink.withdrawn(outcome, decided_ms)
            # Before the next decision: of two records under an id the last one is in force.
            self._sink.successions(judged.successions.get(place, ()), item, decided_ms)
        # In the input's order, which is then the same wherever a commit ends.
        for message, error in sorted(decoded.dead, key=_place_of_letter):
            self._sink.dead_letter(message, error)
        self._sink.clusters(judged.clusters, decided_ms)


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


def commit_change(
    change: Change,
    positions: Mapping[Place, int],
    engine: Deduplicator,
    writer: Writer,
    topic: str,
    watch: Stopwatch,
    group: GroupOffsets | None = None,
) -> None:
    """Commit what messages change, with all that was sent, and bring the state up to it.

    Args:
        change: of the engine's last decision.
        positions: where the state stands then: offsets behind the messages by topic and partition, and what else it is
            to know of topics.
        engine: whose state it changes.
        writer: commits.
        topic: name of the changelog, with the id that Kafka gave it.
        watch: gets the time of the transaction, and that of the state.
        group: what the input's group is told; None where it knows already.

    Raises:
        AbortedError: the transaction was aborted; nothing has changed.
        FencedError: another process writes to the index now.
        BrokerError: the broker refuses, or gives no answer.
        StoreError: the state cannot be written. What is committed by then is in the changelog.
    """
    offsets, metadata = group or GroupOffsets({}, None)
    behind = writer.commit(list(commit_records(engine.commit_of(change, positions))), offsets, metadata)
    watch.lap("transaction")
    engine.apply(change, positions, ChangelogPlace(topic, behind) if behind is not None else None)
    watch.lap("apply")
