"""`python -m tests.faults.runner --at STEP --after N -- ...`: the service, hit by a signal at a step of the protocol.

Knows the steps and signals; knows nothing of what the service does between them. No setting of the service leads here.
"""

import argparse
import os
import runpy
import signal
import sys
from collections.abc import Sequence

from stream_dedup.stream import protocol
from stream_dedup.stream.protocol import Step

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Fuse:
    """Sends this process a signal when a step is reached for the n-th time.

    Args:
        step: the step.
        after: n, from 1.
        number: of the signal.
    """

    def __init__(self, step: Step, after: int, number: signal.Signals) -> None:
        self._step = step
        self._left = after
        self._signal = number

    def __call__(self, step: Step) -> None:
        """Stand in for `protocol.reached`."""
        if step is self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)


def main(arguments: Sequence[str]) -> None:
    """Install the fuse and run the service's command line."""
    options = _options(arguments)
    protocol.reached = Fuse(options.at, options.after, SIGNALS[options.signal])
    sys.argv[1:] = options.command
    # Only now, because the service's modules may import the function by name.
    runpy.run_module("stream_dedup", run_name="__main__", alter_sys=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.runner", description=main.__doc__)
    parser.add_argument("--at", type=Step, choices=list(Step), required=True)
    parser.add_argument("--after", type=int, default=1, help="how often the step is reached until then")
    parser.add_argument("--signal", choices=SIGNALS, default="kill")
    parser.add_argument("command", nargs="+", help="arguments of the service, behind --")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
