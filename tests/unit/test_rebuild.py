"""A stop of `state rebuild` while something else than judging takes long."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from stream_dedup.index.stores.store import StoreFullError
from stream_dedup.settings import Settings
from stream_dedup.stream import rebuild as rebuild_
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.rebuild import Rebuild


@pytest.mark.parametrize("known", [False, True], ids=["topics", "writer"])
def test_stop_is_obeyed_while_the_broker_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """Whether the topics are asked for, or the writer is opened: nobody has to wait until either gives up."""
    if known:
        monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    with pytest.raises(BrokerError, match="no broker has answered before the stop: run the same command again"):
        _stopped(tmp_path).run()


def test_stop_is_obeyed_while_the_changelog_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that is resumed on another machine replays all that the first has judged."""

    def catch_up(*_: Any, heartbeat: Callable[[], None]) -> None:  # noqa: ANN401  # whatever else it is given
        for _group in range(1_000):
            heartbeat()
        pytest.fail("all of it was replayed")

    monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    monkeypatch.setattr(rebuild_, "make_writer", lambda *_: Mock())
    monkeypatch.setattr(rebuild_, "catch_up", catch_up)
    with pytest.raises(BrokerError, match="the changelog was being replayed: run the same command again"):
        _stopped(tmp_path).run()


def test_stop_is_obeyed_while_the_changelog_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker may fall silent after the writer was opened."""
    monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    monkeypatch.setattr(rebuild_, "make_writer", lambda *_: Mock())
    with pytest.raises(BrokerError, match="the changelog was being replayed: run the same command again"):
        _stopped(tmp_path).run()


@pytest.mark.parametrize(("size", "reserve_mb"), [(8 << 30, 820), (1 << 40, 1024)])
def test_disk_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, reserve_mb: int) -> None:
    """A service with the old settings may run on it, and would end: it stops before, and says how to go on.

    A tenth of a small disk is left alone, and a gigabyte of a large one.
    """

    def catch_up(*_: Any, heartbeat: Callable[[], None]) -> None:  # noqa: ANN401  # whatever else it is given
        monkeypatch.setattr(rebuild_, "disk_usage", lambda _: (size, 0, reserve_mb << 20))
        heartbeat()
        monkeypatch.setattr(rebuild_, "disk_usage", lambda _: (size, 0, (reserve_mb - 1) << 20))
        heartbeat()

    monkeypatch.setattr(rebuild_, "Topics", lambda *_: _topics())
    monkeypatch.setattr(rebuild_, "make_writer", lambda *_: Mock())
    monkeypatch.setattr(rebuild_, "catch_up", catch_up)
    with pytest.raises(
        StoreFullError, match=f"the disk of {tmp_path} has {reserve_mb - 1:,} MB left.*run the same command again"
    ):
        _rebuild(tmp_path).run()


def _topics() -> Mock:
    known = {"other_changelogs": [], "members": [], "identity": "changelog/1"}
    return Mock(**{f"{question}.return_value": answer for question, answer in known.items()})


def _stopped(directory: Path) -> Rebuild:
    """Return a rebuild whose broker does not answer, and of which a stop was requested."""
    stopping = threading.Event()
    stopping.set()
    return _rebuild(directory, stopping)


def _rebuild(directory: Path, stopping: threading.Event | None = None) -> Rebuild:
    kafka = {"bootstrap.servers": "127.0.0.1:1"}
    settings = Settings.model_validate({"state": {"directory": str(directory)}, "kafka": kafka})
    return Rebuild(settings, lambda *_: None, stopping or threading.Event())
