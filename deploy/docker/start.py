"""The image's first process: the command line, which handles SIGTERM and Ctrl-C from the very start.

Knows that process 1 has no default handlers, and that the service takes seconds to load; knows nothing of the service.
"""

import os
import signal
import sys


def _end(number: int, _frame: object) -> None:
    os._exit(128 + number)  # there is nothing to clean up yet, and an exception could be lost in a finalizer


for _number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(_number, _end)
sys.argv[0] = "stream-dedup"

from stream_dedup.__main__ import main  # noqa: E402  # this is what takes so long

main()
