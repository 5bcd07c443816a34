"""Engine, store and changelog under random interleavings of batches, kills, restarts, lost disks and takeovers.

Knows the order of a commit; compares what comes out with the plain model of the undisturbed stream.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from stream_dedup import Deduplicator
from stream_dedup.engine.judged import Judged
from stream_dedup.index.changelog import ChangelogError, CommitReader, commit_records
from stream_dedup.index.records.ledger import ChangelogPosition
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import MemoryStore
from tests.engine.durable import TOPIC, Log, commits, contents, follow
from tests.engine.model import Item, Seen, engine_settings, seen, told
from tests.engine.scoped import Scopes, scoped_streams

_SETTINGS = engine_settings(2, "dead", canonical="longest")
_INPUT = ("in", 0)


@dataclass
class Committed:
    """What a read_committed reader sees.

    Attributes:
        log: the changelog.
        outcomes: of all items, in order.
        clusters: the latest report on each.
        successions: all of them, in order.
    """

    log: Log = field(default_factory=Log)
    outcomes: list[Seen] = field(default_factory=list)
    clusters: dict[str, Seen | None] = field(default_factory=dict)
    successions: list[tuple[str, ...]] = field(default_factory=list)

    def take(self, judged: Judged) -> None:
        """Make the outputs of a batch visible."""
        clusters, successions = told(judged)
        self.outcomes += [seen(outcome) for outcome in judged.outcomes]
        self.clusters |= clusters
        self.successions += successions


class Disturbed(RuleBasedStateMachine):
    """A service with its state in RocksDB, its changelog, and a standby that follows it."""

    @initialize(stream=scoped_streams(longest=60))
    def begin(self, stream: list[Item]) -> None:
        """Feed a stream to the input, and start."""
        self.input = stream
        self.model = Scopes(_SETTINGS)
        self.expected = [self.model.feed(item) for item in stream]
        self.topics = Committed()
        self.root = Path(tempfile.mkdtemp(prefix="disturbed-"))
        self.disks = 0
        self.engine = self._started()
        self.standby = Deduplicator(settings=_SETTINGS, store=MemoryStore())

    def _started(self) -> Deduplicator:
        """Open the state on disk and catch up with the changelog, or recreate the state if it cannot."""
        store = RocksStore(self.root / str(self.disks), cache_bytes=1 << 20, write_buffer_bytes=1 << 20)
        engine = Deduplicator(settings=_SETTINGS, store=store)
        try:
            self._catch_up(engine)
        except ChangelogError:
            engine.close()
            self._lose()
            return self._started()
        return engine

    def _catch_up(self, engine: Deduplicator, groups: tuple[int, ...] = ()) -> None:
        place = engine.state.place
        follow(engine, self.topics.log, place.offset if place else 0, groups)
        engine.state.refresh()

    def _lose(self) -> None:
        shutil.rmtree(self.root / str(self.disks))
        self.disks += 1

    def _decided(self, count: int) -> Judged:
        done = self.engine.positions().get(_INPUT, 0)
        return self.engine.decide(self.input[done : done + count])

    def _append(self, judged: Judged) -> Callable[[], None]:
        """Commit the transaction of a batch; return a function that makes its change on disk."""
        positions = {_INPUT: self.engine.positions().get(_INPUT, 0) + len(judged.outcomes)}
        self.topics.log.append(list(commit_records(self.engine.commit_of(judged.change, positions))))
        self.topics.take(judged)
        place = ChangelogPosition(TOPIC, self.topics.log.end - 1)
        return lambda: self.engine.apply(judged.change, positions, place)

    def _new_standby(self) -> None:
        self.standby.close()
        self.standby = Deduplicator(settings=_SETTINGS, store=MemoryStore())

    def _restart(self) -> None:
        self.engine.close()
        self.engine = self._started()

    # ------------------------------------------------------------------------------------------------ rules

    @rule(count=st.integers(0, 12))
    def batch(self, count: int) -> None:
        """Decide, commit, apply."""
        self._append(self._decided(count))()

    @rule(count=st.integers(1, 12), again=st.integers(1, 12))
    def aborted_batch(self, count: int, again: int) -> None:
        """Decide, and discard the change: the same messages come again, in another batch."""
        self._decided(count)
        self._append(self._decided(again))()

    @rule(count=st.integers(1, 12))
    def kill_before_the_commit(self, count: int) -> None:
        """Decide, and die."""
        self._decided(count)
        self._restart()

    @rule(count=st.integers(1, 12))
    def kill_before_the_change(self, count: int) -> None:
        """Decide, commit, and die: the changelog is ahead of the disk."""
        self._append(self._decided(count))
        self._restart()

    @rule()
    def kill_after_the_change(self) -> None:
        """Die between two batches."""
        self._restart()

    @rule(count=st.integers(0, 12))
    def lose_the_disk(self, count: int) -> None:
        """Commit, die, and find the directory gone."""
        self._append(self._decided(count))
        self.engine.close()
        self._lose()
        self.engine = self._started()

    @rule(groups=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def standby_follows(self, groups: list[int]) -> None:
        """Let the standby take some commits, or start over if what it needs is gone."""
        place = self.standby.state.place
        waiting = list(
            commits(self.topics.log, CommitReader(self.standby.state.index.format), place.offset if place else 0)
        )
        try:
            for group in groups:
                if waiting[:group]:
                    self.standby.state.replay(waiting[:group], TOPIC)
                waiting = waiting[group:]
        except ChangelogError:
            self._new_standby()

    @rule(count=st.integers(1, 12))
    def standby_takes_over(self, count: int) -> None:
        """Let the standby catch up and take over; the old one has decided a batch that is never committed."""
        self._decided(count)
        try:
            self._catch_up(self.standby, (1, 2))
        except ChangelogError:
            self._new_standby()
            self._catch_up(self.standby)
        assert contents(self.standby, starts=False) == contents(self.engine, starts=False)
        self.engine.close()
        self.engine, self.standby = self.standby, self.engine
        self.standby = Deduplicator(settings=_SETTINGS, store=MemoryStore())

    @precondition(lambda self: isinstance(self.engine.state.store, MemoryStore))
    @rule()
    def machine_with_the_disk_takes_over(self) -> None:
        """Let the process that was replaced come back with its old directory."""
        self.engine.close()
        self.engine = self._started()

    @rule(tombstones=st.booleans())
    def changelog_is_cleaned(self, tombstones: bool) -> None:  # noqa: FBT001  # drawn
        """Let the broker compact the changelog and delete what precedes the window."""
        self.topics.log.cut(self.engine.state.changelog_start() or 0)
        self.topics.log.compact(tombstones=tombstones)

    # ------------------------------------------------------------------------------------------- invariants

    @invariant()
    def nothing_is_lost_doubled_or_contradicted(self) -> None:
        """A reader sees what the model says of as many messages as the state has taken."""
        if hasattr(self, "engine"):
            done = self.engine.positions().get(_INPUT, 0)
            assert self.topics.outcomes == self.expected[:done]

    def teardown(self) -> None:
        """Run to the end of the stream, and compare clusters and successions with the model's."""
        if not hasattr(self, "engine"):
            return
        while self.engine.positions().get(_INPUT, 0) < len(self.input):
            self.batch(9)
        assert self.topics.outcomes == self.expected
        assert self.topics.clusters == self.model.clusters
        assert self.topics.successions == self.model.successions
        self.engine.close()
        self.standby.close()
        shutil.rmtree(self.root)


def test_disturbances_change_nothing() -> None:
    """Whatever happens, outcomes, clusters and successions are those of the undisturbed stream, each exactly once."""
    run_state_machine_as_test(
        Disturbed,
        settings=hypothesis_settings(
            max_examples=20,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
