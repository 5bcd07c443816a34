"""`python -m tests.stream.hindered [--wait S] ... -- ...`: the service, slowed down on purpose.

Knows where it is slow; knows nothing of what a test expects. No setting of the service leads here.
"""

import argparse
import ctypes
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from stream_dedup.stream import protocol
from stream_dedup.stream.commit import pipeline
from stream_dedup.stream.protocol import Step
from stream_dedup.stream.state import replay
from stream_dedup.stream.state.changelog import ChangelogReader

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_SMALL_BYTES = 1 << 10  # of the changelog, read at a time


class Hindrance:
    """Blocks when the first commit is decided, and again at the second.

    Args:
        wait: seconds of the first block, during which other threads run on.
        hold: seconds of the second block, during which native code holds the GIL.
    """

    def __init__(self, wait: int, hold: int) -> None:
        self._halts = [partial(_wait, wait), partial(_hold, hold)]

    def __call__(self, step: Step) -> None:
        """Stand in for `protocol.reached`."""
        if step is Step.DECIDED and self._halts:
            self._halts.pop(0)()


def _wait(seconds: int) -> None:
    time.sleep(seconds)


def _hold(seconds: int) -> None:
    # A function of `PyDLL` is called like an extension that does not release the GIL.
    sleep: Callable[[int], int] = ctypes.PyDLL(None).sleep
    sleep(seconds)


def _slow_down_replay(pause: float) -> None:
    replay._READ_BYTES = _SMALL_BYTES  # noqa: SLF001  # so that there are many reads
    ChangelogReader.read = _slowed(ChangelogReader.read, pause)  # type: ignore[method-assign]


def _slow_down_silence(pause: float) -> None:
    pipeline.commit_without_publishing = _slowed(
        pipeline.commit_without_publishing, pause
    )  # before the owner imports it from there


def _slowed(call: Callable[_Given, _Result], pause: float) -> Callable[_Given, _Result]:
    """Return a call that first waits for some seconds."""

    def slow(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        time.sleep(pause)
        return call(*given, **named)

    return slow


def main(arguments: Sequence[str]) -> None:
    """Slow the service down and run its command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.stream.hindered", description=main.__doc__)
    parser.add_argument("--wait", type=int, default=0)
    parser.add_argument("--hold", type=int, default=0)
    parser.add_argument("--replay-pause", type=float, default=0.0)
    parser.add_argument("--silence-pause", type=float, default=0.0)
    parser.add_argument("command", nargs="+", help="arguments of the service, behind --")
    options = parser.parse_args(arguments)
    if options.wait or options.hold:
        protocol.reached = Hindrance(options.wait, options.hold)
    if options.replay_pause:
        _slow_down_replay(options.replay_pause)
    if options.silence_pause:
        _slow_down_silence(options.silence_pause)
    sys.argv[1:] = options.command
    runpy.run_module("stream_dedup", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
