"""What the probes are told while a broker owes an answer, on a clock that the test moves.

Knows the life of a process; knows nothing of brokers.
"""

from types import SimpleNamespace

import pytest

from stream_dedup.stream import life as life_
from stream_dedup.stream.life import Life


class _Clock:
    """The time as the process sees it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_000.0
        monkeypatch.setattr(life_, "time", SimpleNamespace(monotonic=lambda: self.seconds))

    def wait(self, life: Life, seconds: float, times: int) -> list[bool]:
        """Wait for an answer so often; return whether the process is ready each time."""
        told = []
        for _ in range(times):
            life.wait_for_answer()
            told.append(life.health.ready()[0])
            self.seconds += seconds
        return told


@pytest.fixture
def life() -> Life:
    """Return the life of a process that is ready."""
    made = Life(60.0)
    made.health.set_waiting_for(None)
    return made


def test_broker_that_owes_an_answer_for_too_long_is_told(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow commit is no outage: the process stays ready for five seconds."""
    assert _Clock(monkeypatch).wait(life, 1.0, 8) == [True] * 6 + [False] * 2
    assert life.health.ready() == (False, "waiting for the broker")


def test_answers_that_came_are_not_waited_for(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit is waited for anew, however many there were: between two waits something has been answered."""
    clock = _Clock(monkeypatch)
    for _ in range(5):
        assert all(clock.wait(life, 1.0, 4))
        clock.seconds += 10.0
