"""Which directories are states, of files or of which service; which are abandoned, and which nobody needs."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from stream_dedup import Article, Deduplicator, scratch
from stream_dedup.index.peek import check_not_of_service
from stream_dedup.index.records.ledger import ChangelogPosition, start_put
from stream_dedup.index.stores.rocks import open_store
from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import Settings
from stream_dedup.stream import service
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.state import restore
from stream_dedup.stream.state.changelog import ChangelogIncompleteError
from stream_dedup.stream.state.states import (
    check_own,
    digest_of,
    discard,
    other_states,
    refusal,
    state_directory,
    state_to_read,
)

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


def test_run_over_files_refuses_what_a_service_has(tmp_path: Path) -> None:
    """A state with a changelog, and a directory of such states; a state of files may be gone on with."""
    files, of_service = tmp_path / "files", tmp_path / "service" / "01234567"
    _state_at(files, begin=None, place=None)
    _state_at(of_service, begin=None, place=5)
    check_not_of_service(files)
    check_not_of_service(tmp_path / "new")
    for refused in (of_service, of_service.parent):
        with pytest.raises(StoreError, match=f"{refused} holds the state of a service"):
            check_not_of_service(refused)


def test_state_of_another_index_is_told_with_its_name() -> None:
    """Set, it leads back to that; a state that has no changelog yet is anybody's."""
    check_own(None, "b.changelog.01234567")
    check_own(ChangelogPosition("b.changelog.01234567/id", 5), "b.changelog.01234567")
    with pytest.raises(StoreError, match=r"the changelog a\.changelog\.01234567, .*Set state\.name = a to continue"):
        check_own(ChangelogPosition("a.changelog.01234567/id", 5), "b.changelog.01234567")


def test_refusal_tells_where_other_settings_are_in_force_and_which(tmp_path: Path) -> None:
    """In the directory if there is something, otherwise on the broker; as soon as one state tells its settings."""
    settings = Settings.model_validate({"sketch": {"gram": 6}})
    with Deduplicator(tmp_path / "other", Settings.model_validate({"sketch": {"gram": 5}})):
        pass
    assert "(log), whose" in str(refusal(settings, ["log"], []))
    told = str(refusal(settings, ["log"], [tmp_path / "unreadable", tmp_path / "other"]))
    assert f"({tmp_path / 'unreadable'}, {tmp_path / 'other'}), whose" in told
    assert "= 5 in the state, 6 in the settings" in told


def test_state_of_files_is_the_directory_itself(tmp_path: Path) -> None:
    """Commands read it there; what is not there can be discarded."""
    settings = Settings.model_validate({"state": {"directory": tmp_path}})
    with pytest.raises(StoreError, match=r"holds no state of these settings: .*for files, .*dedup --state"):
        state_to_read(settings)
    discard(tmp_path / "nothing")
    _state_at(state_directory(settings, digest_of(settings)), begin=None, place=None)
    assert state_to_read(settings) == state_directory(settings, digest_of(settings))
    _state_at(tmp_path, begin=None, place=None)
    assert state_to_read(settings) == tmp_path


@pytest.mark.parametrize(("judged", "told"), [(0, []), (1, ["the state has no position in a changelog"])])
def test_state_without_a_position_in_its_changelog_is_a_fault_once_it_holds_something(
    tmp_path: Path, judged: int, told: list[str]
) -> None:
    """No broker is asked: there is nothing to compare it with."""
    settings = Settings.model_validate({"state": {"directory": tmp_path}})
    with Deduplicator(state_directory(settings, digest_of(settings)), settings) as engine:
        for _ in range(judged):
            engine.add(Article("a", "大桥今天通车。"))
    assert list(restore.verify(settings, lambda *_: None, with_changelog=True)) == told
