"""The spans of commits that are larger than a trace may be, or come from several topics and partitions.

Knows spans; knows nothing of collectors or brokers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stream_dedup.decode import Reason, UndecodableError
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.settings import Settings
from stream_dedup.stream.commit.pipeline import Committed
from stream_dedup.stream.watching.spans import Spans
from tests.unit.arrived import ArrivedMessage

_FAULT = UndecodableError(Reason.INVALID_JSON, "it is none")


def _message(number: int, topic: str = "in", partition: int = 0) -> ArrivedMessage:
    """Return a message whose sender samples it in a trace of its own."""
    parent = f"00-{number:032x}-{number:016x}-01".encode()
    return ArrivedMessage(b"", offset=number, topic=topic, partition=partition, headers=[("traceparent", parent)])


@pytest.fixture
def made(make_engine: Callable[..., Deduplicator]) -> Callable[[Sequence[ArrivedMessage]], list[ReadableSpan]]:
    """Return a function that reports a commit of dead letters, and returns its spans, that of the commit first."""
    exporter, provider, judged = InMemorySpanExporter(), TracerProvider(), make_engine().process([])
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = Settings.model_validate({"tracing": {"sample": 0}})

    def report(messages: Sequence[ArrivedMessage]) -> list[ReadableSpan]:
        arrived: Any = messages
        Spans(provider.get_tracer("test"), settings).committed(
            Committed(arrived, 0, judged, [(message, _FAULT) for message in arrived], {})
        )
        return sorted(exporter.get_finished_spans(), key=lambda span: span.parent is not None)

    return report


def test_commit_with_many_sampled_messages_has_spans_for_some(
    made: Callable[[Sequence[ArrivedMessage]], list[ReadableSpan]],
) -> None:
    """Up to 64, and links to 128, as many as OpenTelemetry allows by default; their number is told."""
    commit, *messages = made([_message(number) for number in range(1, 201)])
    assert [link.context.span_id for link in commit.links] == list(range(1, 129))
    assert [span.parent and span.parent.span_id for span in messages] == list(range(1, 65))
    assert (commit.attributes or {})["stream_dedup.messages.sampled"] == 200


@pytest.mark.parametrize(
    ("places", "name", "told"),
    [
        ([("in", 3), ("in", 3)], "process in", ("in", "3")),
        ([("in", 3), ("in", 4)], "process in", ("in", None)),
        ([("in", 3), ("other", 3)], "process", (None, None)),
    ],
)
def test_commit_is_of_the_place_that_all_its_messages_have(
    made: Callable[[Sequence[ArrivedMessage]], list[ReadableSpan]],
    places: Sequence[tuple[str, int]],
    name: str,
    told: tuple[str | None, str | None],
) -> None:
    """Each message has its own."""
    commit, *messages = made([_message(number, *place) for number, place in enumerate(places, 1)])
    names = ("messaging.destination.name", "messaging.destination.partition.id")
    assert (commit.name, *((commit.attributes or {}).get(one) for one in names)) == (name, *told)
    found = [tuple((span.attributes or {}).get(one) for one in names) for span in messages]
    assert found == [(topic, str(partition)) for topic, partition in places]
