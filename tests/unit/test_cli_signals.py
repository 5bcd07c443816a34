"""Signals and closed pipes end a command at once, with their own exit codes and without a traceback.

Knows processes; knows nothing of what a command would do without them.
"""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("wide_terminal")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("config", "--print"), ("config", "--reference"), ("plan", "--articles=5", "--recall=0.9")],
)
def test_whoever_reads_along_may_go(arguments: tuple[str, ...]) -> None:
    """A closed pipe is not an error: the command exits silently, with the usual exit code of SIGPIPE."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "stream_dedup", *arguments]
    with os.fdopen(writing, "w") as pipe:
        run = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (128 + signal.SIGPIPE, "")


_SCRIPT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
_MODULE, _, _FUNCTION = _SCRIPT["stream-dedup"].partition(":")
# Loaded by Python before anything else.
_SITE = """
import os, signal, sys
class Finder:
    def find_spec(name, *_):
        if name == "pydantic":
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("start", [("-m", "stream_dedup"), ("-c", f"from {_MODULE} import {_FUNCTION}; {_FUNCTION}()")])
def test_signal_is_heard_while_a_command_is_loaded(
    start: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    """As soon as a package is looked for that takes long to load: there is no traceback of an import."""
    (tmp_path / "sitecustomize.py").write_text(_SITE.format(signal=number.name))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *start, "--version"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False
    )
    told = "error: interrupted\n" if number == signal.SIGINT else ""
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", told)


_DRAWING = """
import threading, time
from stream_dedup.signals import exit_at_once_on_signals
from stream_dedup.cli.terminal import errors
exit_at_once_on_signals()
held = threading.Event()
def draw():
    with errors._lock:
        held.set()
        time.sleep(60)
threading.Thread(target=draw, daemon=True).start()
held.wait()
print("drawing", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_signal_waits_for_nobody_who_is_drawing() -> None:
    """A thread that draws bars may be waiting for a lock of the interrupted one, so neither is waited for."""
    command = [sys.executable, "-c", _DRAWING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "drawing\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert (process.returncode, told) == (130, "error: interrupted\n")


_INTERRUPTED = """
import os, signal, sys, time
from stream_dedup.__main__ import main
from stream_dedup.stream.service import Service

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)

def run(service):
    Finalised()
    time.sleep(60)

Service.run = run
sys.argv = ["stream-dedup", "run"]
main()
"""


@pytest.mark.slow
def test_sigterm_is_heard_amid_a_finalizer_while_the_service_starts(tmp_path: Path) -> None:
    """Python drops exceptions raised in a finalizer, so the signal must not rely on one."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


_REBUILDING = """
import os, sys
from stream_dedup.__main__ import main
from stream_dedup.stream.rebuild import Rebuild

number, ended = int(sys.argv.pop()), sys.argv.pop()

def run(rebuild):
    os.kill(os.getpid(), number)
    if ended == "refused":
        raise ValueError("no broker has answered")
    return 40

Rebuild.run = run
main()
"""


@pytest.mark.parametrize("ended", ["after a batch", "refused"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_rebuild_that_a_signal_ends_has_its_exit_code(number: signal.Signals, ended: str, tmp_path: Path) -> None:
    """It ends in its own time and says how to go on, but a script sees that it was stopped, as with any command."""
    command = [sys.executable, "-c", _REBUILDING, "state", "rebuild", ended, str(number.value)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 128 + number
    assert ("run the same command again" in done.stdout) is (ended != "refused")
    assert done.stderr == ("error: no broker has answered\n" if ended == "refused" else "")


_OPENING = """
import os, sys, time
from stream_dedup.__main__ import main
from stream_dedup.engine import dedup

number = int(sys.argv.pop())

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), number)
        time.sleep(0.1)

def open_engine(*_, **__):
    Finalised()
    time.sleep(60)

dedup.Deduplicator.__init__ = open_engine
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "command", [("dedup", "--out", "results"), ("plan", "--articles=1M", "--recall=0.9", "--sample")]
)
def test_signal_is_heard_while_an_engine_is_opened(
    command: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    """An exception there could be lost or crash, so the command exits at once, with the exit code of the signal."""
    file = tmp_path / "in.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "body": "正文{number}"}}\n' for number in range(100)), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _OPENING, *command, str(file), str(int(number))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = "error: interrupted\n" if number == signal.SIGINT else ""
    assert (done.returncode, done.stderr.endswith(told), "Traceback" in done.stderr) == (128 + number, True, False)
