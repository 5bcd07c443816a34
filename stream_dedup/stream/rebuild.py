"""A state rebuilt from the input topics with the current settings.

Knows the input up to the group's committed offsets; publishes nothing, and knows nothing of the terminal.
"""

import threading
from collections.abc import Callable
from contextlib import closing
from shutil import disk_usage

from confluent_kafka import TopicPartition

from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.stores.rocks import open_store
from stream_dedup.index.stores.store import StoreFullError
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.registry import RegistryError, RegistryUnreachableError
from stream_dedup.settings import Settings
from stream_dedup.stream.commit.committer import Committer
from stream_dedup.stream.commit.pipeline import commit_without_publishing
from stream_dedup.stream.formats import Formats
from stream_dedup.stream.input.history import History, committed_offsets
from stream_dedup.stream.kafka.clients import BrokerError, make_consumer, runs_with
from stream_dedup.stream.kafka.patience import Patience, watermarks
from stream_dedup.stream.kafka.places import is_of_deleted
from stream_dedup.stream.kafka.topics import StateTopics, Topics, state_topics
from stream_dedup.stream.output.errors import AbortedError, FencedError
from stream_dedup.stream.output.guarantees import make_writer
from stream_dedup.stream.output.writer import Writer
from stream_dedup.stream.state.restore import Report, catch_up
from stream_dedup.stream.state.states import check_own, digest_of, state_directory

_AGAIN = "run the same command again to resume after the last commit"
# Of the disk, the lesser of both is left alone: a service that runs on it ends when it is full.
_RESERVE_BYTES, _RESERVE_SHARE = 1 << 30, 0.1


class Rebuild:
    """Builds a state of the current settings from the input topics, up to the group's committed offsets.

    It publishes nothing. The next service that starts with these settings finds the state, judges what was decided
    since then, also without publishing it, and continues from there.

    Args:
        settings: the current ones.
        report: called with the progress.
        stopping: ends the run, which can be resumed later.
    """

    def __init__(self, settings: Settings, report: Report, stopping: threading.Event) -> None:
        self._settings = settings
        self._report = report
        self._stopping = stopping
        self._recurring_faults = RecurringFaults()

    def run(self) -> int:
        """Build the state; return how many articles were judged.

        Raises:
            StoreError: the directory is in use, or cannot be read or written.
            StoreFullError: its disk is nearly full; this can be resumed.
            FencedError: a service with these settings is running, or has started in the meantime.
            BrokerError: the broker refuses, or gives no answer; or a stop is requested before anything is judged.
            RegistryError: the schema registry refuses, or has not answered when a stop is requested.
        """
        digest = digest_of(self._settings)
        names, topics = state_topics(self._settings, digest), Topics(self._settings, self._give_up_if_stopping)
        _check_decided(self._settings, topics, digest, self._give_up_if_stopping)
        _check_unused(topics, names.owner, digest)
        with (
            open_store(state_directory(self._settings, digest), self._settings.state) as store,
            closing(self._writer(topics, names, digest)) as writer,
            closing(Deduplicator(settings=self._settings, store=store)) as engine,
        ):
            check_own(engine.state.place, names.changelog)
            topics.prepare(names)
            identity = topics.identity(names.changelog)
            writer.open()
            catch_up(
                engine.state,
                self._settings,
                names.changelog,
                identity,
                self._report,
                heartbeat=self._look_up_from_replay,
            )
            judged = engine.progress.judged
            with (
                Formats(self._settings, self._await_registry) as formats,
                closing(
                    History(self._settings, engine.positions(), topics.known_identities, self._give_up_if_stopping)
                ) as history,
            ):
                committer = Committer(engine, writer, identity)
                decoder = formats.decoder(topics.max_message_bytes(self._settings.output.unique))
                for messages in history.batches():
                    if self._stopping.is_set():
                        break
                    self._check_room()
                    if not messages:
                        continue
                    try:
                        commit_without_publishing(messages, history.identities, engine, decoder, committer)
                    except AbortedError as error:
                        raise BrokerError(f"{error}: {_AGAIN}") from None
                    self._report("messages of the input", history.done, history.total)
            return engine.progress.judged - judged

    def _writer(self, topics: Topics, names: StateTopics, digest: str) -> Writer:
        """Return a writer that a service with the same settings ends: it fences it, or is noticed."""

        def unused(_seconds: float) -> bool:
            _check_unused(topics, names.owner, digest)
            return True

        return make_writer(self._settings, names.changelog, self._give_up_if_stopping, None, unused)

    def _look_up_from_replay(self) -> None:
        if self._stopping.is_set():
            raise BrokerError(f"the changelog was being replayed: {_AGAIN}")
        self._check_room()

    def _check_room(self) -> None:
        directory = self._settings.state.directory
        total, _, free = disk_usage(directory)
        if free < min(_RESERVE_BYTES, _RESERVE_SHARE * total):
            raise StoreFullError(
                f"the disk of {directory} has {free >> 20:,} MB left, which a service on it may need: free some "
                f"space, and {_AGAIN}"
            )

    def _await_registry(self, outage: RegistryUnreachableError) -> None:
        self._recurring_faults.warning("registry_out_of_reach", error="registry", detail=str(outage))
        if self._stopping.is_set():
            raise RegistryError(f"{outage}: {_AGAIN}")

    def _give_up_if_stopping(self) -> None:
        if self._stopping.is_set():
            raise BrokerError(f"no broker has answered before the stop: {_AGAIN}")


def _check_unused(topics: Topics, owner_topic: str, digest: str) -> None:
    """Check that no service writes, or waits to write, to the changelog of the settings with a digest.

    Raises:
        FencedError: one does.
        BrokerError: the broker does not say.
    """
    if any(runs_with(member, digest) for member in topics.members(owner_topic)):
        raise FencedError(
            f"a service with these settings is running (a member of the group {owner_topic}) and judges by itself what "
            "its state lacks: a state can be rebuilt only for settings with which none runs"
        )


def _check_decided(settings: Settings, topics: Topics, digest: str, while_waiting: Callable[[], None]) -> None:
    """Check that the group's offsets tell what was decided, if anything was.

    Args:
        settings: topics and group.
        topics: those on the broker.
        digest: of the settings.
        while_waiting: see `Patience`.

    Raises:
        BrokerError: they do not.
    """
    others = topics.other_changelogs(digest)
    if not others:
        return
    patience = Patience(settings, "cannot find out what the group has decided", while_waiting)
    with closing(make_consumer(settings)) as consumer:
        decided = [place for place in committed_offsets(consumer, settings, patience) if place.offset >= 0]
        identities = topics.known_identities({place.topic for place in decided})
        deleted = sorted({place.topic for place in decided if is_of_deleted(place, identities)})
        if decided and not deleted:
            return
        ends = {name: watermarks(consumer, TopicPartition(name, 0), patience)[1] for name in others}
    if written := [name for name, end in ends.items() if end > 0]:
        lacking = f"offsets only in a deleted topic {', '.join(deleted)}" if deleted else "no offsets"
        raise BrokerError(
            f"the group {settings.input.group} has {lacking}, so it is unknown what was decided: start the service "
            f"once with the settings it last ran with, which commits them (changelogs: {', '.join(written)})"
        )
