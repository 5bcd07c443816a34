"""What every test finds, whatever came before it: logs and signals as they were at first, and a Ctrl-C that is heard.

Knows nothing else.
"""

import signal
import threading
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """Undo what a shell does to its background jobs: they, and what they start, would ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signals_as_at_first() -> Iterator[None]:
    """Undo what a command heeds that ran in this process: the next Ctrl-C is none of its business."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _logs_as_at_first() -> Iterator[None]:
    """Undo what the command line configured: its output is this test's, and closed when the test is over."""
    yield
    for thread in threading.enumerate():
        # It would tell how often something came once more, into the output of another test.
        if isinstance(thread, threading.Timer) and thread.name == "recurring_faults":
            thread.cancel()
    structlog.reset_defaults()
