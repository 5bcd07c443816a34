"""What every test starts with, whatever ran before it: default logging and signals, and a Ctrl-C that works.

Also keeps the garbage collector from what is loaded to stay. Knows nothing else.
"""

import gc
import signal
import threading
from collections.abc import Generator, Iterator

import pytest
import structlog


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what is loaded: it stays, and to look it through took a third of the loading."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """Undo what shells do to background jobs: they, and their children, would ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signals_as_at_first() -> Iterator[None]:
    """Remove the signal handlers of a command that ran in this process: the next Ctrl-C is not for it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _logs_as_at_first() -> Iterator[None]:
    """Undo what the command line configured: its output belongs to this test, and is closed after it."""
    yield
    for thread in threading.enumerate():
        # It would later log its count of repeats into the output of another test.
        if isinstance(thread, threading.Timer) and thread.name == "recurring_faults":
            thread.cancel()
    structlog.reset_defaults()
