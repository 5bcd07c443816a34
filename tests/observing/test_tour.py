"""What an operator sees when something breaks: the right alert fires on a real Prometheus, and clears after the repair.

Half a second here is a minute of the rules: their waiting times and look-back windows are 120 times as short.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.dashboards.board import Variables, views
from deploy.dashboards.overview import OVERVIEW
from deploy.ports import free_port
from deploy.prometheus.server import Prometheus
from tests.faults.chaos import Replica, small_disk
from tests.observing.scraped import FLAGS, scraped, wait_firing, wait_silent
from tests.stream.messages import article, produce
from tests.stream.schemas import SchemaServer, schema_server
from tests.stream.topics import ADMIN_SECONDS, Topics, create_topic, fresh_topics
from tests.stream.waiting import wait_until
from tests.unit.registered import sample

pytestmark = pytest.mark.usefixtures("compiled")
_FACTOR = 120.0
_DISK_BYTES = 512 << 20
_OLD_SECONDS = 600
_UNKNOWN_SCHEMA = b"\0" + (999).to_bytes(4) + b"whatever"
_PARAGRAPH = "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场，第{}号摊位卖的是藕片。"


@dataclass(frozen=True, slots=True)
class _Site:
    """One process on a small disk of its own, scraped, with a schema registry.

    Attributes:
        bootstrap: the broker.
        topics: of the run.
        avro: a second input topic, in Avro.
        replica: the process.
        registry: the schema registry it uses.
        prometheus: with accelerated rules.
        mounted: whether the state is on its own disk.
    """

    bootstrap: str
    topics: Topics
    avro: str
    replica: Replica
    registry: SchemaServer
    prometheus: Prometheus
    mounted: bool

    def send(self, number: int) -> None:
        """Send an article."""
        produce(self.bootstrap, self.topics.input, [article(f"n-{number}", _PARAGRAPH.format(number) * 3)])

    def send_old(self, value: bytes) -> None:
        """Send a message dated ten minutes ago to the Avro topic."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        producer.produce(self.avro, value, timestamp=round((time.time() - _OLD_SECONDS) * 1000))
        assert producer.flush(ADMIN_SECONDS) == 0


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Site]:
    """A healthy, active process."""
    directory, topics, port = tmp_path_factory.mktemp("tour"), fresh_topics(bootstrap), free_port()
    avro = f"{topics.group}.avro"
    create_topic(bootstrap, avro)
    state, prometheus_directory = directory / "service" / "state", directory / "prometheus"
    prometheus_directory.mkdir()
    with schema_server() as registry, small_disk(state, _DISK_BYTES):
        flags = (
            *FLAGS,
            f"http.port={port}",
            f"input.topics={topics.input},{avro}",
            f"input.formats={avro}=avro",
            f"registry.url={registry.url}",
        )
        with (
            scraped(prometheus_directory, [port], factor=_FACTOR) as prometheus,
            Replica(directory / "service", bootstrap, topics, *flags) as replica,
        ):
            replica.start().wait_role("active")
            yield _Site(bootstrap, topics, avro, replica, registry, prometheus, os.path.ismount(state))


def test_all_is_well_at_first(site: _Site) -> None:
    """A process that has just started, and is working, raises no alert."""
    numbers = count()

    def decided() -> bool:
        # One more each time: Prometheus cannot compute a rate of what came before its first scrape.
        site.send(next(numbers))
        return bool(site.prometheus.query("job:stream_dedup_messages:rate5m > 0"))

    wait_until(decided, "articles are decided")
    wait_silent(site.prometheus)


def test_a_killed_process_is_told_of_until_it_is_back(site: _Site) -> None:
    """It is down and nobody is active; the dashboard lists both alerts, and they name the instance."""
    site.replica.service.kill()
    wait_firing(site.prometheus, "StreamDedupDown", "StreamDedupNoActive")
    (listed,) = [view for view in views(OVERVIEW) if view.title == "Alerts"]
    expression = Variables(1, 4, 60).filled(listed.queries[0].expression)

    def shows_both() -> bool:
        shown = site.prometheus.query(expression)
        alerts = {curve.labels["alertname"]: curve.values[0] for curve in shown}
        return alerts.items() >= {("StreamDedupDown", 1.0), ("StreamDedupNoActive", 2.0)}

    wait_until(shows_both, "the dashboard lists both")
    (alert,) = [one for one in site.prometheus.alerts() if one.name == "StreamDedupDown"]
    assert alert.labels["instance"] in alert.annotations["summary"]
    site.replica.start().wait_role("active")
    wait_silent(site.prometheus, "StreamDedupDown", "StreamDedupNoActive")


def test_a_process_that_stands_still_is_told_of_until_it_goes_on(site: _Site) -> None:
    """A process that does not answer is as good as gone."""
    site.replica.pause()
    wait_firing(site.prometheus, "StreamDedupDown", "StreamDedupNoActive")
    site.replica.resume()
    wait_silent(site.prometheus, "StreamDedupDown", "StreamDedupNoActive")


def test_poison_is_told_of_until_it_stops(site: _Site) -> None:
    """More messages that cannot be judged than ones that can raise two alerts, by their share."""
    produce(site.bootstrap, site.topics.input, [article(f"empty-{number}", "") for number in range(300)])
    wait_firing(site.prometheus, "StreamDedupDeadLetters", "StreamDedupNearlyAllDead")
    wait_silent(site.prometheus, "StreamDedupDeadLetters", "StreamDedupNearlyAllDead")


def test_lag_is_told_of_until_it_is_made_up(site: _Site) -> None:
    """Without the schema registry nothing is decided: alerts report that, and the growing lag."""
    alerts = ("StreamDedupSchemaRegistryAwaited", "StreamDedupFarBehind", "StreamDedupLagGrowing")
    site.send_old(sample(site.registry.client, "avro", id="avro", body=_PARAGRAPH * 3))
    site.registry.away.set()
    site.send_old(_UNKNOWN_SCHEMA)
    numbers = count(1000)
    wait_firing(site.prometheus, *alerts, meanwhile=lambda: site.send(next(numbers)))
    site.registry.away.clear()
    wait_silent(site.prometheus, *alerts)


def test_a_full_disk_is_told_of_before_it_is_too_late(site: _Site) -> None:
    """Two thresholds of free space raise alerts, which clear once there is room."""
    if not site.mounted:
        pytest.skip("this user may not mount a small disk: run as root to see the alerts on one")
    ballast = Path(site.replica.state, "ballast")
    free: list[float] = []

    def is_told() -> bool:
        # A scrape that a busy process does not answer in time leaves nothing to query.
        free.extend(series.values[0] for series in site.prometheus.query("stream_dedup_state_disk_free_bytes"))
        return bool(free)

    wait_until(is_told, "the free space")
    ballast.write_bytes(bytes(round(free[0] - 0.02 * _DISK_BYTES)))
    wait_firing(site.prometheus, "StreamDedupDiskNearlyFull", "StreamDedupDiskFull")
    wait_silent(site.prometheus, "StreamDedupDown")  # which a busy process may set off for a moment
    ballast.unlink()
    wait_silent(site.prometheus, "StreamDedupDiskNearlyFull", "StreamDedupDiskFull")
