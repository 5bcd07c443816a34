"""What the service serves and reports besides its outputs: metrics and health, API, shadow, logs, spans.

Knows names and bounds of these settings; knows nothing of where values come from or who uses them.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from stream_dedup.settings.engine import VerifySettings
from stream_dedup.settings.kinds import HOST, HOST_FORM, TOPIC, TOPIC_FORM, Group, SubsetOf, check_url, unit

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_SHORTEST_TOKEN = 16
_UNSENDABLE = re.compile(r"^ | \Z|[\x00-\x1f\x7f]")  # what is no value of an HTTP header


class HttpSettings(Group):
    """Metrics and health probes."""

    host: str = Field(
        default="127.0.0.1", pattern=HOST, json_schema_extra=HOST_FORM, description="Address to listen on."
    )
    port: int = Field(
        default=9108, ge=0, le=65535, description="Port of /metrics, /startupz, /healthz and /readyz; 0: any free port."
    )
    stuck_seconds: float = Field(
        default=60.0,
        ge=3,  # loops that wait for the broker turn about once a second, some every two
        le=3600,
        json_schema_extra=unit("seconds"),
        description="How long the poll loop may be silent before /healthz fails and the stacks of all threads are "
        "logged.",
    )


class ApiSettings(Group):
    """The HTTP API and its web page, which only read the state."""

    enabled: bool = Field(default=False, description="Whether the service starts the API, as a separate process.")
    host: str = Field(
        default="127.0.0.1",
        pattern=HOST,
        json_schema_extra=HOST_FORM,
        description="Address to listen on; any except loopback requires a token.",
    )
    port: int = Field(default=9109, ge=0, le=65535, description="Port; 0: any free port.")
    token: str = Field(
        default="",
        repr=False,
        description="Token that clients must send as `Authorization: Bearer`, at least 16 characters. Empty: no "
        "authentication.",
    )
    refresh_ms: int = Field(
        default=250,
        ge=20,
        le=60_000,
        json_schema_extra=unit("milliseconds"),
        description="Interval at which the API reads what the service has written: the maximum age of answers. After "
        "ten seconds without requests it reads once a second.",
    )
    max_body_bytes: int = Field(
        default=1 << 20,
        ge=1 << 10,
        le=64 << 20,
        json_schema_extra=unit("bytes"),
        description="Maximum size of a request body; a larger one gets 413.",
    )
    nice: int = Field(
        default=0,
        ge=0,
        le=19,
        description="Niceness of the API process. With a higher value it yields to the stream while the cores are "
        "busy, and answers wait.",
    )

    @model_validator(mode="after")
    def _token_guards(self) -> Self:
        if self.token and len(self.token) < _SHORTEST_TOKEN:
            raise ValueError(f"api.token has {len(self.token)} characters, fewer than the required {_SHORTEST_TOKEN}")
        if _UNSENDABLE.search(self.token):
            raise ValueError("api.token has a control character, or space around it: no client can send that")
        if not self.token and self.host not in _LOOPBACK:
            raise ValueError(f"api.host = {self.host!r} can be reached from other machines: set an api.token")
        return self


class ShadowSettings(Group):
    """Other thresholds, tried alongside those in force without any effect on the output."""

    enabled: bool = Field(
        default=False,
        description="Whether the stream is judged a second time, on a separate state that starts as a copy of the "
        "live one.",
    )
    verify: Annotated[dict[str, JsonValue], SubsetOf(VerifySettings)] = Field(
        default={}, description="Thresholds that differ from `verify`, by name; the others are those in force."
    )
    topic: str = Field(
        default="articles.shadow", pattern=TOPIC, json_schema_extra=TOPIC_FORM, description="Topic of disagreements."
    )
    sample: float = Field(
        default=1.0,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Share of the disagreements that is sent, selected by the hash of the article's id. All are "
        "counted.",
    )


class LogSettings(Group):
    """Logs."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum level that is logged."
    )
    format: Literal["console", "json"] = Field(
        default="console", description="`console` is for people, `json` for machines."
    )


class TracingSettings(Group):
    """OpenTelemetry spans of commits and of sampled messages. Requires the extra `otel`."""

    enabled: bool = Field(default=False, description="Whether spans are created and sent.")
    endpoint: str = Field(
        default="",
        description="URL of the collector (OTLP over HTTP), without a path: `http://collector:4318`. Empty: the value "
        "of OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    sample: float = Field(
        default=0.01,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Share of the commits without a sampled message that get a trace. Commits with one always do.",
    )

    # Validates the whole group, so that the error does not show the value, which may contain secrets.
    @model_validator(mode="after")
    def _endpoint_is_plain(self) -> Self:
        if self.endpoint:
            check_url("tracing.endpoint", self.endpoint, "OTEL_EXPORTER_OTLP_HEADERS")
            if self.endpoint.rstrip("/").endswith("/v1/traces"):
                raise ValueError("tracing.endpoint must not end with /v1/traces, which is added to it")
        return self
