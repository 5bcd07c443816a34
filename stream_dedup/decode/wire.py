"""Messages in formats other than JSON, and CloudEvents: to an article or a withdrawal.

Knows which topic has which format; knows nothing of how one is read.
"""

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace

from stream_dedup.article import Article, Origin, Withdrawal
from stream_dedup.decode.cloudevents import event_of
from stream_dedup.decode.decoder import Decoder
from stream_dedup.decode.fields import Fields, Paths
from stream_dedup.decode.format import Format, JsonFormat
from stream_dedup.decode.scope import Header
from stream_dedup.settings import FormatName, InputSettings
from stream_dedup.trace import trace_from

MakeFormat = Callable[[FormatName, Paths], Format]


class WireDecoder(Decoder):
    """Turns messages of any format into articles and withdrawals.

    Args:
        settings: field paths, formats and bounds.
        max_output_bytes: as for `Decoder`.
        make: creates the formats that need a schema registry; may be left out if there is none.
    """

    def __init__(
        self, settings: InputSettings, max_output_bytes: int | None = None, make: MakeFormat | None = None
    ) -> None:
        super().__init__(settings, max_output_bytes)
        self._make = make
        self._events = settings.cloudevents == "accept"
        self._formats: dict[str, Format] = {}  # by topic

    def article(
        self, fields: Fields, now_ms: int, origin: Origin | None = None, headers: Sequence[Header] = ()
    ) -> Article | Withdrawal:
        """Return the article in an object; an event in structured mode has its trace context among its attributes."""
        if self._events and origin is not None and origin.trace is None:
            trace = trace_from(fields.get("ce_traceparent"), fields.get("ce_tracestate"))
            origin = replace(origin, trace=trace) if trace is not None else origin
        return super().article(fields, now_ms, origin, headers)

    def _fields(self, value: bytes, origin: Origin | None, headers: Sequence[Header]) -> Fields:
        topic = origin.topic if origin else ""
        event = event_of(value, headers) if self._events else None
        if event is None:
            return self._format(topic).fields(value, headers)
        data = event.data
        fields = self._format(topic).fields(data, headers) if isinstance(data, bytes) else data
        # An attribute takes precedence over a field of the same name.
        return ChainMap(dict(event.attributes), fields)  # type: ignore[arg-type]  # it is only read

    def _format(self, topic: str) -> Format:
        known = self._formats.get(topic)
        if known is None:
            name = self._settings.format_of(topic)
            known = JsonFormat(self._paths) if name == "json" or self._make is None else self._make(name, self._paths)
            self._formats[topic] = known
        return known
