"""Where a service resumes if its state, its changelog and its group's offsets do not agree, or some are lost.

Knows what was published before and after; the tools for such states are tested in test_state_tools.
"""

import shutil
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.engine.samples import bodies
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import Outputs, Record, collect
from tests.stream.service import Service
from tests.stream.topics import ADMIN_SECONDS, Topics, changelogs, delete_topic, existing_topics, fresh_topics

pytestmark = pytest.mark.usefixtures("compiled")


def _commit(bootstrap: str, topics: Topics, offsets: dict[int, int]) -> None:
    """Commit offsets of the input as the service's group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group, "enable.auto.commit": "false"})
    with closing(consumer):
        consumer.commit(
            offsets=[TopicPartition(topics.input, part, offset) for part, offset in offsets.items()],
            asynchronous=False,
        )


def _committed(bootstrap: str, topics: Topics, partitions: int) -> list[int]:
    """Return the offsets that the service's group has committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})
    with closing(consumer):
        places = [TopicPartition(topics.input, partition) for partition in range(partitions)]
        return [place.offset for place in consumer.committed(places, timeout=ADMIN_SECONDS)]


@dataclass(slots=True)
class Stock:
    """Articles of one run with two partitions, each with its own text.

    Attributes:
        bodies: by id.
    """

    bodies: dict[str, str] = field(default_factory=dict)

    def articles(self, names: str) -> list[Incoming]:
        """Return new articles, one per letter and partition: a0, a1, b0, b1 and so on."""
        return [self._article(f"{name}{partition}", partition) for name in names for partition in (0, 1)]

    def copies(self, names: str) -> list[Incoming]:
        """Return copies of them under new ids."""
        return [
            replace(
                article(f"copy of {name}{partition}", f"本报讯 {self.bodies[f'{name}{partition}']}"),
                partition=partition,
            )
            for name in names
            for partition in (0, 1)
        ]

    def _article(self, name: str, partition: int) -> Incoming:
        self.bodies[name] = bodies()[len(self.bodies)]
        return replace(article(name, self.bodies[name]), partition=partition)


def _ids(records: Iterable[Record]) -> list[str]:
    return sorted((record.key or b"").decode() for record in records)


def _named(names: str) -> list[str]:
    return [f"{name}{partition}" for name in names for partition in (0, 1)]


def _links_of(outputs: Outputs) -> dict[str, str]:
    """Return the canonical article of each link."""
    return {name: str(link["duplicate_of"]) for name, link in outputs.links().items()}


def _copied(names: str) -> dict[str, str]:
    """Return the links that the copies must have."""
    return {f"copy of {name}": name for name in _named(names)}


def test_positions_of_the_state_win_over_those_of_the_group(bootstrap: str, tmp_path: Path) -> None:
    """A group that is set back repeats nothing; what it is ahead of the state was decided, so it is only learnt."""
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("abc"))
    with Service(tmp_path, bootstrap, topics) as service:
        assert _ids(collect(bootstrap, topics, 6, service).unique) == _named("abc")
        service.stop()
    assert _committed(bootstrap, topics, 2) == [3, 3]
    produce(bootstrap, topics.input, [*stock.articles("de"), *stock.copies("d")])
    _commit(bootstrap, topics, {0: 4, 1: 0})
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 11, service)
        service.stop()
    assert _ids(outputs.unique) == sorted({*_named("abcde")} - {"d0"})
    assert _links_of(outputs) == _copied("d")
    assert outputs.total() == 11
    assert _committed(bootstrap, topics, 2) == [6, 6]


def test_lost_state_is_restored_from_the_changelog(bootstrap: str, tmp_path: Path) -> None:
    """A service that lost its directory continues as if nothing had happened, and publishes nothing again."""
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("abc"))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 6, service)
        service.stop()
    shutil.rmtree(tmp_path / "state")
    produce(bootstrap, topics.input, [*stock.copies("abc"), *stock.articles("d")])
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 14, service)
        service.stop()
    assert service.events("restored")[0]["articles"] == 6
    assert not service.events("judged_again_in_silence")
    assert _ids(outputs.unique) == _named("abcd")
    assert _links_of(outputs) == _copied("abc")
    assert outputs.total() == 14


def test_lost_state_and_changelog_are_made_again_in_silence(bootstrap: str, tmp_path: Path) -> None:
    """Without both, the input is judged again up to the group's offsets, and none of it is published again.

    A state whose changelog alone was deleted could not be restored: it is refused, with the way out.
    """
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("abc"))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 6, service)
        service.stop()
    for name in changelogs(bootstrap, topics):
        delete_topic(bootstrap, name)
    with Service(tmp_path, bootstrap, topics) as service:
        assert service.wait_end() == 1
    assert "the topic was deleted and recreated" in service.log()
    shutil.rmtree(tmp_path / "state")
    produce(bootstrap, topics.input, [*stock.copies("abc"), *stock.articles("d")])
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 14, service)
        silent = service.metrics().by("messages_silent_total")
        service.stop()
    assert [event["messages"] for event in service.events("judged_again_in_silence")] == [6]
    assert silent == {(): 6}
    assert _ids(outputs.unique) == _named("abcd")
    assert _links_of(outputs) == _copied("abc")
    assert outputs.total() == 14


@pytest.mark.parametrize("setting", ["state.name", "input.group"])
def test_state_of_another_index_is_told_by_the_settings_that_name_it(
    setting: str, bootstrap: str, tmp_path: Path
) -> None:
    """No topic was recreated: the message names the settings and the index; with that state.name the service runs."""
    topics, stock = fresh_topics(bootstrap, partitions=2), Stock()
    produce(bootstrap, topics.input, stock.articles("a"))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 2, service)
        service.stop()
    other = f"{setting}={topics.group}-other"
    with Service(tmp_path, bootstrap, topics, other) as service:
        assert service.wait_end() == 1
    assert f"state.name = {topics.group} to continue with this index" in service.log()
    assert "recreated" not in service.log()
    assert not [name for name in existing_topics(bootstrap) if name.startswith(f"{topics.group}-other")]
    produce(bootstrap, topics.input, stock.copies("a"))
    with Service(tmp_path, bootstrap, topics, other, f"state.name={topics.group}") as service:
        assert collect(bootstrap, topics, 4, service).total() == 4
        service.stop()
