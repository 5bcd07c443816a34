"""A broker that does not answer: who waits for another's question fails with it, and the last question is no fault."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from stream_dedup.settings import load_settings
from stream_dedup.stream.kafka import messages, topics
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.messages import Messages
from stream_dedup.stream.kafka.topics import Topics
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


def test_ends_are_unknown_where_the_last_pause_is_longer_than_what_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine wakes whoever pauses late: the client refuses to be asked for less than no time."""
    now, pauses = [1_000.0], list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += 10 * seconds

    monkeypatch.setattr(topics, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(topics, "_ENDS_SECONDS", 0.5)
    reader = Topics(load_settings(flags=["kafka.bootstrap.servers=127.0.0.1:9"]))
    assert reader.ends([("articles", 0)]) == {}
    assert len(pauses) == 1
