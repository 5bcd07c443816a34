"""Who waits for a broker that does not answer another's question is not kept waiting for an answer of its own."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from stream_dedup.settings import load_settings
from stream_dedup.stream.kafka import messages
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.messages import Messages
from tests.stream.waiting import wait_until

_CALLERS = 5


def test_all_that_wait_fail_with_the_one_that_was_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five calls at once the broker is asked for one; the next call asks it again."""
    asked, waiting, looks = list[str](), threading.Barrier(_CALLERS), list[float]()

    def monotonic() -> float:
        now = time.monotonic()
        looks.append(now)
        return now

    def unanswered(_consumer: object, topic: str) -> list[tuple[int, int, int]]:
        asked.append(topic)
        if len(asked) == 1:
            waiting.wait()
            # Each looks at the clock on its way to the lock.
            wait_until(lambda: len(looks) == _CALLERS, "the others wait")
        raise BrokerError(f"no answer to question {len(asked)}")

    def ask(caller: int) -> str:
        if caller:
            waiting.wait()
        with pytest.raises(BrokerError) as failed:
            reader.newest("links", 1)
        return str(failed.value)

    monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(messages, "bounds_of", unanswered)
    reader = Messages(load_settings(flags=["kafka.bootstrap.servers=127.0.0.1:9"]))
    try:
        with ThreadPoolExecutor(_CALLERS) as callers:
            assert {*callers.map(ask, range(_CALLERS))} == {"no answer to question 1"}
        assert asked == ["links"]
        with pytest.raises(BrokerError, match="no answer to question 2"):
            reader.newest("links", 1)
    finally:
        reader.close()
