"""The trace context of a message: W3C's `traceparent` and `tracestate`, as headers or as CloudEvents attributes.

Knows the two headers and what is valid in them; knows nothing of spans.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PARENT, _STATE = "traceparent", "tracestate"
_EXTENSION = "ce_"  # the same as CloudEvents attributes: https://github.com/cloudevents/spec, distributed tracing
_NAMES = frozenset({_PARENT, _STATE, _EXTENSION + _PARENT, _EXTENSION + _STATE})
# https://www.w3.org/TR/trace-context: version, trace, span, flags; versions after 00 may append more fields.
_VALID = re.compile(
    r"(00(?=.{53}$)|(?!00|ff)[0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?"
)
_LONGEST_PARENT, _LONGEST_STATE = 256, 2_048  # characters; W3C requires at least 512 of the state to be passed on
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """The context that a message came with.

    Attributes:
        parent: `traceparent`, valid.
        state: `tracestate`; empty if there is none.
    """

    parent: str
    state: str = ""

    @property
    def trace_id(self) -> int:
        """128 bits."""
        return int(self.parent[3:35], 16)

    @property
    def span_id(self) -> int:
        """64 bits: the span in which the message was sent."""
        return int(self.parent[36:52], 16)

    @property
    def sampled(self) -> bool:
        """Whether the sender of the message records the trace."""
        return bool(int(self.parent[53:55], 16) & _SAMPLED)

    def headers(self) -> list[tuple[str, bytes]]:
        """Return it as headers of another message."""
        state = [(_STATE, self.state.encode())] if self.state else []
        return [(_PARENT, self.parent.encode()), *state]


def trace_of(headers: Sequence[tuple[str, bytes | None]]) -> Trace | None:
    """Return the trace context of a message, None if it has no valid one.

    Kafka headers take precedence over the attributes of a CloudEvent in binary mode, which say where the event began.
    Of several headers with the same name, the last one counts.

    Args:
        headers: of the message.
    """
    found = {name: value for name, value in headers if name in _NAMES}
    if not found:
        return None
    return _trace(found, "") or _trace(found, _EXTENSION)


def trace_from(parent: object, state: object) -> Trace | None:
    """Return a trace context from its two values, None if the first one is not valid.

    Args:
        parent: `traceparent`.
        state: `tracestate`; dropped if it is too long or not printable ASCII text.
    """
    if not isinstance(parent, str) or len(parent) > _LONGEST_PARENT or not _VALID.fullmatch(parent):
        return None
    fits = isinstance(state, str) and len(state) <= _LONGEST_STATE and state.isascii() and state.isprintable()
    return Trace(parent, str(state) if fits else "")


def _trace(found: dict[str, bytes | None], prefix: str) -> Trace | None:
    return trace_from(_text(found.get(prefix + _PARENT)), _text(found.get(prefix + _STATE)))


def _text(value: bytes | None) -> str | None:
    return value.decode("ascii", "replace") if value is not None else None
