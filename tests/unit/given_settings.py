"""Settings as a user gives them, and what is said about those that are refused.

Knows files, the environment and flags; knows no setting.
"""

from pathlib import Path

import pytest

from stream_dedup.settings import SettingsError, load_settings


def toml(directory: Path, text: str) -> Path:
    """Return a settings file with this text."""
    path = directory / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(*flags: str, file: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Return what is said about settings that are refused."""
    with pytest.raises(SettingsError) as raised:
        load_settings(file, environment, flags)
    return str(raised.value)
