"""The extra `otel` is loaded only if it is needed, and named if it is missing."""

import subprocess
import sys

import pytest

from stream_dedup import observe
from stream_dedup.settings import Settings, SettingsError, load_settings
from stream_dedup.stream.watching.traced import check_tracing, traced

_PACKAGE = "opentelemetry.sdk"
_ENABLED = Settings.model_validate({"tracing": {"enabled": True}})


@pytest.mark.slow
def test_nothing_is_loaded_where_nothing_is_traced() -> None:
    """A service that does not trace needs none of the packages."""
    code = f"""
import sys
import stream_dedup.stream.service
from stream_dedup.settings import Settings
from stream_dedup.stream.watching.traced import traced
with traced(Settings()) as spans:
    assert spans is None
assert not [name for name in sys.modules if name.startswith({_PACKAGE!r})]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to install it; without tracing there is no error."""
    for name in ("stream_dedup.observe.tracing", *(name for name in sys.modules if name.startswith(_PACKAGE))):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(observe, "tracing", raising=False)  # where an import looks first
    monkeypatch.setitem(sys.modules, _PACKAGE, None)  # importing it fails
    check_tracing(Settings())
    with pytest.raises(SettingsError, match=r"pip install 'stream-dedup\[otel\]'"):
        check_tracing(_ENABLED)


def test_variable_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry's variables are read by its own packages."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    with pytest.raises(SettingsError, match=r"tracing: max_export_batch_size must be"), traced(_ENABLED):
        pass


@pytest.mark.parametrize(
    ("endpoint", "named"),
    [
        ("collector:4318", "http://"),
        ("http://u:hidden-word@c:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://collector:4318/v1/traces", "must not end with /v1/traces"),
        ("http://collector:4318/v1/traces/", "must not end with /v1/traces"),
    ],
)
def test_endpoint_without_a_scheme_or_with_credentials_or_the_path_is_refused(endpoint: str, named: str) -> None:
    """The error does not show the credentials."""
    with pytest.raises(SettingsError, match=named) as refused:
        load_settings(flags=[f"tracing.endpoint={endpoint}"])
    assert "hidden-word" not in str(refused.value)
