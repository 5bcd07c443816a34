"""The steps of a commit, with their names.

Knows their order and what a kill after each of them means; performs none of them.

1. `read`: take messages from the input, up to `commit.articles`, `commit.bytes` or `commit.interval_ms`.
2. `decided`: the engine returns decisions and a pending change. Nothing has changed yet.
3. `begun`: begin a Kafka transaction.
4. `published`: send unique articles, links, clusters and dead letters.
5. `logged`: send the change to the changelog, with the input offsets after the messages.
6. `confirmed`: wait until the broker has confirmed all of it.
7. `offsets_sent`: add the input offsets to the transaction, under the group's current generation.
8. `committed`: commit the transaction. From here on the decisions are final, for every reader.
9. `applied`: write the change to RocksDB in one batch, with the changelog position after it.

A kill before 8 leaves a transaction that the next writer aborts: no reader of committed messages sees anything of
it, and the same messages are judged again on the same state. A kill between 8 and 9 leaves RocksDB behind the
changelog: the next start, or the replica that takes over, applies the change from the changelog before it reads
further input. RocksDB is never ahead of Kafka. Without transactions (`commit.guarantee = "at_least_once"`) steps 3,
7 and 8 are left out and 5 waits until 4 is confirmed: after a kill between 4 and 6 the outputs of one commit are
sent again under the same keys; identical, unless messages of several partitions come in another order.
"""

from enum import StrEnum


class Step(StrEnum):
    """A step that has been completed."""

    READ = "read"
    DECIDED = "decided"
    BEGUN = "begun"
    PUBLISHED = "published"
    LOGGED = "logged"
    CONFIRMED = "confirmed"
    OFFSETS_SENT = "offsets_sent"
    COMMITTED = "committed"
    APPLIED = "applied"


def reached(step: Step) -> None:
    """Do nothing. The fault tests replace it with a function that ends the process."""
