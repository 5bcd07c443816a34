"""Looks after the poll loop from a thread of its own, and tells the log what all threads are at when it is stuck.

Knows silence, stacks and a signal; knows nothing of what the loop does.

A loop that leaves the interpreter to other threads now and then, whatever it waits for, is noticed by this thread. One
that keeps it to itself, in native code, is noticed by a timer of `faulthandler`, which needs no interpreter and can
only write plain text.
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

_LOOK_SECONDS = 1.0  # between two looks, or less:
_LOOKS = 4  # at least, before the loop counts as stuck
_MOST_SIGNALS = 64
_STANDARD_ERROR = 2  # where it is written to without the interpreter

log = structlog.get_logger()


class Watchdog:
    """Watches from entering to leaving the context; entered in the main thread it hears SIGUSR1 as well.

    Each time that the loop is stuck the stacks are told once. SIGUSR1 tells them at once, and ends nothing; it is heard
    also while the main thread is in native code.

    Args:
        health: whose heartbeat is watched.
        dumped: called with each telling of the stacks.
        ends: whether a loop that is stuck ends the process, once its stacks are told, with exit code 1: where nothing
            is lost by it and somebody starts it again.
    """

    def __init__(self, health: Health, dumped: Callable[[], None] = lambda: None, *, ends: bool = False) -> None:
        self._health = health
        self._dumped = dumped
        self._ends = ends
        self._stuck_since: float | None = None  # by `time.monotonic`
        self._looked_at = time.monotonic()
        # Signals, and the end, are bytes on a socket: so the thread can sleep and hear them.
        self._hearing, self._telling = socket.socketpair()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._telling.setblocking(False)
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._telling.fileno(), warn_on_full_buffer=False)
            # The interpreter writes to the socket before it comes to any handler; there must be one.
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
            patience = self._health.patience()
            pause = min(_LOOK_SECONDS, patience / _LOOKS)
            # If this thread does not come round again in time, none of the interpreter's does.
            faulthandler.dump_traceback_later(patience + pause, exit=self._ends, file=_STANDARD_ERROR)
            if signal.SIGUSR1 in self._heard(pause):
                log.warning("stacks_asked_for", stack=stacks())
                self._dumped()
            self._look(patience)

    def _heard(self, seconds: float) -> bytes:
        """Sleep until it is time to look again, or a signal has come; return the numbers of signals."""
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
                # Whatever the loop holds, no other thread waits for it then.
                os._exit(1)
        elif silence <= patience and self._stuck_since is not None:
            log.warning("loop_goes_on", seconds=round(now - silence - self._stuck_since, 1))
            self._stuck_since = None
