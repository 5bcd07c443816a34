"""Logs: one event a line, with a stable name and fields.

Knows formats, levels and what must not be shown; knows no event.
"""

import json
import logging
import sys
from collections.abc import Collection

import structlog

from stream_dedup.observe.faults import in_full, stack_of
from stream_dedup.settings import REDACTED, LogSettings

_SHORTEST_SECRET = 6  # characters: shorter ones stand in many words


def configure_logs(settings: LogSettings, secrets: Collection[str] = ()) -> None:
    """Send logs to standard error, for people or as JSON.

    Args:
        settings: level and format.
        secrets: what no line may hold.
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
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _for_machines() -> list[structlog.typing.Processor]:
    return [_in_order, structlog.processors.JSONRenderer(ensure_ascii=False)]


def _with_exception(
    _logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Tell of an exception where it was raised, and what it says at the level debug alone: it may be an article."""
    told = event.pop("exc_info", None)
    error = told[1] if isinstance(told, tuple) else sys.exception()
    if told and error is not None:
        event["exception"] = in_full(error) if method == "debug" else stack_of(error)
    return event


def _in_order(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put first what every line has."""
    return {name: event.pop(name) for name in ("timestamp", "level", "event")} | dict(event)


def _for_people() -> list[structlog.typing.Processor]:
    # With any other formatter it asks for exceptions that nothing has formatted before.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _written(text: str) -> set[str]:
    """Return how a text stands within others: as it is, in JSON, and in Python's two quotes."""
    quoted = repr(f"{text}'\"")[1:-4]  # both quotes: so it is written in single ones, and these escaped
    return {text, json.dumps(text, ensure_ascii=False)[1:-1], quoted, quoted.replace("\\'", "'")}


class _Redaction:
    """Replaces secrets in a finished line, whoever put them there.

    Args:
        secrets: as they are; both formats write some characters otherwise, and so do messages that quote what is wrong.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        told = (secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
        written = {line for secret in told for quoted in _written(secret) for line in _written(quoted)}
        # The longest first: one may be part of another.
        self._secrets = sorted(written, key=len, reverse=True)

    def __call__(self, _logger: structlog.typing.WrappedLogger, _method: str, line: object) -> str:
        told = str(line)
        for secret in self._secrets:
            told = told.replace(secret, REDACTED)
        return told
