"""Logs what would otherwise bypass the log: uncaught exceptions, warnings, and messages of libraries to `logging`.

Knows the interpreter's hooks; knows nothing of formats.
"""

import faulthandler
import logging
import sys
import threading
import warnings
from types import TracebackType
from typing import TextIO

import structlog

from stream_dedup.observe.faults import traceback_without_messages
from stream_dedup.observe.recurring_faults import RecurringFaults

log = structlog.get_logger()
_recurring_faults = RecurringFaults()


def install_log_hooks() -> None:
    """Turn all of these into log events, from now on in the whole process.

    A crash of the interpreter itself (a segmentation fault) can only be reported as plain text: all threads' stacks.
    """
    faulthandler.enable()
    sys.excepthook = _crashed
    threading.excepthook = _thread_crashed
    sys.unraisablehook = _lost
    warnings.showwarning = _warned
    logging.basicConfig(handlers=[_Handler(logging.WARNING)], force=True)


def _crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)  # Ctrl-C ends the process as usual
        return
    log.error("crashed", error=kind.__name__, exc_info=(kind, error, trace))
    log.debug("exception_in_full", exc_info=(kind, error, trace))


def _thread_crashed(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is None or told.exc_type is SystemExit:
        return
    name = told.thread.name if told.thread is not None else ""
    trace = (told.exc_type, told.exc_value, told.exc_traceback)
    log.error("thread_crashed", thread=name, error=told.exc_type.__name__, exc_info=trace)
    log.debug("exception_in_full", exc_info=trace)


def _lost(told: "sys.UnraisableHookArgs") -> None:
    """Log an exception that cannot propagate: from a destructor or a callback."""
    error, where = told.exc_value, told.err_msg or "exception ignored"
    trace = (type(error), error, told.exc_traceback) if error is not None else None
    log.error("exception_lost", error=told.exc_type.__name__, detail=where, exc_info=trace)
    log.debug("exception_in_full", exc_info=trace)


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del file, line
    _recurring_faults.warning(
        "python_warning", error=f"{category.__name__} at {filename}:{lineno}", detail=str(message)
    )


class _Handler(logging.Handler):
    """Takes log records of libraries. Those below warnings are many, and useless to whoever runs the service."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record; records from the same line of a library count as repetitions."""
        error = record.exc_info[1] if record.exc_info else None
        fields = {"exception": traceback_without_messages(error)} if error is not None else {}
        kind = f"{record.name}:{record.lineno}"
        _recurring_faults.warning("library_warning", error=kind, detail=record.getMessage(), **fields)
