"""The state follows the changelog: at a start to its end, on a replica as it grows.

Knows records, commits and positions; knows nothing of who writes them.
"""

import time
from collections.abc import Callable

from stream_dedup.engine.state import State
from stream_dedup.index.changelog import Commit, CommitReader, ends_commit
from stream_dedup.index.stores.store import StoreError
from stream_dedup.stream.kafka.topics import is_same_topic
from stream_dedup.stream.state.changelog import (
    ChangelogIncompleteError,
    ChangelogLostError,
    ChangelogReader,
    ReadRecord,
)
from stream_dedup.stream.state.states import check_own

_READ_BYTES = 32 << 20
_GROUP_ARTICLES = 32_768  # judged articles whose changes are written at a time
_POLL_SECONDS = 0.1
_MARKER_SECONDS = 10.0  # that a committed transaction may take to show at the end of the changelog


class ChangelogFollower:
    """Brings a state up to the end of its changelog.

    Args:
        state: to bring up to date.
        reader: of the changelog.
        identity: the changelog's name and topic id, see `Topics.identity`.
        heartbeat: called between groups of commits; may raise to give up.

    Raises:
        StoreError: the state was made without a changelog, or from another one.
        ChangelogTruncatedError: the state is older than what the changelog still holds.
        ChangelogLostError: the state is newer than the changelog, or has a commit that the changelog has lost.
    """

    def __init__(self, state: State, reader: ChangelogReader, identity: str, heartbeat: Callable[[], None]) -> None:
        self._state = state
        self._reader = reader
        self._identity = identity
        self._topic = identity.partition("/")[0]
        self._heartbeat = heartbeat
        self._commits = CommitReader(state.index.format)
        self._pending: list[tuple[Commit, int]] = []
        self._stop: int | None = None
        self.replayed = 0  # articles
        self._first, _ = reader.bounds()
        state.changelog_first = self._first
        start = self._start(self._first)
        self._wait_for_end(start)
        if start > self._first:
            self._check_end(start)
        reader.seek(start)

    def _start(self, first: int) -> int:
        place = self._state.place
        if place is None:
            if self._state.progress.steps:
                raise StoreError(
                    "the state was made without a changelog, as `stream-dedup dedup` makes them: give the service a "
                    "directory of its own (state.directory)"
                )
            return first
        check_own(place, self._topic)
        if not is_same_topic(place.topic, self._identity):
            raise StoreError(
                f"the state was made from the changelog {place.topic}, but the broker has {self._identity}: the topic "
                "was deleted and recreated, or this is another broker. Remove the state directory to start from what "
                "the changelog holds"
            )
        return place.offset

    def _check_end(self, position: int) -> None:
        """Check that the changelog still has the end of the state's last commit before the state's position.

        A log that has lost it and has grown past the position since may have another commit around it.

        Args:
            position: of the state.

        Raises:
            ChangelogLostError: it does not.
            BrokerError: the broker refuses.
        """
        self._reader.seek(position - 1)
        records: list[ReadRecord] = []
        while not records and self._reader.position < position:
            records = self._reader.read(_POLL_SECONDS, most_bytes=1)
            self._heartbeat()
        steps = self._state.progress.steps
        if not any(offset == position - 1 and ends_commit(key, value, steps) for offset, key, value in records):
            raise ChangelogLostError(self._topic, self._reader.bounds()[1], position)

    @property
    def remaining(self) -> int:
        """Records up to the end of the changelog, as of the last request."""
        if self._stop is not None:
            return max(0, self._stop - self._reader.position)
        return self._reader.remaining()

    @property
    def position(self) -> int:
        """Offset in the changelog to read next."""
        return self._reader.position

    def catch_up(self, report: Callable[[int], None], stop: int | None = None) -> None:
        """Follow the changelog to its end, by position, and make the state ready for decisions.

        Args:
            report: called now and then with the number of records left.
            stop: offset after the last record to follow, the end of a commit; None for the end of the changelog.

        Raises:
            ChangelogError: a record cannot be read, or some are missing.
            ChangelogLostError: the changelog ends before `stop`.
            ChangelogIncompleteError: the changelog has lost its beginning, and so has this state.
            BrokerError: the broker refuses, or gives no answer.
            StoreError: the state cannot be read or written.
        """
        self._wait_for_end(stop or 0)
        self._stop = stop
        while self.remaining:
            self.follow(_POLL_SECONDS)
            report(self.remaining)
        self._state.refresh()
        if self._first and self._state.progress.steps and self._state.changelog_start() is None:
            raise ChangelogIncompleteError(
                f"{self._topic} begins at {self._first}, but the window needs records from before it, which were "
                f"deleted. Delete the state directory and the topic {self._topic}: the service then judges what the "
                "input still has once more, without publishing it"
            )

    def follow(self, seconds: float) -> None:
        """Apply what the changelog holds now, or what arrives first within some time.

        Raises:
            ChangelogError: a record cannot be read, or some are missing.
            BrokerError: the broker refuses.
            StoreError: the state cannot be read or written.
        """
        judged = self._state.progress.judged
        for offset, key, value in self._reader.read(seconds, _READ_BYTES):
            if self._stop is not None and offset >= self._stop:
                break
            commit = self._commits.feed(key, value)
            if commit is None:
                continue
            self._pending.append((commit, offset + 1))
            if commit.steps[-1].progress.judged - judged >= _GROUP_ARTICLES:
                self._replay()
                judged = self._state.progress.judged
        self._replay()
        self._heartbeat()

    def _wait_for_end(self, stop: int) -> None:
        """Wait until the changelog ends at an offset or after it.

        Raises:
            ChangelogLostError: it still ends before that.
        """
        deadline = time.monotonic() + _MARKER_SECONDS
        while (end := self._reader.bounds()[1]) < stop:
            if time.monotonic() > deadline:
                raise ChangelogLostError(self._topic, end, stop)
            self._heartbeat()
            time.sleep(_POLL_SECONDS)

    def _replay(self) -> None:
        if not self._pending:
            return
        judged = self._state.progress.judged
        self._state.replay(self._pending, self._identity)
        self.replayed += self._state.progress.judged - judged
        self._pending = []
        self._heartbeat()
