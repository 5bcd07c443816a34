"""The settings: what there is, where values come from, and their reference page.

Knows names, bounds and precedence; knows nothing of who uses them.
"""

from stream_dedup.settings.load import SettingsError, load_settings
from stream_dedup.settings.schema import (
    OWN_HEADERS,
    ClusterSettings,
    CommitSettings,
    EngineSettings,
    FieldSettings,
    HttpSettings,
    InputSettings,
    LogSettings,
    OutputSettings,
    Settings,
    StateSettings,
    WindowSettings,
    takes_in,
)

__all__ = [
    "OWN_HEADERS",
    "ClusterSettings",
    "CommitSettings",
    "EngineSettings",
    "FieldSettings",
    "HttpSettings",
    "InputSettings",
    "LogSettings",
    "OutputSettings",
    "Settings",
    "SettingsError",
    "StateSettings",
    "WindowSettings",
    "load_settings",
    "takes_in",
]
