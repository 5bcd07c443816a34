"""Which messages are dead, whatever the clock and the machine do.

Knows messages; knows nothing of brokers.
"""

import errno
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.settings import InputSettings
from stream_dedup.stream.input.decoded import Decoded, decode_all, prepared_all
from tests.unit.arrived import ArrivedMessage

_DAY_MS = 86_400_000
_NOW_MS = 1_700_000_000_000


def _message(published_ms: int) -> Any:  # noqa: ANN401  # stands for a consumer's
    """Return a message with an article of a given time."""
    fields = {"id": "one", "body": "旱了五十天的村子下雨了", "published_at": published_ms}
    return ArrivedMessage(orjson.dumps(fields), _NOW_MS)


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.EMFILE, "Too many open files")])
def test_a_fault_of_the_machine_makes_no_dead_letter(error: Exception) -> None:
    """It would meet all messages: the process ends, and the next one decodes them."""
    decoder: Any = SimpleNamespace(decode=Mock(side_effect=error))
    message = _message(_NOW_MS)
    with pytest.raises(type(error)):
        decode_all([message], decoder, _NOW_MS)


@pytest.mark.parametrize(
    ("clock_ms", "published_ms", "dead"),
    [
        (_NOW_MS, _NOW_MS, False),
        (_NOW_MS - 3 * _DAY_MS, _NOW_MS + _DAY_MS, False),
        (_NOW_MS - 3 * _DAY_MS, _NOW_MS + _DAY_MS + 1, True),
        (_NOW_MS + 3 * _DAY_MS, _NOW_MS + 4 * _DAY_MS, False),
        (_NOW_MS + 3 * _DAY_MS, _NOW_MS + 4 * _DAY_MS + 1, True),
    ],
)
def test_a_clock_that_lags_makes_no_dead_letters(
    clock_ms: int, published_ms: int, *, dead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An article may be a day ahead of the clock or of the stream's time, whichever is later."""
    monkeypatch.setattr(time, "time_ns", lambda: clock_ms * 1_000_000)
    decoder = Decoder(InputSettings(max_future_seconds=_DAY_MS // 1000))
    message = _message(published_ms)
    found = decode_all([message], decoder, _NOW_MS)
    assert [error.reason for _, error in found.dead] == ([Reason.FUTURE_TIME] if dead else [])
    assert [item.origin and item.origin.timestamp_ms for _, item in found.items] == ([] if dead else [_NOW_MS])


@pytest.mark.parametrize(("room", "reasons"), [(500, [Reason.TOO_LARGE]), (2_000, [])])
def test_key_and_headers_count_in_what_the_outputs_take(room: int, reasons: list[Reason]) -> None:
    """They are published as well: 1,000 bytes of them need more room beside the value than 500."""
    value = orjson.dumps({"id": "one", "body": "旱了五十天的村子下雨了"})
    message: Any = ArrivedMessage(value, _NOW_MS, key=bytes(500), headers=[("note", bytes(496))])
    decoder = Decoder(InputSettings(), max_output_bytes=len(value) + room)
    assert [error.reason for _, error in decode_all([message], decoder, _NOW_MS).dead] == reasons


def test_article_that_cannot_be_prepared_joins_the_other_dead_letters() -> None:
    """Those that could not be decoded are still told."""
    messages: list[Any] = [ArrivedMessage(b"", offset=offset) for offset in range(3)]
    broken = UndecodableError(Reason.INVALID_JSON, "it is none")
    items: list[tuple[Any, Any]] = [(messages[0], "sound"), (messages[1], "faulty")]

    def prepare(articles: Any) -> None:  # noqa: ANN401  # whatever stands for articles
        if "faulty" in articles:
            raise ValueError

    decoded, _ = prepared_all(Decoded(items, [(messages[2], broken)]), prepare)
    assert [message.offset() for message, _ in decoded.items] == [0]
    assert sorted((message.offset(), error.reason) for message, error in decoded.dead) == [
        (1, Reason.INTERNAL),
        (2, Reason.INVALID_JSON),
    ]
