"""The settings: which there are, where their values come from, and their reference page.

Knows names, bounds and precedence; knows nothing of who uses them.
"""

from stream_dedup.settings.engine import ClusterSettings, EngineSettings, WindowSettings
from stream_dedup.settings.load import SettingsError, load_settings, redacted_flag
from stream_dedup.settings.redaction import REDACTED
from stream_dedup.settings.schema import Settings
from stream_dedup.settings.serving import HttpSettings, LogSettings, TracingSettings
from stream_dedup.settings.stream import (
    OWN_HEADERS,
    CommitSettings,
    FieldSettings,
    FormatName,
    InputSettings,
    OutputSettings,
    StateSettings,
    is_expression,
    topic_matches,
)

__all__ = [
    "OWN_HEADERS",
    "REDACTED",
    "ClusterSettings",
    "CommitSettings",
    "EngineSettings",
    "FieldSettings",
    "FormatName",
    "HttpSettings",
    "InputSettings",
    "LogSettings",
    "OutputSettings",
    "Settings",
    "SettingsError",
    "StateSettings",
    "TracingSettings",
    "WindowSettings",
    "is_expression",
    "load_settings",
    "redacted_flag",
    "topic_matches",
]
