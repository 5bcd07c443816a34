"""One commit: messages in, decisions out, the state after them. The steps are those of `protocol`.

Knows the order of the steps and what to drop when one fails; knows nothing of who may write.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from stream_dedup.article import Article, Decision, Origin, Unjudged, Withdrawal, Withdrawn
from stream_dedup.batch import Change, Judged
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.dedup import Deduplicator
from stream_dedup.index.changelog import commit_records
from stream_dedup.index.ledger import ChangelogPlace
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream import protocol
from stream_dedup.stream.protocol import Step
from stream_dedup.stream.sink import Sink, message_size, readable_headers
from stream_dedup.stream.source import Place, Source, place_of
from stream_dedup.stream.writer import AbortedError, Writer

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Decoded:
    """Messages decoded.

    Attributes:
        items: the articles and withdrawals, with their messages.
        dead: the other messages, with the reason.
    """

    items: list[tuple[Message, Article | Withdrawal]]
    dead: list[tuple[Message, UndecodableError]]


@dataclass(frozen=True, slots=True)
class Committed:
    """What was committed.

    Attributes:
        messages: all of them.
        judged: the decisions.
        dead: why some messages were not judged.
        seconds: time by stage.
    """

    messages: Sequence[Message]
    judged: Judged
    dead: Sequence[UndecodableError]
    seconds: Mapping[str, float]


class Pipeline:
    """Takes messages through the steps of a commit.

    Args:
        engine: decides.
        decoder: reads messages.
        source: tells which partitions are held.
        sink: sends the outputs.
        writer: commits.
        topic: name of the changelog, with the id that Kafka gave it.
    """

    def __init__(
        self, engine: Deduplicator, decoder: Decoder, source: Source, sink: Sink, writer: Writer, topic: str
    ) -> None:
        self._engine = engine
        self._decoder = decoder
        self._source = source
        self._sink = sink
        self._writer = writer
        self._topic = topic

    def commit(self, messages: Sequence[Message]) -> Committed:
        """Decide messages and commit what becomes of them.

        Raises:
            AbortedError: the transaction was aborted: nothing has changed, the same messages can be committed again.
            FencedError: another process writes to the index now.
            BrokerError: the broker refuses, or gives no answer.
            StoreError: the state cannot be read or written. What is committed by then is in the changelog.
        """
        protocol.reached(Step.READ)
        watch = Stopwatch()
        decoded = decode_all(messages, self._decoder)
        watch.lap("decode")
        judged = self._engine.decide([item for _, item in decoded.items])
        decoded.dead.extend(_undecided(decoded, judged))
        watch.lap("decide")
        protocol.reached(Step.DECIDED)
        self._writer.begin()
        self._publish(decoded, judged)
        watch.lap("produce")
        protocol.reached(Step.PUBLISHED)
        if not self._source.holds(messages):
            self._writer.abort()
            raise AbortedError("the group has given some of the partitions to another process")
        positions = commit_change(
            judged.change, messages, self._engine, self._writer, self._topic, watch, self._source.group()
        )
        self._source.advance(positions)
        protocol.reached(Step.APPLIED)
        return Committed(messages, judged, [error for _, error in decoded.dead], watch.seconds)

    def _publish(self, decoded: Decoded, judged: Judged) -> None:
        decided_ms = time.time_ns() // 1_000_000
        for place, ((message, _), outcome) in enumerate(zip(decoded.items, judged.outcomes, strict=True)):
            if isinstance(outcome, Decision):
                self._sink.decision(message, outcome, decided_ms)
            elif isinstance(outcome, Withdrawn):
                self._sink.withdrawn(outcome, decided_ms)
            # Before the next decision: of two records under an id the last one is in force.
            self._sink.successions(judged.successions.get(place, ()), decided_ms)
        # In the input's order, which is then the same wherever a commit ends.
        for message, error in sorted(decoded.dead, key=_place):
            self._sink.dead_letter(message, error)
        self._sink.clusters(judged.clusters, decided_ms)


def decode_all(messages: Sequence[Message], decoder: Decoder) -> Decoded:
    """Decode messages; what one of them holds never keeps the others from it."""
    now_ms = time.time_ns() // 1_000_000
    decoded = Decoded([], [])
    for message in messages:
        try:
            headers, key = readable_headers(message), message.key()
            beside = message_size(None, key, headers)
            item = decoder.decode(message.value(), now_ms, _origin(message), key=key, headers=headers, beside=beside)
            decoded.items.append((message, item))
        except UndecodableError as error:
            decoded.dead.append((message, error))
        except Exception as error:  # whatever one message does, the stream goes on
            log.exception("message_not_decoded", topic=message.topic(), offset=message.offset())
            reason = f"{type(error).__name__}: {error}"
            decoded.dead.append((message, UndecodableError(Reason.INTERNAL, reason)))
    return decoded


def _undecided(decoded: Decoded, judged: Judged) -> list[tuple[Message, UndecodableError]]:
    return [
        (message, UndecodableError(Reason(outcome.reason), outcome.detail))
        for (message, _), outcome in zip(decoded.items, judged.outcomes, strict=True)
        if isinstance(outcome, Unjudged)
    ]


def _place(letter: tuple[Message, UndecodableError]) -> tuple[str, int, int]:
    message = letter[0]
    return *place_of(message), int(message.offset() or 0)


def _origin(message: Message) -> Origin:
    kind, timestamp = message.timestamp()
    return Origin(
        *place_of(message),
        int(message.offset() or 0),
        None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
    )


def commit_change(
    change: Change,
    messages: Sequence[Message],
    engine: Deduplicator,
    writer: Writer,
    topic: str,
    watch: Stopwatch,
    group: object | None = None,
) -> dict[Place, int]:
    """Commit what messages change, with all that was sent, and bring the state up to it.

    Args:
        change: of the engine's last decision.
        messages: that it decided.
        engine: whose state it changes.
        writer: commits.
        topic: name of the changelog, with the id that Kafka gave it.
        watch: gets the time of the transaction, and that of the state.
        group: the metadata of the input's consumer, as of now; None where the group has decided the messages already.

    Returns:
        The offset behind the last message of each partition.

    Raises:
        AbortedError: the transaction was aborted; nothing has changed.
        FencedError: another process writes to the index now.
        BrokerError: the broker refuses, or gives no answer.
        StoreError: the state cannot be written. What is committed by then is in the changelog.
    """
    positions = {place_of(message): int(message.offset() or 0) + 1 for message in messages}
    behind = writer.commit(list(commit_records(engine.commit_of(change, positions))), positions, group)
    watch.lap("transaction")
    engine.apply(change, positions, ChangelogPlace(topic, behind) if behind is not None else None)
    watch.lap("apply")
    return positions
