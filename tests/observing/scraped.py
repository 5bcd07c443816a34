"""Services scraped by a real Prometheus, with the shipped configuration and rules.

Knows directories and intervals; knows nothing of the queries.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.prometheus.ruleset import write_config
from deploy.prometheus.server import Prometheus
from tests.prometheus import program
from tests.stream.waiting import wait_until

INTERVAL_SECONDS = 0.25
FLAGS = ("kafka.statistics.interval.ms=500", "commit.articles=16", "idf.first_epoch_articles=100")
_ALERT_SECONDS = 180.0
# If the test machine's disk is filling up, these fire for any service and say nothing about the one under test.
_OF_THE_MACHINE = frozenset({"StreamDedupDiskFillsUp", "StreamDedupDiskNearlyFull", "StreamDedupDiskFull"})


@contextmanager
def scraped(directory: Path, ports: list[int], *, factor: float = 1.0) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes ports of this machine.

    Args:
        directory: for its configuration and data.
        ports: of services, which need not be running yet.
        factor: by which all times in the rules are shortened.
    """
    targets = [f"127.0.0.1:{port}" for port in ports]
    config = write_config(directory, targets, interval=INTERVAL_SECONDS, factor=factor)
    with Prometheus(program("prometheus"), config, directory) as prometheus:
        yield prometheus


def firing(prometheus: Prometheus) -> set[str]:
    """Return the names of the firing alerts."""
    return {alert.name for alert in prometheus.alerts() if alert.state == "firing"}


def wait_firing(prometheus: Prometheus, *names: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until these alerts fire, whether or not others do.

    Args:
        prometheus: to ask.
        names: of the alerts.
        meanwhile: called before each look.
    """

    def look() -> bool:
        meanwhile()
        return {*names} <= firing(prometheus)

    _wait(look, prometheus, f"{' and '.join(names)} fire")


def wait_silent(prometheus: Prometheus, *names: str) -> None:
    """Wait until these alerts no longer fire; without names, until none does but those of the machine's own disk."""

    def look() -> bool:
        fire = firing(prometheus)
        return not (fire & {*names} if names else fire - _OF_THE_MACHINE)

    _wait(look, prometheus, f"{' and '.join(names) or 'all alerts'} end")


def _wait(condition: Callable[[], bool], prometheus: Prometheus, what: str) -> None:
    try:
        wait_until(condition, what, _ALERT_SECONDS)
    except AssertionError as error:
        told = sorted(f"{alert.name} {alert.state}" for alert in prometheus.alerts())
        raise AssertionError(f"{error}; alerts are {told}") from None
