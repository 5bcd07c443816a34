"""The demo's service: how long it may take to start, and the command for querying it."""

import json
import subprocess
from pathlib import Path

import pytest

from deploy.demo.service import READY_SECONDS, command_to_ask
from stream_dedup.observe.health import Health


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


def test_a_start_may_take_as_long_as_the_service_itself_allows() -> None:
    """On a busy machine compiling takes minutes: the demo does not give up before `/healthz` does."""
    assert Health(stuck_seconds=60).allowed_silence() <= READY_SECONDS
