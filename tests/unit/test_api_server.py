"""How often the API's process reads the state, and what becomes of it if that fails.

Knows pauses, probes and exit codes; reads that hang are tested in test_stuck_api.
"""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream_dedup.api import server as server_
from stream_dedup.api.server import Server
from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import Settings


@pytest.mark.parametrize(("refresh_ms", "asked", "unasked"), [(250, 0.25, 1.0), (5_000, 5.0, 5.0)])
def test_state_is_read_seldom_while_nobody_asks(
    refresh_ms: int, asked: float, unasked: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read costs the stream something: ten seconds after the last question there is one a second at most."""
    now, asks_at, pauses = [1_000.0], [1_002.0, 1_009.0], list[tuple[float, float]]()
    server = Server(Settings.model_validate({"api": {"refresh_ms": refresh_ms}}))

    def rest(seconds: float) -> None:
        pauses.append((now[0], seconds))
        now[0] += 1.0
        if now[0] in asks_at:
            with pytest.raises(StoreError):  # there is no state yet
                server.queries()
        if now[0] == 1_025.0:
            server.stop()

    queries: Any = SimpleNamespace(refresh=lambda: None)
    monkeypatch.setattr(server_, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(server_, "let_others_first", lambda _: None)
    monkeypatch.setattr(server, "_rest", rest)
    server._follow(queries)  # noqa: SLF001  # all around it needs a port and a process of its own
    assert pauses == [
        (moment, asked if 1_002.0 <= moment < 1_019.0 else unasked) for moment in map(float, range(1_000, 1_025))
    ]


def test_state_that_cannot_be_read_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process stays, says so to whoever probes it, and is ready again with the first read that succeeds."""
    server, told = Server(Settings()), list[tuple[bool, str]]()
    reads: list[StoreError | None] = [None, StoreError("it is gone"), StoreError("it is gone"), None]

    def refresh() -> None:
        if (error := reads.pop(0)) is not None:
            raise error

    def rest(_seconds: float) -> None:
        told.append(server._health.ready())  # noqa: SLF001  # what /readyz would say
        if not reads:
            server.stop()

    queries: Any = SimpleNamespace(refresh=refresh)
    monkeypatch.setattr(server_, "let_others_first", lambda _: None)
    monkeypatch.setattr(server, "_rest", rest)
    with capture_logs() as lines:
        server._follow(queries)  # noqa: SLF001  # as above
    waiting = (False, "waiting for the state to be read again")
    assert told == [(True, "ok"), waiting, waiting, (True, "ok")]
    assert [(line["event"], line["detail"]) for line in lines] == [("state_not_read", "it is gone")]


_BREAKS = """
from stream_dedup.api import server
from stream_dedup.settings import load_settings

class QueryService:
    def __init__(self, settings): raise ZeroDivisionError("of the opening")

server.QueryService = QueryService
server.Server(load_settings(flags=["api.port=0"])).run()
"""


def test_fault_that_nobody_expects_ends_the_process() -> None:
    """Its parent logs that, and starts another one: a server without its reader would never answer."""
    ended = subprocess.run([sys.executable, "-c", _BREAKS], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "ZeroDivisionError: of the opening" in ended.stderr) == (1, True)
