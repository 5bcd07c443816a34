"""What operators do: a new version takes over from the old one, and a process comes back from nothing.

Two replicas scraped by a real Prometheus: the only alert is for a process that is meant to be away.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from deploy.ports import free_port
from deploy.prometheus.server import Prometheus
from tests.faults.chaos import Replica
from tests.observing.scraped import FLAGS, scraped, wait_firing, wait_silent
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_FACTOR = 120.0
_STORIES = 12
_STORY = "石桥镇第{}号渡口昨日恢复通航，首班渡轮载着{}名乘客过江，船工老周说停航这半年最惦记的就是两岸赶集的人。"


@dataclass(frozen=True, slots=True)
class _Pair:
    """An old and a new process.

    Attributes:
        bootstrap: the broker.
        topics: of the run.
        old: the process that is active at first.
        new: the one that replaces it.
        prometheus: scrapes both, with accelerated rules.
    """

    bootstrap: str
    topics: Topics
    old: Replica
    new: Replica
    prometheus: Prometheus

    def send(self, kind: str) -> None:
        """Send each story, as an article of this kind."""
        stories = [
            article(f"{kind}-{number}", _STORY.format(number, 40 + 3 * number) * 3) for number in range(_STORIES)
        ]
        produce(self.bootstrap, self.topics.input, stories)

    def wait_judged(self, count: int) -> None:
        """Wait until that many articles are judged, by whichever process."""
        query = "max(stream_dedup_state_articles_judged)"
        wait_until(lambda: [curve.values[0] for curve in self.prometheus.query(query)] == [count], f"{count} judged")


@pytest.fixture(scope="module")
def pair(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Pair]:
    """Both replicas, of which only the old one is running."""
    directory, topics, ports = tmp_path_factory.mktemp("rollout"), fresh_topics(bootstrap), (free_port(), free_port())
    scraping = directory / "prometheus"
    scraping.mkdir()
    with (
        scraped(scraping, [*ports], factor=_FACTOR) as prometheus,
        Replica(directory / "old", bootstrap, topics, *FLAGS, f"http.port={ports[0]}") as old,
        Replica(directory / "new", bootstrap, topics, *FLAGS, f"http.port={ports[1]}") as new,
    ):
        old.start().wait_role("active")
        yield _Pair(bootstrap, topics, old, new, prometheus)


def test_a_new_version_takes_over(pair: _Pair) -> None:
    """It starts beside the old one, waits until it is warm, and takes over as soon as the old one is stopped."""
    pair.send("story")
    pair.wait_judged(_STORIES)
    pair.new.start().wait_role("standby")
    pair.new.service.wait_ready()
    wait_silent(pair.prometheus)
    pair.old.stop()
    pair.new.wait_role("active")
    pair.send("copy")
    pair.wait_judged(2 * _STORIES)
    wait_firing(pair.prometheus, "StreamDedupDown")  # the old one is still a target
    # A take-over of a second lasts two minutes here.
    wait_silent(pair.prometheus, "StreamDedupNoActive")


def test_a_process_comes_back_from_nothing(pair: _Pair) -> None:
    """Neither of them has a state any more, but the changelog has everything."""
    pair.new.service.kill()
    for replica in (pair.old, pair.new):
        shutil.rmtree(replica.state)
    pair.old.start().wait_role("active")
    assert [event["articles"] for event in pair.old.service.events("restored")] == [2 * _STORIES]
    pair.send("late")
    pair.wait_judged(3 * _STORIES)
    pair.new.start().wait_role("standby")
    wait_silent(pair.prometheus)


def test_each_article_came_out_once_over_all_lives(pair: _Pair) -> None:
    """What was judged before a rollout and before a loss is still known afterwards."""
    outputs = collect(pair.bootstrap, pair.topics, 3 * _STORIES)
    numbers = range(_STORIES)
    assert sorted(record.key or b"" for record in outputs.unique) == sorted(b"story-%d" % number for number in numbers)
    assert {name: link["duplicate_of"] for name, link in outputs.links().items()} == {
        f"{kind}-{number}": f"story-{number}" for kind in ("copy", "late") for number in numbers
    }
