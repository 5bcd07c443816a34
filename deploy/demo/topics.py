"""The topics of one demonstration, with names of its own: created before and removed after.

Knows the broker; knows nothing of messages.
"""

import secrets
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

MAX_MESSAGE_BYTES = 4 << 20  # the largest sample has 1.2 MB, and Kafka's default is 1 MB
_ADMIN_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Topics:
    """Names, which no two demonstrations on one broker share.

    Attributes:
        run: how all names begin.
    """

    run: str

    @property
    def articles(self) -> str:
        """Topic that the service reads."""
        return f"{self.run}.articles.in"

    @property
    def unique(self) -> str:
        """Topic of the articles that are new."""
        return f"{self.run}.articles.unique"

    @property
    def duplicates(self) -> str:
        """Topic of the links."""
        return f"{self.run}.articles.duplicates"

    @property
    def dead(self) -> str:
        """Topic of the messages that cannot be judged."""
        return f"{self.run}.articles.dead"

    @property
    def clusters(self) -> str:
        """Topic of the clusters, which the service creates."""
        return f"{self.run}.articles.clusters"

    @property
    def outputs(self) -> tuple[str, str, str]:
        """The three topics, one of which answers each message."""
        return self.unique, self.duplicates, self.dead

    @property
    def groups(self) -> tuple[str, str]:
        """The consumer groups of the service: that of the input, and that of the possible owners of the index."""
        return self.run, f"{self.run}.owner"


@contextmanager
def demo_topics(bootstrap: str) -> Iterator[Topics]:
    """Create the topics and name the consumer group; remove all topics and groups of the run at the end.

    They are removed even from a broker that ends with the demonstration: both kinds of brokers are treated alike.

    Args:
        bootstrap: address of the broker.

    Raises:
        KafkaException: the broker refuses to create a topic.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = Topics(f"demo-{secrets.token_hex(3)}")
    try:
        _make(admin, topics)
        yield topics
    finally:
        _remove(admin, topics)


def _make(admin: AdminClient, topics: Topics) -> None:
    # One partition, because only within a partition is there an order: with more, a copy could overtake its original,
    # the original would then be the copy, and the counts would not be the same in each run.
    new = [
        NewTopic(name, 1, -1, config={"max.message.bytes": str(MAX_MESSAGE_BYTES)})
        for name in (topics.articles, *topics.outputs)
    ]
    futures = admin.create_topics(new).values()
    try:
        for future in futures:
            future.result(_ADMIN_SECONDS)
    finally:
        # After an interruption they are removed: one that is created later would be left.
        wait(futures, _ADMIN_SECONDS)


def _remove(admin: AdminClient, topics: Topics) -> None:
    removals = [
        *admin.delete_topics(_names(admin, topics)).values(),
        *admin.delete_consumer_groups([*topics.groups]).values(),
    ]
    for removal in removals:
        try:
            removal.result(_ADMIN_SECONDS)
        except (KafkaException, TimeoutError):
            # Not there yet, no longer there, or the broker is gone: nothing is left to remove.
            continue


def _names(admin: AdminClient, topics: Topics) -> list[str]:
    """Return the topics of the run, including those that the service itself creates for its state."""
    made = {topics.articles, *topics.outputs}  # the broker may be gone, or may not list them yet
    with suppress(KafkaException):
        made |= {name for name in admin.list_topics(timeout=_ADMIN_SECONDS).topics if name.startswith(f"{topics.run}.")}
    return sorted(made)
