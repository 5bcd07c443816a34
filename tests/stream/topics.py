"""Topics and groups on a broker: names that no other test uses, made and deleted.

Knows what the broker lists; knows nothing of what the topics hold.
"""

from dataclasses import dataclass, replace
from uuid import uuid4

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.stream.waiting import wait_until

LARGE = 16 << 20  # bytes of the largest batch
ADMIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics and group of one run.

    Attributes:
        input: topic of incoming articles.
        unique: topic of unique articles.
        duplicates: topic of links.
        dead: topic of dead letters.
        clusters: compacted topic of clusters; the service creates it.
        group: consumer group.
    """

    input: str
    unique: str
    duplicates: str
    dead: str
    clusters: str
    group: str

    @property
    def outputs(self) -> tuple[str, str, str]:
        """The three output topics, which together get one message for each incoming one."""
        return self.unique, self.duplicates, self.dead

    def with_other_outputs(self, bootstrap: str) -> "Topics":
        """Return the same input with new outputs and a new group, for another run over it."""
        other = named_topics()
        create_topics(bootstrap, *map(new_topic, other.outputs))
        return replace(other, input=self.input)


def named_topics() -> Topics:
    """Return names that no other test uses; no topic is created."""
    prefix = f"t{uuid4().hex[:12]}"
    return Topics(
        input=f"{prefix}.in",
        unique=f"{prefix}.unique",
        duplicates=f"{prefix}.duplicates",
        dead=f"{prefix}.dead",
        clusters=f"{prefix}.clusters",
        group=prefix,
    )


def fresh_topics(bootstrap: str, *, partitions: int = 1, dead_bytes: int = LARGE) -> Topics:
    """Create an input, and outputs of one partition each, so that their order shows.

    Args:
        bootstrap: the broker.
        partitions: of the input.
        dead_bytes: largest batch that the topic of dead letters accepts.
    """
    topics = named_topics()
    create_topics(
        bootstrap,
        new_topic(topics.input, partitions),
        new_topic(topics.unique),
        new_topic(topics.duplicates),
        new_topic(topics.dead, max_bytes=dead_bytes),
    )
    return topics


def create_topic(bootstrap: str, name: str, partitions: int = 1, *, max_bytes: int = LARGE) -> None:
    """Create a topic that accepts batches of `max_bytes`."""
    create_topics(bootstrap, new_topic(name, partitions, max_bytes=max_bytes))


def new_topic(name: str, partitions: int = 1, *, max_bytes: int = LARGE) -> NewTopic:
    """Return a topic to create."""
    return NewTopic(name, partitions, -1, config={"max.message.bytes": str(max_bytes)})


def create_topics(bootstrap: str, *topics: NewTopic) -> None:
    """Create topics and wait until the broker lists them: at first only the controller knows them."""
    admin = admin_of(bootstrap)  # kept: a client that is freed drops its requests
    for created in admin.create_topics([*topics]).values():
        created.result(ADMIN_SECONDS)
    wait_until(lambda: all(partitions_of(admin, topic.topic) for topic in topics), "the topics are listed")


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Give a topic more partitions, `count` in all, and wait until the broker lists them, as for a new topic."""
    admin = admin_of(bootstrap)
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(ADMIN_SECONDS)
    wait_until(lambda: len(partitions_of(admin, topic)) == count, "the partitions are listed")


def existing_topics(bootstrap: str) -> set[str]:
    """Return the names of all topics."""
    return set(admin_of(bootstrap).list_topics(timeout=ADMIN_SECONDS).topics)


def changelogs(bootstrap: str, topics: Topics) -> list[str]:
    """Return the changelogs of a run, one per set of settings that it was run with."""
    return sorted(name for name in existing_topics(bootstrap) if name.startswith(f"{topics.group}.changelog."))


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = admin_of(bootstrap)
    admin.delete_topics([name])[name].result(ADMIN_SECONDS)
    wait_until(lambda: not partitions_of(admin, name), f"{name} is gone")


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    """Delete the records of a topic's first partition before an offset."""
    place = TopicPartition(topic, 0, before)
    admin = admin_of(bootstrap)
    admin.delete_records([place])[place].result(ADMIN_SECONDS)


def delete_group(bootstrap: str, group: str) -> None:
    """Delete a group's offsets, as soon as it has no members."""
    admin = admin_of(bootstrap)

    def gone() -> bool:
        try:
            admin.delete_consumer_groups([group])[group].result(ADMIN_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
                raise
            return False
        return True

    wait_until(gone, f"the group {group} is gone")


def partitions_of(admin: AdminClient, topic: str) -> list[int]:
    """Return a topic's partitions; none if it does not exist. A list of all topics would get longer with each test."""
    return [*admin.list_topics(topic, timeout=ADMIN_SECONDS).topics[topic].partitions]


def admin_of(bootstrap: str) -> AdminClient:
    """Return a client to keep while its requests run: one that is freed drops them."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
