"""How a service goes on after a state that it cannot use, without a broker."""

import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from stream_dedup import Article, Deduplicator
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import FileStore, StoreDamagedError, StoreError
from stream_dedup.settings import Settings
from stream_dedup.stream import life as life_
from stream_dedup.stream import service as service_
from stream_dedup.stream.life import StoppedError
from stream_dedup.stream.service import Service
from stream_dedup.stream.state.changelog import ChangelogTruncatedError
from tests.stream.waiting import wait_until


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


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, StoreError("the disk does not answer")])
def test_reclaiming_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: StoreError | None) -> None:
    """The log says how long it took, or why it could not be done: the stream goes on in either case."""

    def judge(_service: Service, engine: Deduplicator, store: RocksStore, *_: object) -> NoReturn:
        if fault is not None:
            monkeypatch.setattr(store, "reclaim", Mock(side_effect=fault))
        for day in (0, 30, 60, 90):
            engine.add(Article(f"{day}", "正文", published_ms=1_760_000_000_000 + day * 86_400_000))
        wait_until(lambda: any(line["event"].startswith("space_") for line in lines), "the reclaiming is told")
        raise StoreError("the end of the test")

    monkeypatch.setattr(Service, "_connected", judge)
    monkeypatch.setattr(service_, "Topics", lambda *_: None)
    settings = Settings.model_validate({"state": {"directory": str(tmp_path)}, "http": {"port": 0}})
    with capture_logs() as lines, pytest.raises(StoreError, match="the end of the test"):
        Service(settings).run()
    (told,) = [line for line in lines if line["event"].startswith("space_")]
    if fault is None:
        assert (told["event"], told["before_generation"] > 0, told["seconds"] >= 0) == ("space_reclaimed", True, True)
    else:
        assert (told["event"], told["error"]) == ("space_not_reclaimed", "the disk does not answer")
