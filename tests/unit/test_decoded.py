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
