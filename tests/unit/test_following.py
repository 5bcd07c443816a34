"""How a state follows its changelog: in groups of commits, with signs of life meanwhile, and as far as it is told.

Knows a log in memory; knows no broker.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, pairwise
from typing import Any

import pytest

from stream_dedup import Article, Deduplicator
from stream_dedup.engine.state import State
from stream_dedup.index.stores.store import StoreError
from stream_dedup.stream.life import StoppedError
from stream_dedup.stream.state import replay as replay_
from stream_dedup.stream.state.changelog import (
    ChangelogIncompleteError,
    ChangelogLostError,
    ChangelogTruncatedError,
    ReadRecord,
)
from stream_dedup.stream.state.replay import ChangelogFollower
from tests.engine.durable import TOPIC, Log, written
from tests.engine.samples import LIGHT, bodies

_PER_COMMIT = 2  # articles
_LONG = 100  # reads, or reports, after which a wait counts as endless


class _Reader:
    """Reads a log in memory as `ChangelogReader` reads a topic.

    Args:
        log: the log.
        at_once: how many records a read returns at most.
    """

    def __init__(self, log: Log, at_once: int = 1_000) -> None:
        self._log = log
        self._end = 0
        self._at_once = at_once
        self.position = -1  # until it is told where to begin
        self.is_silent = False
        self._silence = count()

    def bounds(self) -> tuple[int, int]:
        """Return the first offset and the end."""
        self._end = self._log.end
        return self._log.begin, self._end

    def seek(self, position: int) -> None:
        """Continue at a position that the log has."""
        if not self._log.begin <= position <= self._log.end:
            raise ChangelogTruncatedError(f"there is no {position}")
        self.position = position

    def read(self, _seconds: float, most_bytes: int) -> list[ReadRecord]:
        """Return the next records."""
        if self.is_silent:
            assert next(self._silence) < _LONG, "the wait has no end"
            return []
        left = [ReadRecord(offset, *record) for offset, record in self._log.records if offset >= self.position]
        taken = left[: self._at_once if most_bytes > 1 else 1]
        self.position = taken[-1].offset + 1 if len(taken) < len(left) else self._log.end
        return taken

    def remaining(self) -> int:
        """Return how many offsets there are up to the end that was seen last."""
        return max(0, self._end - self.position)


@pytest.fixture
def make_engine() -> Iterator[Callable[[], Deduplicator]]:
    """Return a function that makes engines, which are closed after the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Deduplicator(settings=LIGHT))


def _append(owner: Deduplicator, log: Log, commits: int) -> None:
    """Let an engine judge new articles, and append so many commits of two of them each to its log."""
    for _ in range(commits):
        first = owner.progress.judged
        written(owner, log, [[Article(f"{n}", bodies()[n]) for n in range(first, first + _PER_COMMIT)]])


def _follower(
    state: State, reader: _Reader, heartbeat: Callable[[], None] = lambda: None, identity: str = f"{TOPIC}/1"
) -> ChangelogFollower:
    read_by: Any = reader
    return ChangelogFollower(state, read_by, identity, heartbeat)


