"""Exceptions without their messages, which may contain text of an article.

Knows stacks; knows no event.
"""

import traceback
from collections.abc import Iterator
from pathlib import Path

_FRAMES = 6  # the innermost
_OF_THE_SYSTEM = (OSError, MemoryError, ImportError)  # their messages are about files, memory and modules
_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def raised_at(error: BaseException) -> str:
    """Return the innermost frames of an exception as `file.py:line function`, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))


def full_traceback(error: BaseException) -> str:
    """Return an exception with its stack and the exceptions that led to it, as Python formats them."""
    return "".join(traceback.format_exception(error)).rstrip()


def traceback_without_messages(error: BaseException) -> str:
    """Return the same without the exceptions' messages, except those of system errors."""
    return "".join(_told(error)).rstrip()


def _told(error: BaseException) -> Iterator[str]:
    if error.__cause__ is not None:
        yield from (*_told(error.__cause__), _CAUSED)
    elif error.__context__ is not None and not error.__suppress_context__:
        yield from (*_told(error.__context__), _DURING)
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__name__}{f': {error}' if isinstance(error, _OF_THE_SYSTEM) else ''}\n"
