"""When a standby says that it is ready to take over, with a changelog that is as far ahead as the test says.

Knows probes; knows nothing of brokers.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

from stream_dedup.settings import Settings
from stream_dedup.stream.life import Life
from stream_dedup.stream.standby import stand_by


def test_standby_is_ready_while_it_is_close_behind() -> None:
    """By at most `state.lag_records`; the end of the changelog is asked for anew each time."""
    life, left, told = Life(60.0), iter([1_001, 1_000, 0, 5_000, 3]), list[tuple[bool, str]]()
    follower = SimpleNamespace(position=7, remaining=0, follow=lambda _seconds: None)

    def ask() -> None:
        """Tell of the next end of the changelog; after the last one a stop is requested."""
        told.append(life.health.ready())
        follower.remaining = next(left, 0)
        if len(told) == 6:
            life.stop()

    parts: Any = Mock(
        life=life,
        settings=Settings(),
        follower=lambda: follower,
        reader=SimpleNamespace(bounds=ask),
        ownership=SimpleNamespace(owner=False),
    )
    stand_by(parts)
    parts.metrics.show_role.assert_called_once_with("standby")
    parts.meter.idle.assert_called_once_with()
    assert parts.meter.following.call_args_list == [call(7, behind) for behind in (1_001, 1_000, 0, 5_000, 3, 0)]
    assert parts.snapshots.turn.call_count == 6  # it makes them as well
    assert [ready for ready, _ in told[1:]] == [False, True, True, False, True]
    assert told[4][1] == "waiting for the changelog to be replayed: 5,000 records left"
