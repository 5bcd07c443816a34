"""Which directories of `state.directory` are states of other settings, and which are abandoned."""

from pathlib import Path

import pytest

from stream_dedup import scratch
from stream_dedup.settings import Settings
from stream_dedup.stream import service
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.state.states import digest_of, other_states


def test_others_are_states_under_other_digests(tmp_path: Path) -> None:
    """Neither the own state counts, nor a directory that is no database or whose name is no digest."""
    settings = Settings.model_validate({"state": {"directory": tmp_path}})
    own = digest_of(settings)
    for name in (own, "01234567", "fedcba98", "lost+found", "01234567.bak", "0123456"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "CURRENT").touch()
    (tmp_path / "deadbeef").mkdir()
    assert other_states(settings, own) == [tmp_path / "01234567", tmp_path / "fedcba98"]
    assert other_states(settings, "00000000") == sorted([tmp_path / "01234567", tmp_path / "fedcba98", tmp_path / own])


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    """The first start creates the directory."""
    settings = Settings.model_validate({"state": {"directory": tmp_path / "new"}})
    assert other_states(settings, digest_of(settings)) == []


def test_start_removes_what_a_killed_verify_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay of the changelog is as large as the state, and is on its disk."""
    monkeypatch.setattr(scratch, "_YOUNG_SECONDS", 0.0)
    (tmp_path / "stream-dedup-verify-left" / "replay").mkdir(parents=True)

    def no_broker(*_: object) -> None:
        raise BrokerError("there is none")

    monkeypatch.setattr(service, "Topics", no_broker)
    with pytest.raises(BrokerError):
        service.Service(Settings.model_validate({"state": {"directory": tmp_path}})).run()
    assert list(tmp_path.iterdir()) == []
