"""The API's process is started again whenever it ends, and ends with the service, whatever it is at."""

import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
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


def test_process_that_keeps_ending_is_started_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause is twice the one before, up to a minute; once a process has worked for longer they begin anew."""
    pauses, now, worked = list[float](), [0.0], [0, 0, 0, 0, 0, 0, 0, 60, 61, 0]
    api = ApiProcess(Settings.model_validate({"api": {"enabled": True}}))

    def ended(_process: object) -> int:
        now[0] += worked[len(pauses)]
        return 1

    def waited(pause: float) -> bool:
        pauses.append(pause)
        return len(pauses) == len(worked)

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(process, "_code_of", ended)
    monkeypatch.setattr(api, "_started", object)
    monkeypatch.setattr(api, "_ending", SimpleNamespace(is_set=lambda: False, wait=waited))
    with capture_logs():
        api._keep()  # noqa: SLF001  # in a thread of its own, a test could only wait for it
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 1, 2]


def test_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs must not keep the service from its own end."""
    begun, start = list[subprocess.Popen[bytes]](), subprocess.Popen
    ready = threading.Event()

    def started(_command: list[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  # whatever is given
        begun.append(start([sys.executable, "-c", f"import time; time.sleep({_SECONDS})"], **options))
        ready.set()
        return begun[0]

    monkeypatch.setattr(process, "_END_SECONDS", 0.1)
    monkeypatch.setattr(subprocess, "Popen", started)
    with ApiProcess(Settings.model_validate({"api": {"enabled": True}})):
        assert ready.wait(_SECONDS)
    assert [one.returncode for one in begun] == [-signal.SIGKILL]
