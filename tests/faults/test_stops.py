"""Stops at any time, whatever the broker does: the process ends cleanly and in time, and the work resumes."""

import random
import time

import pytest

from tests.faults.proxy import BLACK_HOLE, CUT, PASS, Traffic
from tests.faults.stage import KILLS, LONG, SIZE, SLOW_LINE, TRICKLE, Run


@pytest.mark.parametrize("traffic", [TRICKLE, BLACK_HOLE])
@LONG
def test_stop_during_replay(run: Run, traffic: Traffic) -> None:
    """A stop during the replay ends the process cleanly and in time, whether or not the broker answers."""
    with (
        run.replica("first") as first,
        run.replica("second", bootstrap=run.stage.proxy.address) as second,
    ):
        run.progress.wait(SIZE * 2 // 3, [first.start()])
        first.service.kill()
        run.stage.proxy.set(TRICKLE)  # the replay would take minutes
        second.start().wait_role("restoring")
        run.stage.proxy.set(traffic)
        second.service.stop()
        assert second.service.events("stopped")
        run.stage.proxy.set(PASS)
        run.progress.finish([second.start()])
        second.stop()
    run.check()


@LONG
def test_stops_at_random_times(run: Run) -> None:
    """Whenever a stop comes, and whatever the broker does, the process ends cleanly and in time; the work resumes."""
    rng = random.Random("stops")
    with run.replica("stopped", bootstrap=run.stage.proxy.address) as replica:
        for traffic in rng.choices([PASS, SLOW_LINE, TRICKLE, BLACK_HOLE, CUT], k=KILLS // 2):
            run.stage.proxy.set(PASS)
            replica.start().service.wait_starting()
            time.sleep(rng.uniform(0.0, 4.0))
            run.stage.proxy.set(traffic)
            time.sleep(rng.uniform(0.0, 1.0))
            replica.service.stop()
        run.stage.proxy.set(PASS)
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()
