"""The state of an index: its store, its progress, and the part of it that is kept in memory.

Knows how changes are made and how a changelog is replayed; knows nothing of how a change was decided.
"""

import os
from collections.abc import Iterator, Sequence

from stream_dedup.engine.comparability import comparability
from stream_dedup.engine.epochs import EpochState
from stream_dedup.engine.judged import Change
from stream_dedup.engine.reclaiming import Reclaimer
from stream_dedup.index.changelog import ChangelogError, Commit
from stream_dedup.index.lookup.multi import MultiIndex
from stream_dedup.index.records.counts import is_of_new_epoch, load_counts, load_lines
from stream_dedup.index.records.ledger import (
    ChangelogPosition,
    Positions,
    Progress,
    check_format,
    forget_start,
    load_changelog_position,
    load_changelog_start,
    load_positions,
    load_progress,
    position_puts,
    start_put,
)
from stream_dedup.index.runs.shelf import is_removed_put
from stream_dedup.index.steps import Step, joined, step_writes
from stream_dedup.index.stores.store import Family, FileStore, Overlay, Put, StoreError
from stream_dedup.settings import EngineSettings
from stream_dedup.text.learnt import learn_rule_of

_MANY_ARTICLES = 4_096  # from this many on, loading is faster than writing


class State:
    """The state of an index.

    Args:
        store: where the state is kept.
        settings: settings of the index.
        claim: whether a new state is claimed for the settings; otherwise it is refused.

    Attributes:
        changelog_first: where its changelog begins: the start of a state that has no position in it yet.

    Raises:
        StoreError: the store cannot be read, or was made with settings that are not comparable with these.
    """

    def __init__(self, store: FileStore, settings: EngineSettings, *, claim: bool = True) -> None:
        check_format(store, comparability(settings), claim=claim)
        self.store = store
        self.changelog_first = 0
        self._settings = settings
        self.progress = load_progress(store)
        self._place = load_changelog_position(store)
        self._load_counts()
        self.index = MultiIndex(store, settings, self.progress)
        self._stale = False  # whether the counts in memory are behind the store's
        self.reclaimer = Reclaimer(store)
        self._process = os.getpid()
        self._closed = False
        self._behind_store = False  # while a change is applied

    @property
    def place(self) -> ChangelogPosition | None:
        """Position of the state in its changelog, None if it has none."""
        return self._place

    def check_open(self) -> None:
        """Check that the state can be used.

        Raises:
            StoreError: it is closed, an error in the middle of a change has left it behind its store, or this process
                is a fork of the one that opened it.
        """
        if self._forked():
            # It has none of the threads that merge runs and write files, and the store is the other process's.
            raise StoreError(
                "the engine belongs to the process that opened it, and this one was forked since: open an engine in "
                "each process, after the fork, on a directory of its own"
            )
        if self._closed:
            raise StoreError("the engine is closed: open a new one, which resumes from here on the same directory")
        if self._behind_store:
            raise StoreError(
                "the engine was interrupted while it applied a change: close it and open a new one, which resumes with "
                "what the directory holds"
            )

    def positions(self) -> dict[tuple[str, int], int]:
        """Return the next input offset by topic and partition.

        Raises:
            StoreError: the store cannot be read, or was closed.
        """
        self.check_open()
        return load_positions(self.store)

    def changelog_start(self) -> int | None:
        """Return the changelog offset before which nothing is needed any more, None if that is unknown."""
        return load_changelog_start(self.store, self.progress)

    def apply(self, change: Change, positions: Positions, place: ChangelogPosition | None) -> None:
        """Apply a change: one atomic write to the store, then the counts in memory.

        Args:
            change: a change decided on the current state.
            positions: next input offset by topic and partition, of the partitions that advance.
            place: next offset in the changelog, if there is one.

        Raises:
            StoreError: the store cannot be written, or was closed; nothing has changed then.
            ValueError: this change, or another one, was applied after it was decided.
        """
        self.check_open()
        if change.base != self.progress:
            raise ValueError(
                "this change was decided on another state than the current one: it, or another change, was applied "
                "since; decide again"
            )
        self._maintain()
        puts = [*position_puts(positions)]
        if place is not None:
            puts += [place.put(), *self._starts(change.base, [(Commit(change.steps, positions), place.offset)])]
        self._behind_store = True
        try:
            self.store.write([*change.writes, *puts])
        except StoreError:
            self._behind_store = False
            raise
        self._advance(change.steps, place)
        self.epoch_state = change.epoch_state.settled()
        self._behind_store = False

    def replay(self, commits: Sequence[tuple[Commit, int]], topic: str) -> None:
        """Apply commits from the changelog in one atomic write; very many of them, faster, in several writes.

        Call `refresh` before the next decision.

        Args:
            commits: commits in order, each with the offset after it.
            topic: topic of the changelog.

        Raises:
            ChangelogError: there is a gap between the state and the commits.
            StoreError: the store cannot be read or written.
        """
        self._check_order([step for commit, _ in commits for step in commit.steps])
        self._stale = True
        self._maintain()
        before = progress = self.progress
        overlay = Overlay(self.store)
        for steps in _by_generation(progress, commits):
            step = joined(steps, self.index.format)
            overlay.write(list(step_writes(overlay, self.index, progress, step)))
            progress = step.progress
        positions = {key: offset for commit, _ in commits for key, offset in commit.positions.items()}
        place = ChangelogPosition(topic, commits[-1][1])
        puts = [*position_puts(positions), place.put(), *self._starts(before, commits)]
        if progress.judged - before.judged >= _MANY_ARTICLES:
            # The keys of removed entries are written first, as an entry is removed only once, and progress last: until
            # then, the same commits are replayed after a crash.
            self.store.write([write for write in overlay.staged if is_removed_put(write)])
            self.store.load([write for write in overlay.staged if write.family is not Family.META])
            self.store.write([progress.put(), *puts])
        else:
            self.store.write([*overlay.staged, *puts])
        self._advance([step for commit, _ in commits for step in commit.steps], place)

    def refresh(self) -> None:
        """Reload the counts if commits were replayed."""
        if not self._stale:
            return
        self._stale = False
        self._load_counts()

    def close(self) -> None:
        """Release the store, unless it is that of another process; calling this again does nothing."""
        if self._closed or self._forked():
            return
        self._closed = True
        self.index.close()
        self.store.close()

    def _forked(self) -> bool:
        return os.getpid() != self._process

    def _maintain(self) -> None:
        """Do what has become due with earlier changes; if it fails, nothing has changed."""
        self.index.shelf.maintain(self.progress)
        self.reclaimer.look(self.progress)

    def _load_counts(self) -> None:
        counts, epoch = load_counts(self.store, self._settings.idf.max_words)
        lines = load_lines(self.store, learn_rule_of(self._settings.text), epoch.number)
        self.epoch_state = EpochState(epoch, counts, lines)  # without a sample, as that may be of an earlier epoch

    def _check_order(self, steps: Sequence[Step]) -> None:
        number = self.progress.steps
        if number == 0:
            # The oldest part of a changelog is deleted once it has expired.
            number = steps[0].progress.steps - 1
        for step in steps:
            number += 1
            if step.progress.steps != number:
                raise ChangelogError(
                    f"the changelog continues with step {step.progress.steps} instead of {number}: it is not the one "
                    "that this state was made from, or records are missing. Remove the state directory to restore it "
                    "from the changelog; if the error persists, delete the changelog too: the input is then judged "
                    "again silently"
                )

    def _starts(self, before: Progress, commits: Sequence[tuple[Commit, int]]) -> Iterator[Put]:
        """Yield the writes that record where in the changelog each generation begins.

        A changelog may begin within a generation: then it is not known where this one does.
        """
        live = before.live if before.steps else ()
        start = self._place.offset if self._place else self.changelog_first
        for commit, offset in commits:
            after = commit.steps[-1].progress
            begun = [number for number in _begun(commit) if number in after.live and number not in live]
            yield from (start_put(number, start) for number in begun)
            yield from (forget_start(number) for number in live if number not in after.live)
            live, start = after.live, offset

    def _advance(self, steps: Sequence[Step], place: ChangelogPosition | None) -> None:
        for step in steps:
            self.index.add(step.entries, step.numbers(), step.progress.entries)
        self.progress = steps[-1].progress
        self._place = place or self._place


def _begun(commit: Commit) -> Iterator[int]:
    """Yield the numbers of the generations that begin in a commit."""
    if commit.steps[0].progress.steps == 1:
        yield Progress().generation
    # An epoch ends with each generation, so the articles after the beginning of one can be told from those before.
    # Withdrawals leave all where it stood, but only the commit in which an epoch begins has its counts.
    begun = [
        step.progress.generation
        for step in commit.steps
        if step.progress.epoch_judged == 0 and step.progress.generations[-1].first_entry == step.progress.entries
    ]
    if begun and any(is_of_new_epoch(put) for step in commit.steps for put in step.counts):
        yield from begun


def _by_generation(progress: Progress, commits: Sequence[tuple[Commit, int]]) -> Iterator[list[Step]]:
    """Yield groups of consecutive steps that are written to one generation: the last of each may begin another."""
    group: list[Step] = []
    generation = progress.generation
    for step in (step for commit, _ in commits for step in commit.steps):
        group.append(step)
        if step.progress.generation != generation:
            generation = step.progress.generation
            yield group
            group = []
    if group:
        yield group
