"""Watches the poll loop from a separate thread, and logs the stacks of all threads when it is stuck.

Knows silence, stacks and a signal; knows nothing of what the loop does.

If the loop is stuck but releases the interpreter now and then, this thread notices. If native code holds the
interpreter, a timer of `faulthandler` notices, which does not need the interpreter and can only write plain text.
"""

import faulthandler
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from stream_dedup.observe.health import Health
from stream_dedup.observe.stacks import stacks

_LOOK_SECONDS = 1.0  # between two checks, at most
_LOOKS = 4  # checks, at least, before the loop counts as stuck
_MOST_SIGNALS = 64
_STANDARD_ERROR = 2  # the descriptor: `faulthandler` writes to it without the interpreter

log = structlog.get_logger()


class Watchdog:
    """Watches while the context is active; if entered in the main thread, it also handles SIGUSR1.

    Each time the loop gets stuck, the stacks are logged once. SIGUSR1 logs them immediately and does not end the
    process; it is handled even while the main thread is in native code.

    Args:
        health: has the heartbeat to watch.
        dumped: called each time that stacks are logged.
        ends: whether a stuck loop ends the process with exit code 1, after its stacks are logged: for processes that
            have nothing to lose and are restarted.
    """

    def __init__(self, health: Health, dumped: Callable[[], None] = lambda: None, *, ends: bool = False) -> None:
        self._health = health
        self._dumped = dumped
        self._ends = ends
        self._stuck_since: float | None = None  # by `time.monotonic`
        self._looked_at = time.monotonic()
        # Signals and the request to end arrive as bytes on a socket, so that the thread can sleep until either comes.
        self._hearing, self._telling = socket.socketpair()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._telling.setblocking(False)
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._telling.fileno(), warn_on_full_buffer=False)
            # The interpreter writes to the socket before it calls the handler, but only if there is a handler.
            signal.signal(signal.SIGUSR1, lambda *_: None)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._telling.send(b"\0")
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        self._hearing.close()
        self._telling.close()

    def _watch(self) -> None:
        while not self._ending.is_set():
            patience = self._health.allowed_silence()
            pause = min(_LOOK_SECONDS, patience / _LOOKS)
            # If this thread does not get back here in time, something is holding the interpreter.
            faulthandler.dump_traceback_later(patience + pause, exit=self._ends, file=_STANDARD_ERROR)
            if signal.SIGUSR1 in self._heard(pause):
                log.warning("stacks_asked_for", stack=stacks())
                self._dumped()
            self._look(patience)

    def _heard(self, seconds: float) -> bytes:
        """Sleep until the next check is due or a signal arrives; return the numbers of the signals."""
        readable, _, _ = select.select([self._hearing], [], [], seconds)
        return self._hearing.recv(_MOST_SIGNALS) if readable else b""

    def _look(self, patience: float) -> None:
        now, silence = time.monotonic(), self._health.silence()
        held, self._looked_at = now - self._looked_at, now
        if held > patience:
            log.error("interpreter_held", seconds=round(held, 1))
            self._dumped()
        if silence > patience and self._stuck_since is None:
            self._stuck_since = now - silence
            log.error("loop_stuck", seconds=round(silence, 1), stack=stacks())
            self._dumped()
            if self._ends:
                sys.stderr.flush()
                # Exit without cleanup, which could wait for something that the loop holds.
                os._exit(1)
        elif silence <= patience and self._stuck_since is not None:
            log.warning("loop_goes_on", seconds=round(now - silence - self._stuck_since, 1))
            self._stuck_since = None
