"""The log, in a separate process: one event per line, whatever is logged and whoever logs it."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream_dedup.decode import Decoder, Reason
from stream_dedup.settings import InputSettings, Settings
from stream_dedup.stream.input import decoded
from tests.unit.arrived import ArrivedMessage

_TEXT = "独家报道：花椒树上的空中小道"
_SECRET = r"""top\ "secret" of '26"""  # noqa: S105  # invented; the two formats escape it differently
_PRELUDE = """
import json, logging, sys, threading, warnings
import structlog
from stream_dedup.observe.logs import configure_logs
from stream_dedup.observe.log_hooks import install_log_hooks
from stream_dedup.settings import LogSettings
log = structlog.get_logger()
form, secret, text = sys.argv[1:]
configure_logs(LogSettings(format=form), ["", "short", secret])
install_log_hooks()
"""


def _told(code: str, form: str = "json") -> tuple[int, str]:
    """Run code after the prelude; return its exit code and its standard error."""
    ended = subprocess.run(
        [sys.executable, "-c", _PRELUDE + textwrap.dedent(code), form, _SECRET, _TEXT],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        # As for a service without a configured encoding.
        env={name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))},
    )
    assert ended.stdout == ""
    return ended.returncode, ended.stderr


def _lines(code: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in _told(code)[1].splitlines()]
    for line in lines:
        assert list(line)[:3] == ["timestamp", "level", "event"]
        assert line["timestamp"].endswith("Z")
    return lines


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_lines_on_a_terminal_are_coloured_unless_that_is_unwanted(
    no_color: str, *, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR means what it does for the tables that commands print."""
    monkeypatch.setenv("NO_COLOR", no_color)
    code = """
    sys.stderr.isatty = lambda: True
    configure_logs(LogSettings())
    log.info("starting")
    """
    assert ("\x1b[" in _told(code, "console")[1]) is coloured


def test_fields_stand_in_json_as_they_are() -> None:
    """Chinese, newlines, quotes and invalid text are preserved, with one line per event."""
    (line,) = _lines(
        """log.info("starting", http="http://[::1]:1", text=text + '\\n"', half="\\ud83d", other=object)"""
    )
    assert line["text"] == f'{_TEXT}\n"'
    assert line["half"] == "\ud83d"
    assert line["level"] == "info"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_a_line_that_cannot_be_written_is_lost() -> None:
    """On a full disk, what is logged ends neither its thread nor the process; later lines are written again."""
    code = """
    import os, time
    from stream_dedup.observe.recurring_faults import RecurringFaults
    kept = os.dup(2)
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
    faults, end = RecurringFaults(0.1), time.monotonic() + 30
    log.info("started", text=text)
    for _ in range(3):
        faults.warning("input_waits", error="_TRANSPORT", detail="")
    while faults._held and time.monotonic() < end:
        time.sleep(0.01)
    os.dup2(kept, 2)
    faults.warning("input_waits", error="_TRANSPORT", detail="there is room again")
    log.info("stopped", judged=7)
    """
    told = [line for line in _told(code)[1].splitlines() if "stopped" in line or "room again" in line]
    assert [json.loads(line[line.index("{") :])["event"] for line in told] == ["input_waits", "stopped"]


def test_uncaught_exception_is_one_event_and_ends_the_process() -> None:
    """Its stack is in a field, and the exit code is 1."""
    code, log = _told("""
        def inner(): raise KeyError("name")
        inner()
    """)
    line = json.loads(log)
    assert (code, line["event"], line["error"]) == (1, "crashed", "KeyError")
    assert "in inner" in line["exception"]


def test_what_libraries_and_the_interpreter_tell_are_events() -> None:
    """Threads, destructors, warnings and Python's logging are covered, from the level of warnings up."""
    lines = _lines("""
        def fall(): raise ValueError("in a thread")
        thread = threading.Thread(target=fall, name="reclaim"); thread.start(); thread.join()
        class Late:
            def __del__(self): raise OSError("in a destructor")
        Late()
        warnings.warn("old", UserWarning)
        logging.getLogger("uvicorn.error").error("no %s", "port")
        logging.getLogger("numba").info("a lot")
        try: 1 / 0
        except ZeroDivisionError: logging.getLogger("asyncio").exception("task")
    """)
    by_name = {line["event"]: line for line in lines}
    assert [line["event"] for line in lines] == [
        "thread_crashed",
        "exception_lost",
        "python_warning",
        "library_warning",
        "library_warning",
    ]
    assert (by_name["thread_crashed"]["thread"], by_name["thread_crashed"]["error"]) == ("reclaim", "ValueError")
    assert by_name["exception_lost"]["error"] == "OSError"
    assert by_name["python_warning"]["detail"] == "old"
    assert lines[3]["detail"] == "no port"
    assert lines[3]["error"].startswith("uvicorn.error:")
    assert "ZeroDivisionError" in lines[4]["exception"]


_FAULTS = """
    def parse(body):
        try: int(body)
        except ValueError as error: raise KeyError(body) from error
    def again(body):
        try: parse(body)
        except KeyError: raise RuntimeError(body)
    thread = threading.Thread(target=again, args=(text,)); thread.start(); thread.join()
    class Late:
        def __del__(self): parse(text)
    Late()
    try: again(text)
    except RuntimeError: logging.getLogger("asyncio").exception("task")
    again(text)
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_exceptions_tell_where_and_not_what(form: str) -> None:
    """An exception's message may quote an article, so only the stacks of the chain are logged, in Python's order."""
    log = _told(_FAULTS, form)[1]
    assert log.count("in parse") == 8
    assert _TEXT not in log
    told = log.replace("\\n", "\n")
    order = ["ValueError\n", "direct cause", "KeyError\n", "During handling"]
    places = [told.index(one) for one in order]
    assert places == sorted(places)


def test_debugging_shows_exceptions_in_full() -> None:
    """A debug event with the message follows each event without it."""
    code = f'configure_logs(LogSettings(format="json", level="debug"))\n{textwrap.dedent(_FAULTS)}'
    lines = _lines(code)
    full = [line for line in lines if line["event"] == "exception_in_full"]
    assert len(full) == 3
    assert all(line["level"] == "debug" and f"KeyError: '{_TEXT}'" in line["exception"] for line in full)
    assert not any(_TEXT in line.get("exception", "") for line in lines if line["level"] != "debug")


def test_exceptions_of_the_system_say_what_went_wrong() -> None:
    """Errors such as a missing file or a full disk are of use to operators, and do not quote articles."""
    (line,) = _lines("""open("/nowhere/at-all")""")
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/at-all'" in line["exception"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_stacks_show_no_values(form: str) -> None:
    """Neither format shows the values of variables, which may be articles."""
    code = """
        def judge(body): raise RuntimeError("no text here")
        try: judge(text)
        except RuntimeError: log.error("crashed", error="RuntimeError", exc_info=True)
        judge(text)
    """
    log = _told(code, form)[1]
    assert log.count("in judge") == 2
    assert _TEXT not in log


def test_stacks_are_lines_for_people() -> None:
    """In the console format, the field `stack` is printed below its event, unchanged."""
    log = _told("""log.error("loop_stuck", seconds=60.0, stack="thread MainThread (7):\\n  File x")""", "console")[1]
    first, *rest = log.splitlines()
    assert "loop_stuck" in first
    assert rest == ["thread MainThread (7):", "  File x"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_are_in_no_line(form: str) -> None:
    """Secrets are redacted whatever their source and escaping, unless they are too short to be recognised."""
    code = """
        log.info("starting", http=f"https://u:{secret}@host", short="short")
        log.info("starting", error=f"no {secret!r}, but {'quoted'!r}")
        raise OSError(secret)
    """
    log = _told(code, form)[1]
    assert "of '26" not in log.replace("\\", "")
    assert log.count("[redacted]") == 3
    assert "short" in log


def test_secret_that_is_part_of_another_uncovers_nothing_of_it() -> None:
    """A password may be that of another user with something after it."""
    code = """
        for secrets in (["hunter2", "hunter2-of-mine"], ["hunter2-of-mine", "hunter2"]):
            configure_logs(LogSettings(format=form), secrets)
            log.info("starting", http="hunter2-of-mine", other="hunter2")
    """
    log = _told(code)[1]
    assert log.count("[redacted]") == 4
    assert "of-mine" not in log


def test_settings_know_their_secrets() -> None:
    """The secrets are those of the broker, of the registry and of the API."""
    settings = Settings.model_validate(
        {
            "kafka": {"sasl.password": "one", "client.id": "public"},
            "registry": {"url": "http://r", "basic.auth.user.info": "two"},
            "api": {"token": "three-three-three"},
        }
    )
    assert set(settings.secrets()) == {"one", "two", "three-three-three"}


class _Broken(Decoder):
    """A decoder that fails with an exception that quotes the article."""

    def decode(self, value: bytes | None, *_: object, **__: object) -> Any:  # noqa: ANN401  # it never returns
        raise LookupError(f"cannot read {(value or b'').decode()}")


def test_faults_in_decoding_are_told_without_the_article() -> None:
    """The event gives the place, once for many messages; only the dead letter has the exception's message."""
    with capture_logs() as lines:
        found = decoded.decode_all([ArrivedMessage(_TEXT.encode())] * 3, _Broken(InputSettings()), 0)  # type: ignore[list-item]
    assert [error.reason for _, error in found.dead] == [Reason.INTERNAL] * 3
    assert _TEXT in str(found.dead[0][1])
    told = [line for line in lines if line["log_level"] != "debug"]
    (line,) = told
    assert (line["event"], line["topic"], line["partition"], line["offset"]) == ("message_not_decoded", "in", 1, 7)
    assert line["error"].startswith("LookupError at test_logs.py:")
    assert _TEXT not in str(told)
