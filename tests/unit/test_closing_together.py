"""What an owner closes at the end of its term, also without threads; nothing is connected here."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import Settings
from stream_dedup.stream.life import Life
from stream_dedup.stream.owner import Owner


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("threads", [True, False])
def test_all_are_closed_and_the_first_error_is_told(monkeypatch: pytest.MonkeyPatch, *, threads: bool) -> None:
    """Even if the system has no thread left, and one of them fails."""

    def refuse(_: threading.Thread | None) -> NoReturn:
        raise RuntimeError("can't start new thread")

    closed: list[str] = []
    life = Life(60.0)
    life.stop()
    ownership = SimpleNamespace(leave=lambda: closed.append("ownership"))
    parts: Any = SimpleNamespace(settings=Settings(), life=life, meter=None, metrics=None, ownership=ownership)
    owner = Owner(parts, None)
    if not threads:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(StoreError, match="the disk is full"):
        _end(owner, [lambda: closed.append("writer"), partial(refuse, None), lambda: closed.append("source")])
    assert sorted(closed) == ["ownership", "source", "writer"]


def _end(owner: Owner, closers: Sequence[Callable[[], None]]) -> NoReturn:
    with owner._closing_together() as listed:  # noqa: SLF001  # all around it needs a broker
        listed.extend(closers)
        raise StoreError("the disk is full")
