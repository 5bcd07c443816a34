"""Whether commits are traced.

Knows the setting, and that the extra `otel` may be missing; knows no span.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from stream_dedup.settings import Settings, SettingsError

if TYPE_CHECKING:
    from stream_dedup.stream.watching.spans import Spans

_EXTRA = "tracing.enabled needs more packages: pip install 'stream-dedup[otel]'"

log = structlog.get_logger()


def check_tracing(settings: Settings) -> None:
    """Check that the packages are installed, if commits are to be traced.

    Raises:
        SettingsError: one is missing.
    """
    if settings.tracing.enabled:
        try:
            from stream_dedup.observe import tracing as _  # noqa: F401, PLC0415  # of the extra
        except ImportError as error:
            raise SettingsError(f"{_EXTRA} ({error})") from None


@contextmanager
def traced(settings: Settings) -> Iterator["Spans | None"]:
    """Yield what makes the spans of commits; None if tracing is off, and then no package is loaded for it.

    Raises:
        SettingsError: a package is missing, or a variable of OpenTelemetry cannot be used.
    """
    check_tracing(settings)
    if not settings.tracing.enabled:
        yield None
        return
    from stream_dedup.observe.tracing import tracer  # noqa: PLC0415  # of the extra
    from stream_dedup.stream.watching.spans import Spans  # noqa: PLC0415  # the same

    with tracer(settings.tracing) as traces:
        log.info("tracing", endpoint=settings.tracing.endpoint or "OTEL_EXPORTER_OTLP_ENDPOINT")
        yield Spans(traces, settings)
