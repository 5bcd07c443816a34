"""A state without a service: restored from its changelog, or checked against it.

Knows the changelog; knows nothing of the terminal.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import disk_usage

from stream_dedup.engine.integrity import Integrity, differences
from stream_dedup.engine.state import State
from stream_dedup.index.peek import is_state
from stream_dedup.index.records.ledger import load_changelog_position, load_changelog_start, load_progress
from stream_dedup.index.stores.beside import read_beside_writer
from stream_dedup.index.stores.rocks import RocksStore, open_store
from stream_dedup.index.stores.store import StoreDamagedError, StoreFullError
from stream_dedup.scratch import Scratch, remove_abandoned
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.topics import Topics, is_same_topic, state_topics
from stream_dedup.stream.state.changelog import ChangelogIncompleteError, ChangelogReader, ChangelogTruncatedError
from stream_dedup.stream.state.replay import ChangelogFollower
from stream_dedup.stream.state.states import (
    check_not_of_files,
    check_own,
    digest_of,
    discard,
    is_of_files,
    state_directory,
    state_to_read,
)
from stream_dedup.text.learnt import learn_rule_of

_VERIFY = "verify"
_REPLAY_SHARE = 2  # times the state's data in RocksDB: room for runs, and for what is being compacted

Report = Callable[[str, int, int], None]  # the step, how much of it is done, of how much


def restore(settings: Settings, report: Report, *, fresh: bool) -> int:
    """Bring the state directory to the end of its changelog; return how many articles were replayed.

    Args:
        settings: which state, and where it and the broker are.
        report: called with the progress.
        fresh: whether to discard what the directory holds first.

    Raises:
        StoreError: the directory is in use, holds a state of files, or cannot be read or written.
        ChangelogTruncatedError: the state is older than what the changelog still holds.
        ChangelogIncompleteError: the changelog has lost its beginning: nothing whole can be made of it.
        BrokerError: the broker refuses, gives no answer, or has no changelog or an empty one.
        ChangelogError: the changelog cannot be read.
    """
    check_not_of_files(settings)
    digest = digest_of(settings)
    directory = state_directory(settings, digest)
    topics, names = Topics(settings), state_topics(settings, digest)
    if not topics.exists(names.changelog):
        raise BrokerError(f"there is no changelog {names.changelog}: nothing to restore from")
    topics.check(names)
    identity = topics.identity(names.changelog)
    if fresh:
        if is_state(directory):
            _check_expendable(directory, settings, names.changelog, identity)
        discard(directory)
    with open_store(directory, settings.state) as store, closing(State(store, settings)) as state:
        try:
            replayed = catch_up(state, settings, names.changelog, identity, report)
        except ChangelogTruncatedError as error:
            raise ChangelogTruncatedError(f"{error}: run `stream-dedup state restore --fresh`") from None
        if not state.progress.steps:
            raise _nothing_in(names.changelog)
        return replayed


def _nothing_in(changelog: str) -> BrokerError:
    return BrokerError(f"the changelog {changelog} is empty: nothing to restore from")


def _check_expendable(directory: Path, settings: Settings, changelog: str, identity: str) -> None:
    """Check that a state can be discarded: its changelog is not empty, and has not lost what the state has.

    Args:
        directory: of the state.
        settings: how to reach the broker.
        changelog: name of the topic.
        identity: its name and topic id, see `Topics.identity`.

    Raises:
        StoreLockedError: a service has it.
        ChangelogIncompleteError: the state has what was deleted from its changelog.
        BrokerError: a refusal, no answer, or an empty changelog.
    """
    with closing(ChangelogReader(settings, changelog)) as reader:
        first, end = reader.bounds()
    if first == end:
        raise _nothing_in(changelog)
    with suppress(StoreDamagedError), open_store(directory, settings.state) as store:
        place, begin = load_changelog_position(store), load_changelog_start(store, load_progress(store))
        # Without a beginning it was itself restored from a changelog that had lost it.
        if place is None or begin is None or not is_same_topic(place.topic, identity):
            return
        if begin < first <= place.offset:
            raise ChangelogIncompleteError(
                f"{changelog} begins at {first}, but the window needs records from {begin} on, which were deleted, and "
                "only this state still has them: keep it, and start the service on it"
            )


def verify(settings: Settings, report: Report, *, with_changelog: bool) -> Iterator[str]:
    """Yield a line for each fault of the state: in itself, and compared with its changelog.

    A running service is not disturbed: the state is read as it is at this moment.

    Args:
        settings: which state, and where it and the broker are.
        report: called with the progress.
        with_changelog: whether to compare it with a replay of the changelog, on the disk of the state; a state of
            files has no changelog.

    Raises:
        StoreError: there is no such state, it is of another index, or it cannot be read.
        StoreFullError: its disk has no room for the replay.
        BrokerError: the broker refuses, or gives no answer.
        ChangelogTruncatedError: the changelog no longer holds all that is in the state.
        ChangelogError: the changelog cannot be read.
    """
    names = state_topics(settings, digest_of(settings))
    with opened_to_read(settings) as (store, state):
        if with_changelog:
            check_own(state.place, names.changelog)
        integrity = Integrity(store, state.index, state.progress, lambda what, done: report(what, done, 0))
        yield from integrity.faults(settings.idf.max_words, learn_rule_of(settings.text))
        if not with_changelog or is_of_files(settings):
            return
        place = state.place
        if place is None:
            if state.progress.steps:
                yield "the state has no position in a changelog"
            return
        identity = Topics(settings).identity(names.changelog)
        if not is_same_topic(place.topic, identity):
            yield f"the state was made from the changelog {place.topic}, but the broker has {identity}"
            return
        _check_room(store, settings.state.directory)
        with (
            Scratch(_VERIFY, settings.state.directory) as scratch,
            RocksStore(Path(scratch) / "replay") as other_store,
            closing(State(other_store, settings)) as other,
        ):
            begin = state.changelog_start() or 0
            catch_up(other, settings, names.changelog, identity, report, begin=begin, stop=place.offset)
            yield from differences(store, other_store, lambda what, done: report(what, done, 0))


def discard_replays(settings: Settings) -> None:
    """Remove what a killed `verify` has left beside the state."""
    remove_abandoned(_VERIFY, settings.state.directory)


def _check_room(store: RocksStore, directory: Path) -> None:
    """Refuse a replay that might fill the disk: a service running on it would end.

    Raises:
        StoreFullError: it might.
    """
    # What is still in memory is in no file yet but the log: of a young state, that is all of it.
    wanted = _REPLAY_SHARE * (sum(store.sizes().values()) + store.figures().memtable_bytes)
    free = disk_usage(directory).free
    if free < wanted:
        raise StoreFullError(
            f"the disk of {directory} has {free >> 20:,} MB left, but a replay of the changelog to compare with may "
            f"need {wanted >> 20:,} MB: free some space, or leave out the replay (--offline)"
        )


@contextmanager
def opened_to_read(settings: Settings) -> Iterator[tuple[RocksStore, State]]:
    """Open the state of the settings for reading, even while a service runs on it.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    store, state = read_beside_writer(partial(_opened_once, settings))
    with store:
        yield store, state


