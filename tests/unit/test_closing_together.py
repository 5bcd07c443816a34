"""What an owner closes at the end of its term, also without threads; nothing is connected here."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import Settings
from stream_dedup.stream import owner as owner_
from stream_dedup.stream.life import Life
from stream_dedup.stream.owner import Owner
from tests.stream.waiting import PATIENCE_SECONDS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("threads", [True, False])
def test_all_are_closed_and_the_first_error_is_told(monkeypatch: pytest.MonkeyPatch, *, threads: bool) -> None:
    """Even if the system has no thread left, and one of them fails."""

    def refuse(_: threading.Thread | None) -> NoReturn:
        raise RuntimeError("can't start new thread")

    closed: list[str] = []
    owner = _owner(lambda: closed.append("ownership"))
    if not threads:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(StoreError, match="the disk is full"):
        _end(owner, [lambda: closed.append("writer"), partial(refuse, None), lambda: closed.append("source")])
    assert sorted(closed) == ["ownership", "source", "writer"]


def test_one_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service has to end within ten seconds of SIGTERM, whatever its clients wait for: its end waits for none."""
    monkeypatch.setattr(owner_, "_CLOSE_SECONDS", 0.1)
    answered, hung, daemons = threading.Event(), threading.Event(), list[bool]()

    def hang() -> None:
        daemons.append(threading.current_thread().daemon)
        hung.set()
        answered.wait()

    try:
        with pytest.raises(StoreError, match="the disk is full"):
            _end(_owner(lambda: None), [hang])
        assert hung.wait(PATIENCE_SECONDS)
        assert daemons == [True]
    finally:
        answered.set()


def test_one_that_takes_a_moment_is_waited_for() -> None:
    """Otherwise the writer of the next term would be opened while this one still ends its transaction."""
    closed: list[str] = []

    def close() -> None:
        time.sleep(0.05)
        closed.append("writer")

    with pytest.raises(StoreError, match="the disk is full"):
        _end(_owner(lambda: None), [close])
    assert closed == ["writer"]


def _owner(leave: Callable[[], None]) -> Owner:
    """Return the owner of a service that stops; `leave` is how it leaves the group of owners."""
    life = Life(60.0)
    life.stop()
    ownership = SimpleNamespace(leave=leave)
    parts: Any = SimpleNamespace(settings=Settings(), life=life, meter=None, metrics=None, ownership=ownership)
    return Owner(parts, None)


def _end(owner: Owner, closers: Sequence[Callable[[], None]]) -> NoReturn:
    with owner._closing_together() as listed:  # noqa: SLF001  # all around it needs a broker
        listed.extend(closers)
        raise StoreError("the disk is full")
