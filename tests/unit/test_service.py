"""How a service goes on after a state that it cannot use, without a broker."""

import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from stream_dedup.index.stores.store import FileStore, StoreDamagedError, StoreError
from stream_dedup.settings import Settings
from stream_dedup.stream import life as life_
from stream_dedup.stream import service as service_
from stream_dedup.stream.life import StoppedError
from stream_dedup.stream.service import Service
from stream_dedup.stream.state.changelog import ChangelogTruncatedError


class _Engine:
    """Stands in for an engine, which may hold gigabytes."""


@pytest.mark.parametrize("kind", [StoreDamagedError, ChangelogTruncatedError])
def test_state_that_is_discarded_is_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """The service runs once more on an empty directory, and nothing of the first state is left by then."""
    engines: list[Callable[[], _Engine | None]] = []
    left: list[tuple[bool, bool]] = []

    def run_on(_service: Service, directory: Path, *_: object) -> None:
        if engines:
            left.append((directory.exists(), engines[0]() is not None))
            return
        directory.mkdir()
        engine = _Engine()
        engines.append(weakref.ref(engine))
        raise kind("not usable")

    monkeypatch.setattr(Service, "_run_on", run_on)
    monkeypatch.setattr(service_, "Topics", lambda *_: None)
    Service(Settings.model_validate({"state": {"directory": str(tmp_path)}})).run()
    assert left == [(False, False)]


def test_a_state_that_waits_for_its_disk_sees_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write of the state waits, the service's heartbeat is called: a stop ends the wait."""

    def wait_for_disk(*, store: FileStore, **_: object) -> NoReturn:
        store.while_waiting()
        service.stop()
        store.while_waiting()
        time.sleep(0.02)
        with pytest.raises(StoppedError):
            store.while_waiting()
        raise StoreError("the end of the test")

    monkeypatch.setattr(service_, "Deduplicator", wait_for_disk)
    monkeypatch.setattr(service_, "Topics", lambda *_: None)
    monkeypatch.setattr(life_, "_STOP_SECONDS", 0.01)
    service = Service(Settings.model_validate({"state": {"directory": str(tmp_path)}, "http": {"port": 0}}))
    with pytest.raises(StoreError, match="the end of the test"):
        service.run()
