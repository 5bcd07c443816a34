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

from stream_dedup.decode import Decoder, Reason
from stream_dedup.settings import InputSettings
from stream_dedup.stream.input.decoded import decode_all

_DAY_MS = 86_400_000
_NOW_MS = 1_700_000_000_000


class _Message:
    """A message with an article of a given time."""

    def __init__(self, published_ms: int) -> None:
        self._value = orjson.dumps({"id": "one", "body": "旱了五十天的村子下雨了", "published_at": published_ms})

    def value(self) -> bytes:
        return self._value

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def topic(self) -> str:
        return "in"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, _NOW_MS


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.EMFILE, "Too many open files")])
def test_a_fault_of_the_machine_makes_no_dead_letter(error: Exception) -> None:
    """It would meet all messages: the process ends, and the next one decodes them."""
    decoder: Any = SimpleNamespace(decode=Mock(side_effect=error))
    message: Any = _Message(_NOW_MS)
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
    message: Any = _Message(published_ms)
    found = decode_all([message], decoder, _NOW_MS)
    assert [error.reason for _, error in found.dead] == ([Reason.FUTURE_TIME] if dead else [])
    assert [item.origin and item.origin.timestamp_ms for _, item in found.items] == ([] if dead else [_NOW_MS])
