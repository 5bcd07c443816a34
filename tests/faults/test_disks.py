"""Lost, damaged and full disks: the state is restored, or the process says what to do."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.chaos import Replica, delete_state, flip_bytes, small_disk, truncate_manifest
from tests.faults.stage import LONG, SIZE, Run
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

# The smallest that RocksDB accepts: the state then has tables on disk, not only a log.
_SMALL_BUFFERS = "state.write_buffer_bytes=1048576"


@LONG
def test_deleted_state(run: Run) -> None:
    """A state directory that is deleted between two processes is restored from the changelog."""
    with run.replica("deleted") as replica:
        for count in (SIZE // 3, SIZE * 2 // 3):
            run.progress.wait(count, [replica.start()])
            replica.service.kill()
            delete_state(replica.state)
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()


@pytest.mark.parametrize("damage", [flip_bytes, truncate_manifest])
@LONG
def test_damaged_state(run: Run, damage: Callable[[Path], None]) -> None:
    """A damaged database is not accepted as valid: it is rebuilt, or the process says which directory to delete."""
    with run.replica("damaged", _SMALL_BUFFERS) as replica:
        run.progress.wait(SIZE // 2, [replica.start()])
        replica.stop()
        damage(replica.state)
        _finish_or_delete(run, replica.start())
        replica.stop()
    run.check()


def _finish_or_delete(run: Run, replica: Replica) -> None:
    """Finish the input; if a process ends because of its state, delete the state as its message says."""
    wait_until(
        lambda: not replica.service.running or run.progress.remaining == 0, "processed, or ended", PATIENCE_SECONDS
    )
    if not replica.service.running:
        assert replica.service.wait_end(0) == 1
        assert str(replica.state) in replica.service.log()
        assert "Traceback" not in replica.service.log()
        delete_state(replica.state)
        run.progress.finish([replica.start()])


@LONG
def test_full_disk(run: Run) -> None:
    """A process whose disk fills up ends with exit code 1 and says why; with more room it resumes."""
    replica = run.replica("full", _SMALL_BUFFERS)
    with small_disk(replica.state, run.stage.state_bytes // 2) as make_room, replica:
        assert replica.start().service.wait_end(PATIENCE_SECONDS) == 1
        assert re.search("No space left|File too large", replica.service.log())
        assert "Traceback" not in replica.service.log()
        assert run.progress.remaining > 0
        make_room()
        run.progress.finish([replica.start()])
        replica.stop()
    run.check()
