"""The clusters topic, read to its end: who has copied which article, and how often.

Knows the topic's keys and values and that it is compacted; knows nothing of how a cluster came about.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from deploy.demo.stream import StreamFailedError, reader_properties

_SLICE_SECONDS = 0.1
_ADMIN_SECONDS = 20.0
_READ_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """An article with its copies.

    Attributes:
        canonical: id of the article that links name.
        copies: how many there are, besides the article itself.
        sources: publishers with their articles, the busiest first.
    """

    canonical: str
    copies: int
    sources: Sequence[tuple[str, int]]


class ClusterTopic:
    """Reads the clusters topic.

    Args:
        bootstrap: address of the broker.
        topic: its name.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._properties = {**reader_properties(bootstrap, f"{topic}.reader"), "enable.partition.eof": True}
        self._topic = topic

    def read(self) -> dict[str, Cluster]:
        """Return the current clusters by canonical article: each key's last value, unless it is a tombstone.

        Raises:
            StreamFailedError: the topic could not be read to its end in time.
        """
        latest: dict[bytes, bytes | None] = {}
        with closing(Consumer(self._properties)) as consumer:
            partitions = consumer.list_topics(self._topic, _ADMIN_SECONDS).topics[self._topic].partitions
            consumer.assign([TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in partitions])
            ended: set[int | None] = set()
            deadline = time.monotonic() + _READ_SECONDS
            while len(ended) < len(partitions):
                if time.monotonic() > deadline:
                    raise StreamFailedError(f"the clusters could not be read to their end within {_READ_SECONDS:.0f} s")
                message = consumer.poll(_SLICE_SECONDS)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    latest[message.key() or b""] = message.value()
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's own codes have this form
                    ended.add(message.partition())
        return {key.decode(): _cluster(json.loads(value)) for key, value in latest.items() if value is not None}

    def read_all(self, copies: int, seconds: float) -> dict[str, Cluster]:
        """Return the clusters once they hold that many copies, or as they are after some time.

        The topics of one transaction need not show it at the same moment. Raises as `read` does.
        """
        deadline = time.monotonic() + seconds
        while True:
            clusters = self.read()
            if sum(cluster.copies for cluster in clusters.values()) == copies or time.monotonic() > deadline:
                return clusters


def largest(clusters: Mapping[str, Cluster]) -> list[Cluster]:
    """Return clusters in order of their copies, the most copied first."""
    return sorted(clusters.values(), key=lambda cluster: (-cluster.copies, cluster.canonical))


def _cluster(fields: Mapping[str, Any]) -> Cluster:
    sources = [(source["source"], source["articles"]) for source in fields["sources"]]
    return Cluster(fields["canonical"], fields["copies"], sources)
