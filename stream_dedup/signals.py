"""What SIGTERM and Ctrl-C do: end a command at once or in its own way, or wait for the end of a call.

Knows signals, the terminal's cursor and temporary directories; knows no command.
"""

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

from stream_dedup.scratch import remove_own

Handler = Callable[[int, object], object]

_ENDING = signal.SIGTERM, signal.SIGINT
_SHOW_CURSOR = b"\x1b[?25h\r\n"  # below whatever was being drawn
_STDOUT, _STDERR = 1, 2


def handle_signals(handler: Handler, *numbers: signal.Signals) -> Mapping[signal.Signals, Any]:
    """Install a handler for signals, by default SIGTERM and SIGINT; return the previous handlers.

    A signal that is ignored stays ignored: a shell starts its background jobs with Ctrl-C ignored.
    """
    heard = [number for number in numbers or _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heard}


def exit_at_once_on_signals() -> None:
    """Let SIGTERM and Ctrl-C end the process wherever it is, unless the command handles them in its own way.

    In a compiled loop or an import, an exception would be lost or end in a crash.
    """
    handle_signals(exit_by_signal)


def exit_by_signal(number: int, _frame: object = None) -> NoReturn:
    """End the process because of a signal, as `leave` does."""
    leave(128 + number, b"error: interrupted\n" if number == signal.SIGINT else b"")


def leave(code: int, told: bytes = b"") -> NoReturn:
    """End the process without an exception; temporary directories are removed and the terminal is restored.

    Nothing here waits for a lock, which the interrupted code may hold, or for a terminal that accepts no output.

    Args:
        code: exit code.
        told: text for standard error.
    """
    try:
        for place, text in ((_STDOUT, b""), (_STDERR, told)):
            _write(place, (_SHOW_CURSOR if os.isatty(place) else b"") + text)
        remove_own()
    finally:
        os._exit(code)


def _write(place: int, text: bytes) -> None:
    if text and select.select([], [place], [], 0.0)[1]:
        os.write(place, text)


def raise_by_signal(number: int, _frame: object = None) -> NoReturn:
    """End because of a signal, cleaning up on the way out."""
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def handling_signals(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals while the context lasts; see `handle_signals`."""
    before = handle_signals(handler, *numbers)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def holding_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise its KeyboardInterrupt at the end of the context; inside, a compiled loop could not cope with it.

    Only where it would raise one: in the main thread, without a handler of the program's own. As a decorator, it holds
    Ctrl-C during each call.
    """
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard: list[int] = []
    try:
        with handling_signals(lambda number, _: heard.append(number), signal.SIGINT):
            yield
    finally:
        if heard:
            raise_by_signal(heard[0])


def cleaning_up_on_signals() -> AbstractContextManager[None]:
    """Clean up when ended by SIGTERM or Ctrl-C; only for where no compiled loop runs."""
    return handling_signals(raise_by_signal)