def _opened_once(settings: Settings) -> tuple[RocksStore, State]:
    with ExitStack() as opened:
        store = opened.enter_context(RocksStore(state_to_read(settings), read_only=True))
        state = State(store, settings, claim=False)
        opened.pop_all()
    return store, state


def catch_up(
    state: State,
    settings: Settings,
    changelog: str,
    identity: str,
    report: Report,
    *,
    begin: int | None = None,
    stop: int | None = None,
    heartbeat: Callable[[], None] = lambda: None,
) -> int:
    """Bring a state to the end of its changelog, or to an offset; return how many articles were replayed.

    Args:
        state: to bring up to date.
        settings: how to reach the broker.
        changelog: name of the topic.
        identity: its name and topic id, see `Topics.identity`.
        report: called with the progress.
        begin: offset of the first record that is needed; None for what the changelog still holds.
        stop: offset after the last record to follow; None for the end.
        heartbeat: called between groups of commits, and while the broker is waited for; may raise to give up.

    Raises:
        ChangelogTruncatedError: records that are needed were deleted.
    """
    with closing(ChangelogReader(settings, changelog, heartbeat)) as reader:
        follower = ChangelogFollower(state, reader, identity, heartbeat)
        first, end = reader.bounds()
        if begin is not None and first > begin:
            raise ChangelogTruncatedError(
                f"{changelog} begins at {first}, but the state, as it was read, needs it from {begin} on: check again "
                "or, if no service runs on this state, first run `stream-dedup state restore`"
            )
        total = min(end, stop if stop is not None else end) - first
        follower.catch_up(lambda left: report("records of the changelog", total - left, total), stop)
        return follower.replayed
