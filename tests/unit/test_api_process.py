"""If the system refuses to start the API's process, it is retried, and the service continues."""

import subprocess
import sys
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream_dedup.api import process
from stream_dedup.api.process import ApiProcess
from stream_dedup.settings import Settings

_SECONDS = 30.0
_NO_ROOM = BlockingIOError(11, "Resource temporarily unavailable")


def test_process_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same holds for a process that exits before reading its settings."""
    begun = threading.Event()
    outcomes: list[str | None] = [None, "raise SystemExit(3)", "import sys; sys.stdin.read()"]
    start = subprocess.Popen

    def started(_command: list[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  # whatever is given
        code = outcomes.pop(0)
        if code is None:
            raise _NO_ROOM
        one: subprocess.Popen[bytes] = start([sys.executable, "-c", code], **options)
        if outcomes:
            one.wait()
        else:
            begun.set()
        return one

    monkeypatch.setattr(process, "_LEAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(subprocess, "Popen", started)
    with capture_logs() as lines, ApiProcess(Settings.model_validate({"api": {"enabled": True}})):
        assert begun.wait(_SECONDS)
    told = [(line["event"], line.get("exit_code")) for line in lines]
    assert told == [("api_not_started", None), ("api_ended", 3)]