def test_changes_are_written_in_groups_with_a_sign_of_life_behind_each(
    make_engine: Callable[[], Deduplicator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group is full with as many articles as are written at a time; commits are not divided, and the rest is one."""
    monkeypatch.setattr(replay_, "_GROUP_ARTICLES", 2 * _PER_COMMIT)
    owner, replica, log, events = make_engine(), make_engine(), Log(), list[int | str]()
    _append(owner, log, 7)
    replay = replica.state.replay

    def noted(commits: Any, topic: str) -> None:  # noqa: ANN401  # whatever it is given
        events.append(len(commits))
        replay(commits, topic)

    monkeypatch.setattr(replica.state, "replay", noted)
    follower = _follower(replica.state, _Reader(log), lambda: events.append("alive"))
    follower.follow(0.0)
    assert [event for event in events if event != "alive"] == [2, 2, 2, 1]
    assert all(follows == "alive" for event, follows in pairwise(events) if event != "alive")
    assert (events[-1], follower.replayed) == ("alive", 7 * _PER_COMMIT)
    events.clear()
    follower.follow(0.0)
    assert events == ["alive"]  # also while nothing arrives


@pytest.mark.parametrize("at_once", [1, 3, 1_000])
def test_state_that_follows_step_by_step_is_the_owners(make_engine: Callable[[], Deduplicator], at_once: int) -> None:
    """However records arrive, the articles add up, and the words of all of them are counted for what comes next."""
    owner, replica, log, left = make_engine(), make_engine(), Log(), list[int]()
    _append(owner, log, 3)
    reader = _Reader(log, at_once)
    follower = _follower(replica.state, reader)
    assert follower.remaining == log.end
    follower.follow(0.0)
    _append(owner, log, 4)
    follower.catch_up(left.append)
    assert (follower.replayed, follower.remaining, follower.position) == (7 * _PER_COMMIT, 0, log.end)
    assert (left[-1], replica.progress) == (0, owner.progress)
    assert (replica.epoch.number, replica.vocabulary()) == (1, owner.vocabulary())
    again = _follower(replica.state, reader)  # as after a term as the owner
    again.catch_up(left.append)
    assert (again.replayed, again.position) == (0, log.end)


@pytest.mark.parametrize("at_once", [1, 1_000])
def test_state_follows_no_further_than_it_is_told(make_engine: Callable[[], Deduplicator], at_once: int) -> None:
    """The reader may already be past the end of the commit to stop at: what follows is not applied."""
    owner, replica, log, left = make_engine(), make_engine(), Log(), list[int]()
    _append(owner, log, 2)
    log.end -= 1  # without a transaction there is no marker between this commit and the next one
    stop = log.end
    written(owner, log, [[Article("0", bodies()[0])]])  # a redelivery: its commit is a single record
    _append(owner, log, 1)
    follower = _follower(replica.state, _Reader(log, at_once))

    def report(remaining: int) -> None:
        left.append(remaining)
        assert len(left) < _LONG, "it never gets there"

    follower.catch_up(report, stop)
    assert (replica.progress.steps, follower.replayed) == (2, 2 * _PER_COMMIT)
    assert (left[-1], follower.remaining, min(left)) == (0, 0, 0)


def test_log_that_was_emptied_is_followed_from_its_first_offset(make_engine: Callable[[], Deduplicator]) -> None:
    """What is judged anew behind it is whole, and needs nothing from before it; without its beginning it is not."""
    owner, log, first = make_engine(), Log(end=40), 40
    empty = make_engine()
    _follower(empty.state, _Reader(log)).catch_up(lambda _left: None)
    assert empty.progress.steps == 0
    _append(owner, log, 1)
    second = log.end
    _append(owner, log, 2)
    whole, partial = make_engine(), make_engine()
    _follower(whole.state, _Reader(log)).catch_up(lambda _left: None)
    assert (whole.progress, whole.state.changelog_start()) == (owner.progress, first)
    log.cut(second)
    with pytest.raises(ChangelogIncompleteError, match="the window needs records from before it"):
        _follower(partial.state, _Reader(log)).catch_up(lambda _left: None)


def test_last_commit_of_a_state_is_looked_for_where_it_was(make_engine: Callable[[], Deduplicator]) -> None:
    """A commit of the same number elsewhere is that of a log which has lost its end, and was written to since."""
    owner, replica, log = make_engine(), make_engine(), Log()
    _append(owner, log, 2)
    _follower(replica.state, _Reader(log)).catch_up(lambda _left: None)
    place = replica.state.place
    assert place is not None
    again = Log(
        [(offset + 1, record) if offset + 1 == place.offset else (offset, record) for offset, record in log.records]
    )
    again.end = log.end + 1
    with pytest.raises(ChangelogLostError, match="had ended before it grew to "):
        _follower(replica.state, _Reader(again))


@pytest.mark.parametrize(
    ("identity", "told"),
    [
        (f"{TOPIC}/2", "the topic was deleted and recreated"),
        ("another/1", f"the state was made from the changelog {TOPIC}, but the settings name another"),
    ],
)
def test_state_follows_no_other_log(make_engine: Callable[[], Deduplicator], identity: str, told: str) -> None:
    """Neither one that has taken the place of its own, nor that of another index, even if the steps would fit."""
    owner, replica, alone, log = make_engine(), make_engine(), make_engine(), Log()
    _append(owner, log, 1)
    _follower(replica.state, _Reader(log)).catch_up(lambda _left: None)
    alone.add(Article("a", bodies()[0]))
    with pytest.raises(StoreError, match=told):
        _follower(replica.state, _Reader(log), identity=identity)
    with pytest.raises(StoreError, match="made without a changelog"):
        _follower(alone.state, _Reader(log))


def test_end_that_does_not_come_is_waited_for_with_signs_of_life(
    make_engine: Callable[[], Deduplicator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is asked to stop can give up, whether the marker of the last commit or the commit itself is missing."""
    monkeypatch.setattr(replay_, "_POLL_SECONDS", 0.0)
    owner, replica, log = make_engine(), make_engine(), Log()
    _append(owner, log, 1)
    reader = _Reader(log)
    _follower(replica.state, reader).catch_up(lambda _left: None)

    def give_up() -> None:
        raise StoppedError("a stop")

    reader.is_silent = True
    with pytest.raises(StoppedError):
        _follower(replica.state, reader, give_up)
    reader.is_silent, log.end = False, 1
    with pytest.raises(StoppedError):
        _follower(replica.state, reader, give_up)
    monkeypatch.setattr(replay_, "_MARKER_SECONDS", 0.0)
    with pytest.raises(ChangelogLostError, match="ends at 1, but the state is at "):
        _follower(replica.state, reader)
