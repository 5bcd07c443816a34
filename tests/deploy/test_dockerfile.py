"""What can be checked of the Dockerfile without a container engine; tests/image builds and runs it."""

import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from stream_dedup import __version__
from tests.deploy.files import DEPLOY, REPOSITORY

_DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
_CHECK = DEPLOY / "docker" / "healthcheck.py"
_START = DEPLOY / "docker" / "start.py"


def test_hadolint() -> None:
    """The linter has no complaints, not even informational ones."""
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    done = subprocess.run([hadolint, str(_DOCKERFILE)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_base_can_be_pinned() -> None:
    """One argument names the base of all stages, so it can carry a digest."""
    lines = _DOCKERFILE.read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("ARG BASE=")
    others = {line.split()[1] for line in lines if line.startswith("FROM ")} - {"${BASE}"}
    assert others == {"${TARGETARCH}"}  # stages of this file, based on the same image


def test_build_sees_what_it_copies() -> None:
    """Everything copied into the image exists and is not ignored."""
    seen = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [
        name
        for line in _DOCKERFILE.read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for name in line.split()[1:-1]
        if not name.startswith("--")
    ]
    assert copied
    for name in copied:
        assert f"!{name}" in seen
        assert (REPOSITORY / name).exists()


class _Answers(BaseHTTPRequestHandler):
    """A service that is alive but not ready."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()
        self.wfile.write(b"ok\n" if self.path == "/healthz" else b"waiting for the broker\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the overridden name
        """Log nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port it answers on."""
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("path", "code", "told"), [("/healthz", 0, "ok"), ("/readyz", 1, "waiting for the broker")])
def test_health_check(port: int, path: str, code: int, told: str) -> None:
    """It exits with 0 or 1, as the service answers, and prints the answer."""
    done = subprocess.run(
        [sys.executable, "-I", str(_CHECK), path],
        env={"STREAM_DEDUP_HTTP__PORT": str(port)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (code, told)


def test_first_process_is_the_command_line() -> None:
    """With its arguments, and under its name."""
    done = subprocess.run([sys.executable, str(_START), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"stream-dedup {__version__}"
    refused = subprocess.run([sys.executable, str(_START), "no-such"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "Usage: stream-dedup" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_process_hears_signals_while_it_loads(number: signal.Signals) -> None:
    """It installs its own handler: process 1 does not get signals for which it has none."""
    loading = [sys.executable, "-X", "importtime", str(_START), "run"]  # logs each module that is loaded
    with subprocess.Popen(loading, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "pydantic" in line:
                break
        process.send_signal(number)
        told = process.stderr.read()
    assert (process.returncode, "Traceback" in told) == (128 + number, False)
