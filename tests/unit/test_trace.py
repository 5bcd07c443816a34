"""The trace context is passed on unchanged if W3C considers it valid, and otherwise ignored."""

import pytest

from stream_dedup.article import Origin
from stream_dedup.decode import WireDecoder
from stream_dedup.settings import InputSettings
from stream_dedup.trace import Trace, trace_of
from tests.unit.registered import BODY, NOW

# The examples of the specification.
_TRACE, _SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
_PARENT = f"00-{_TRACE}-{_SPAN}-01"
_STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
_OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_context_goes_on_as_it_came() -> None:
    """Its parts are those of the specification's example."""
    trace = trace_of([("traceparent", _PARENT.encode()), ("crawler", b"7"), ("tracestate", _STATE.encode())])
    assert trace == Trace(_PARENT, _STATE)
    assert (f"{trace.trace_id:032x}", f"{trace.span_id:016x}", trace.sampled) == (_TRACE, _SPAN, True)
    assert trace.headers() == [("traceparent", _PARENT.encode()), ("tracestate", _STATE.encode())]
    assert Trace(_PARENT).headers() == [("traceparent", _PARENT.encode())]
    assert not Trace(_OTHER).sampled


@pytest.mark.parametrize(
    ("parent", "valid"),
    [
        (_PARENT, True),
        (f"00-{_TRACE}-{_SPAN}-ff", True),
        (f"cc-{_TRACE}-{_SPAN}-01-what-the-future-will-be-like", True),
        (f"cc-{_TRACE}-{_SPAN}-01", True),
        (f"00-{_TRACE}-{_SPAN}-01-more", False),
        (f"cc-{_TRACE}-{_SPAN}-01.more", False),
        (f"ff-{_TRACE}-{_SPAN}-01", False),
        (f"00-{_TRACE.upper()}-{_SPAN}-01", False),
        (f"00-{'0' * 32}-{_SPAN}-01", False),
        (f"00-{_TRACE}-{'0' * 16}-01", False),
        (f"00-{_TRACE}-{_SPAN}", False),
        (f"00-{_TRACE}-{_SPAN}-01\n", False),
        (f"cc-{_TRACE}-{_SPAN}-01-{'x' * 300}", False),
        ("", False),
    ],
)
def test_only_what_is_valid_is_a_context(parent: str, valid: bool) -> None:  # noqa: FBT001  # of the table
    """The cases are the specification's rules and tests: version, lower case, no zeros, length."""
    assert (trace_of([("traceparent", parent.encode())]) is not None) is valid


@pytest.mark.parametrize("state", [b"", b"\xff=1", b"a=\x00", b"a=" + b"x" * 3_000])
def test_state_that_no_header_should_have_is_left_out(state: bytes) -> None:
    """The context is passed on without it, which is all that W3C requires."""
    assert trace_of([("traceparent", _PARENT.encode()), ("tracestate", state)]) == Trace(_PARENT)


def test_last_of_several_counts_and_kafkas_own_go_first() -> None:
    """A CloudEvent's headers give the origin, the message's own give its last hop."""
    headers = [("traceparent", _OTHER.encode()), ("traceparent", _PARENT.encode()), ("ce_traceparent", _OTHER.encode())]
    assert trace_of(headers) == Trace(_PARENT)
    assert trace_of([("traceparent", None), ("ce_traceparent", _OTHER.encode())]) == Trace(_OTHER)
    assert trace_of([("ce_traceparent", _OTHER.encode()), ("ce_tracestate", b"a=1")]) == Trace(_OTHER, "a=1")
    assert trace_of([("tracestate", b"a=1")]) is None
    assert trace_of([]) is None


@pytest.mark.parametrize("deleted", [False, True])
def test_event_in_structured_mode_has_it_among_its_attributes(deleted: bool) -> None:  # noqa: FBT001  # of the table
    """Articles and withdrawals take it from there, unless the message has its own."""
    decoder = WireDecoder(InputSettings(cloudevents="accept"))
    event = f"""{{"specversion": "1.0", "id": "e", "source": "s", "type": "t", "traceparent": "{_PARENT}",
        "tracestate": "{_STATE}", "data": {{"id": "n", "body": "{BODY}", "deleted": {str(deleted).lower()}}}}}"""
    headers = [("content-type", b"application/cloudevents+json")]
    for own, wanted in ((None, Trace(_PARENT, _STATE)), (Trace(_OTHER), Trace(_OTHER))):
        item = decoder.decode(event.encode(), NOW, Origin("in", 0, 1, trace=own), headers=headers)
        assert item.origin is not None
        assert item.origin.trace == wanted
