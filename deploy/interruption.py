"""Knows how Ctrl-C and SIGTERM end a program: with an exception, whatever was being done.

Does not know what the program does, nor how it cleans up.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = signal.SIGINT, signal.SIGTERM


@contextmanager
def interruptible(*, once: bool = False) -> Iterator[None]:
    """Let the signals end this context with a KeyboardInterrupt.

    The Kafka client's compiled code may replace an exception that a signal raises within it by one of its own, such as
    `TypeError: expected configuration property name as type unicode string`.

    Args:
        once: whether later signals are ignored, so that they cannot cut the cleanup short.

    Raises:
        KeyboardInterrupt: a signal came, unless the context has caught it.
    """
    interrupted = False

    def interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
        nonlocal interrupted
        interrupted = True
        if once:
            ignore_signals()
        raise KeyboardInterrupt

    _handle(interrupt)
    try:
        yield
    except (SystemError, TypeError) as error:
        if not interrupted:
            raise
        raise KeyboardInterrupt from error


def ignore_signals() -> None:
    """Let nothing cut a cleanup short."""
    # Not SIG_IGN: programs started from here would inherit it, and a signal that comes amid the change would be
    # reported on the terminal.
    _handle(lambda _signum, _frame: None)


def _handle(handler: "signal._HANDLER") -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)
