"""Logs: one event per line, with a stable name and fields.

Knows formats, levels and what must not be shown; knows no event.
"""

import json
import logging
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TextIO, cast

import structlog

from stream_dedup.observe.faults import full_traceback, traceback_without_messages
from stream_dedup.settings import REDACTED, LogSettings

_SHORTEST_SECRET = 6  # characters: shorter ones occur in ordinary words


def configure_logs(settings: LogSettings, secrets: Collection[str] = ()) -> None:
    """Send logs to standard error, for people or as JSON.

    Args:
        settings: level and format.
        secrets: strings that no line may contain.
    """
    as_json = settings.format == "json"
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _with_exception,
            *(_for_machines() if as_json else _for_people()),
            _Redaction(secrets),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, settings.level.upper())),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _LossyFile(sys.stderr))),
        cache_logger_on_first_use=False,
    )


class _LossyFile:
    """Loses lines rather than ending whoever writes them, for instance while the disk is full.

    A pipe that its reader has closed is still an error: nobody would ever see a line again.

    Args:
        file: to write to.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        """Write a line, or lose it.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        with _losing_lines():
            self._file.write(line)

    def flush(self) -> None:
        """Write what is buffered; see `write`."""
        with _losing_lines():
            self._file.flush()


@contextmanager
def _losing_lines() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        pass


def _for_machines() -> list[structlog.typing.Processor]:
    return [_in_order, structlog.processors.JSONRenderer(ensure_ascii=False)]


def _with_exception(
    _logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add the stack of an exception; its message only at the level debug, because it may contain an article's text."""
    told = event.pop("exc_info", None)
    error = told[1] if isinstance(told, tuple) else sys.exception()
    if told and error is not None:
        event["exception"] = full_traceback(error) if method == "debug" else traceback_without_messages(error)
    return event


def _in_order(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put the fields that every line has first."""
    return {name: event.pop(name) for name in ("timestamp", "level", "event")} | dict(event)


def _for_people() -> list[structlog.typing.Processor]:
    # With any other formatter the renderer warns about exceptions that are already formatted.
    plain = structlog.dev.plain_traceback
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")  # https://no-color.org
    return [structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain)]


def _written(text: str) -> set[str]:
    """Return the forms in which a text may occur in others: as it is, in JSON, and in a Python repr of either quote."""
    quoted = repr(f"{text}'\"")[1:-4]  # with both quotes in it, repr uses single quotes and escapes them
    return {text, json.dumps(text, ensure_ascii=False)[1:-1], quoted, quoted.replace("\\'", "'")}


class _Redaction:
    """Replaces secrets in a finished line, whatever put them there.

    Args:
        secrets: unescaped; their escaped forms, in either log format and in messages that quote values, are derived.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        told = (secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
        written = {line for secret in told for quoted in _written(secret) for line in _written(quoted)}
        # Longest first: one may be part of another.
        self._secrets = sorted(written, key=len, reverse=True)

    def __call__(self, _logger: structlog.typing.WrappedLogger, _method: str, line: object) -> str:
        told = str(line)
        for secret in self._secrets:
            told = told.replace(secret, REDACTED)
        return told
