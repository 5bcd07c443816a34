"""The API's process when its reads of the state hang, or take long as it is stopped.

Knows how a read can hang; does not know states.
"""

import subprocess
import sys

import pytest

# What the read does, and what the log or the interpreter-independent timer must then report.
_WAITS = "time.sleep(60)", "loop_stuck"
_HOLDS = "ctypes.PyDLL(None).sleep(60)", "(most recent call first):"
_PROGRAM = """
import ctypes, faulthandler, time
from stream_dedup.api import server
from stream_dedup.settings import load_settings

arm, patience = faulthandler.dump_traceback_later, [600.0]

def armed(seconds, **more):
    patience.append(seconds)
    arm(seconds, **more)

faulthandler.dump_traceback_later = armed

class QueryService:
    def __init__(self, settings): pass
    def warm_up(self): pass
    def close(self): pass
    def refresh(self):
        if patience[-1] < 60:  # the watchdog has seen that the start is done
            {look}

server.QueryService = QueryService
server.Server(load_settings(flags=["http.stuck_seconds=6", "api.port=0"])).run()
"""


@pytest.mark.parametrize(("look", "told"), [_WAITS, _HOLDS], ids=["others go on", "interpreter held"])
@pytest.mark.slow
def test_ends_with_its_stacks_told(look: str, told: str) -> None:
    """Its parent starts a new one, whereas a hanging process would be kept forever."""
    program = [sys.executable, "-c", _PROGRAM.format(look=look)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    said = ended.stdout + ended.stderr
    assert told in said
    assert "refresh" in said


_RESTS = """
import threading
from stream_dedup.api import server
from stream_dedup.settings import load_settings

class QueryService:
    def __init__(self, settings): pass
    def warm_up(self): pass
    def close(self): pass
    def refresh(self): threading.Timer(8, one.stop).start()

server.QueryService = QueryService
one = server.Server(load_settings(flags=["http.stuck_seconds=6", "api.refresh_ms=60000", "api.port=0"]))
one.run()
"""


@pytest.mark.slow
def test_looks_far_apart_are_no_standstill() -> None:
    """A process may wait longer for its next read than a hanging one is allowed to."""
    ended = subprocess.run([sys.executable, "-c", _RESTS], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, "loop_stuck" in ended.stdout + ended.stderr) == (0, False), ended.stderr


_COMPILES = """
import threading, time
from stream_dedup.api import server
from stream_dedup.settings import load_settings

class QueryService:
    def __init__(self, settings): pass
    def warm_up(self):
        one.stop()
        time.sleep({seconds})
    def close(self): pass
    def refresh(self): pass

server.QueryService = QueryService
one = server.Server(load_settings(flags=["api.port=0"]))
one.run()
"""


@pytest.mark.parametrize("seconds", [0.5, 600])
def test_stop_does_not_wait_for_compiling(seconds: float) -> None:
    """However long it takes: the process ends in its own time or at once, and does not say that it answers."""
    program = [sys.executable, "-c", _COMPILES.format(seconds=seconds)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")
