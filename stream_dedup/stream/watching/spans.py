"""What the loop reports to the tracer: a span per commit, with its stages, and one for each of its sampled messages.

Knows spans and the conventions of their names; knows nothing of how they are exported.

Attributes are those of OpenTelemetry's conventions for messaging, and `stream_dedup.*`. The clock is read only once,
at the end of a commit: stages use the seconds that were measured anyway.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TraceState,
    set_span_in_context,
)

from stream_dedup.article import Decision, Withdrawn
from stream_dedup.settings import Settings
from stream_dedup.stream.commit.pipeline import Committed
from stream_dedup.stream.kafka.headers import incoming_headers
from stream_dedup.stream.kafka.places import Place, offset_of, place_of
from stream_dedup.trace import Trace, trace_of

_STAGES = ("await", "decide", "produce", "transaction", "apply", "shadow")  # of a commit, one after another
_AHEAD = ("decode", "features")  # in another thread, while the previous commit was under way
_MOST_LINKS = 128  # that OpenTelemetry allows in a span
_MOST_MESSAGES = 64  # of a commit that get a span
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NANOSECONDS = 1_000_000_000

_Attributes = Mapping[str, str | int | float]


class _Message(NamedTuple):
    """A sampled message, and what became of it."""

    trace: Trace
    place: Place
    offset: int
    outcome: _Attributes
    reason: str  # why it is a dead letter; empty if it is not


class Spans:
    """Makes the spans of commits that are sampled, or that contain a sampled message.

    A message is sampled if its sender says so in its trace context: it gets a span in that trace, and the commit's
    span gets a link to it.

    Args:
        tracer: makes the spans.
        settings: which share of the other commits is sampled, and the group.
    """

    def __init__(self, tracer: Tracer, settings: Settings) -> None:
        self._tracer = tracer
        self._sample = settings.tracing.sample
        self._common = {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.consumer.group.name": settings.input.group,
        }

    def committed(self, committed: Committed) -> None:
        """Report a commit that has just been made."""
        sampled = list(_sampled(committed))
        # No secret depends on this randomness.
        if not sampled and random.random() >= self._sample:  # noqa: S311  # see above
            return
        stages = {stage: _nanoseconds(committed.seconds[stage]) for stage in _STAGES if stage in committed.seconds}
        end = time.time_ns()
        start = end - sum(stages.values())
        places = {place_of(message) for message in committed.messages}
        span = self._tracer.start_span(
            _name(places),
            Context(),
            SpanKind.CONSUMER,
            {**self._common, **_destination(places), **_counts(committed, len(sampled))},
            [Link(_context(message.trace)) for message in sampled[:_MOST_LINKS]],
            start,
        )
        self._add_stages(span, start, stages, committed.judged.seconds)
        span.end(end)
        for message in sampled[:_MOST_MESSAGES]:
            self._add_message(message, span, start, end)

    def _add_stages(self, span: Span, start: int, stages: Mapping[str, int], decided: Mapping[str, float]) -> None:
        """Add the stages of a commit, and those of the decision in the order in which they first occurred."""
        parent = set_span_in_context(span, Context())
        for stage, duration in stages.items():
            child = self._tracer.start_span(stage, parent, start_time=start)
            if stage == "decide":
                self._add_stages(child, start, {name: _nanoseconds(part) for name, part in decided.items()}, {})
            start += duration
            child.end(start)

    def _add_message(self, message: _Message, commit: Span, start: int, end: int) -> None:
        """Add the span of a message to the trace that it came with."""
        parent = set_span_in_context(NonRecordingSpan(_context(message.trace)), Context())
        places = {message.place}
        attributes = {**self._common, **_destination(places), "messaging.kafka.offset": message.offset}
        span = self._tracer.start_span(
            _name(places),
            parent,
            SpanKind.CONSUMER,
            {**attributes, **message.outcome},
            [Link(commit.get_span_context())],
            start,
        )
        if message.reason:
            span.set_attribute("error.type", message.reason)
            span.set_status(StatusCode.ERROR, message.reason)
        span.end(end)


def _sampled(committed: Committed) -> Iterator[_Message]:
    """Yield the sampled messages: articles and withdrawals in order, then dead letters."""
    for outcome in committed.judged.outcomes:
        if not isinstance(outcome, Decision | Withdrawn):
            continue  # a dead letter
        origin = (outcome.article if isinstance(outcome, Decision) else outcome.withdrawal).origin
        if origin is not None and origin.trace is not None and origin.trace.sampled:
            place = origin.topic, origin.partition
            yield _Message(origin.trace, place, origin.offset, _told(outcome), "")
    for message, error in committed.dead:
        trace = trace_of(incoming_headers(message) or [])
        if trace is not None and trace.sampled:
            told = {"stream_dedup.decision": "dead"}
            yield _Message(trace, place_of(message), offset_of(message), told, error.reason)


def _told(outcome: Decision | Withdrawn) -> _Attributes:
    if isinstance(outcome, Withdrawn):
        return {"stream_dedup.decision": "withdrawn", "stream_dedup.article.id": outcome.id}
    told: dict[str, str] = {
        "stream_dedup.decision": outcome.verdict,
        "stream_dedup.article.id": outcome.article.id,
    }
    if outcome.link is not None:
        told["stream_dedup.relation"] = outcome.link.relation
        told["stream_dedup.duplicate_of"] = outcome.link.duplicate_of
    return told


def _counts(committed: Committed, sampled: int) -> _Attributes:
    outcomes = Counter(
        outcome.verdict if isinstance(outcome, Decision) else "withdrawn"
        for outcome in committed.judged.outcomes
        if isinstance(outcome, Decision | Withdrawn)
    )
    return {
        "messaging.batch.message_count": len(committed.messages),
        **{f"stream_dedup.messages.{name}": count for name, count in outcomes.items()},
        "stream_dedup.messages.dead": len(committed.dead),
        "stream_dedup.messages.sampled": sampled,
        **{f"stream_dedup.seconds.{stage}": committed.seconds.get(stage, 0.0) for stage in _AHEAD},
    }


def _name(places: set[Place]) -> str:
    topics = {topic for topic, _ in places}
    return f"process {topics.pop()}" if len(topics) == 1 else "process"


def _destination(places: set[Place]) -> _Attributes:
    """Return the topic and the partition, as far as all of them have the same."""
    topics = {topic for topic, _ in places}
    told = {"messaging.destination.name": topics.pop()} if len(topics) == 1 else {}
    if len(places) == 1:
        told["messaging.destination.partition.id"] = str(next(iter(places))[1])
    return told


def _context(trace: Trace) -> SpanContext:
    state = TraceState.from_header([trace.state]) if trace.state else None
    return SpanContext(trace.trace_id, trace.span_id, is_remote=True, trace_flags=_SAMPLED, trace_state=state)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * _NANOSECONDS)
