"""What an owner makes of aborts, of expired generations and of the group's word; nothing is connected here."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from stream_dedup.settings import Settings
from stream_dedup.stream import owner as owner_
from stream_dedup.stream import transient_faults
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.life import Life
from stream_dedup.stream.output.errors import AbortedError, StuckError
from stream_dedup.stream.owner import Owner

_SETTINGS = Settings.model_validate({"commit": {"deadline_seconds": 60}})
_ABORTED = AbortedError("the coordinator has moved")


@pytest.fixture
def parts() -> Any:  # noqa: ANN401  # in place of parts that need a broker
    """Return what a process holds in every role, whose life is over, so that no pause takes any time."""
    life = Life(60.0)
    life.stop()
    made = Mock(settings=_SETTINGS, life=life)
    made.engine.progress.live = (0, 1)
    made.ownership.owner, made.ownership.term = True, 3
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return the time as aborts see it."""
    made = Mock(**{"monotonic.return_value": 1_000.0})
    monkeypatch.setattr(transient_faults, "time", made)
    return made


@pytest.mark.parametrize(("succeeds", "ends"), [("messages", True), ("positions", True), ("nothing", False)])
def test_whatever_is_committed_ends_a_series_of_aborts(parts: Any, clock: Mock, succeeds: str, *, ends: bool) -> None:  # noqa: ANN401  # see there
    """Messages, or positions alone. Where there was nothing to commit, no transaction was tried."""
    owner, reader, pipeline, aborts = Owner(parts, None), Mock(), Mock(), 20
    pipeline.note.side_effect = [_ABORTED, succeeds == "positions"] * aborts

    def go_on() -> None:
        for _ in range(aborts):
            clock.monotonic.return_value += 50.0
            assert owner._note(reader, pipeline)  # noqa: SLF001  # the loop around it needs a broker
            if succeeds == "messages":
                assert owner._commit(reader, pipeline, Mock())  # noqa: SLF001  # the same
            assert owner._note(reader, pipeline)  # noqa: SLF001  # the same

    if ends:
        go_on()
        assert reader.rewind.call_count == aborts
    else:
        with pytest.raises(BrokerError, match="given up"):
            go_on()


@pytest.mark.parametrize("commits", [True, False])
def test_series_of_aborts_is_given_up_before_the_stream_as_well(
    parts: Any,  # noqa: ANN401  # see there
    clock: Mock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    commits: bool,
) -> None:
    """While messages are judged in silence: aborts between which something is committed are no series."""
    owner, outcomes, times = Owner(parts, None), [_ABORTED, []] if commits else [_ABORTED, _ABORTED], 20
    monkeypatch.setattr(owner_, "commit_without_publishing", Mock(side_effect=outcomes * times))

    def judge() -> bool:
        clock.monotonic.return_value += 50.0
        return owner._judge_without_publishing([], {}, Mock(), Mock())  # noqa: SLF001  # the loop around it needs a broker

    def judge_all() -> list[bool]:
        return [judge() for _ in range(2 * times)]

    if commits:
        assert judge_all() == [False, True] * times
    else:
        with pytest.raises(BrokerError, match="given up"):
            judge_all()


@pytest.mark.parametrize(("error", "usable"), [(_ABORTED, True), (StuckError("it does not return"), False)])
def test_source_goes_on_after_an_abort_unless_a_new_writer_is_needed(
    parts: Any,  # noqa: ANN401  # see there
    clock: Mock,
    error: AbortedError,
    *,
    usable: bool,
) -> None:
    """A writer that is stuck ends the term: the next one reads from the state's position."""
    reader, pipeline = Mock(**{"rewind.return_value": True}), Mock(**{"commit.side_effect": error})
    assert Owner(parts, None)._commit(reader, pipeline, Mock()) is usable  # noqa: SLF001  # the same
    assert reader.rewind.called is usable
    parts.meter.aborted.assert_called_once_with()
    parts.meter.committed.assert_not_called()
    assert clock.monotonic.called


@pytest.mark.parametrize(
    ("live", "begins", "cut"),
    [((0, 1, 2), 7, None), ((1, 2), 7, 7), ((1, 2), 0, None), ((1, 2), None, None)],
    ids=["begun", "expired", "from the beginning", "unknown"],
)
def test_changelog_is_cut_off_once_a_generation_has_expired(
    parts: Any,  # noqa: ANN401  # see there
    live: tuple[int, ...],
    begins: int | None,
    cut: int | None,
) -> None:
    """Where the oldest one that is left begins, if that is known; one that only begins makes nothing superfluous."""
    parts.engine.state.changelog_start.return_value = begins

    def commit(_pending: object) -> object:
        parts.engine.progress = SimpleNamespace(live=live)
        return SimpleNamespace()

    pipeline = Mock(commit=commit)
    assert Owner(parts, None)._commit(Mock(), pipeline, Mock())  # noqa: SLF001  # the same
    forgotten = [args for (args, _) in parts.topics.delete_records_before.call_args_list]
    assert forgotten == ([] if cut is None else [(parts.names.changelog, cut)])


@pytest.mark.parametrize(
    ("answered", "owner", "term", "told"),
    [
        (True, True, 3, True),
        (False, True, 3, False),
        (False, False, 3, False),
        (True, False, 3, None),
        (True, True, 4, None),
    ],
    ids=["owner", "no answer", "no answer to one that is none", "lost", "lost and regained"],
)
def test_who_owned_the_index_all_the_time_may_go_on(
    parts: Any,  # noqa: ANN401  # see there
    answered: bool,  # noqa: FBT001  # parametrised
    owner: bool,  # noqa: FBT001  # the same
    term: int,
    told: bool | None,  # noqa: FBT001  # the same
) -> None:
    """A member that lost it and has it again is one too, but others may have written in between."""
    parts.ownership.ask.return_value = answered
    parts.ownership.owner, parts.ownership.term = owner, term
    asking = Owner(parts, None)
    if told is None:
        with pytest.raises(AbortedError, match="another process"):
            asking._asked(3, 0.5)  # noqa: SLF001  # the same
    else:
        assert asking._asked(3, 0.5) is told  # noqa: SLF001  # the same
    parts.ownership.ask.assert_called_once_with(0.5)
