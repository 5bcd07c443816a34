"""How long aborted transactions are taken for transient, on a clock that the test moves."""

from typing import Any, NamedTuple, cast
from unittest.mock import Mock

import pytest

from stream_dedup.stream import transient_faults
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.life import Life
from stream_dedup.stream.output.errors import AbortedError
from stream_dedup.stream.transient_faults import Aborts
from stream_dedup.stream.watching.meter import Meter

_BEGIN, _DEADLINE = 1_000.0, 60.0  # seconds
_ABORTED = AbortedError("the coordinator has moved")


class _Scene(NamedTuple):
    aborts: Aborts
    clock: Mock

    def abort_every(self, seconds: float, times: int) -> None:
        for _ in range(times):
            self.clock.monotonic.return_value += seconds
            self.aborts.pause_after(_ABORTED)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> _Scene:
    """Return aborts whose pauses take no time."""
    clock = Mock(**{"monotonic.return_value": _BEGIN})
    monkeypatch.setattr(transient_faults, "time", clock)
    life = Life(10.0)
    life.stop()
    return _Scene(Aborts(life, cast("Any", Mock(spec=Meter)), _DEADLINE), clock)


@pytest.mark.parametrize("pause", [1.0, 59.0, 61.0, 150.0])
def test_service_gives_up_once_every_transaction_has_been_aborted_for_too_long(scene: _Scene, pause: float) -> None:
    """However long each of them took: sending, committing and aborting may each take until the deadline."""
    with pytest.raises(BrokerError, match=r"^given up after commit\.deadline_seconds: the coordinator has moved$"):
        scene.abort_every(pause, 100)
    assert _DEADLINE < scene.clock.monotonic.return_value - _BEGIN <= _DEADLINE + 2 * pause


def test_one_that_succeeds_ends_the_series(scene: _Scene) -> None:
    """The next abort is the first of another."""
    for _ in range(100):
        scene.abort_every(50.0, 1)
        scene.aborts.end()


def test_abort_long_after_another_is_the_first_of_a_series(scene: _Scene) -> None:
    """No message may have come meanwhile, or another process may have owned the index: nothing was tried."""
    scene.abort_every(3_600.0, 100)


def test_stop_may_come_at_any_moment_of_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handler runs in the thread that pauses, and sets the event: no lock of the event may be held then."""
    life = Life(10.0)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        life.stop()

    monkeypatch.setattr(transient_faults, "time", Mock(**{"monotonic.return_value": _BEGIN, "sleep": sleep}))
    monkeypatch.setattr(life.stopping, "wait", Mock(side_effect=AssertionError("holds the lock")))
    Aborts(life, cast("Any", Mock(spec=Meter)), _DEADLINE).pause_after(_ABORTED)
    assert len(slept) == 1
