"""Dead letters of messages that fit no topic, or cannot be read: they are sent all the same, and say what is missing.

Knows messages and headers; knows nothing of brokers or of why a message cannot be judged.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from stream_dedup.decode import Header, Reason, UndecodableError
from stream_dedup.encode import JsonEncoder
from stream_dedup.settings import OutputSettings
from stream_dedup.stream.output.sink import Sink
from tests.unit.arrived import ArrivedMessage

_ROOM = 10_000  # bytes of the topic of dead letters
_FAULT = UndecodableError(Reason.INVALID_JSON, "it is none")


class _Sent:
    """What a sink has sent, in place of a writer."""

    def __init__(self) -> None:
        self.letters: list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]] = []

    def send(self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> None:
        assert topic == "articles.dead"
        assert len({name for name, _ in headers}) == len(headers)
        self.letters.append((key, value, dict(headers)))


def _letter(
    message: ArrivedMessage, fault: UndecodableError = _FAULT
) -> tuple[bytes | None, bytes | None, dict[str, bytes | None]]:
    """Return the key, the value and the headers of the dead letter of a message."""
    sent: Any = _Sent()
    arrived: Any = message
    Sink(OutputSettings(), sent, JsonEncoder(), _ROOM).dead_letter(arrived, fault)
    (letter,) = sent.letters
    return letter  # type: ignore[no-any-return]  # it is one


def _left_out(headers: dict[str, bytes | None]) -> set[str]:
    """Return the parts that are said to be left out."""
    return {name.split(".")[1].split("_")[0] for name in headers if name.endswith("_left_out")}


@pytest.mark.parametrize(
    ("value", "key", "header", "missing"),
    [
        (9_000, 500, 400, set()),
        (9_489, 500, 2, set()),  # with the header's name and lengths the room to the byte
        (10_001, 1, 1, {"value"}),
        (5_000, 4_000, 4_000, {"value"}),
        (5_000, 4_000, 8_000, {"value", "headers"}),
        (5_000, 10_000, 1, {"value", "headers"}),
        (5_000, 10_001, 1, {"value", "headers", "key"}),
    ],
)
def test_what_there_is_no_room_for_is_left_out(value: int, key: int, header: int, missing: set[str]) -> None:
    """First the value, then the headers, then the key, and no more than that: a letter that no topic takes ends us."""
    sent_key, sent_value, headers = _letter(
        ArrivedMessage(b"v" * value, key=b"k" * key, headers=[("own", b"h" * header)])
    )
    assert _left_out(headers) == missing
    assert {"value": sent_value, "headers": headers.get("own"), "key": sent_key} == {
        "value": None if "value" in missing else b"v" * value,
        "headers": None if "headers" in missing else b"h" * header,
        "key": None if "key" in missing else b"k" * key,
    }
    assert headers["stream_dedup.reason"] == b"invalid_json"


def test_names_of_headers_that_are_left_out_are_told_as_far_as_there_is_room() -> None:
    """There may be as many as the message has bytes, and each may be as long."""
    many = [("n" * 2_000, b""), *((f"header-{number}", b"") for number in range(5_000))]
    *_, headers = _letter(ArrivedMessage(b"", headers=many))
    told = headers["stream_dedup.headers_left_out"] or b""
    assert told.startswith(b"n" * 40 + b", header-0, header-1, ")
    assert sum(len(content or b"") for content in headers.values()) < 2_000


def test_message_without_headers_has_none_that_are_left_out() -> None:
    """Only its key is too large here."""
    *_, headers = _letter(ArrivedMessage(b"x", key=b"k" * 10_001))
    assert _left_out(headers) == {"value", "key"}


def test_endless_reason_is_cut() -> None:
    """It may quote the message."""
    *_, headers = _letter(ArrivedMessage(b"x"), UndecodableError(Reason.INVALID_RECORD, "x" * 1_000_000))
    assert len(headers["stream_dedup.exception"] or b"") == 1_000


def test_headers_that_cannot_be_read_are_told() -> None:
    """Without them the rest is sent as it came."""
    key, value, headers = _letter(ArrivedMessage(b"value", key=b"key", headers=None))
    assert (key, value) == (b"key", b"value")
    assert headers["stream_dedup.headers_left_out"] == b"names that are not valid UTF-8"


def test_reason_with_half_of_an_emoji_is_told() -> None:
    """It may name a field as the message does: Kafka takes any bytes, but Python does not make UTF-8 of it."""
    *_, headers = _letter(ArrivedMessage(b"x"), UndecodableError(Reason.INVALID_RECORD, "$.\ud83d violates a rule"))
    assert headers["stream_dedup.exception"] == b"UndecodableError: $.? violates a rule"
