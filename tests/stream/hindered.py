"""`python -m tests.stream.hindered [--wait GATE] ... -- ...`: the service, slowed down on purpose.

Knows where it is slow, or stands before a gate that a test opens; knows nothing of what a test expects. No setting of
the service leads here.
"""

import argparse
import ctypes
import errno
import os
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from stream_dedup.fingerprint.drift import Drift
from stream_dedup.stream import protocol
from stream_dedup.stream.commit import pipeline
from stream_dedup.stream.protocol import Step
from stream_dedup.stream.state import replay
from stream_dedup.stream.state.changelog import ChangelogReader
from tests.stream.waiting import wait_until

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_SMALL_BYTES = 1 << 10  # of the changelog, read at a time


def made_gate(path: Path) -> Path:
    """Make a gate, which is closed, and return its path."""
    os.mkfifo(path)
    return path


def open_gate(path: Path) -> None:
    """Wait until a process stands before a gate, and let it through."""

    def opened() -> bool:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody is there
                raise
            return False
        return True

    wait_until(opened, f"a process stands before {path}")


class Hindrance:
    """Blocks when the first commit is decided, and again at the second.

    Args:
        wait: the gate of the first block, during which other threads run on.
        hold: the gate of the second block, during which native code holds the GIL.
    """

    def __init__(self, wait: Path, hold: Path) -> None:
        self._halts = [partial(_wait, wait), partial(_hold, hold)]

    def __call__(self, step: Step) -> None:
        """Stand in for `protocol.reached`."""
        if step is Step.DECIDED and self._halts:
            self._halts.pop(0)()


def _wait(gate: Path) -> None:
    os.close(os.open(gate, os.O_RDONLY))


def _hold(gate: Path) -> None:
    # A function of `PyDLL` is called like an extension that does not release the GIL.
    wait: Callable[[bytes, int], int] = ctypes.PyDLL(None).open
    os.close(wait(os.fsencode(gate), os.O_RDONLY))


def _slow_down_replay(pause: float) -> None:
    replay._READ_BYTES = _SMALL_BYTES  # noqa: SLF001  # so that there are many reads
    ChangelogReader.read = _slowed(ChangelogReader.read, pause)  # type: ignore[method-assign]


def _halt_silence(gate: Path) -> None:
    commit, gates = pipeline.commit_without_publishing, [gate]

    def halted(*given: Any, **named: Any) -> Sequence[Drift]:  # noqa: ANN401  # whatever it is given
        if gates:
            _wait(gates.pop())
        return commit(*given, **named)

    pipeline.commit_without_publishing = halted  # before the owner imports it from there


def _slowed(call: Callable[_Given, _Result], pause: float) -> Callable[_Given, _Result]:
    """Return a call that first waits for some seconds."""

    def slow(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        time.sleep(pause)
        return call(*given, **named)

    return slow


def main(arguments: Sequence[str]) -> None:
    """Slow the service down and run its command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.stream.hindered", description=main.__doc__)
    parser.add_argument("--wait", type=Path, help="gate before the first commit; see `Hindrance`")
    parser.add_argument("--hold", type=Path, help="gate before the second")
    parser.add_argument("--replay-pause", type=float, default=0.0)
    parser.add_argument("--silence", type=Path, help="gate before the first commit that publishes nothing")
    parser.add_argument("command", nargs="+", help="arguments of the service, behind --")
    options = parser.parse_args(arguments)
    if options.wait:
        protocol.reached = Hindrance(options.wait, options.hold)
    if options.replay_pause:
        _slow_down_replay(options.replay_pause)
    if options.silence:
        _halt_silence(options.silence)
    sys.argv[1:] = options.command
    runpy.run_module("stream_dedup", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
