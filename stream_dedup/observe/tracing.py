"""OpenTelemetry: a tracer whose spans are sent to a collector from a separate thread, so that nothing waits for it.

Knows the packages of the extra `otel` and how they are set up; knows nothing of what is traced.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import HOST_NAME, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

from stream_dedup.settings import SettingsError, TracingSettings
from stream_dedup.version import __version__

_PATH = "/v1/traces"
_CLOSE_SECONDS = 2.0  # to send the remaining spans at the end; a silent collector would take half a minute
_NAMELESS = "unknown_service"  # the packages' default for a service without a name


@contextmanager
def tracer(settings: TracingSettings) -> Iterator[Tracer]:
    """Yield a tracer whose spans are exported while the context is active; without a collector they are dropped.

    OpenTelemetry's variables (OTEL_...) apply where the settings do not say otherwise.

    Args:
        settings: the address of the collector.

    Raises:
        SettingsError: one of the variables is invalid.
    """
    try:
        exporter = OTLPSpanExporter(settings.endpoint.rstrip("/") + _PATH if settings.endpoint else None)
        # Sampling is decided before a span is created, so the provider keeps all.
        provider = TracerProvider(ALWAYS_ON, _resource(), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except ValueError as error:
        raise SettingsError(f"tracing: {error}") from None
    try:
        yield provider.get_tracer("stream_dedup", __version__)
    finally:
        closing = threading.Thread(target=provider.shutdown, name="tracing", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


def _resource() -> Resource:
    """Return the sender: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence over our own attributes."""
    told = Resource.create()
    own = {SERVICE_NAME: "stream-dedup", SERVICE_VERSION: __version__, HOST_NAME: socket.gethostname()}
    named = {name for name, value in told.attributes.items() if not str(value).startswith(_NAMELESS)}
    return told.merge(Resource({name: value for name, value in own.items() if name not in named}))
