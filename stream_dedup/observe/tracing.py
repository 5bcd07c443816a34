"""OpenTelemetry: a tracer whose spans go to a collector, from a thread of its own and without waiting for it.

Knows the packages of the extra `otel` and how they are set up; knows nothing of what is traced.
"""

import socket
import threading
from types import TracebackType
from typing import Self

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import HOST_NAME, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

from stream_dedup.settings import SettingsError, TracingSettings
from stream_dedup.version import __version__

_PATH = "/v1/traces"
_CLOSE_SECONDS = 2.0  # for what is still to be sent at the end; a collector that is silent would take half a minute
_NAMELESS = "unknown_service"  # what the packages call a service that nothing names


class Tracing:
    """Exports spans from entering to leaving the context. Where the collector is gone they are dropped.

    What the settings do not say is as OpenTelemetry's variables (OTEL_...) say.

    Args:
        settings: where the collector is.

    Raises:
        SettingsError: one of the variables cannot be used.
    """

    def __init__(self, settings: TracingSettings) -> None:
        try:
            exporter = OTLPSpanExporter(settings.endpoint.rstrip("/") + _PATH if settings.endpoint else None)
            # What is sampled is decided before a span is made: there is none to be dropped here.
            self._provider = TracerProvider(ALWAYS_ON, _resource(), shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        except ValueError as error:
            raise SettingsError(f"tracing: {error}") from None

    @property
    def tracer(self) -> Tracer:
        """Makes the spans."""
        return self._provider.get_tracer("stream_dedup", __version__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        closing = threading.Thread(target=self._provider.shutdown, name="tracing", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


def _resource() -> Resource:
    """Return who sends: as OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say, and what is known beside."""
    told = Resource.create()
    own = {SERVICE_NAME: "stream-dedup", SERVICE_VERSION: __version__, HOST_NAME: socket.gethostname()}
    named = {name for name, value in told.attributes.items() if not str(value).startswith(_NAMELESS)}
    return told.merge(Resource({name: value for name, value in own.items() if name not in named}))
