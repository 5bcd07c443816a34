"""The demo's command for querying its service."""

import json
import subprocess
from pathlib import Path

import pytest

from deploy.demo.service import command_to_ask


@pytest.mark.slow
def test_command_asks_with_the_settings_of_the_service(tmp_path: Path) -> None:
    """For any query and any characters in the settings, the command is `stream-dedup` with these settings."""
    folder = tmp_path / "a folder; with 'signs"
    folder.mkdir()
    ask = command_to_ask(folder / "ask", ["--set", f"state.directory={folder}", "--set", "input.topics=one,two"])
    shown = subprocess.run([ask, "config", "--print"], check=True, capture_output=True, text=True)
    settings = json.loads(shown.stdout)
    assert settings["state"]["directory"] == str(folder)
    assert settings["input"]["topics"] == ["one", "two"]
