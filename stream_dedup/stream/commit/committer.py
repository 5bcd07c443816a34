"""Commits a change: to the changelog, with everything sent in the same transaction, and then to the state.

Knows in which order the two are written; knows nothing of messages, or of how the change was decided.
"""

from collections.abc import Mapping

from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Change
from stream_dedup.index.changelog import commit_records
from stream_dedup.index.records.ledger import ChangelogPosition
from stream_dedup.stopwatch import Stopwatch
from stream_dedup.stream.kafka.places import Place
from stream_dedup.stream.output.writer import GroupOffsets, Writer


class Committer:
    """Commits the changes of an engine.

    Args:
        engine: decided the changes; they are applied to its state.
        writer: writes to Kafka.
        identity: the changelog's name and topic id, see `Topics.identity`.
    """

    def __init__(self, engine: Deduplicator, writer: Writer, identity: str) -> None:
        self._engine = engine
        self._writer = writer
        self._identity = identity

    def commit(
        self, change: Change, positions: Mapping[Place, int], watch: Stopwatch, group: GroupOffsets | None = None
    ) -> None:
        """Commit a change together with everything that was sent, and apply it to the state.

        Args:
            change: of the engine's last decision.
            positions: of the state after the change: offsets after the messages by topic and partition, and topic
                identities to record.
            watch: gets the laps `transaction` and `apply`.
            group: what to store in the input's group; None if it has this already.

        Raises:
            AbortedError: the transaction was aborted; nothing has changed.
            FencedError: another process writes to the index now.
            BrokerError: the broker refuses, or gives no answer.
            StoreError: the state cannot be written. What was committed before is in the changelog.
        """
        behind = self._writer.commit(list(commit_records(self._engine.commit_of(change, positions))), group)
        watch.lap("transaction")
        place = ChangelogPosition(self._identity, behind) if behind is not None else None
        self._engine.apply(change, positions, place)
        watch.lap("apply")

    def commit_alone(self, change: Change, positions: Mapping[Place, int]) -> None:
        """Commit a change without outputs, in a transaction of its own; raises as `commit` does."""
        self._writer.begin()
        self.commit(change, positions, Stopwatch())
