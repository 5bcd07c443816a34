"""Which directories of `state.directory` are states of other settings, are abandoned, or are needed by nobody."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from stream_dedup import scratch
from stream_dedup.index.records.ledger import ChangelogPosition, start_put
from stream_dedup.index.stores.rocks import open_store
from stream_dedup.settings import Settings
from stream_dedup.stream import service
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.state import restore
from stream_dedup.stream.state.changelog import ChangelogIncompleteError
from stream_dedup.stream.state.states import digest_of, other_states

_LOG, _NEW_LOG = "log/id", "log/other"


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


def _check(directory: Path, monkeypatch: pytest.MonkeyPatch, first: int, end: int, identity: str = _LOG) -> None:
    """Ask whether a state may be discarded for what a changelog with these bounds still has."""
    reader = SimpleNamespace(bounds=lambda: (first, end), close=lambda: None)
    monkeypatch.setattr(restore, "ChangelogReader", lambda *_: reader)
    restore._check_expendable(directory, Settings(), "log", identity)  # noqa: SLF001  # asks no broker


def _state_at(directory: Path, begin: int | None, place: int | None) -> None:
    with open_store(directory, Settings().state) as store:
        if begin is not None:
            store.write([start_put(0, begin)])
        if place is not None:
            store.write([ChangelogPosition(_LOG, place).put()])


@pytest.mark.parametrize(("first", "end"), [(11, 40), (30, 40)])
def test_state_with_more_than_its_changelog_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, end: int
) -> None:
    """If its window begins before the first record that is left: up to the position, a service goes on with it."""
    _state_at(tmp_path, begin=10, place=30)
    with pytest.raises(ChangelogIncompleteError, match=rf"log begins at {first}, .* from 10 on.*start the service"):
        _check(tmp_path, monkeypatch, first, end)


@pytest.mark.parametrize(
    ("begin", "place", "first", "identity"),
    [
        (10, 30, 10, _LOG),
        (10, 30, 0, _LOG),
        (0, 30, 0, _LOG),
        (10, 30, 31, _LOG),  # no service can go on with it either
        (None, 30, 20, _LOG),  # it never had the beginning
        (10, 30, 20, _NEW_LOG),
        (None, None, 20, _LOG),
    ],
)
def test_state_with_no_more_than_its_changelog_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: int | None, place: int | None, first: int, identity: str
) -> None:
    """Its changelog has all that it needs, or the state is of no use."""
    _state_at(tmp_path, begin, place)
    _check(tmp_path, monkeypatch, first, 40, identity)


def test_state_is_not_discarded_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much of its changelog was deleted."""
    _state_at(tmp_path, begin=10, place=30)
    with pytest.raises(BrokerError, match="the changelog log is empty"):
        _check(tmp_path, monkeypatch, 40, 40)
